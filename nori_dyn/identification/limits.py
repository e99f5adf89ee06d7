"""Limits of motions: positions, speeds, accelerations and torques, and postures in which a robot rests within them.

What the model says is used up to nine tenths; what is given is used in full. Where neither says anything, joints that
turn have positions up to pi beside zero and speeds of 1 rad/s, those that shift speeds of 0.25 m/s; an acceleration
that reaches the largest speed in a quarter of a second; and any torque.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.motion_function import Pullback
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.model.joints import DriveLimits
from nori_dyn.model.tree import KinematicTree
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

Value = TypeVar("Value")


def is_number(value: object) -> bool:
    """Whether a value is one real number."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Between which a robot may move.

    Attributes:
        moving: the joints that move, and those that follow.
        joints: the names of the joints that move, independent ones first; others follow them.
        lower, upper: positions of each (n,) [rad or m]; infinite where one that follows has none.
        speed: of each (n,) [rad/s or m/s].
        acceleration: of each (n,) [rad/s^2 or m/s^2].
        torque: of each freedom of the robot (nv,) [N m or N], also where it stands still; infinite where any may be.
    """

    moving: MovingJoints
    joints: tuple[str, ...]
    lower: Floats
    upper: Floats
    speed: Floats
    acceleration: Floats
    torque: Floats

    @property
    def middle(self) -> Floats:
        """The positions (n,) in the middle; zero where there is none."""
        known = np.isfinite(self.room)
        return (np.where(known, self.lower, 0.0) + np.where(known, self.upper, 0.0)) / 2

    @property
    def room(self) -> Floats:
        """How far each may go from there (n,)."""
        return (self.upper - self.lower) / 2

    @cached_property
    def _places(self) -> tuple[list[int], list[int], list[int]]:
        """Numbers in q, freedoms, and numbers among the freedoms that move, of the joints."""
        tree, bodies = self.moving.tree, (*self.moving.bodies, *self.moving.followers)
        of_v = [tree.v_slices[i].start for i in bodies]
        return [tree.q_slices[i].start for i in bodies], of_v, [self.moving.moved.index(k) for k in of_v]

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Position from the middle, speed and acceleration by their limits (N, 3 n), and their derivatives."""
        of_q, of_v, place = self._places
        sizes = self.room, self.speed, self.acceleration
        parts = q[:, of_q] - self.middle, qd[:, of_v], qdd[:, of_v]

        def pullback(factors: Floats) -> Floats:
            found = np.zeros((3, len(q), len(self.moving.moved)))
            for k, (own, size) in enumerate(zip(np.split(factors, 3, axis=1), sizes, strict=True)):
                found[k][:, place] = own / size
            return found

        return np.hstack([part / size for part, size in zip(parts, sizes, strict=True)]), pullback

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        of, n = divmod(k, len(self.joints))
        what = ("position", "speed", "acceleration")[of]
        return f"joint '{self.joints[n]}' takes {abs(ratio):.3g} of what its limit of {what} leaves"


def motion_limits(
    moving: MovingJoints,
    position: Positions | None = None,
    speed: PerJoint | None = None,
    acceleration: PerJoint | None = None,
    torque: PerJoint | None = None,
) -> MotionLimits:
    """Limits of a robot, of which some joints move.

    Args:
        moving: those that move; of others that follow with the limits of the model, and those given by name.
        position: see `Positions`; positions that the model refuses stay refused.
        speed: see `PerJoint`; the model's, or as above, where not given.
        acceleration: likewise.
        torque: likewise.

    Raises:
        UnknownModelNameError: a joint that does not move, or is none.
        InputError: a limit that is not positive; positions that leave no room; a joint that shifts without end.
    """
    tree, bodies = moving.tree, (*moving.bodies, *moving.followers)
    names, others = ([tree.joint_names[i] for i in own] for own in (moving.bodies, moving.followers))
    positions = _given("position", position, names, others, tree, _pair)
    speeds = _given("speed", speed, names, others, tree, _number)
    accelerations = _given("acceleration", acceleration, names, others, tree, _number)
    rows = []
    for i, name in zip(bodies, (*names, *others), strict=True):
        follows, known = name in others, tree.drives.get(name, DriveLimits()).speed
        usual = TURNING_SPEED if tree.joints[i].is_angular[0] else SHIFTING_SPEED
        fastest = speeds.get(name, SHARE * known if follows or math.isfinite(known) else usual)
        hardest = accelerations.get(name, math.inf if follows else fastest / TIME_TO_SPEED)
        rows.append((*_positions(tree, i, positions.get(name), follows), fastest, hardest))
    single = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if (joint.nq, joint.nv) == (1, 1)]
    efforts, torques = _given("torque", torque, single, (), tree, _number), np.full(tree.nv, np.inf)
    for name in single:
        own = SHARE * tree.drives.get(name, DriveLimits()).effort
        torques[tree.v_slices[tree.joint(name)]] = efforts.get(name, own)
    lower, upper, speed_of, acceleration_of = np.array(rows).T
    return MotionLimits(moving, (*names, *others), lower, upper, speed_of, acceleration_of, torques)


def _given(
    what: str,
    given: Any,
    names: Sequence[str],
    others: Sequence[str],
    tree: KinematicTree,
    check: Callable[[str, str, Any], Value],
) -> dict[str, Value]:
    """The limit of each joint that has one, checked; of others only if they are named."""
    if given is None:
        return {}
    each = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    for name in each:
        if name not in (*names, *others):
            raise UnknownModelNameError(
                f"joint that moves, of a limit of {what},", name, (*names, *others), f"robot '{tree.name}'"
            )
    return {name: check(what, name, value) for name, value in each.items()}


def _number(what: str, name: str, value: Any) -> float:
    """Check a limit of a joint."""
    if not is_number(value) or not value > 0 or (math.isinf(value) and what != "torque"):
        raise InputError(f"the limit of {what} of joint '{name}' is {value!r:.40}: it must be a positive number.")
    return float(value)


def _pair(what: str, name: str, value: Any) -> tuple[float, float]:
    """Check the limits of position of a joint."""
    if is_number(value):
        value = (-value, value)
    if not isinstance(value, Iterable) or isinstance(value, str) or len(pair := tuple(value)) != 2:
        raise InputError(
            f"the limits of {what} of joint '{name}' are {value!r:.40}: give a number, or a smallest and a largest."
        )
    if not all(map(is_number, pair)) or not -math.inf < pair[0] < pair[1] < math.inf:
        raise InputError(
            f"the limits of {what} of joint '{name}' are {pair[0]!r:.20} and {pair[1]!r:.20}: the first must be "
            "smaller than the second."
        )
    return float(pair[0]), float(pair[1])


def _positions(tree: KinematicTree, i: int, given: tuple[float, float] | None, follows: bool) -> tuple[float, float]:
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
    if math.isfinite(high - low):
        middle, room = (low + high) / 2, SHARE * (high - low) / 2
        return middle - room, middle + room
    if follows and math.isinf(low) and math.isinf(high):
        return low, high
    if not joint.is_angular[0]:
        raise InputError(
            f"joint '{name}' is prismatic, and the robot has no limits for it. Give some: "
            f"position={{'{name}': (-0.1, 0.1)}} [m]."
        )
    return max(low, min(-math.pi, high - 2 * math.pi)), min(high, max(math.pi, low + 2 * math.pi))


class MotionConstraint(Protocol):
    """Limits of a motion. Laws: ratios are between -1 and 1 where they are kept; the pullback is their derivative."""

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Ratios (N, n) of a motion of the whole robot, and their derivatives by the freedoms that move."""

    def named(self, k: int, ratio: float) -> str:
        """What the k-th ratio means, in words."""


POSTURES = 500
"""Random postures among which one is sought in which the robot can rest."""

AT_REST = (0.9, 0.998)
"""The share of its limits that rest may need: of the posture that is wanted, and of one that has to do."""


def resting_posture(
    joints: MovingJoints, limits: MotionLimits, constraints: Sequence[MotionConstraint], seed: int
) -> Floats:
    """Positions (n_joints,) of independent joints near the middle of their limits in which the robot can rest.

    Near those in which it stands still, where others follow.

    Args:
        joints: those that move.
        limits: theirs.
        constraints: all that motions keep, these limits first.
        seed: seed of the postures.

    Raises:
        InputError: there are none: torques are too small to hold the robot, or it touches itself or the floor.
    """
    n = len(joints.bodies)
    middle, room = limits.middle[:n], limits.room[:n]
    drawn = np.random.default_rng(seed).uniform(-0.9, 0.9, (POSTURES, n))
    drawn[0] = 0.0
    drawn[1] = start = (joints.still[joints.of_q] - middle) / room
    wanted = drawn[0] if joints.dependents is None else start
    postures, rest = middle + room * drawn, np.zeros(drawn.shape)
    whole = joints.whole(postures, rest, rest)
    closed = np.isfinite(whole[0]).all(axis=1)
    parts = [np.abs(each.of_motion(*(part[closed] for part in whole))[0]) for each in constraints]
    parts[0][:, :n] *= AT_REST[0]  # wherever they were drawn
    loads, postures, away = np.hstack(parts), postures[closed], np.abs(drawn[closed] - wanted).max(axis=1)
    for share in AT_REST:
        fine = np.flatnonzero(loads.max(axis=1, initial=0.0) <= share)
        if len(fine):
            return np.asarray(postures[fine[int(np.argmin(away[fine]))]])
    best = int(np.argmin(loads.max(axis=1)))
    sizes = [part[best].max(initial=0.0) for part in parts]
    k = int(np.argmax(sizes))
    violated = constraints[k].named(int(np.argmax(parts[k][best])), sizes[k])
    raise InputError(
        f"the limits leave no posture in which robot '{joints.tree.name}' can rest: in the best of {POSTURES}, "
        f"{violated}. Raise its limit, or let the joints move where it is easier."
    )
