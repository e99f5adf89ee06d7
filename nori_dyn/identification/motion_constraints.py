"""What motions have to keep: ratios that are at most 1, and postures in which a robot can rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.limits import JointLimits
from nori_dyn.identification.motion_gradient import Pullback
from nori_dyn.typing import Floats

POSTURES = 500
"""Random postures among which one is sought in which the robot can rest."""

AT_REST = (0.9, 0.998)
"""The share of its limits that rest may need: of the posture that is wanted, and of one that has to do."""

FAR = 1e6
"""What ratios are where loops cannot be closed."""


class MotionConstraint(Protocol):
    """Limits of a motion. Laws: ratios are between -1 and 1 where they are kept; the pullback is their derivative."""

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Ratios (N, n) of a motion of the whole robot, and their derivatives by the freedoms that move."""

    def named(self, k: int, ratio: float) -> str:
        """What the k-th ratio means, in words."""


def resting_posture(limits: JointLimits, constraints: Sequence[MotionConstraint], seed: int) -> Floats:
    """Positions (n_joints,) of independent joints near the middle of their limits in which the robot can rest.

    Near those in which it stands still, where others follow.

    Args:
        limits: those of the joints.
        constraints: further ones.
        seed: seed of the postures.

    Raises:
        InputError: there are none: torques are too small to hold the robot, or it touches itself or the floor.
    """
    joints, n = limits.joints, len(limits.joints.bodies)
    middle, room = limits.limits.middle[:n], limits.limits.room[:n]
    drawn = np.random.default_rng(seed).uniform(-0.9, 0.9, (POSTURES, n))
    drawn[0] = 0.0
    drawn[1] = start = (joints.still[joints.of_q] - middle) / room
    wanted = drawn[0] if joints.dependents is None else start
    postures, rest = middle + room * drawn, np.zeros(drawn.shape)
    q, qd, qdd = joints.whole(postures, rest, rest)
    closed = np.isfinite(q).all(axis=1)
    q, qd, qdd, postures, drawn = q[closed], qd[closed], qdd[closed], postures[closed], drawn[closed]
    parts = [np.abs(each.of_motion(q, qd, qdd)[0]) for each in (limits, *constraints)]
    parts[0][:, :n] *= AT_REST[0]  # wherever they were drawn
    loads = np.hstack(parts)
    easy, hard = (np.flatnonzero(loads.max(axis=1, initial=0.0) <= share) for share in AT_REST)
    fine = easy if len(easy) else hard
    if not len(fine):
        best = int(np.argmin(loads.max(axis=1)))
        worst = [int(np.argmax(part[best])) if part.shape[1] else 0 for part in parts]
        sizes = [part[best].max(initial=0.0) for part in parts]
        k = int(np.argmax(sizes))
        said = (limits, *constraints)[k].named(worst[k], sizes[k])
        raise InputError(
            f"the limits leave no posture in which robot '{joints.tree.name}' can rest: in the best of {POSTURES}, "
            f"{said}. Raise its limit, or let the joints move where it is easier."
        )
    return np.asarray(postures[fine[int(np.argmin(np.abs(drawn[fine] - wanted).max(axis=1)))]])
