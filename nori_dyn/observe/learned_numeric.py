"""What states tell of what persists, in doubles: at closed configurations of a robot with loops, and for factors.

What a state leaves open of all that does not persist is the null space of its rows. As far as it moves nothing that
earlier states told of m, it spans the changes of m that are open now, and by m' = a m + dt r those that are open at the
next state.

Source: own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.ranks import clear_rank
from nori_dyn.observe.numeric import RANK_TOLERANCE, Reduction
from nori_dyn.observe.persisting import Persisting
from nori_dyn.system.sources import Reduced
from nori_dyn.typing import Floats

SEEN = 1e-7
"""Share of a number's natural size below which what is open of it is taken as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class NumericallyTold:
    """What is told after some states.

    Attributes:
        told: orthonormal combinations of the numbers that persist, in natural units, that are told (rank, k).
        sizes: the natural sizes of these numbers (k,).
        open: changes of d in natural units that the last state leaves open, by all that is told (n, dimension).
        gap: how many times smaller than others singular values are that were taken as zero, at the least.
    """

    told: Floats
    sizes: Floats
    open: Floats
    gap: float

    @property
    def rank(self) -> int:
        """How many independent combinations are told."""
        return len(self.told)

    @property
    def seen(self) -> frozenset[int]:
        """The numbers that are told by themselves."""
        return frozenset(np.flatnonzero(1.0 - np.sum(np.square(self.told), axis=0) < SEEN).tolist())

    def undetermined(self) -> tuple[int, ...]:
        """Return the numbers of d that the last state leaves open, by all that is told of what persists."""
        return tuple(np.flatnonzero(np.abs(self.open).max(axis=1, initial=0.0) > SEEN).tolist())

    def independent(self) -> tuple[int, ...]:
        """Return numbers, as many as there are combinations, in terms of which these can be written."""
        if not self.rank:
            return ()
        return tuple(sorted(la.qr(self.told, mode="economic", pivoting=True)[2][: self.rank].tolist()))

    def factors(self, independent: Sequence[int]) -> Floats:
        """Return the factors (rank, k) of all numbers in combinations that have a 1 at one independent number each."""
        K = np.linalg.solve(self.told[:, list(independent)], self.told)
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
        self._rows = np.isin(reduction.split.measured, persisting.told)
        sizes = np.linalg.norm(self._over_sources(reduction.at(self._configuration())), axis=1)
        self._sizes = np.where(sizes > 0, sizes, 1.0)

    def told(self) -> Iterator[NumericallyTold]:
        """Yield what is told after 1, 2, ... states."""
        columns, gap = [x.column for x in self._persisting.numbers], np.inf
        before: Floats = np.eye(len(columns))[list(self._persisting.first)]
        while True:
            d, clearly = self._open_at(self._configuration())
            m = d[columns]
            kept, of_before = _null(before @ m, 1.0)
            told, of_now = _null((m @ kept).T, 1.0)
            gap = min(gap, clearly, of_before, of_now)
            yield NumericallyTold(told.T, self._sizes[columns], d @ kept, gap)
            before = told.T if self._persisting.stays else self._carried(d, m, kept)

    def _configuration(self) -> Floats:
        (q,) = self._persisting.system.tree.random_configurations(1, self._rng)
        return np.asarray(q)

    def _over_sources(self, at: Reduced) -> Floats:
        """Return the numbers of d over the sources in natural units (n, n_sources)."""
        split, scale = self._reduction.split, self._reduction.column_scale
        d = np.zeros((self._reduction.system.shape[1], len(scale)))
        d[split.sources, np.arange(len(scale))], d[split.others] = scale, at.X * scale
        return d

    def _open_at(self, q: Floats) -> tuple[Floats, float]:
        """Return the changes of d in natural units (n, dimension) that a configuration leaves open, and how clearly."""
        at = self._reduction.at(q)
        M = self._reduction.row_scale[self._rows, None] * at.M[self._rows] * self._reduction.column_scale
        S, gap = _null(M, float(np.linalg.norm(M, 2)) if M.size else 1.0)
        return self._over_sources(at) @ S / self._sizes[:, None], gap

    def _carried(self, d: Floats, m: Floats, kept: Floats) -> Floats:
        """Return what is told of what persists at the next state, before that state."""
        numbers, dt = self._persisting.numbers, self._rng.uniform(0.5, 1.5)
        sizes = [self._sizes[x.column] for x in numbers]
        a = [1.0 if x.time_constant is None else np.exp(-dt / x.time_constant) for x in numbers]
        later = np.array(a)[:, None] * m
        for row, x, size in zip(later, numbers, sizes, strict=True):
            if x.rate is not None:
                row += dt * d[x.rate] * self._sizes[x.rate] / size
        told, _ = _null((later @ kept).T, 1.0)
        return told.T


def _null(A: Floats, largest: float) -> tuple[Floats, float]:
    """Return an orthonormal basis (n, dimension) of what a matrix (rows, n) takes to zero, and how clearly it is told.

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
