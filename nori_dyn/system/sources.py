"""A system at one state over its sources, the joint accelerations and external wrenches, which determine all else.

The equations of motion give a, f and tau from qdd and fx, by pivots of 1 in a triangular order (Nori, Property 1). What
the other rows then say is a small dense matrix.

Source: own derivation (tests/unit/system/test_refined.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.system.builder import System
from nori_dyn.typing import Booleans, Floats, Indices

NULL_TOLERANCE = 1e-12
"""Singular values in natural units below this share of the largest count as zero."""

NONE: Indices = np.zeros(0, dtype=np.intp)

LEAST_MASS = 1e-3
"""Share of the robot's mass that a link and all that it carries counts for at least, where forces have a size."""


@dataclass(frozen=True, slots=True, eq=False)
class NaturalSizes:
    """Natural sizes of the unknowns where accelerations have size 1: links from grams to tonnes count alike.

    Attributes:
        unknowns: of each unknown (n,): forces are as large as the mass that their link carries.
        rows: of each row of D (rows,), at a configuration that is nothing special.
    """

    unknowns: Floats
    rows: Floats


def natural_sizes(system: System, seed: int = 0, touched: bool = False) -> NaturalSizes:
    """The natural sizes of a system.

    Args:
        system: the system.
        seed: that of a configuration, closed or not, for its rows.
        touched: whether external wrenches are as large as the whole robot's mass, as where it stands on a link, and not
            as the mass that the link carries.
    """
    tree = system.tree
    masses = tree.I[:, 5, 5]
    whole = float(masses.sum()) or 1.0
    carried = [max(float(masses[list(tree.subtree(i))].sum()), LEAST_MASS * whole) for i in range(tree.n_links)]
    unknowns = np.ones(system.shape[1])
    for variable in system.variables:
        if variable.is_force:
            unknowns[variable.slice] = whole if touched and variable.is_source else carried[variable.body]
    D = abs(system.D(tree.draw(np.random.default_rng(seed))))
    rows = D @ unknowns
    if touched:  # of a row that reads other unknowns than state, these count: state has a density of its own
        others = unknowns.copy()
        others[numbers_in(one.variable.slice for one in system.memory)] = 0.0
        rows = np.where(D @ others > 0, D @ others, rows)
    return NaturalSizes(unknowns, np.where(rows > 0, rows, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A system at a state over its sources s, and the errors e of equations of motion that need not hold.

    Attributes:
        X, X_errors, x: the unknowns are d = X s + X_errors e + x (n, n_sources), (n, n_errors), (n,).
        M, M_errors, m: the measured rows, M s + M_errors e + m = 0 (measured, n_sources), (measured, n_errors),
            (measured,).
    """

    X: Floats
    X_errors: Floats
    x: Floats
    M: Floats
    M_errors: Floats
    m: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SourceSplit:
    """The unknowns that are sources, and those that follow from the sources.

    Attributes:
        sources: columns of D of the sources (n_sources,).
        others: columns that the equations of motion give from them.
        motion: rows of D that are equations of motion, as many as there are others.
        measured: the other rows, measured or known.
    """

    sources: Indices
    others: Indices
    motion: Indices
    measured: Indices

    @staticmethod
    def of(system: System) -> SourceSplit:
        """The split of a system."""
        return SourceSplit(
            sources=numbers_in(v.slice for v in system.variables if v.is_source),
            others=numbers_in(v.slice for v in system.variables if not v.is_source),
            motion=numbers_in(row.slice for row in system.rows if row.is_dynamic),
            measured=numbers_in(row.slice for row in system.sensor_rows),
        )

    def reduce(
        self, D: sp.csc_array, b: Floats | None = None, free: Indices = NONE, pattern: Booleans | None = None
    ) -> Reduced:
        """A system at a state over its sources.

        Args:
            D: its matrix (rows, n).
            b: its right-hand side (rows,); zero when None.
            free: rows of D, equations of motion, that need not hold: each has an error.
            pattern: the structural nonzeros of X, if known: other nonzeros in doubles are rounding.
        """
        by_row = D.tocsr()
        motion, measured = by_row[self.motion].tocsc(), by_row[self.measured].tocsc()
        b = np.zeros(D.shape[0]) if b is None else b
        errors = np.zeros((len(self.motion), len(free)))
        errors[np.searchsorted(self.motion, free), np.arange(len(free))] = 1.0
        right = np.hstack([motion[:, self.sources].toarray(), errors, b[self.motion, None]])
        solved = -spla.splu(sp.csc_matrix(motion[:, self.others])).solve(right)
        unknowns = np.zeros((D.shape[1], right.shape[1]))
        unknowns[self.sources, np.arange(len(self.sources))], unknowns[self.others] = 1.0, solved
        X, X_errors, x = np.split(unknowns, np.cumsum([len(self.sources), len(free)]), axis=1)
        X = X if pattern is None else X * pattern
        of_others = measured[:, self.others]
        return Reduced(
            X=X,
            X_errors=X_errors,
            x=x[:, 0],
            M=measured[:, self.sources].toarray() + of_others @ X[self.others],
            M_errors=of_others @ X_errors[self.others],
            m=b[self.measured] + of_others @ x[self.others, 0],
        )


@dataclass(frozen=True, slots=True, eq=False)
class OverSources:
    """The unknowns d = X s + x over sources s in natural units, and the rows of sensors and components over s.

    Attributes:
        X, x: the unknowns (n, n_sources), (n,).
        rows: numbers of these rows (n_measured,).
        M, m: M s + m = 0 in natural units (n_measured, n_sources), (n_measured,).
    """

    X: Floats
    x: Floats
    rows: Indices
    M: Floats
    m: Floats


def over_sources(
    system: System, sizes: NaturalSizes, D: sp.csc_array, b: Floats | None = None, free: Indices = NONE
) -> OverSources:
    """A system at a state over its sources, in natural units.

    Args:
        system: the system.
        sizes: its natural sizes.
        D: its matrix (rows, n).
        b: its right-hand side (rows,); zero when None.
        free: rows of D, equations of motion, that need not hold: their errors are sources as well, the last ones.
    """
    split = SourceSplit.of(system)
    at = split.reduce(D, b, free)
    of_sources, of_rows = sizes.unknowns[split.sources], sizes.rows[split.measured]
    scale = np.concatenate([of_sources, sizes.rows[free]])
    X, M = np.hstack([at.X, at.X_errors]) * scale, np.hstack([at.M, at.M_errors]) * scale
    return OverSources(X, at.x, split.measured, M / of_rows[:, None], at.m / of_rows)
