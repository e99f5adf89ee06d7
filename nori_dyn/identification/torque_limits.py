"""Torques of motions against their limits, by compiled inverse dynamics; and postures in which a robot can rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.limits import MotionLimits
from nori_dyn.identification.motion_gradient import MotionGradient
from nori_dyn.identification.trajectory import MovingJoints
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats

POSTURES = 500
"""Random postures among which one is looked for in which the robot can rest."""

AT_REST = (0.9, 0.998)
"""The share of the torques that rest may need: of the posture that is wanted, and of one that has to do."""


@dataclass(frozen=True, eq=False)
class Torques:
    """The torques of motions, where some are limited.

    Attributes:
        value: from q, qd, qdd to tau.
        gradient: its derivatives by the joints that move, for factors of tau.
        limited: the freedoms that have a limit.
        limit: their limits.
    """

    value: CompiledFunction
    gradient: MotionGradient
    limited: tuple[int, ...]
    limit: Floats

    @staticmethod
    def of(joints: MovingJoints, limits: Floats) -> Torques:
        """Compile them, by inverse dynamics.

        Raises:
            UnsupportedComponentError: see `nori_dyn.rnea`.
            CompilerError: as for `compile`.
        """
        found = traced(rnea, joints.tree, ("q", "qd", "qdd"))
        (limited,) = np.nonzero(np.isfinite(limits))
        gradient = MotionGradient.of(found, joints)
        return Torques(CompiledFunction(found), gradient, tuple(limited.tolist()), limits[limited])

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Torques (N, n_limited) of N samples that have a limit."""
        if not self.limited:
            return np.zeros((len(q), 0))
        return np.asarray(self.value.batch(q, qd, qdd)[:, self.limited])


def resting_posture(joints: MovingJoints, limits: MotionLimits, torques: Torques, seed: int) -> Floats:
    """Positions (n_joints,) near the middle of the limits in which the torques suffice for rest.

    Raises:
        InputError: there are none: the limits of torque are too small to hold the robot.
    """
    if not torques.limited:
        return limits.middle
    tree = joints.tree
    drawn = np.random.default_rng(seed).uniform(-0.9, 0.9, (POSTURES, len(limits.joints)))
    drawn[0] = 0.0
    postures, rest = limits.middle + limits.room * drawn, np.zeros(drawn.shape)
    loads = np.abs(torques.of_motion(*joints.whole(postures, rest, rest))) / torques.limit
    easy, hard = ((loads.max(axis=1) <= share).nonzero()[0] for share in AT_REST)
    fine = easy if len(easy) else hard
    if not len(fine):
        best = int(np.argmin(loads.max(axis=1)))
        k = int(np.argmax(loads[best]))
        joint = next(i for i, s in enumerate(tree.v_slices) if s.start == torques.limited[k])
        raise InputError(
            f"the limits leave no posture in which robot '{tree.name}' can rest: in the best of {POSTURES}, joint "
            f"'{tree.joint_names[joint]}' needs {loads[best, k] * torques.limit[k]:.3g} of the "
            f"{torques.limit[k]:.3g} {tree.joints[joint].units('N m', 'N')[0]} that it may have. Raise its limit of "
            "torque, or let the joints move where less is to be held."
        )
    nearest = fine[int(np.argmin(np.abs(drawn[fine]).max(axis=1)))]
    return np.asarray(postures[nearest])
