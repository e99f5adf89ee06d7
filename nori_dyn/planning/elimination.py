"""Elimination: LU with both substitutions, one pivot at a time, over elements of the field or over expressions.

Over the field, each entry is its value at the random point of the expressions, so an entry that cancels for all q is
known to be zero, and 1 and -1 are recognised: that is enough to choose an order and to count. Over
expressions the same steps write the program. On request each entry also carries its values at an ensemble of sampled
states, for the choice of stable pivots.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Floats

T = TypeVar("T")

UNITS = (1, PRIME - 1)
"""Fingerprints of the constants 1 and -1: a factor that costs nothing."""


class ZeroPivotError(ZeroDivisionError):
    """A pivot that is zero for all q, or no other pivot left.

    Attributes:
        rank: the rank of the matrix, where no pivot is left; None where another order may do.
    """

    def __init__(self, message: str, rank: int | None = None) -> None:
        self.rank = rank
        super().__init__(message)


class Scalars(Protocol[T]):
    """The arithmetic that an elimination needs; falsity of a scalar is no test for zero, `is_zero` is."""

    @property
    def zero(self) -> T:
        """The number 0."""

    def of(self, entry: Expr) -> T:
        """An entry of the system as a scalar."""

    def is_zero(self, x: T) -> bool:
        """Whether x is zero for all q."""

    def is_unit(self, x: T) -> bool:
        """Whether x is the constant 1 or -1."""

    def reciprocal(self, x: T) -> T:
        """1 / x."""

    def times(self, x: T, y: T) -> T:
        """The product x y."""

    def negative(self, x: T) -> T:
        """-x."""

    def minus_product(self, old: T, x: T, y: T) -> T:
        """The difference old - x y."""

    def subtract(self, target: dict[int, T], x: T, source: Mapping[int, T]) -> tuple[list[int], list[int]]:
        """Take x times a row from another, nothing of them zero; return where entries came, and where they went."""


class PrimeField:
    """Elements of the field: values of expressions at the random point."""

    zero = 0

    def of(self, entry: Expr) -> int:
        return entry.fingerprint

    def is_zero(self, x: int) -> bool:
        return x == 0

    def is_unit(self, x: int) -> bool:
        return x in UNITS

    def reciprocal(self, x: int) -> int:
        return x if x in UNITS else pow(x, -1, PRIME)

    def times(self, x: int, y: int) -> int:
        return x * y % PRIME

    def negative(self, x: int) -> int:
        return -x % PRIME

    def minus_product(self, old: int, x: int, y: int) -> int:
        return (old - x * y) % PRIME

    def subtract(self, target: dict[int, int], x: int, source: Mapping[int, int]) -> tuple[list[int], list[int]]:
        came, went = [], []
        for j, y in source.items():
            old = target.get(j)
            if old is None:
                target[j] = -x * y % PRIME
                came.append(j)
            elif new := (old - x * y) % PRIME:
                target[j] = new
            else:
                del target[j]
                went.append(j)
        return came, went


FIELD = PrimeField()


class Expressions:
    """Expressions themselves.

    Args:
        graph: where they live.
    """

    def __init__(self, graph: Graph) -> None:
        self.zero = graph.zero
        self.reciprocal = graph.reciprocal
        self.times = graph.mul
        self._sub, self._mul = graph.sub, graph.mul

    def of(self, entry: Expr) -> Expr:
        return entry

    def is_zero(self, x: Expr) -> bool:
        return x.index == 0

    def is_unit(self, x: Expr) -> bool:
        return x.is_unit

    def negative(self, x: Expr) -> Expr:
        return -x

    def minus_product(self, old: Expr, x: Expr, y: Expr) -> Expr:
        return self._sub(old, self._mul(x, y))

    def subtract(self, target: dict[int, Expr], x: Expr, source: Mapping[int, Expr]) -> tuple[list[int], list[int]]:
        came, went, sub, mul = [], [], self._sub, self._mul
        for j, y in source.items():
            old = target.get(j)
            if old is None:
                target[j] = sub(self.zero, mul(x, y))
                came.append(j)
            elif (new := sub(old, mul(x, y))).index:
                target[j] = new
            else:
                del target[j]
                went.append(j)
        return came, went


class Pivot(NamedTuple, Generic[T]):
    """One step of an elimination.

    Attributes:
        row, column: the pivot's place in the unpermuted matrix.
        value: the pivot.
        reciprocal: its reciprocal.
        l: the column of L below it, by row: the multipliers.
        u: the row of U right of it, by column.
        fill_in: number of entries that it creates.
        rhs: the pivot row's right-hand side when its turn comes (an entry of -L^-1 b).
        rhs_fill_in: number of right-hand sides that its elimination makes nonzero.
        smallest: smallest size of the pivot over the ensemble, relative to its median; 1 for a constant.
        growth: see `Elimination.growth`.
        is_unit: whether the pivot is an entry 1 or -1 of the matrix as given.
        l_units, u_units: rows and columns whose entries were 1 or -1 in the matrix as given, and are untouched.
    """

    row: int
    column: int
    value: T
    reciprocal: T
    l: dict[int, T]
    u: dict[int, T]
    fill_in: int
    rhs: T
    rhs_fill_in: int
    smallest: float
    growth: float
    is_unit: bool
    l_units: frozenset[int]
    u_units: frozenset[int]


class Elimination(Generic[T]):
    """The active part of a square matrix under elimination; `pivot` does a step.

    Attributes:
        n: number of rows and columns.
        scalars: the arithmetic.
        rows: for each active row its entries by column.
        columns: for each active column its rows.
        samples: entries at the ensemble (slots, states), see `sampled`; None without an ensemble.
        rhs: for each row its right-hand side, -b, eliminated along.
        rhs_nonzeros: number of right-hand sides that are not zero to begin with.
        pivots: the steps done.
        updates: number of entries that they have changed: their cost, roughly.

    Args:
        symbolic: the system.
        scalars: the arithmetic; `FIELD` or `Expressions`.
        samples: values of the structural nonzeros at sampled states (states, nnz), in natural units, for stability.
    """

    def __init__(self, symbolic: SymbolicSystem, scalars: Scalars[T], samples: Floats | None = None) -> None:
        self.n = symbolic.shape[0]
        self.scalars = scalars
        self.rows: list[dict[int, T]] = [{} for _ in range(self.n)]
        self.columns: list[set[int]] = [set() for _ in range(self.n)]
        self.samples = None if samples is None else np.ascontiguousarray(samples.T)
        self.rhs: list[T] = [scalars.negative(scalars.of(b)) for b in symbolic.b]
        self.rhs_nonzeros = sum(not b.is_zero for b in symbolic.b)
        self.pivots: list[Pivot[T]] = []
        self.updates = 0
        self._units: list[set[int]] = [set() for _ in range(self.n)]
        self._slots: list[dict[int, int]] = [{} for _ in range(self.n)]
        self._free: list[int] = []
        self._places: tuple[dict[int, int], dict[int, int]] | None = None
        for k, (row, column) in enumerate(zip(symbolic.rows.tolist(), symbolic.columns.tolist(), strict=True)):
            self.rows[row][column] = scalars.of(symbolic.entries[k])
            self.columns[column].add(row)
            if symbolic.entries[k].is_unit:
                self._units[row].add(column)
            self._slots[row][column] = k

    def is_unit(self, row: int, column: int) -> bool:
        """Whether an entry is the constant 1 or -1."""
        return self.scalars.is_unit(self.rows[row][column])

    def sampled(self, row: int, column: int) -> Floats:
        """An entry over the ensemble (states,)."""
        assert self.samples is not None
        return np.asarray(self.samples[self._slots[row][column]])

    def changes_sign(self, row: int, column: int) -> bool:
        """Whether an entry changes its sign over the ensemble, and so vanishes somewhere between."""
        if self.samples is None:
            return False
        values = self.sampled(row, column)
        return not (values.min() > 0 if values[0] > 0 else values.max() < 0)

    def is_negative(self, i: int) -> bool:
        """Whether there is an entry on the diagonal that is below zero all over the ensemble."""
        return self.samples is not None and i in self.rows[i] and bool(self.sampled(i, i).max() < 0)

    def growth(self, row: int, column: int) -> float:
        """The most that a pivot would make of the other entries over the ensemble.

        That is the largest update of an entry by the largest entry in its row or column. A pivot on the diagonal of
        a symmetric positive definite matrix makes nothing grow, however small its pivots: |a_ip a_pj / a_pp| is at most
        the geometric mean of a_ii and a_jj. Any other does when it comes near zero.
        """
        if self.samples is None or self.is_unit(row, column):
            return 0.0
        samples, slots = self.samples, self._slots
        others = [i for i in self.columns[column] if i != row]
        right = [j for j in slots[row] if j != column]
        if not others or not right:
            return 0.0
        lines = [[*slots[i].values()] for i in others] + [[slots[i][j] for i in self.columns[j]] for j in right]
        starts = np.cumsum([0, *map(len, lines[:-1])])
        sizes = np.maximum.reduceat(np.abs(samples.take([*chain.from_iterable(lines)], 0)), starts)
        with np.errstate(all="ignore"):
            l = np.abs(samples.take([slots[i][column] for i in others], 0)) / np.abs(samples[slots[row][column]])
            u = np.abs(samples.take([slots[row][j] for j in right], 0))
            updates = l[:, None] * u / np.maximum(sizes[: len(others), None], sizes[len(others) :])
        largest = float(updates.max())
        return math.inf if math.isnan(largest) else min(largest, sys.float_info.max)

    def pivot(self, row: int, column: int, growth: float | None = None) -> Pivot[T]:
        """Eliminate a column with a row.

        Args:
            row: the row of the pivot.
            column: its column.
            growth: its growth, where that is known.

        Raises:
            ZeroPivotError: the pivot is zero for all q.
        """
        scalars, zero = self.scalars, self.scalars.zero
        if growth is None:
            growth = self.growth(row, column) if column in self.rows[row] else 0.0
        is_zero, times, minus_product = scalars.is_zero, scalars.times, scalars.minus_product
        pivot_row = self.rows[row]
        value = pivot_row.pop(column, zero)
        if is_zero(value):
            raise ZeroPivotError(f"entry ({row}, {column}) is zero for all q")
        for j in pivot_row:
            self.columns[j].discard(row)
        below = self.columns[column]
        below.discard(row)
        reciprocal = scalars.reciprocal(value)
        multipliers: dict[int, T] = {}
        changes: dict[int, tuple[list[int], list[int]]] = {}
        fill_in = rhs_fill_in = 0
        rhs = self.rhs[row]
        for i in sorted(below):
            target = self.rows[i]
            l = times(target.pop(column), reciprocal)
            multipliers[i] = l
            if not is_zero(rhs):
                rhs_fill_in += is_zero(self.rhs[i])
                self.rhs[i] = minus_product(self.rhs[i], l, rhs)
            came, went = scalars.subtract(target, l, pivot_row)
            changes[i] = came, went
            fill_in += len(came)
            for j in came:
                self.columns[j].add(i)
            for j in went:
                self.columns[j].discard(i)
        smallest = 1.0 if self.samples is None else self._pivot_samples(row, column, changes)
        units = self._units
        is_unit = column in units[row]
        step = Pivot(
            row=row,
            column=column,
            value=value,
            reciprocal=reciprocal,
            l=multipliers,
            u=dict(pivot_row),
            fill_in=fill_in,
            rhs=rhs,
            rhs_fill_in=rhs_fill_in,
            smallest=smallest,
            growth=growth,
            is_unit=is_unit,
            l_units=frozenset(i for i in multipliers if is_unit and column in units[i]),
            u_units=frozenset(units[row] & pivot_row.keys()),
        )
        for i in multipliers:
            units[i].difference_update(pivot_row)
        self.columns[column] = set()
        self.rows[row] = {}
        self.pivots.append(step)
        self.updates += len(multipliers) * len(pivot_row)
        return step

    def _pivot_samples(self, row: int, column: int, changes: Mapping[int, tuple[list[int], list[int]]]) -> float:
        """Do a step on the ensemble; return the smallest size of the pivot relative to its median.

        Args:
            row: the row of the pivot.
            column: its column.
            changes: by row of L, where entries came and where they went.
        """
        slots, source, self._slots[row] = self._slots, self._slots[row], {}
        pivot, of_l = source.pop(column), [slots[i].pop(column) for i in changes]
        of_u = [*source.values()]
        for i, (came, _) in changes.items():
            slots[i].update((j, self._new_slot()) for j in came)
        changed = [slots[i][j] for i in changes for j in source]
        assert self.samples is not None
        samples, value = self.samples, self.samples[pivot]
        with np.errstate(all="ignore"):
            if changed:
                updates = (samples.take(of_l, 0) / value)[:, None] * samples.take(of_u, 0)
                at = np.array(changed)
                samples[at] = samples.take(at, 0) - updates.reshape(len(at), -1)
            sizes = np.sort(np.abs(value))  # nan comes last
            median = 0.5 * (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2])
            smallest = float(sizes[0] / median)
        self._free += [pivot, *of_l, *of_u, *(slots[i].pop(j) for i, (_, went) in changes.items() for j in went)]
        return 0.0 if math.isnan(smallest) or math.isnan(sizes[-1]) else smallest

    def _new_slot(self) -> int:
        """A slot of `samples` that is zero and free."""
        assert self.samples is not None
        if not self._free:
            n = len(self.samples)
            self.samples = np.concatenate([self.samples, np.empty_like(self.samples)])
            self._free = [*range(n, 2 * n)]
        slot = self._free.pop()
        self.samples[slot] = 0.0
        return slot

    def run(self, rows: Iterable[int], columns: Iterable[int]) -> Elimination[T]:
        """Eliminate all in a given order of rows and columns; return self.

        Raises:
            ZeroPivotError: a pivot is zero for all q.
        """
        for row, column in zip(rows, columns, strict=True):
            self.pivot(int(row), int(column))
        return self

    def forget(self) -> None:
        """Free the memory of the steps and the remaining matrix, which is large; counts stay."""
        self.pivots, self.rows, self.columns, self.rhs = [], [], [], []
        self.samples = None

    def permuted(self, pivot: Pivot[T]) -> tuple[dict[int, T], dict[int, T]]:
        """The column of L and the row of U of a step, by their indices in the permuted matrix."""
        if self._places is None:
            self._places = (
                {p.row: k for k, p in enumerate(self.pivots)},
                {p.column: k for k, p in enumerate(self.pivots)},
            )
        row_place, column_place = self._places
        return (
            {row_place[row]: value for row, value in pivot.l.items()},
            {column_place[column]: value for column, value in pivot.u.items()},
        )

    def solution(self, rhs: Mapping[int, T] | None = None) -> dict[int, T]:
        """The solution d by column, once all is eliminated; of another right-hand side, by row, where one is given."""
        factors = Factors(self, self.n)
        d = factors.backward({p.row: p.rhs for p in self.pivots})[0] if rhs is None else factors.solve(rhs)
        return dict.fromkeys(range(self.n), self.scalars.zero) | d

    @property
    def fill_in(self) -> int:
        """Number of entries of L and U that are not in the matrix."""
        return sum(pivot.fill_in for pivot in self.pivots)

    @property
    def nonzeros(self) -> int:
        """Number of entries of L and U, the diagonal counted once."""
        return sum(1 + len(pivot.l) + len(pivot.u) for pivot in self.pivots)


class Factors(Generic[T]):
    """L and U of the first n rows and columns of a matrix.

    Attributes:
        n: see above.
        pivots: the steps of the elimination.

    Args:
        work: the elimination, its first n columns done.
        n: see above.
    """

    def __init__(self, work: Elimination[T], n: int) -> None:
        self._scalars, self.n, self.pivots = work.scalars, n, work.pivots
        self._L = [[(i, l) for i, l in step.l.items() if i < n] for step in work.pivots]
        self._U = [[(j, u) for j, u in step.u.items() if j < n] for step in work.pivots]

    def solve(self, right: Mapping[int, T]) -> dict[int, T]:
        """The solution x by column of a right-hand side by row, absent numbers zero."""
        scalars, reduced = self._scalars, dict(right)
        for step, below in zip(self.pivots, self._L, strict=True):
            value = reduced.get(step.row)
            if value is not None and not scalars.is_zero(value):
                for i, l in below:
                    reduced[i] = scalars.minus_product(reduced.get(i, scalars.zero), l, value)
        return self.backward(reduced)[0]

    def backward(self, reduced: Mapping[int, T]) -> tuple[dict[int, T], int]:
        """The solution of U x = L^-1 b, by row, absent numbers zero; and the number of updates."""
        scalars, count = self._scalars, 0
        x: dict[int, T] = {}
        for step, after in zip(reversed(self.pivots), reversed(self._U), strict=True):
            value = reduced.get(step.row, scalars.zero)
            for j, u in after:
                if j in x:
                    count += 1
                    value = scalars.minus_product(value, u, x[j])
            if not scalars.is_zero(value):
                x[step.column] = scalars.times(value, step.reciprocal)
        return x, count

    def along(self, k: int) -> tuple[dict[int, T], int]:
        """The x with K x + r = 0, K being these rows and columns and r column n + k; and the number of updates."""
        reduced = {step.row: step.u[self.n + k] for step in self.pivots if self.n + k in step.u}
        return self.backward({row: self._scalars.negative(x) for row, x in reduced.items()})
