"""A system at one state over its sources, the joint accelerations and external wrenches, which determine all else.

The equations of motion give a, f and tau from qdd and fx, by pivots of 1 in a triangular order (Nori, Property 1). What
the other rows then say is a small dense matrix.

Source: own derivation (tests/unit/system/test_sources.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from nori_dyn.system.builder import System
from nori_dyn.system.variables import FORCES
from nori_dyn.typing import Floats, Indices

RANK_TOLERANCE = 1e-12
"""Singular values in natural units below this share of the largest count as zero."""

LEAST_MASS = 1e-3
"""Share of the robot's mass that a link and all that it carries counts for at least, where forces have a size."""


@dataclass(frozen=True, slots=True, eq=False)
class NaturalSizes:
    """How large numbers are where accelerations are of size 1: links from grams to tonnes count alike.

    Attributes:
        unknowns: of each unknown (n,): forces are as large as the mass that their link carries.
        rows: of each row of D (rows,), at a configuration that is nothing special.
    """

    unknowns: Floats
    rows: Floats


def natural_sizes(system: System, seed: int = 0) -> NaturalSizes:
    """Return the natural sizes of a system; `seed` is that of the configuration at which rows are looked at."""
    tree = system.tree
    masses = tree.I[:, 5, 5]
    least = LEAST_MASS * float(masses.sum()) or 1.0
    carried = [max(float(masses[list(tree.subtree(i))].sum()), least) for i in range(tree.n_links)]
    unknowns = np.ones(system.shape[1])
    for variable in system.variables:
        if variable.kind in FORCES:
            unknowns[variable.slice] = carried[variable.body]
    rows = abs(system.D(tree.random_configuration(seed))) @ unknowns
    return NaturalSizes(unknowns, np.where(rows > 0, rows, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class OverSources:
    """The unknowns d = X s + x of sources s in natural units, and what rows that are no equations of motion say.

    Attributes:
        X, x: the unknowns (n, n_sources), (n,).
        rows: numbers of these rows (n_measured,).
        M, m: they say M s + m = 0 in natural units (n_measured, n_sources), (n_measured,).
    """

    X: Floats
    x: Floats
    rows: Indices
    M: Floats
    m: Floats


def over_sources(
    system: System, sizes: NaturalSizes, D: sp.csc_array, b: Floats | None = None, free: Indices | None = None
) -> OverSources:
    """Return a system at a state over its sources.

    Args:
        system: the system.
        sizes: its natural sizes.
        D: its matrix (rows, n).
        b: its right-hand side (rows,); zero when None.
        free: rows of D, equations of motion, that need not hold: their errors are sources as well, the last ones.
    """
    b = np.zeros(system.shape[0]) if b is None else b
    free = np.zeros(0, dtype=np.intp) if free is None else free
    is_source, is_dynamic = np.zeros(system.shape[1], dtype=bool), np.zeros(system.shape[0], dtype=bool)
    for variable in system.variables:
        is_source[variable.slice] = variable.kind in ("fx", "qdd")
    for row in system.rows:
        is_dynamic[row.slice] = row.is_dynamic
    sources, others = np.flatnonzero(is_source), np.flatnonzero(~is_source)
    dynamics, rows = np.flatnonzero(is_dynamic), np.flatnonzero(~is_dynamic)
    by_row = D.tocsr()
    motion = by_row[dynamics].tocsc()
    errors = np.zeros((len(dynamics), len(free)))
    errors[np.searchsorted(dynamics, free), np.arange(len(free))] = sizes.rows[free]
    right = np.hstack([motion[:, sources].toarray() * sizes.unknowns[sources], errors, b[dynamics, None]])
    found = np.zeros((system.shape[1], right.shape[1]))
    found[sources, np.arange(len(sources))] = sizes.unknowns[sources]
    found[others] = -spla.splu(sp.csc_matrix(motion[:, others])).solve(right)
    said = by_row[rows] @ found
    said[:, -1] += b[rows]
    said /= sizes.rows[rows, None]
    return OverSources(found[:, :-1], found[:, -1], rows, said[:, :-1], said[:, -1])
