"""The natural size of unknowns and equations, so that a robot with links from grams to tonnes is not badly scaled."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem

Floats = NDArray[np.float64]

ENSEMBLE = 8
"""Number of random states whose solutions tell the size of each unknown."""


def natural_scaling(system: System, symbolic: SymbolicSystem, seed: int) -> tuple[Floats, Floats]:
    """Return the powers of two (rows,), (n,) that bring equations and unknowns to size 1 at random states.

    Two sizes a body, for its accelerations and for its forces: a component that is zero but for rounding has none of
    its own. The size of an equation is that of its largest term.

    Args:
        system: a square system.
        symbolic: the same over expressions.
        seed: seed of the states.
    """
    tree, n = system.tree, system.shape[1]
    rng = np.random.default_rng(seed)
    unknowns, entries = [], []
    for _ in range(ENSEMBLE):
        q, qd, y = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=system.ny)
        D = sp.csc_matrix(system.D(q))
        entries.append(np.abs(D[symbolic.rows, symbolic.columns]).A1)
        try:
            d = spla.splu(D).solve(-system.b(q, qd, y))
        except RuntimeError:  # this state is exactly singular: it tells no size
            continue
        if np.isfinite(d).all():
            unknowns.append(np.abs(d))
    if not unknowns:
        return np.ones(n), np.ones(n)
    size = np.median(unknowns, axis=0)
    for i in range(tree.n_links):
        for kinds in (("a", "qdd"), ("f", "tau", "fx")):
            parts = [system.column(kind, i) for kind in kinds]
            largest = max(size[part].max() for part in parts)
            for part in parts:
                size[part] = largest
    size = _power_of_two(size)
    weight = np.zeros(n)
    np.maximum.at(weight, symbolic.rows, np.max(entries, axis=0) * size[symbolic.columns])
    return 1.0 / _power_of_two(weight), size


def _power_of_two(size: Floats) -> Floats:
    return np.asarray(np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0)))))
