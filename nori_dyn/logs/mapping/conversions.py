"""Units, axes and coordinates of the numbers of a log: a mapping's `unit`, `frame`, `orientation` and `axes`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.spatial import Transform, matvec
from nori_dyn.errors import MappingError
from nori_dyn.interop.conventions import scalar_last
from nori_dyn.logs.mapping.log_mapping import Axes, FrameSettings, Orientation
from nori_dyn.model.joints import FORCE, MOTION, quaternion_rotation
from nori_dyn.typing import Floats

STANDARD_GRAVITY = 9.80665
"""What accelerometers call one g [m/s^2]."""

DEGREE = math.pi / 180

UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "rad": {"rad": 1.0, "deg": DEGREE, "mrad": 1e-3, "rev": 2 * math.pi},
        "rad/s": {"rad/s": 1.0, "deg/s": DEGREE, "mrad/s": 1e-3, "rpm": 2 * math.pi / 60, "rev/s": 2 * math.pi},
        "rad/s^2": {"rad/s^2": 1.0, "deg/s^2": DEGREE, "rev/s^2": 2 * math.pi},
        "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
        "m/s": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2},
        "m/s^2": {"m/s^2": 1.0, "mm/s^2": 1e-3, "cm/s^2": 1e-2, "g": STANDARD_GRAVITY, "mg": 1e-3 * STANDARD_GRAVITY},
        "N": {"N": 1.0, "mN": 1e-3, "kN": 1e3, "kgf": STANDARD_GRAVITY},
        "N m": {"N m": 1.0, "mN m": 1e-3, "kN m": 1e3, "N mm": 1e-3, "kgf m": STANDARD_GRAVITY},
        "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    }
)
"""What one of each unit is in SI, by the unit of SI."""


def factor(unit: str, of: str) -> float | None:
    """Factor of a unit to SI; None if it is no unit of such a quantity.

    Args:
        unit: "deg", "Nm", "N*m", "m/s2": blanks, dots, stars and carets are of no account.
        of: the unit of SI that is needed, "N m"; "" where it is not known, and any unit is taken.
    """
    tables = UNITS.values() if not of else (UNITS.get(of, {of: 1.0}),)
    return next((size for table in tables for name, size in table.items() if _bare(name) == _bare(unit)), None)


def known_units(of: str) -> tuple[str, ...]:
    """Units that a quantity may be given in."""
    return tuple(UNITS.get(of, (of,)))


def _bare(unit: str) -> str:
    return unit.translate(str.maketrans("", "", " ·*^.")).replace("°", "deg")


Conversion: TypeAlias = Callable[[Floats], Floats]
"""Takes numbers (k, n) of n samples to others (m, n)."""


def oriented(orientation: Orientation, before: int) -> Conversion | None:
    """Conversion of an orientation to a quaternion (x, y, z, w); None if it is one already.

    Args:
        orientation: how it is given.
        before: how many numbers are before it, which stay: the position of a free joint.
    """
    if orientation == "xyzw":
        return None
    if orientation == "wxyz":
        return lambda values: np.concatenate([values[:before], scalar_last(values[before:])])

    def of_rpy(values: Floats) -> Floats:  # R_z(yaw) R_y(pitch) R_x(roll)
        return np.concatenate([values[:before], Rotation.from_euler("xyz", values[before:].T).as_quat().T])

    return of_rpy


def at_origin(turned: Conversion | None, before: int) -> Conversion | None:
    """Conversion of an orientation alone, where so many numbers are before it: of a free joint a position, zero."""
    if not before:
        return turned
    return lambda values: np.concatenate(
        [np.zeros((before, values.shape[1])), values if turned is None else turned(values)]
    )


VELOCITY = ("wx", "wy", "wz", "vx", "vy", "vz")
"""The components of the velocity of a free joint."""


def frame_matrix(pose: FrameSettings, columns: Sequence[str], targets: Sequence[str]) -> Floats:
    """Matrix (m, k) from the components of a reading in the axes of the log to those of its sensor.

    Forces and couples turn, and forces add xyz x f to the couple about the sensor's origin.

    Args:
        pose: where the log's axes are, in those of the sensor.
        columns: the components in the log: "fx", "fy", "fz", ...
        targets: the components that the sensor has.

    Raises:
        MappingError: components without which the others cannot be turned.
    """
    X = Transform(Rotation.from_euler("xyz", pose.rpy).as_matrix().T, np.array(pose.xyz))
    full = X.motion_matrix().T  # of forces, to the sensor; without `xyz` of motions too
    names = next((names for names in (FORCE, VELOCITY) if set(columns) <= set(names)), MOTION)
    if any(pose.xyz) and names is not FORCE:
        raise MappingError("`xyz` of a frame applies to forces and couples only.")
    unknown = [name for name in (*columns, *targets) if name not in names]
    if unknown:
        raise MappingError(f"a frame rotates components {', '.join(names)}, and '{unknown[0]}' is none of them.")
    rows = full[[names.index(name) for name in targets]]
    missing = [name for k, name in enumerate(names) if name not in columns and np.abs(rows[:, k]).max() > 1e-12]
    if missing:
        raise MappingError(f"to turn {', '.join(targets)}, component '{missing[0]}' is needed as well.")
    return np.asarray(rows[:, [names.index(name) for name in columns]])


def body_velocity(axes: Axes, quaternions: Floats, velocities: Floats) -> Floats:
    """Velocities (6, n) of free joints in their own axes, angular first.

    Args:
        axes: in which they are given.
        quaternions: orientations (4, n), as (x, y, z, w).
        velocities: (6, n), angular first; linear those of the joint's origin.
    """
    if axes == "body":
        return velocities
    E = quaternion_rotation(quaternions / np.linalg.norm(quaternions, axis=0))
    angular = matvec(E, velocities[:3]) if axes == "world" else velocities[:3]
    return np.concatenate([angular, matvec(E, velocities[3:])])
