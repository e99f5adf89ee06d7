"""Rank and null space of a system at given configurations, in doubles.

The equations of motion always determine a, f and tau from the sources (qdd, fx, and what components add), by pivots of
1 in a triangular order (Nori, Property 1). What the other rows then say of the sources is a small dense matrix M(q),
brought to natural units: the rank of D is that of M and the rows of the dynamics, and so is its null space.

Source: own derivation (tests/unit/observe/test_numeric.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from nori_dyn.algebra.arrays import checked, numeric
from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.ranks import clear_rank
from nori_dyn.errors import InputError
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import FieldVector, field_rows
from nori_dyn.system.builder import System
from nori_dyn.system.sources import NONE, NaturalSizes, Reduced, SourceSplit, natural_sizes
from nori_dyn.typing import Booleans, Floats, Indices

RANK_TOLERANCE = 1e-9
"""Singular values of M in natural units below this share of the largest are taken as zero."""

SCALING_STEPS = 8
SCALING_SAMPLES = 4


@dataclass(frozen=True, slots=True)
class RankAt:
    """The rank at a configuration.

    Attributes:
        rank: the rank of D.
        smallest: smallest singular value of M that is not taken as zero, relative to the largest.
        gap: how many times the largest that is taken as zero is smaller than that; infinite where none is.
        clarity: how clearly it is determined, see `clear_rank`.
    """

    rank: int
    smallest: float
    gap: float
    clarity: float


class Reduction:
    """A system without the variables that the dynamics determine.

    Attributes:
        system: the system.
        split: which of its columns are sources, and which rows are measured.
        row_scale, column_scale: factors of the rows and columns of M that bring it to natural units.

    Args:
        system: the system; it may have any number of rows.
        seed: seed of the configurations at which natural units are taken.
    """

    def __init__(self, system: System, seed: int = 0) -> None:
        self.system = system
        self.split = SourceSplit.of(system)
        self._M_pattern, self._X_pattern = self._patterns(seed)
        self.row_scale, self.column_scale = self._natural_units(seed)

    def _patterns(self, seed: int) -> tuple[Booleans, Booleans]:
        """Where M and X are nonzero for almost all q, exactly: what else is there in doubles is rounding."""
        rows = field_rows(self.system, exact_system(self.system, seed))
        place = {source: k for k, source in enumerate(self.split.sources.tolist())}

        def pattern(coefficients: Iterable[FieldVector]) -> Booleans:
            found = [[place[source] for source in row] for row in coefficients]
            where = np.zeros((len(found), len(place)), dtype=bool)
            for r, columns in enumerate(found):
                where[r, columns] = True
            return where

        M = pattern(rows.measured[row] for row in self.split.measured.tolist())
        return M, pattern(rows.variables[column] for column in range(self.system.shape[1]))

    def _natural_units(self, seed: int) -> tuple[Floats, Floats]:
        """The factors of the rows and columns of M that bring their largest entries to size 1, on the whole."""
        rng = np.random.default_rng(seed)
        tree = self.system.tree
        samples = [tree.draw(rng) for _ in range(SCALING_SAMPLES)]
        size = np.max([np.abs(found.M) for found in self.at_each(np.array(samples))], axis=0)
        if tree.closing_parts:
            size = self._without_rounding(size)
        rows, columns = np.ones(len(self.split.measured)), np.ones(len(self.split.sources))
        if not size.size:
            return rows, columns
        for _ in range(SCALING_STEPS):
            scaled = rows[:, None] * size * columns
            rows /= np.sqrt(_or_one(scaled.max(axis=1)))
            columns /= np.sqrt(_or_one(scaled.max(axis=0)))
        return rows, columns

    @cached_property
    def _natural(self) -> NaturalSizes:
        return natural_sizes(self.system)

    def _without_rounding(self, size: Floats) -> Floats:
        """Sizes of the entries of M, zero where rounding of the model's numbers alone makes one.

        An axis of a planar loop that is off by the last digit of a file is no spatial mechanism: equilibrated, a row of
        such entries would be as large as others.
        """
        natural = self._natural
        relative = size * natural.unknowns[self.split.sources] / natural.rows[self.split.measured][:, None]
        self._M_pattern &= relative > RANK_TOLERANCE
        return size * self._M_pattern

    def at(self, q: Floats) -> Reduced:
        """Rows of D over the sources at a configuration q (nq,)."""
        return self._reduce(self.system.D(q), NONE)

    def at_each(self, Q: Floats, noisy: Indices = NONE) -> Iterator[Reduced]:
        """Yield what `at` returns for each of some configurations (N, nq), which is quicker than one by one.

        Args:
            Q: the configurations.
            noisy: rows of D, equations of motion, whose errors are to be separated.
        """
        for D in self.system.D_each(Q):
            yield self._reduce(D, noisy)

    def _reduce(self, D: sp.csc_array, noisy: Indices) -> Reduced:
        found = self.split.reduce(D, free=noisy, pattern=self._X_pattern)
        return replace(found, M=found.M * self._M_pattern)

    def _scale(self, M: Floats) -> Floats:
        return np.asarray(self.row_scale[:, None] * M * self.column_scale)

    def rank_at(self, q: Floats) -> RankAt:
        """The rank of D at a configuration q (nq,)."""
        return self.rank_of(self.at(q).M)

    def rank_of(self, M: Floats) -> RankAt:
        """The rank of D where the rows that are measured say M (rows, n_sources) of the sources."""
        n = self.system.shape[1]
        values = la.svdvals(self._scale(M)) if M.size else np.zeros(0)
        largest = values[0] if values.size and values[0] > 0 else 1.0
        values = np.concatenate([values, np.zeros(len(self.split.sources) - len(values))]) / largest
        kept, clarity = clear_rank(values, RANK_TOLERANCE)
        smallest = float(values[kept - 1]) if kept else 1.0
        dropped = float(values[kept]) if kept < len(values) else None
        floor = np.finfo(float).eps
        gap = np.inf if dropped is None else smallest / max(dropped, floor)
        return RankAt(n - len(self.split.sources) + kept, smallest, float(gap), clarity)

    def ranks_at(self, configurations: Iterable[Floats]) -> tuple[RankAt, ...]:
        """The rank at each configuration (N, nq)."""
        return tuple(self.rank_at(q) for q in configurations)

    def unseen_sources(self, M: Floats, dimension: int) -> Floats:
        """Orthonormal vectors (dimension, n_sources) in natural units that M takes nearest to zero."""
        n_sources = len(self.split.sources)
        scaled = np.vstack([self._scale(M), np.zeros((max(0, n_sources - len(M)), n_sources))])
        return np.asarray(la.svd(scaled)[2][n_sources - dimension :])

    def null_space(self, q: Floats, dimension: int) -> Floats:
        """Vectors (n, dimension) that D takes to zero at a configuration q (nq,).

        Each has a 1 at a source at which all others have a 0, so that what is independent stays apart.

        Args:
            q: the configuration.
            dimension: that of the null space, at most the deficiency there.
        """
        found = self.at(q)
        M, X = found.M, found.X
        if not dimension:
            return np.zeros((self.system.shape[1], 0))
        V = self.unseen_sources(M, dimension)
        _, _, order = la.qr(V, mode="economic", pivoting=True)
        free = np.sort(order[:dimension])
        basis = np.linalg.solve(V[:, free], V).T
        basis[np.abs(basis) < RANK_TOLERANCE] = 0.0
        basis *= self.column_scale[:, None] / self.column_scale[free]
        d = X @ basis
        d *= np.abs(d) > RANK_TOLERANCE * (np.abs(X) @ np.abs(basis))
        for kind in self.system.kinds:  # rounding that is left of a sum that is zero
            own = numbers_in(v.slice for v in self.system.variables if v.kind == kind)
            d[own] *= np.abs(d[own]) > RANK_TOLERANCE * np.abs(d[own]).max(axis=0)
        if self.system.tree.closing_parts:  # and of the model's numbers
            natural = np.abs(d) / self._natural.unknowns[:, None]
            d *= natural > RANK_TOLERANCE * natural.max(axis=0)
        return d


def _or_one(size: Floats) -> Floats:
    return np.asarray(np.where(size > 0, size, 1.0))


def checked_configurations(given: Any, nq: int) -> Floats:
    """Configurations (N, nq).

    Raises:
        InputError: another shape, not real numbers, or one that is not finite.
    """
    Q = numeric("configurations", given)
    if Q.ndim != 2 or Q.shape[1] != nq:
        raise InputError(f"configurations have shape {Q.shape}, expected (N, {nq}).")
    return checked("configurations", Q, Q.shape).copy()
