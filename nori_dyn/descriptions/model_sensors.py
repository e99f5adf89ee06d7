"""A sensor as a model file describes it, whether or not it gives rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nori_dyn.typing import Floats

Entry: TypeAlias = Mapping[str, Any]
"""An entry of a sensor config."""


@dataclass(frozen=True, slots=True)
class ModelSensor:
    """A sensor of a model file.

    Attributes:
        name: its name.
        type: what kind it is, in the file's words.
        on: the joint, link or site that it is on; empty where it is on none.
        entry: the entry of a sensor config that reads the same; None where there is none.
        note: why there is none, or what is particular about it.
        link: the link or frame that must move for it to read something; None for one in a joint.
    """

    name: str
    type: str
    on: str
    entry: Entry | None = None
    note: str = ""
    link: str | None = None


OF_BASE = "with the base as memory"
"""The note of a sensor that reads the state of a floating base."""


def counted(sensors: Sequence[ModelSensor]) -> dict[str, int]:
    """Number of sensors of each type, the most frequent first."""
    return dict(Counter(sensor.type for sensor in sensors).most_common())


def pose_entry(xyz: Sequence[float], rpy: Sequence[float], relative_to: str | None = None) -> dict[str, Any] | None:
    """A pose as a sensor config has it; None for the identity."""
    if not any(xyz) and not any(rpy):
        return None
    pose: dict[str, Any] = {"xyz": [float(x) for x in xyz], "rpy": [float(x) for x in rpy]}
    return pose if relative_to is None else {**pose, "relative_to": relative_to}


def roll_pitch_yaw(R: Floats) -> tuple[float, float, float]:
    """Fixed-axis angles [rad] of a rotation R (3, 3), R = Rz(yaw) Ry(pitch) Rx(roll).

    Where pitch is a quarter turn only the sum or difference of the others is determined: yaw is then zero.
    """
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) > 1e-12:
        return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])
    return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0
