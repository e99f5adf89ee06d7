"""Symbolic elimination: what LU in a given order does to the pattern, with exact zeros by fingerprint.

Each entry is carried as its value at the random point of the expressions' field, so an entry that cancels for
all q is seen to be zero, and 1 and -1 are known where they stand. On request each entry also carries its values
at an ensemble of sampled states, for the choice of stable pivots.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import PRIME
from nori_dyn.system.trace import SymbolicSystem


class ZeroPivotError(ZeroDivisionError):
    """A pivot that is zero for all q, or no other pivot left.

    Attributes:
        rank: the rank of the matrix, where no pivot is left; None where another order may do.
    """

    def __init__(self, message: str, rank: int | None = None) -> None:
        self.rank = rank
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Pivot:
    """One step of an elimination; values are elements of the field.

    Attributes:
        row, column: the pivot's place in the unpermuted matrix.
        value: the pivot.
        l: the column of L below it, by row: the multipliers.
        u: the row of U right of it, by column.
        fill_in: number of entries that it creates.
        rhs: the pivot row's right-hand side when its turn comes (an entry of L^-1 b).
        rhs_fill_in: number of right-hand sides that its elimination makes nonzero.
        smallest: smallest size of the pivot over the ensemble, relative to its median; 1 for a constant.
        is_unit: whether the pivot is an entry 1 or -1 of the matrix as given.
        l_units, u_units: rows and columns whose entries were 1 or -1 in the matrix as given, and are untouched.
    """

    row: int
    column: int
    value: int
    l: dict[int, int]
    u: dict[int, int]
    fill_in: int
    rhs: int
    rhs_fill_in: int
    smallest: float
    is_unit: bool
    l_units: frozenset[int]
    u_units: frozenset[int]


class Elimination:
    """The active part of a square matrix under elimination; `pivot` does a step.

    Attributes:
        n: number of rows and columns.
        rows: for each active row its entries by column, as elements of the field.
        columns: for each active column its rows.
        samples: for each active row its entries at the ensemble by column; None without an ensemble.
        rhs: for each row its right-hand side, eliminated along.
        rhs_nonzeros: number of right-hand sides that are not zero to begin with.
        pivots: the steps done.

    Args:
        symbolic: the system.
        samples: values of the structural nonzeros at sampled states (states, nnz), in natural units, for stability.
    """

    def __init__(self, symbolic: SymbolicSystem, samples: NDArray[np.float64] | None = None) -> None:
        self.n = symbolic.shape[0]
        self.rows: list[dict[int, int]] = [{} for _ in range(self.n)]
        self.columns: list[set[int]] = [set() for _ in range(self.n)]
        self.samples: list[dict[int, NDArray[np.float64]]] | None = None
        self.rhs: list[int] = [b.fingerprint for b in symbolic.b]
        self.rhs_nonzeros = sum(b != 0 for b in self.rhs)
        self.pivots: list[Pivot] = []
        self._units: set[tuple[int, int]] = set()
        self._places: tuple[dict[int, int], dict[int, int]] | None = None
        if samples is not None:
            self.samples = [{} for _ in range(self.n)]
        for k, (row, column) in enumerate(zip(symbolic.rows.tolist(), symbolic.columns.tolist(), strict=True)):
            self.rows[row][column] = symbolic.entries[k].fingerprint
            self.columns[column].add(row)
            if symbolic.entries[k].is_unit:
                self._units.add((row, column))
            if self.samples is not None and samples is not None:
                self.samples[row][column] = samples[:, k]

    def is_unit(self, row: int, column: int) -> bool:
        """Return whether an entry is the constant 1 or -1."""
        return self.rows[row][column] in (1, PRIME - 1)

    def markowitz(self, row: int, column: int) -> int:
        """Return the most entries that a pivot can touch: (r - 1)(c - 1)."""
        return (len(self.rows[row]) - 1) * (len(self.columns[column]) - 1)

    def spread(self, row: int, column: int) -> float:
        """Return how much an entry varies over the ensemble: its median size over its smallest; 1 for a constant.

        An entry that changes its sign over the ensemble vanishes somewhere between: infinity.
        """
        if self.samples is None or self.is_unit(row, column):
            return 1.0
        values = self.samples[row][column]
        if not (np.all(values > 0) or np.all(values < 0)):
            return math.inf
        size = np.abs(values)
        return float(np.median(size) / size.min())

    def growth(self, row: int, column: int) -> float:
        """Return the largest multiplier that a pivot leads to over the ensemble, in the units of the samples."""
        if self.samples is None:
            return 1.0
        size = np.abs(self.samples[row][column])
        largest = np.max([np.abs(self.samples[i][column]) for i in self.columns[column]], axis=0)
        with np.errstate(divide="ignore"):
            return float(np.max(largest / size))

    def pivot(self, row: int, column: int) -> Pivot:
        """Eliminate a column with a row.

        Raises:
            ZeroPivotError: the pivot is zero for all q.
        """
        pivot_row = self.rows[row]
        value = pivot_row.pop(column, 0)
        if value == 0:
            raise ZeroPivotError(f"entry ({row}, {column}) is zero for all q")
        for j in pivot_row:
            self.columns[j].discard(row)
        below = self.columns[column]
        below.discard(row)
        inverse = value if value in (1, PRIME - 1) else pow(value, -1, PRIME)
        multipliers: dict[int, int] = {}
        fill_in = rhs_fill_in = 0
        rhs = self.rhs[row]
        for i in below:
            target = self.rows[i]
            l = target.pop(column) * inverse % PRIME
            multipliers[i] = l
            if rhs:
                rhs_fill_in += self.rhs[i] == 0
                self.rhs[i] = (self.rhs[i] - l * rhs) % PRIME
            for j, u in pivot_row.items():
                old = target.get(j)
                new = ((old or 0) - l * u) % PRIME
                if old is None:
                    fill_in += 1
                if new:
                    target[j] = new
                    self.columns[j].add(i)
                elif old is not None:
                    del target[j]
                    self.columns[j].discard(i)
        smallest = 1.0 if self.samples is None else self._pivot_samples(row, column, multipliers)
        step = Pivot(
            row,
            column,
            value,
            multipliers,
            dict(pivot_row),
            fill_in,
            rhs,
            rhs_fill_in,
            smallest,
            (row, column) in self._units,
            frozenset(i for i in multipliers if (i, column) in self._units and (row, column) in self._units),
            frozenset(j for j in pivot_row if (row, j) in self._units),
        )
        self._units.difference_update([(i, j) for i in multipliers for j in pivot_row])
        self.columns[column] = set()
        self.rows[row] = {}
        self.pivots.append(step)
        return step

    def _pivot_samples(self, row: int, column: int, multipliers: dict[int, int]) -> float:
        """Do a step on the ensemble; return the smallest size of the pivot relative to its median."""
        assert self.samples is not None
        source = self.samples[row]
        value = source.pop(column)
        with np.errstate(all="ignore"):
            for i in multipliers:
                target = self.samples[i]
                l = target.pop(column) / value
                for j, u in source.items():
                    if j in self.rows[i]:
                        target[j] = target[j] - l * u if j in target else -l * u
                    else:
                        target.pop(j, None)
            size = np.abs(value)
            return float(np.nan_to_num(size.min() / np.median(size)))

    def run(self, rows: Iterable[int], columns: Iterable[int]) -> Elimination:
        """Eliminate all in a given order of rows and columns; return self.

        Raises:
            ZeroPivotError: a pivot is zero for all q.
        """
        for row, column in zip(rows, columns, strict=True):
            self.pivot(int(row), int(column))
        return self

    def permuted(self, pivot: Pivot) -> tuple[dict[int, int], dict[int, int]]:
        """Return the column of L and the row of U of a step by their places in the permuted matrix."""
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

    def solution(self) -> dict[int, int]:
        """Return the solution by column, in the field, once all is eliminated: which unknowns are zero for all q."""
        x: dict[int, int] = {}
        for pivot in reversed(self.pivots):
            value = -pivot.rhs - sum(u * x[j] for j, u in pivot.u.items())
            x[pivot.column] = value * pow(pivot.value, -1, PRIME) % PRIME
        return x

    @property
    def smallest_pivot(self) -> float:
        """Smallest pivot over the ensemble, each relative to its own median: how near the order comes to breaking."""
        return min((pivot.smallest for pivot in self.pivots), default=1.0)

    @property
    def fill_in(self) -> int:
        """Number of entries of L and U that are not in the matrix."""
        return sum(pivot.fill_in for pivot in self.pivots)

    @property
    def nonzeros(self) -> int:
        """Number of entries of L and U, the diagonal counted once."""
        return sum(1 + len(pivot.l) + len(pivot.u) for pivot in self.pivots)
