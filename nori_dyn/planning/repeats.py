"""Redundant rows of loops and couplings, and undetermined constraint forces.

Source: docs/design.md, 2.5; own derivation (tests/unit/planning/test_repeats.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.ranks import clear_rank, largest_clear
from nori_dyn.errors import ModelError
from nori_dyn.model.closure import gap_rate
from nori_dyn.model.kinematics import positions
from nori_dyn.system.builder import System
from nori_dyn.system.repeats import Repeat
from nori_dyn.system.sources import natural_sizes, over_sources
from nori_dyn.typing import Floats, Indices

SHOWN = 4
"""Names in a message, at most."""

LOOKS = 6
"""Closed configurations at which ranks are taken; the largest that is clear counts."""

RANK_TOLERANCE = 1e-8
"""Singular values below this share of the largest are taken as zero."""

MOVED = 1e-7
"""Share of the largest number of a vector below which others are taken for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedSystem:
    """A system without redundant rows of loops and couplings.

    Attributes:
        system: the system.
        undetermined: the columns of d that depend on undetermined forces, which are taken as zero.
    """

    system: System
    undetermined: Indices


def remove_repeats(system: System, seed: int = 0) -> ReducedSystem:
    """A system without the rows of its loops and couplings that repeat others at closed configurations.

    Raises:
        NotClosedError: its loops cannot be closed.
        ModelError: they leave the robot no freedom.
    """
    nothing = np.zeros(0, dtype=np.intp)
    if not system.tree.closing_parts:
        return ReducedSystem(system, nothing)
    Q = system.tree.random_configurations(LOOKS, seed)
    repeats = _find_repeats(system, Q)
    if not repeats:
        return ReducedSystem(system, nothing)
    left = system.without(repeats)
    spaces = [_null_space(left, q) for q in Q]
    null_space = min(spaces, key=lambda d: d.shape[1])
    columns = [left.multiplier_column(repeat.equation, repeat.row) for repeat in repeats]
    of_forces = null_space[columns]
    n_free = _rank(of_forces)
    _, _, order = la.qr(of_forces.T, mode="economic", pivoting=True)
    undetermined = set(order[:n_free].tolist()) if n_free else set()
    marked = [Repeat(repeat.equation, repeat.row, k in undetermined) for k, repeat in enumerate(repeats)]
    reduced = system.without(marked)
    if not undetermined:
        return ReducedSystem(reduced, nothing)
    moved = np.zeros(system.shape[1], dtype=bool)
    for d in (space for space in spaces if space.shape[1] == null_space.shape[1]):
        size = np.abs(d).max(axis=1, initial=0.0)
        moved |= size > MOVED * size.max(initial=1e-300)
    return ReducedSystem(reduced, np.flatnonzero(moved))


def _find_repeats(system: System, Q: Floats) -> list[Repeat]:
    """The rows that depend on others at closed configurations (N, nq)."""
    tree = system.tree
    J = gap_rate(positions(tree, Q.T))
    sizes = np.linalg.norm(J, axis=1).max(axis=1)[:, None, None]  # one that is small at some of them stays so
    J = J / np.where(sizes > RANK_TOLERANCE * sizes.max(), sizes, np.inf)  # the rounding of a row of zeros is no row
    found = [clear_rank(_relative(J[:, :, k]), RANK_TOLERANCE) for k in range(len(Q))]
    rank = largest_clear(*zip(*found, strict=True))
    if rank == tree.nv:
        more = ", ..." if len(tree.closing_parts) > SHOWN else ""
        names = ", ".join(f"'{part.name}'" for part in tree.closing_parts[:SHOWN]) + more
        raise ModelError(
            f"robot '{tree.name}': its loops and couplings ({names}) hold all of its {tree.nv} freedoms: it cannot "
            "move. Constrain fewer directions, or lock the joints when loading."
        )
    if rank == len(J):
        return []
    best = max(range(len(Q)), key=lambda k: (found[k][0] == rank, found[k][1]))
    _, _, order = la.qr(J[:, :, best].T, mode="economic", pivoting=True)
    dependent = np.sort(order[rank:]).tolist()
    places = system.of_components.closing
    return [Repeat(equation, row, is_zero=False) for equation, row in (places[k] for k in dependent)]


def _null_space(system: System, q: Floats) -> Floats:
    """The vectors (n, k) that all rows take to zero at a configuration q (nq,), in natural units."""
    sizes = natural_sizes(system)
    at = over_sources(system, sizes, system.D(q), free=system.noisy_rows)
    _, values, V = la.svd(at.M, full_matrices=True)
    rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))
    d = at.X @ V[rank:].T
    return np.asarray(d / sizes.unknowns[:, None])


def _rank(rows: Floats) -> int:
    return clear_rank(_relative(rows), RANK_TOLERANCE)[0]


def _relative(rows: Floats) -> Floats:
    """Singular values relative to the largest, or to 1 where that is larger."""
    values = la.svdvals(rows) if rows.size else np.zeros(0)
    return np.asarray(values / max(1.0, values.max(initial=0.0)))
