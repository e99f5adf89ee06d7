"""Limits of the drives of joints: no equation depends on them, but planned motions do."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DriveLimits:
    """Limits of the drive of a joint with one freedom; infinite where unknown.

    Attributes:
        speed: the largest speed [rad/s or m/s].
        effort: the largest torque or force [N m or N].
    """

    speed: float = math.inf
    effort: float = math.inf
