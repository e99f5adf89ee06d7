"""Sampled states, and the natural size of unknowns and equations at them.

In natural units a robot with links from grams to tonnes is not badly scaled.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from nori_dyn.algebra.matching import structural_rank
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Floats

SIZE_STATES = 8
"""Number of random states whose solutions give the size of each unknown."""

LIGHTEST = 1e-6
"""No unknown counts as smaller than this share of the largest of its kind: on links without mass forces are nothing."""

NOISE_DECADES = 8.0
"""Decades by which the sampled variance of noisy equations of motion is below that given, at most: an order should hold
where they are as good as exact, too."""


def sample_entries(
    system: System, symbolic: SymbolicSystem, seed: int, n: int, at_rest: bool = False
) -> tuple[Floats, Floats]:
    """The structural nonzeros (n, nnz) and b (n, rows) of a system at random states.

    Args:
        system: the system as given.
        symbolic: the same over expressions, or a refinement of it.
        seed: seed of the states.
        n: number of states.
        at_rest: leave velocities and readings, which the matrix does not depend on, at zero; b is then empty.

    Weights are those of the system; those of noisy equations of motion are drawn, `at_rest`, up to `NOISE_DECADES`
    above.
    """
    inputs = sample_inputs(system, symbolic, seed, n, at_rest)
    wanted = symbolic.entries if at_rest else (*symbolic.entries, *symbolic.b)
    values = symbolic.graph.evaluate(wanted, inputs).T
    nnz = len(symbolic.entries)
    return values[:, :nnz], values[:, nnz:]


def sample_inputs(
    system: System, symbolic: SymbolicSystem, seed: int, n: int, at_rest: bool = False
) -> dict[int, Floats]:
    """Random states as values (n,) of each input, by its index; for the arguments see `sample_entries`."""
    tree = system.tree
    rng = np.random.default_rng(seed)
    Q = _closed(tree, seed, n) if tree.closing_parts else tree.random_configurations(n, rng)
    Qd, Y = (np.zeros((n, k)) if at_rest else rng.normal(size=(n, k)) for k in (tree.nv, system.ny))
    W = np.tile(system.weights, (n, 1))
    for row in system.rows:
        if at_rest and row.is_dynamic and not row.is_exact:
            W[:, row.weights] *= 10.0 ** rng.uniform(0.0, NOISE_DECADES, size=W[:, row.weights].shape)
    scalars = [x for part in symbolic.inputs.values() for x in part]
    return {x.index: values for x, values in zip(scalars, np.hstack([Q, Qd, Y, W]).T, strict=True)}


def natural_scaling(system: System, symbolic: SymbolicSystem, seed: int) -> tuple[Floats, Floats]:
    """The powers of two (rows,), (n,) that bring equations and unknowns to size 1 at random states.

    One size a `Variable.group`, for a body's accelerations or its forces: a component that is zero but for rounding has
    none of its own. The size of an equation is that of its largest term.

    Args:
        system: a square system.
        symbolic: the same over expressions, or a refinement of it.
        seed: seed of the states.
    """
    n = symbolic.shape[1]
    entries, b = sample_entries(system, symbolic, seed, SIZE_STATES)
    unknowns = []
    for values, right in zip(entries, b, strict=True):
        matrix = sp.csc_matrix((values, (symbolic.rows, symbolic.columns)), shape=symbolic.shape)
        matrix.eliminate_zeros()
        if structural_rank(matrix) < n:
            continue
        try:
            d = spla.splu(matrix).solve(right)
        except RuntimeError:  # this state is exactly singular: it gives no size
            continue
        if np.isfinite(d).all():
            unknowns.append(np.abs(d))
    if not unknowns:
        return np.ones(n), np.ones(n)
    largest = np.zeros(symbolic.groups.max() + 1)
    np.maximum.at(largest, symbolic.groups, np.median(unknowns, axis=0))
    size = _power_of_two(largest[symbolic.groups])
    largest_term = np.zeros(n)
    np.maximum.at(largest_term, symbolic.rows, np.abs(entries).max(axis=0) * size[symbolic.columns])
    return 1.0 / _power_of_two(largest_term), size


def natural_sizes(system: System, symbolic: SymbolicSystem, seed: int) -> Floats:
    """The natural size (n,) of each variable, none below `LIGHTEST` of the largest of its kind.

    Args:
        system: the system.
        symbolic: the same over expressions, or a square system with these variables first.
        seed: seed of the states.
    """
    size = natural_scaling(system, symbolic, seed)[1][: system.shape[1]]
    kinds = np.array([v.is_force for v in system.variables for _ in range(v.slice.start, v.slice.stop)])
    for kind in (kinds, ~kinds):
        size[kind] = np.maximum(size[kind], LIGHTEST * size[kind].max(initial=0.0))
    return size


def _power_of_two(size: Floats) -> Floats:
    return np.asarray(np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0)))))


@lru_cache(maxsize=8)
def _closed(tree: KinematicTree, seed: int, n: int) -> Floats:
    """Random closed configurations (n, nq), shared by all problems of a plan."""
    Q = tree.random_configurations(n, seed)
    Q.flags.writeable = False
    return Q
