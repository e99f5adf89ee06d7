"""Rank and null space of a system at given configurations, in doubles.

The equations of motion always determine a, f and tau from qdd and fx, by pivots of 1 in a triangular order (Nori,
Property 1). What the other rows then say of qdd and fx is a small dense matrix M(q), brought to natural units: the rank
of D is that of M and the 12 rows a body and one a freedom of the dynamics, and so is its null space.

Source: own derivation (tests/unit/observability/test_numeric.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import PRIME
from nori_dyn.observability.exact import exact_system
from nori_dyn.system.builder import System
from nori_dyn.system.newton_euler import DYNAMICS
from nori_dyn.system.variables import KINDS

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

RANK_TOLERANCE = 1e-9
"""Singular values of M in natural units below this share of the largest are taken as zero."""

SCALING_STEPS = 8
SCALING_SAMPLES = 4

SOURCES = ("fx", "qdd")
"""The variables that determine all others: external wrenches and joint accelerations."""


@dataclass(frozen=True, slots=True)
class RankAt:
    """The rank at a configuration.

    Attributes:
        rank: the rank of D.
        smallest: smallest singular value of M that is not taken as zero, relative to the largest.
        gap: how many times the largest that is taken as zero is smaller than that; infinite where none is.
    """

    rank: int
    smallest: float
    gap: float


class Reduction:
    """A system without the variables that the dynamics determine.

    Attributes:
        system: the system.
        sources: columns of D that stay (n_sources): external wrenches and joint accelerations.
        others: columns that the dynamics determine from them.

    Args:
        system: the system; it may have any number of rows.
        seed: seed of the configurations at which natural units are taken.
    """

    def __init__(self, system: System, seed: int = 0) -> None:
        self.system = system
        n_rows, n = system.shape
        is_source = np.zeros(n, dtype=bool)
        for variable in system.variables:
            is_source[variable.slice] = variable.kind in SOURCES
        is_dynamic = np.zeros(n_rows, dtype=bool)
        for row in system.rows:
            is_dynamic[row.slice] = row.equation.group == DYNAMICS
        self.sources: Indices = np.flatnonzero(is_source)
        self.others: Indices = np.flatnonzero(~is_source)
        self._dynamics, self._measured = np.flatnonzero(is_dynamic), np.flatnonzero(~is_dynamic)
        self._M_pattern, self._X_pattern = self._patterns(seed)
        self._row_scale, self._column_scale = self._natural_units(seed)

    def _patterns(self, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where M and X are nonzero for almost all q, exactly: what else is there in doubles is rounding."""
        exact = exact_system(self.system, seed)
        coefficients: dict[int, dict[int, int]] = {}
        for (row, column), entry in exact.entries.items():
            coefficients.setdefault(row, {})[column] = entry.fingerprint
        by_sources: dict[int, dict[int, int]] = {column: {column: 1} for column in self.sources.tolist()}

        def total(row: int, own: int | None = None) -> dict[int, int]:
            found: dict[int, int] = {}
            for column, factor in coefficients.get(row, {}).items():
                if column != own:
                    for source, value in by_sources[column].items():
                        found[source] = (found.get(source, 0) + factor * value) % PRIME
            return {source: value for source, value in found.items() if value}

        tree, rows = self.system.tree, self.system.rows
        n = tree.n_links
        for which, kind, bodies in ((0, "a", range(n)), (1, "f", reversed(range(n))), (2, "tau", range(n))):
            for i in bodies:
                block = rows[3 * i + which].slice
                for k in range(block.stop - block.start):
                    own = self.system.column(kind, i).start + k
                    by_sources[own] = total(block.start + k, own)
        place = {source: k for k, source in enumerate(self.sources.tolist())}
        M = np.zeros((len(self._measured), len(place)), dtype=bool)
        X = np.zeros((len(self.others), len(place)), dtype=bool)
        for r, row in enumerate(self._measured.tolist()):
            M[r, [place[source] for source in total(row)]] = True
        for r, column in enumerate(self.others.tolist()):
            X[r, [place[source] for source in by_sources[column]]] = True
        return M, X

    def _natural_units(self, seed: int) -> tuple[Floats, Floats]:
        """Return the factors of the rows and columns of M that bring their largest entries to size 1, on the whole."""
        rng = np.random.default_rng(seed)
        tree = self.system.tree
        samples = (np.abs(self._parts(tree.random_configuration(rng))[0]) for _ in range(SCALING_SAMPLES))
        size = np.max([*samples], axis=0)
        rows, columns = np.ones(len(self._measured)), np.ones(len(self.sources))
        if not size.size:
            return rows, columns
        for _ in range(SCALING_STEPS):
            scaled = rows[:, None] * size * columns
            rows /= np.sqrt(_or_one(scaled.max(axis=1)))
            columns /= np.sqrt(_or_one(scaled.max(axis=0)))
        return rows, columns

    def _parts(self, q: Floats) -> tuple[Floats, Floats]:
        """Return M, and the map X from the sources to the other variables."""
        D = self.system.D(q).tocsr()
        dynamics, measured = D[self._dynamics].tocsc(), D[self._measured].tocsc()
        right = dynamics[:, self.sources].toarray()
        X = -spla.splu(sp.csc_matrix(dynamics[:, self.others])).solve(right) * self._X_pattern
        M = measured[:, self.sources].toarray() + measured[:, self.others] @ X
        return M * self._M_pattern, X

    def _scaled(self, M: Floats) -> Floats:
        return np.asarray(self._row_scale[:, None] * M * self._column_scale)

    def rank_at(self, q: Floats) -> RankAt:
        """Return the rank of D at a configuration q (nq,)."""
        n = self.system.shape[1]
        M, _ = self._parts(q)
        values = la.svdvals(self._scaled(M)) if M.size else np.zeros(0)
        largest = values[0] if values.size and values[0] > 0 else 1.0
        values = np.concatenate([values, np.zeros(len(self.sources) - len(values))]) / largest
        kept = int(np.sum(values > RANK_TOLERANCE))
        smallest = float(values[kept - 1]) if kept else 1.0
        dropped = float(values[kept]) if kept < len(values) else None
        floor = np.finfo(float).eps
        gap = np.inf if dropped is None else smallest / max(dropped, floor)
        return RankAt(n - len(self.sources) + kept, smallest, float(gap))

    def ranks_at(self, configurations: Iterable[Floats]) -> tuple[RankAt, ...]:
        """Return the rank at each configuration (N, nq)."""
        return tuple(self.rank_at(q) for q in configurations)

    def null_space(self, q: Floats, dimension: int) -> Floats:
        """Return vectors (n, dimension) that D takes to zero at a configuration q (nq,).

        Each has a 1 at an external wrench or joint acceleration at which all others have a 0, so that what is
        independent stays apart.

        Args:
            q: the configuration.
            dimension: that of the null space, at most the deficiency there.
        """
        M, X = self._parts(q)
        n_sources = len(self.sources)
        if not dimension:
            return np.zeros((self.system.shape[1], 0))
        scaled = np.vstack([self._scaled(M), np.zeros((max(0, n_sources - len(M)), n_sources))])
        V = la.svd(scaled)[2][n_sources - dimension :]
        _, _, order = la.qr(V, mode="economic", pivoting=True)
        free = np.sort(order[:dimension])
        basis = np.linalg.solve(V[:, free], V).T
        basis[np.abs(basis) < RANK_TOLERANCE] = 0.0
        basis *= self._column_scale[:, None] / self._column_scale[free]
        d = np.zeros((self.system.shape[1], dimension))
        d[self.sources], d[self.others] = basis, X @ basis
        size = np.abs(X) @ np.abs(basis)
        d[self.others] *= np.abs(d[self.others]) > RANK_TOLERANCE * size
        for kind in KINDS:  # rounding that is left of a sum that is zero
            own = [k for v in self.system.variables if v.kind == kind for k in range(v.slice.start, v.slice.stop)]
            d[own] *= np.abs(d[own]) > RANK_TOLERANCE * np.abs(d[own]).max(axis=0)
        return d


def _or_one(size: Floats) -> Floats:
    return np.asarray(np.where(size > 0, size, 1.0))
