"""What sensors tell over time of what persists: offsets, pushes that last, speeds; and what has to move for it.

What no single state determines, as an offset beside an unknown force, several may: the offset is the same at all of
them. So states are added, each at another pose, until one more adds nothing; then what makes the difference is looked
for by holding joints where they are.

Source: docs/observability.md; own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranks import clear_rank
from nori_dyn.errors import InputError
from nori_dyn.observe.field import origins
from nori_dyn.observe.generic import ENTRY_DEGREE
from nori_dyn.observe.learned_exact import (
    MOST_STATES,
    ExactSubspace,
    FieldStates,
    MotionRequirements,
    Persisting,
    RequirementSearch,
    until_nothing_new,
)
from nori_dyn.observe.numeric import RANK_TOLERANCE, Reduction
from nori_dyn.system.builder import System
from nori_dyn.system.memory import Remembered
from nori_dyn.typing import Booleans, Floats

SEEN = 1e-7
"""Share of a number's natural size below which what is open of it is taken as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class NumericSubspace:
    """The observable combinations of what persists, after some states.

    Attributes:
        observable: an orthonormal basis of them, over the numbers that persist, in natural units (rank, k).
        sizes: the natural sizes of these numbers (k,).
        open: changes of d in natural units that the last state leaves open, the observable known (n, dimension).
        gap: how many times smaller than others singular values are that were taken as zero, at the least.
    """

    observable: Floats
    sizes: Floats
    open: Floats
    gap: float

    @property
    def rank(self) -> int:
        """How many independent combinations are observable."""
        return len(self.observable)

    @property
    def seen(self) -> frozenset[int]:
        """The numbers that are observable by themselves."""
        return frozenset(np.flatnonzero(1.0 - np.sum(np.square(self.observable), axis=0) < SEEN).tolist())

    def undetermined(self) -> tuple[int, ...]:
        """The numbers of d that the last state leaves open, all that is observable of what persists known."""
        return tuple(np.flatnonzero(np.abs(self.open).max(axis=1, initial=0.0) > SEEN).tolist())

    def independent(self) -> tuple[int, ...]:
        """Numbers, as many as there are combinations, in terms of which these can be written."""
        if not self.rank:
            return ()
        return tuple(sorted(la.qr(self.observable, mode="economic", pivoting=True)[2][: self.rank].tolist()))

    def factors(self, independent: Sequence[int]) -> Floats:
        """The factors (rank, k) of all numbers in combinations that have a 1 at one independent number each."""
        K = np.linalg.solve(self.observable[:, list(independent)], self.observable)
        K[np.abs(K) < SEEN] = 0.0
        return np.asarray(K * self.sizes[list(independent), None] / self.sizes)


class NumericStates:
    """Random configurations of a robot, closed ones where it has loops.

    Args:
        persisting: what persists.
        reduction: its system, reduced.
        seed: seed of configurations, times and decays.
    """

    def __init__(self, persisting: Persisting, reduction: Reduction, seed: int) -> None:
        self._persisting, self._reduction = persisting, reduction
        self._rng = np.random.default_rng(seed)
        self._rows = np.isin(reduction.split.measured, persisting.measured)
        sizes = np.linalg.norm(reduction.at(self._configuration()).X * reduction.column_scale, axis=1)
        self._sizes = np.where(sizes > 0, sizes, 1.0)

    def subspaces(self) -> Iterator[NumericSubspace]:
        """Yield what is observable after 1, 2, ... states."""
        columns, gap = [x.column for x in self._persisting.numbers], np.inf
        before: Floats = np.eye(len(columns))[list(self._persisting.first)]
        while True:
            d, clearly = self._open_at(self._configuration())
            m = d[columns]
            kept, of_before = _null(before @ m, 1.0)
            now, of_now = _null((m @ kept).T, 1.0)
            gap = min(gap, clearly, of_before, of_now)
            yield NumericSubspace(now.T, self._sizes[columns], d @ kept, gap)
            before = now.T if self._persisting.stays else self._carried(d, m, kept)

    def _configuration(self) -> Floats:
        tree = self._persisting.system.tree
        (q,) = tree.random_configurations(1, self._rng)
        q[origins(tree)] = 0.0
        return np.asarray(q)

    def _open_at(self, q: Floats) -> tuple[Floats, float]:
        """The changes of d in natural units (n, dimension) that a configuration leaves open, and how clearly."""
        at, scale = self._reduction.at(q), self._reduction.column_scale
        M = self._reduction.row_scale[self._rows, None] * at.M[self._rows] * scale
        S, gap = _null(M, float(np.linalg.norm(M, 2)) if M.size else 1.0)
        return at.X * scale @ S / self._sizes[:, None], gap

    def _carried(self, d: Floats, m: Floats, kept: Floats) -> Floats:
        """The combinations of the memory that are observed at the next state, before that state."""
        numbers, dt = self._persisting.numbers, self._rng.uniform(0.5, 1.5)
        sizes = [self._sizes[x.column] for x in numbers]
        a = [1.0 if x.time_constant is None else np.exp(-dt / x.time_constant) for x in numbers]
        later = np.array(a)[:, None] * m
        for row, x, size in zip(later, numbers, sizes, strict=True):
            if x.rate is not None:
                row += dt * d[x.rate] * self._sizes[x.rate] / size
        combinations, _ = _null((later @ kept).T, 1.0)
        return combinations.T


def _null(A: Floats, largest: float) -> tuple[Floats, float]:
    """An orthonormal basis (n, dimension) of what a matrix (rows, n) takes to zero, and how clear its rank is.

    Args:
        A: the matrix.
        largest: the size of what is large in it.
    """
    n = A.shape[1]
    if not A.size:
        return np.eye(n), np.inf
    _, values, V = la.svd(np.vstack([A, np.zeros((max(0, n - len(A)), n))]) / (largest or 1.0))
    rank, _ = clear_rank(values, RANK_TOLERANCE)
    dropped = max(float(values[rank]), np.finfo(float).eps) if rank < n else 0.0
    gap = float(values[rank - 1]) / dropped if 0 < rank < n else np.inf
    return V[rank:].T, gap


WHOLE = 1e-9
"""Distance up to which factors are whole numbers."""

AGREEING = 1e-6
"""Share up to which factors from different states are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """A combination of numbers that persist that is observable where they are not by themselves.

    Attributes:
        terms: the factor of each; 0 where it depends on the states.
    """

    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What sensors tell over time of what persists, without what is known of it at first.

    Attributes:
        memory: the variables that persist.
        names: their numbers.
        ranks: how many independent combinations of these are observable after 1, 2, ... states.
        is_asked: whether a number of states was given; else they are as many as add anything.
        seen_after: for each number after how many states it is observable by itself; 0 where it never is.
        sums: the combinations that are observable besides.
        untold: the numbers on which nothing depends that is observable.
        needs: what has to move for those that one state does not show; of trees only.
        undetermined: the numbers of d that are not determined at almost every state once the observable is known.
        undetermined_at_first: those that are not at a single state.
        stays: whether all that persists stays as it is, but for its walk.
        error: bound on the probability that any of this is wrong; None where it is numerical.
        gap: there, how many times smaller than others singular values are that are taken as zero.
    """

    memory: tuple[Remembered, ...]
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    is_asked: bool
    seen_after: tuple[int, ...]
    sums: tuple[Sum, ...]
    untold: tuple[str, ...]
    needs: MotionRequirements
    undetermined: tuple[str, ...]
    undetermined_at_first: tuple[str, ...]
    stays: bool
    error: float | None
    gap: float

    @property
    def rank(self) -> int:
        """How many independent combinations are observable in the end."""
        return self.ranks[-1]

    @property
    def states(self) -> int:
        """How many states it takes for all that is observable."""
        return self.ranks.index(self.rank) + 1

    @property
    def is_learned(self) -> bool:
        """Whether all that persists is learned."""
        return all(self.seen_after)

    @property
    def suffices(self) -> bool:
        """Whether all of d is determined at almost every state once all that is observable is known."""
        return not self.undetermined


def learned(system: System, states: int | None = None, seed: int = 0) -> Learned:
    """Find what the rows of a system determine of its memory, over several states.

    Args:
        system: the system; something of it persists.
        states: how many states; None for as many as add anything.
        seed: seed of everything random.

    Raises:
        InputError: a number of states that is none.
        NotClosedError: loops that cannot be closed.
    """
    is_number = isinstance(states, int) and not isinstance(states, bool)
    if states is not None and not (is_number and 1 <= states <= MOST_STATES):
        raise InputError(f"states is {states!r}, expected a whole number from 1 to {MOST_STATES}, or None.")
    persisting = Persisting.of(system)
    reduction = Reduction(system, seed)
    if system.tree.closing_parts:
        closed = until_nothing_new(NumericStates(persisting, reduction, seed).subspaces(), states)
        independent = closed[-1].independent()
        factors = closed[-1].factors(independent)
        where = factors != 0
        return _report(persisting, closed, independent, where, factors, states)
    of_field = FieldStates(persisting, seed)
    exactly = until_nothing_new(of_field.subspaces(), states)
    independent = tuple(sorted(exactly[-1].span.basis))
    where = np.zeros((len(independent), len(persisting.numbers)), dtype=bool)
    for row, pivot in zip(where, independent, strict=True):
        row[list(exactly[-1].span.basis[pivot])] = True
    factors = _factors(persisting, reduction, independent, len(exactly), seed)
    found = _report(persisting, exactly, independent, where, factors, states)
    needed = RequirementSearch(of_field, persisting, exactly, states).requirements()
    n_states = len(exactly) * (1 + 3 * len(needed.moving)) ** 2
    n = system.shape[1] + 3 * len(persisting.numbers)
    return replace(found, needs=needed, error=min(1.0, n_states * n * ENTRY_DEGREE * (n + 1) / PRIME))


def never_determined(system: System, seed: int = 0) -> tuple[str, ...]:
    """The numbers of d that no number of states determines, with all that is declared to be known at first.

    Args:
        system: the system; something of it persists.
        seed: seed of everything random.

    Raises:
        NotClosedError: loops that cannot be closed.
    """
    persisting = Persisting.of(system, with_beginnings=True)
    last: ExactSubspace | NumericSubspace
    if system.tree.closing_parts:
        last = until_nothing_new(NumericStates(persisting, Reduction(system, seed), seed).subspaces(), None)[-1]
    else:
        last = until_nothing_new(FieldStates(persisting, seed).subspaces(), None)[-1]
    return tuple(system.variable_names[k] for k in last.undetermined())


def _factors(
    persisting: Persisting, reduction: Reduction, independent: tuple[int, ...], n_states: int, seed: int
) -> Floats:
    """The factors of numbers in the observable combinations; 0 where they depend on the states."""
    found = []
    for k in range(2):
        subspace = next(
            itertools.islice(NumericStates(persisting, reduction, seed + k).subspaces(), n_states - 1, None)
        )
        if subspace.rank != len(independent):
            return np.zeros((len(independent), len(persisting.numbers)))
        found.append(subspace.factors(independent))
    agree = np.abs(found[0] - found[1]) <= AGREEING * np.abs(found[0])
    return np.asarray(np.where(agree, found[0], 0.0))


def _report(
    persisting: Persisting,
    subspaces: Sequence[ExactSubspace] | Sequence[NumericSubspace],
    independent: tuple[int, ...],
    where: Booleans,
    factors: Floats,
    states: int | None,
) -> Learned:
    """What is determined, without the motion that it requires.

    Args:
        persisting: what persists.
        subspaces: after each state.
        independent: the columns of numbers that have a 1 in one combination each.
        where: which numbers (rank, k) are in these combinations.
        factors: their factors, 0 where these are not known.
        states: how many states were asked for.
    """
    names = tuple(x.name for x in persisting.numbers)
    seen, of_d, whole = [each.seen for each in subspaces], persisting.system.variable_names, np.round(factors)
    plain = np.where(np.isclose(factors, whole, rtol=0.0, atol=WHOLE), whole, factors)
    sums = []
    for pivot, there, row in zip(independent, where, plain, strict=True):
        terms = dict.fromkeys((pivot, *np.flatnonzero(there).tolist()))
        if len(terms) > 1:
            sums.append(Sum(MappingProxyType({names[k]: float(row[k]) for k in terms})))
    depended = {name for each in sums for name in each.terms}
    after = [next((n for n, one in enumerate(seen, start=1) if k in one), 0) for k in range(len(names))]
    return Learned(
        memory=persisting.memory,
        names=names,
        ranks=tuple(each.rank for each in subspaces),
        is_asked=states is not None,
        seen_after=tuple(n if k in seen[-1] else 0 for k, n in enumerate(after)),
        sums=tuple(sums),
        untold=tuple(x for k, x in enumerate(names) if k not in seen[-1] and x not in depended),
        needs=MotionRequirements(),
        undetermined=tuple(of_d[k] for k in subspaces[-1].undetermined()),
        undetermined_at_first=tuple(of_d[k] for k in subspaces[0].undetermined()),
        stays=persisting.stays,
        error=None,
        gap=min((each.gap for each in subspaces if isinstance(each, NumericSubspace)), default=np.inf),
    )
