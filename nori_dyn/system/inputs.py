"""Checks of a state as users give it: by name or flat, sensors without a valid reading dropped.

Only the native code looks at numbers itself, in its own words, so that a good state need not come here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import batched, checked, shaped
from nori_dyn.errors import InputError, SaturatedReadingError, UnknownNameError
from nori_dyn.system.builder import System, Weights
from nori_dyn.typing import Booleans, Floats

State: TypeAlias = tuple[Floats, ...]
"""q, qd, y, and the weights where there are any; or N of each."""

Missing: TypeAlias = Literal["refuse", "drop"]
"""What to do with readings that are not numbers, or at an end of their sensor's range."""

MISSING: tuple[Missing, ...] = get_args(Missing)


def checked_state(
    system: System, q: ArrayLike, qd: ArrayLike, y: ArrayLike | Mapping[str, Any], weights: Weights, missing: Missing
) -> State:
    """One state as kernels take it; for the arguments see `Solver.solve`.

    Raises:
        InputError: a wrong shape or name, a value that is not finite, a saturated sensor, a weight below zero.
    """
    q, qd = system.tree.checked_configuration(q), checked("qd", qd, (system.tree.nv,))
    return q, qd, *_readings(system, "y", system.flat_reading(y), system.weighting(weights), (), missing)


def checked_states(
    system: System, Q: ArrayLike, Qd: ArrayLike, Y: ArrayLike, weights: Weights, missing: Missing
) -> State:
    """N states as kernels take them; for the arguments see `Solver.solve_batch`.

    Raises:
        InputError: a wrong shape, a value that is not finite, a saturated sensor, a weight below zero.
    """
    tree = system.tree
    Q = batched("Q", Q, tree.nq)
    each, N = system.weighting(weights), len(Q)
    if each.ndim == 1:
        each = np.broadcast_to(each, (N, len(each)))
    return (
        tree.normalised(checked("Q", Q, (N, tree.nq))),
        checked("Qd", Qd, (N, tree.nv)),
        *_readings(system, "Y", Y, each, (N,), missing),
    )


def _readings(
    system: System, name: str, y: ArrayLike, weights: Floats, batch: tuple[int, ...], missing: Missing
) -> State:
    """Readings (..., ny), and weights (..., n_weights) where there are any, checked."""
    if missing not in MISSING:
        raise UnknownNameError("way to treat missing readings", missing, MISSING)
    if system.is_weighted:
        weights = checked("weights", weights, (*batch, system.n_weights), system.weight_names)
        if weights.min(initial=0.0) < 0:
            at = tuple(np.argwhere(weights < 0)[0].tolist())
            raise InputError(f"the weight of '{system.weight_names[at[-1]]}' is {weights[at]:g}: it is below zero.")
        if missing == "drop":
            y, weights = dropped(system, shaped(name, y, (*batch, system.ny)), weights)
    elif weights.shape[-1:] != (0,):
        raise InputError(f"sensors '{system.sensors.name}' hold exactly: they have no weights.")
    y = checked(name, y, (*batch, system.ny), system.measurement_names)
    _refuse_saturated(system, name, y, weights)
    return (y, weights) if system.is_weighted else (y,)


def weights_at(weights: Any, part: Any) -> Any:
    """The weights of some of N states, or of one, where each has its own; those of all else."""
    return weights[part] if np.ndim(weights) > 1 else weights


def dropped(system: System, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Readings (..., ny) and weights (..., n_weights) without the sensors whose readings are of no use.

    What holds exactly cannot be dropped, and stays.
    """
    lost = unusable(system, y)
    number = system.weight_of_readings
    goes = np.where(number >= 0, lost[..., number], False)
    return np.where(goes, 0.0, y), np.where(lost, 0.0, weights)


def unusable(system: System, y: Floats) -> Booleans:
    """The weights (..., n_weights) of the sensors whose readings (..., ny) are not numbers, or saturated.

    Rows that share a weight are dropped together.
    """
    number = system.weight_of_readings
    weighed = np.flatnonzero(number >= 0)
    weights, first = np.unique(number[weighed], return_index=True)  # they come in order, those of one weight together
    useless = (~np.isfinite(y) | system.saturated(y))[..., weighed]
    lost = np.zeros((*y.shape[:-1], system.n_weights), dtype=bool)
    lost[..., weights] = np.logical_or.reduceat(useless, first, axis=-1)
    return lost


def _refuse_saturated(system: System, name: str, y: Floats, weights: Floats) -> None:
    """Refuse readings (..., ny) of saturated sensors whose weight (..., n_weights) is not zero.

    Raises:
        SaturatedReadingError: there is one.
    """
    if system.ranges is None:
        return
    number = system.weight_of_readings
    found = system.saturated(y)
    if system.is_weighted:
        found &= (number < 0) | (weights[..., number] > 0)
    if found.any():
        at = tuple(int(k) for k in np.argwhere(found)[0])
        low, high = system.ranges[:, at[-1]].tolist()
        where, label = f"{name}[{', '.join(map(str, at))}]", system.measurement_names[at[-1]]
        raise SaturatedReadingError(where, label, float(y[at]), (low, high), bool(number[at[-1]] < 0))
