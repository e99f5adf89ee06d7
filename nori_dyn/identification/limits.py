"""Limits of motions: positions, speeds, accelerations and torques, from the robot's model or as given.

What the model says is used up to nine tenths; what is given is used in full. Where neither says anything, joints that
turn have positions up to pi beside zero and speeds of 1 rad/s, those that shift speeds of 0.25 m/s; an acceleration
that reaches the largest speed in a quarter of a second; and any torque.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.motion_gradient import MotionGradient
from nori_dyn.identification.trajectory import MovingJoints, is_number
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats

PerJoint: TypeAlias = float | Mapping[str, float]
"""A number for all joints, or numbers for some, by name."""

Positions: TypeAlias = float | tuple[float, float] | Mapping[str, float | tuple[float, float]]
"""How far joints may go from zero, or between which positions; for all joints, or for some, by name."""

SHARE = 0.9
"""How much of the limits of a model is used."""

TURNING_SPEED, SHIFTING_SPEED = 1.0, 0.25
"""Speeds [rad/s, m/s] where nothing is known; the latter is that of ISO 10218 for robots with people beside them."""

TIME_TO_SPEED = 0.25
"""Time [s] in which the largest speed is reached where nothing is known of accelerations."""

POSTURES = 500
"""Random postures among which one is sought in which the robot can rest."""

AT_REST = (0.9, 0.998)
"""The share of the torques that rest may need: of the posture that is wanted, and of one that has to do."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionLimits:
    """Between which a robot may move.

    Attributes:
        joints: the names of the joints that move.
        lower, upper: positions of each (n,) [rad or m].
        speed: of each (n,) [rad/s or m/s].
        acceleration: of each (n,) [rad/s^2 or m/s^2].
        torque: of each freedom of the robot (nv,) [N m or N], also where it stands still; infinite where any may be.
    """

    joints: tuple[str, ...]
    lower: Floats
    upper: Floats
    speed: Floats
    acceleration: Floats
    torque: Floats

    @property
    def middle(self) -> Floats:
        """The positions (n,) in the middle."""
        return (self.lower + self.upper) / 2

    @property
    def room(self) -> Floats:
        """How far each may go from there (n,)."""
        return (self.upper - self.lower) / 2


def motion_limits(
    tree: KinematicTree,
    joints: Sequence[int],
    position: Positions | None = None,
    speed: PerJoint | None = None,
    acceleration: PerJoint | None = None,
    torque: PerJoint | None = None,
) -> MotionLimits:
    """Limits of a robot, of which some joints move.

    Args:
        tree: the robot.
        joints: the bodies whose joints move, each of one freedom.
        position: see `Positions`; positions that the model refuses stay refused.
        speed: see `PerJoint`; the model's, or as above, where not given.
        acceleration: likewise.
        torque: likewise.

    Raises:
        UnknownModelNameError: a joint that does not move, or is none.
        InputError: a limit that is not positive; positions that leave no room; a joint that shifts without end.
    """
    names = tuple(tree.joint_names[i] for i in joints)
    given = {name: _pair(name, value) for name, value in _by_joint("position", position, names, tree).items()}
    lower, upper = np.array([_positions(tree, i, given.get(tree.joint_names[i])) for i in joints]).T
    speeds = _numbers("speed", speed, names, tree)
    for i, name in zip(joints, names, strict=True):
        (usual,) = tree.joints[i].units(str(TURNING_SPEED), str(SHIFTING_SPEED))
        known = tree.drives[name].speed if name in tree.drives else math.inf
        speeds.setdefault(name, SHARE * known if math.isfinite(known) else float(usual))
    accelerations = _numbers("acceleration", acceleration, names, tree)
    of_drives = {name: SHARE * drive.effort for name, drive in tree.drives.items()}
    single = tuple(tree.joint_names[i] for i, joint in enumerate(tree.joints) if (joint.nq, joint.nv) == (1, 1))
    efforts = of_drives | _numbers("torque", torque, single, tree)
    torques = np.full(tree.nv, np.inf)
    for name in single:
        torques[tree.v_slices[tree.joint(name)]] = efforts.get(name, math.inf)
    return MotionLimits(
        names,
        lower,
        upper,
        np.array([speeds[name] for name in names]),
        np.array([accelerations.get(name, speeds[name] / TIME_TO_SPEED) for name in names]),
        torques,
    )


def _by_joint(what: str, given: Any, names: Sequence[str], tree: KinematicTree) -> dict[str, Any]:
    """The limit of each joint that has one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    for name in given:
        if name not in names:
            raise UnknownModelNameError(f"joint that moves, of a limit of {what},", name, names, f"robot '{tree.name}'")
    return dict(given)


def _numbers(what: str, given: PerJoint | None, names: Sequence[str], tree: KinematicTree) -> dict[str, float]:
    """Check a limit of each joint that has one."""
    found = {}
    for name, value in _by_joint(what, given, names, tree).items():
        if not is_number(value) or not value > 0 or (math.isinf(value) and what != "torque"):
            raise InputError(f"the limit of {what} of joint '{name}' is {value!r:.40}: it must be a positive number.")
        found[name] = float(value)
    return found


def _pair(name: str, value: Any) -> tuple[float, float]:
    """Check the limits of position of a joint."""
    if is_number(value):
        value = (-value, value)
    if not isinstance(value, Iterable) or isinstance(value, str) or len(pair := tuple(value)) != 2:
        raise InputError(
            f"the limits of position of joint '{name}' are {value!r:.40}: give a number, or a smallest and a largest."
        )
    if not all(map(is_number, pair)) or not -math.inf < pair[0] < pair[1] < math.inf:
        raise InputError(
            f"the limits of position of joint '{name}' are {pair[0]!r:.20} and {pair[1]!r:.20}: the first must be "
            "smaller than the second."
        )
    return float(pair[0]), float(pair[1])


def _positions(tree: KinematicTree, i: int, given: tuple[float, float] | None) -> tuple[float, float]:
    """Smallest and largest position of a joint."""
    joint, name = tree.joints[i], tree.joint_names[i]
    low, high = joint.room
    if given is not None:
        if not max(low, given[0]) < min(high, given[1]):
            raise InputError(
                f"the limits of position of joint '{name}', {given[0]:g} to {given[1]:g}, leave no room within those "
                f"of the robot, {low:g} to {high:g}."
            )
        return max(low, given[0]), min(high, given[1])
    if math.isinf(low) or math.isinf(high):
        if not joint.is_angular[0]:
            raise InputError(
                f"joint '{name}' is prismatic, and the robot has no limits for it. Give some: "
                f"position={{'{name}': (-0.1, 0.1)}} [m]."
            )
        low, high = max(low, min(-math.pi, high - 2 * math.pi)), min(high, max(math.pi, low + 2 * math.pi))
        return low, high
    middle, room = (low + high) / 2, SHARE * (high - low) / 2
    return middle - room, middle + room


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
            "torque, or let the joints move where the load is smaller."
        )
    nearest = fine[int(np.argmin(np.abs(drawn[fine]).max(axis=1)))]
    return np.asarray(postures[nearest])
