"""The variables of a robot by the laws of mechanics in the axes of the world, in extended precision, for many states.

Every variable is an affine function of z = (joint accelerations, external wrenches, noise of the equations of motion).
Nothing of the package computes here: of a tree only its data are read (parents, placements, inertias, axes), and a set
of sensors is the entries of its config. What sensors determine is then a least-squares problem in z, solved by
orthogonal matrices, rows in the order of their weights.

Source: Newton's and Euler's laws; Björck, Numerical Methods for Least Squares Problems, ch. 4.4 (order of rows and
columns) and 5.1.3 (null-space method).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.least_squares import Extended, minimised
from tests.oracles import AffineMotion, extended, hat, rodrigues

MOTION = ("wx", "wy", "wz", "ax", "ay", "az")
FORCE = ("mx", "my", "mz", "fx", "fy", "fz")


class States(NamedTuple):
    """N states: q (N, nq), qd (N, nv), readings y (N, ny), weights (N, n_weights)."""

    q: NDArray[np.float64]
    qd: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __getitem__(self, which: Any) -> States:  # type: ignore[override]
        return States(*(array[which] for array in tuple(self)))


class Row(NamedTuple):
    """Rows of one reading: affine in z (N, rows, 1 + nz), less what is read; and their weights (N, rows) or None."""

    values: Extended
    weights: Extended | None


@dataclass(frozen=True)
class Reading:
    """One reading of a config that has been resolved to a place by whoever made it, so that nothing is looked up.

    Attributes:
        type: as in the config.
        body: the link, or the link that the joint carries.
        xyz, rpy: the pose of its frame on the link.
        components: places among the six numbers of a spatial vector; of a joint's reading, all of its freedoms.
        value: known value, or None where it takes readings.
        is_exact: whether it has no sigma.
        n_weights: how many weights it has: 1, or one a component.
    """

    type: str
    body: int
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    components: tuple[int, ...]
    value: float | None
    is_exact: bool
    n_weights: int


def rows(found: AffineMotion, readings: Sequence[Reading], states: States) -> Iterator[Row]:
    """Yield the rows of noisy equations of motion, then of the readings; y and weights are used up in this order."""
    y, W = extended(states.y), extended(states.weights)
    at_y = at_w = 0
    for i, a in enumerate(found.of["a"]):
        for parts in found.noise.values():
            if count := parts[i].stop - parts[i].start:
                values = np.zeros((len(y), count, a.shape[-1]), a.dtype)
                values[:, range(count), range(parts[i].start, parts[i].stop)] = 1
                yield Row(values, np.broadcast_to(W[:, at_w : at_w + 1], (len(y), count)))
                at_w += 1
    for reading in readings:
        values = _read(found, reading)
        count = values.shape[1]
        if reading.value is None:
            values[..., 0] -= y[:, at_y : at_y + count]
            at_y += count
        else:
            values[..., 0] -= np.longdouble(reading.value)
        if reading.is_exact:
            yield Row(values, None)
        else:
            own = reading.n_weights
            yield Row(values, np.broadcast_to(W[:, at_w : at_w + own], (len(y), count)))
            at_w += own


def _read(found: AffineMotion, reading: Reading) -> Extended:
    i, kinds = reading.body, {"joint_acceleration": "qdd", "joint_torque": "tau"}
    if reading.type in kinds:
        return found.of[kinds[reading.type]][i].copy()
    E = _rotation(reading.rpy).T
    r = np.array(reading.xyz, np.longdouble)
    pick = list(reading.components)
    match reading.type:
        case "external_wrench" | "force_torque":
            wrench = found.of["fx" if reading.type == "external_wrench" else "f"][i]
            couple = wrench[:, :3] - hat(r) @ wrench[:, 3:]
            return np.concatenate([E @ couple, E @ wrench[:, 3:]], axis=1)[:, pick]
        case "link_acceleration" | "angular_accelerometer":
            a = found.of["a"][i]
            return np.concatenate([E @ a[:, :3], E @ (a[:, 3:] - hat(r) @ a[:, :3])], axis=1)[:, pick]
        case "accelerometer" | "rigid_contact":
            a, w, u = found.of["a"][i], found.v[i][:, :3], found.v[i][:, 3:]
            linear = a[:, 3:] - hat(r) @ a[:, :3]
            linear[..., 0] += np.cross(w, u) + np.cross(w, np.cross(w, r))
            if reading.type == "rigid_contact":
                linear[..., 0] += found.gravity[i]
            return np.concatenate([E @ a[:, :3], E @ linear], axis=1)[:, pick]
    raise AssertionError(f"the oracle does not know the sensor {reading.type}")


def _rotation(rpy: Sequence[float]) -> Extended:
    """R = Rz(yaw) Ry(pitch) Rx(roll); a quarter turn is exact, as it is in configs."""
    x, y, z = np.eye(3)
    R = np.eye(3, dtype=np.longdouble)
    for axis, angle in zip((z, y, x), rpy[::-1], strict=True):
        R = R @ rodrigues(axis.astype(np.longdouble), np.longdouble(angle))
    return R


def solve(found: Sequence[Row]) -> Extended:
    """The z (N, nz) that minimises the weighed rows where the exact ones hold."""
    none = found[0].values[:, :0]
    exact = np.concatenate([row.values for row in found if row.weights is None] or [none], axis=1)
    soft = np.concatenate([row.values for row in found if row.weights is not None] or [none], axis=1)
    weights = np.concatenate([row.weights for row in found if row.weights is not None] or [none[..., 0]], axis=1)
    return minimised(exact[..., 1:], exact[..., 0], soft[..., 1:], soft[..., 0], weights)[0]
