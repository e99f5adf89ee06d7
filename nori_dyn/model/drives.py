"""What the drives of joints can do: no equation depends on it, but the motions that a robot can be asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DriveLimits:
    """What the drive of a joint of one freedom can do; infinite where nothing is known of it.

    Attributes:
        speed: the largest speed [rad/s or m/s].
        effort: the largest torque or force [N m or N].
    """

    speed: float = math.inf
    effort: float = math.inf
