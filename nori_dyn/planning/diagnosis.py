"""Why a system cannot be planned: too few or too many rows, or singular at every configuration."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import SingularSystemError, SystemShapeError
from nori_dyn.system.builder import System
from nori_dyn.system.variables import component_names

RANK_TOLERANCE = 1e-12

MAX_DENSE = 4000
"""Largest system whose null space is computed to name what it moves."""


def check_shape(system: System) -> None:
    """Check that a system has as many rows as unknowns, or at least as many where rows are weighed.

    Raises:
        SystemShapeError: with the rows of each sensor, and what to do.
    """
    n_rows, n_variables = system.shape
    n_exact = sum(row.slice.stop - row.slice.start for row in system.rows if row.is_exact)
    if n_rows == n_variables or (system.is_weighted and n_exact <= n_variables <= n_rows):
        return
    if system.is_weighted and n_exact > n_variables:
        n_rows = n_exact
    counts = Counter[str]()
    for row in system.rows:
        counts[row.equation.group] += len(row.equation.components)
    listed = ", ".join(f"{group} {count}" for group, count in counts.items())
    difference = n_rows - n_variables
    if difference < 0:
        advice = (
            f"{-difference} too few. Joint accelerations or torques and external wrenches that are neither measured "
            "nor known need a row: add sensors, or `value: 0` for what is known to be zero."
        )
    else:
        advice = (
            f"{difference} too many that hold exactly. Remove as many rows, or give a `sigma` to those that may "
            "disagree."
        )
    raise SystemShapeError(
        f"sensors '{system.sensors.name}' on robot '{system.tree.name}': {n_variables} unknowns and {n_rows} rows "
        f"({listed}), {advice}",
        n_rows,
        n_variables,
    )


def singular_error(system: System, rank: int, seed: int) -> SingularSystemError:
    """Return the error that says which variables a system singular at every q leaves undetermined.

    Args:
        system: a square system.
        rank: its rank at almost all configurations.
        seed: seed of the configuration at which the null space is taken.
    """
    D = system.D(system.tree.random_configuration(seed)).toarray()
    if system.is_weighted:
        exact = _kept_rows(system, np.zeros(system.n_weights))
        values = np.linalg.svd(D[exact], compute_uv=False)
        if values[-1] <= RANK_TOLERANCE * values[0]:
            return _contradiction(system, D[exact], np.flatnonzero(exact))
        rank = int(np.linalg.matrix_rank(D, tol=RANK_TOLERANCE * np.linalg.norm(D)))
    undetermined = _moved(system, D, rank)
    return _error(system, "the system is singular at every configuration", rank, undetermined)


def _kept_rows(system: System, weights: NDArray[np.float64] | None) -> NDArray[np.bool_]:
    """Return which rows count (rows,): those that hold exactly, and those whose weight is not 0."""
    kept = np.ones(system.shape[0], dtype=bool)
    if weights is not None:
        for row in system.rows:
            if not row.is_exact:
                kept[row.slice] = weights[list(row.weight_of_rows)] > 0
    return kept


def _contradiction(system: System, D: NDArray[np.float64], rows: NDArray[np.intp]) -> SingularSystemError:
    """Return the error that names exact rows that depend on each other at every configuration.

    Args:
        system: the system.
        D: the exact rows (n_exact, n).
        rows: their numbers (n_exact,).
    """
    names = [name for row in system.rows for name in component_names(row.name, row.equation.components)]
    first = system.rows[3 * system.tree.n_links].slice.start
    left = np.linalg.svd(D)[0][:, -1]
    weight = np.where(rows >= first, np.abs(left), 0.0)  # the dynamics are not at fault
    found = tuple(names[rows[k]] for k in np.argsort(-weight, kind="stable") if weight[k] > 1e-6 * weight.max())
    shown = " and ".join([f"'{name}'" for name in found[:6]] + (["others"] if len(found) > 6 else []))
    return SingularSystemError(
        f"sensors '{system.sensors.name}' on robot '{system.tree.name}': {shown} say the same thing twice, exactly: "
        "they contradict each other, or repeat. Remove one, or give a `sigma` to those that may disagree.",
        found,
    )


def singular_at(
    system: System,
    q: NDArray[np.float64],
    rcond: float,
    where: str = "this state",
    weights: NDArray[np.float64] | None = None,
) -> SingularSystemError:
    """Return the error that says which variables a system leaves undetermined at a configuration q (nq,).

    Args:
        system: the system.
        q: the configuration.
        rcond: ratio of the pivots found there.
        where: what to call the state.
        weights: the weights, where there are any; rows of weight 0 are left out.
    """
    D = system.D(q).toarray()[_kept_rows(system, weights)]
    rank = None
    if system.shape[1] <= MAX_DENSE:
        values = np.linalg.svd(D, compute_uv=False)
        rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
        rank = min(rank, system.shape[1] - 1)
    undetermined = _moved(system, D, rank)
    return _error(
        system,
        f"the system is singular at {where} (its pivots span a ratio of {rcond:.2g})",
        rank,
        undetermined,
    )


def _moved(system: System, D: NDArray[np.float64], rank: int | None) -> tuple[str, ...]:
    """Return the names of the unknowns that the null space of D moves, the largest first."""
    if rank is None or system.shape[1] > MAX_DENSE:
        return ()
    null_space = np.linalg.svd(D)[2][rank:]
    weight = np.abs(null_space).max(axis=0)
    return tuple(system.variable_names[k] for k in np.argsort(-weight, kind="stable") if weight[k] > 1e-6)


def _error(system: System, what: str, rank: int | None, undetermined: tuple[str, ...]) -> SingularSystemError:
    causes = _massless(system, undetermined)
    shown = ", ".join(undetermined[:6]) + (", ..." if len(undetermined) > 6 else "")
    message = f"sensors '{system.sensors.name}' on robot '{system.tree.name}': {what}"
    message += "." if rank is None else f", its rank is {rank} of {system.shape[1]}."
    if shown:
        message += f" Not determined: {shown}."
    if causes:
        message += (
            f" Cause: {', '.join(causes)} and all that it carries have no inertia, so no torque determines the "
            "acceleration of its joint. Give it an inertia, lock the joint, or measure its acceleration."
        )
    else:
        message += " Replace a sensor that repeats what others tell by one that sees these."
    return SingularSystemError(message, undetermined)


def _massless(system: System, undetermined: tuple[str, ...]) -> list[str]:
    tree = system.tree
    named = {name.split(".")[0] for name in undetermined}
    return [
        f"link '{tree.names[i]}'"
        for i in range(tree.n_links)
        if f"qdd:{tree.joint_names[i]}" in named and not tree.I[list(tree.subtree(i))].any()
    ]
