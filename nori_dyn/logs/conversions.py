"""Numbers of a log in other axes and other coordinates: what a mapping's `frame`, `orientation` and `axes` say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import MappingError
from nori_dyn.logs.mapping import Axes, Orientation, Pose
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.typing import Floats

Conversion: TypeAlias = Callable[[Floats], Floats]
"""Takes numbers (k, n) of n samples to others (m, n)."""


def oriented(orientation: Orientation, before: int) -> Conversion | None:
    """Return what takes an orientation, after so many other numbers, to a (x, y, z, w); None where it is one.

    Args:
        orientation: how it is given.
        before: how many numbers are before it, which stay: the position of a free joint.
    """
    if orientation == "xyzw":
        return None
    if orientation == "wxyz":
        order = [*range(before), before + 1, before + 2, before + 3, before]
        return lambda values: values[order]
    return lambda values: np.concatenate([values[:before], quaternion_of_rpy(values[before:])])


def quaternion_of_rpy(rpy: Floats) -> Floats:
    """Return the quaternions (4, n), as (x, y, z, w), of roll, pitch and yaw (3, n) [rad]: R_z(y) R_y(p) R_x(r)."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy / 2), np.cos(rpy / 2)
    return np.array(
        [
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        ]
    )


def rotation_of_rpy(rpy: Sequence[float]) -> Floats:
    """Return R (3, 3) from the turned axes to those in which roll, pitch and yaw are given."""
    return rotations(quaternion_of_rpy(np.array(rpy, dtype=float)[:, None]))[:, :, 0]


def rotations(quaternions: Floats) -> Floats:
    """Return R (3, 3, n), from body to world axes, of quaternions (4, n) as (x, y, z, w), of any length but zero."""
    x, y, z, w = quaternions / np.linalg.norm(quaternions, axis=0)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


VELOCITY = ("wx", "wy", "wz", "vx", "vy", "vz")
"""The components of the velocity of a free joint."""


def frame_matrix(pose: Pose, columns: Sequence[str], targets: Sequence[str]) -> Floats:
    """Return what takes the components of a reading in a log's axes (k) to those of its sensor (m).

    Forces and couples turn, and forces add xyz x f to the couple about the sensor's origin.

    Args:
        pose: where the log's axes are, in those of the sensor.
        columns: the components in the log: "fx", "fy", "fz", ...
        targets: the components that the sensor has.

    Raises:
        MappingError: components without which the others cannot be turned.
    """
    R = rotation_of_rpy(pose.rpy)
    x, y, z = pose.xyz
    full = np.zeros((6, 6))
    full[:3, :3] = full[3:, 3:] = R
    names = next((names for names in (FORCE, VELOCITY) if set(columns) <= set(names)), MOTION)
    if any(pose.xyz):
        if names is not FORCE:
            raise MappingError("`xyz` of a frame is for forces and couples: motion elsewhere is another one.")
        full[:3, 3:] = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ R
    unknown = [name for name in (*columns, *targets) if name not in names]
    if unknown:
        raise MappingError(f"a frame turns components {', '.join(names)}, and '{unknown[0]}' is none of them.")
    rows = full[[names.index(name) for name in targets]]
    missing = [name for k, name in enumerate(names) if name not in columns and np.abs(rows[:, k]).max() > 1e-12]
    if missing:
        raise MappingError(f"to turn {', '.join(targets)}, component '{missing[0]}' is needed as well.")
    return np.asarray(rows[:, [names.index(name) for name in columns]])


def body_velocity(axes: Axes, quaternions: Floats, velocities: Floats) -> Floats:
    """Return the velocities (6, n) of free joints in their own axes, angular first.

    Args:
        axes: in which they are given.
        quaternions: orientations (4, n), as (x, y, z, w).
        velocities: (6, n), angular first; linear those of the joint's origin.
    """
    if axes == "body":
        return velocities
    R = rotations(quaternions)
    turned = velocities.copy()
    parts = (slice(0, 3), slice(3, 6)) if axes == "world" else (slice(3, 6),)
    for part in parts:
        turned[part] = np.einsum("jin,jn->in", R, velocities[part])
    return turned
