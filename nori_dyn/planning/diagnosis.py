"""Why a system cannot be planned: too few or too many rows, or singular at every configuration."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import SingularSystemError, SystemShapeError
from nori_dyn.system.builder import System

RANK_TOLERANCE = 1e-12

MAX_DENSE = 4000
"""Largest system whose null space is computed to name what it moves."""


def check_square(system: System) -> None:
    """Check that a system has as many rows as unknowns.

    Raises:
        SystemShapeError: with the rows of each sensor, and what to do.
    """
    n_rows, n_variables = system.shape
    if n_rows == n_variables:
        return
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
        advice = f"{difference} too many for an exact problem. Remove as many rows, or solve by least squares."
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
    undetermined = _moved(system, system.tree.random_configuration(seed), rank)
    return _error(system, "the system is singular at every configuration", rank, undetermined)


def singular_at(system: System, q: NDArray[np.float64], rcond: float, where: str = "this state") -> SingularSystemError:
    """Return the error that says which variables a system leaves undetermined at a configuration q (nq,)."""
    rank = None
    if system.shape[1] <= MAX_DENSE:
        values = np.linalg.svd(system.D(q).toarray(), compute_uv=False)
        rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
        rank = min(rank, system.shape[1] - 1)
    undetermined = _moved(system, q, rank)
    return _error(
        system,
        f"the system is singular at {where} (its pivots span a ratio of {rcond:.2g})",
        rank,
        undetermined,
    )


def _moved(system: System, q: NDArray[np.float64], rank: int | None) -> tuple[str, ...]:
    """Return the names of the unknowns that the null space at q moves, the largest first."""
    if rank is None or system.shape[1] > MAX_DENSE:
        return ()
    null_space = np.linalg.svd(system.D(q).toarray())[2][rank:]
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
