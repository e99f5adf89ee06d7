"""Joint models, each written once over any scalar: X_J(q), S(q), c_J(q, qd), and motion on its configurations.

A joint frame is the frame of its child link; at the neutral configuration it coincides with the frame on the
parent where the joint sits. To add a joint: one class here, registered by its `kind`.

Source: RBDA ch. 4.4 and table 4.1; Nori, end of section IV-D. Planar is our own convention, see there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from nori_dyn.algebra.scalars import cos, sin
from nori_dyn.algebra.spatial import Transform, cross, matvec, skew, stack, zeros
from nori_dyn.errors import ModelError
from nori_dyn.typing import Array, Floats

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Coordinate: TypeAlias = Literal["angle", "length", "quaternion"]
"""How one number of q enters the equations: through sine and cosine, as it is, or as part of a quaternion."""


MOTION = ("wx", "wy", "wz", "ax", "ay", "az")
FORCE = ("mx", "my", "mz", "fx", "fy", "fz")

MOTION_UNITS = ("rad/s^2",) * 3 + ("m/s^2",) * 3
FORCE_UNITS = ("N m",) * 3 + ("N",) * 3
UNITS = dict(zip((*MOTION, *FORCE), (*MOTION_UNITS, *FORCE_UNITS), strict=True))
"""The unit of each component of a spatial acceleration or force."""


def axis_rotation(axis: tuple[float, float, float], q: Array | float) -> Array:
    """E, the coordinate rotation (3, 3, ...) of a turn by the angle q about a unit axis.

    E = R^T = cos(q) 1 - sin(q) u x + (1 - cos(q)) u u^T (Rodrigues; RBDA (2.19)-(2.20) for the coordinate axes).
    """
    q = np.asarray(q)
    s, c = np.asarray(sin(q)), np.asarray(cos(q))
    eye, turn, outer = (M.reshape((3, 3) + (1,) * q.ndim) for M in _of_axis(axis))
    E: Array = eye * c - turn * s + outer * np.asarray(1 - c)
    return E


@lru_cache(maxsize=4096)
def _of_axis(axis: tuple[float, float, float]) -> tuple[Floats, Floats, Floats]:
    """The constants 1, u x and u u^T of a unit axis."""
    return np.eye(3), skew(np.asarray(axis)), np.outer(axis, axis)


def quaternion_rotation(quaternion: Array) -> Array:
    """E (3, 3, ...), from parent to child coordinates, of a unit quaternion (x, y, z, w): RBDA (4.12)."""
    x, y, z, w = quaternion
    xx, yy, zz = 2 * x * x, 2 * y * y, 2 * z * z
    xy, xz, yz = 2 * x * y, 2 * x * z, 2 * y * z
    wx, wy, wz = 2 * w * x, 2 * w * y, 2 * w * z
    return stack(
        stack(1 - (yy + zz), xy + wz, xz - wy),
        stack(xy - wz, 1 - (xx + zz), yz + wx),
        stack(xz + wy, yz - wx, 1 - (xx + yy)),
    )


def _quaternion_rates(quaternion: Array, w: Array) -> Array:
    """The derivative (4, ...) of a unit quaternion at an angular velocity w (3, ...) in child axes."""
    v, s = quaternion[:3], quaternion[3]
    vector = cross(v, w) + stack(*(s * part for part in w))
    return np.concatenate([vector, stack(-(v[0] * w[0] + v[1] * w[1] + v[2] * w[2]))]) / 2


class Joint(ABC):
    """A joint model. Laws, tested over the registry in tests/contracts/test_joints.py.

    - the velocity of the child relative to its parent, from X_J along `integrate`, is S(q) qd;
    - S_rate(q, qd) is the apparent derivative of S along the motion, and c_J that times qd;
    - bias_by_q(q, qd) is the derivative of c_J along unit velocities, one after the other;
    - rates(q, qd) is the derivative of q along `integrate`;
    - integrate(q, difference(q, p)) is p, as a configuration;
    - a random configuration lies within its room, which is not a point;
    - nq coordinates and nv freedoms, with one component name a freedom; a fixed joint has none of either.
    """

    kind: ClassVar[str]
    coordinates: ClassVar[tuple[Coordinate, ...]]
    motion_components: ClassVar[tuple[str, ...]]
    force_components: ClassVar[tuple[str, ...]]

    @property
    def nq(self) -> int:
        """Number of configuration numbers."""
        return len(self.coordinates)

    @property
    def coordinate_axes(self) -> tuple[str, ...]:
        """The axis of each configuration number among those of its kind; "" of the only one of its kind."""
        kinds = self.coordinates
        return tuple("xyzw"[kinds[:k].count(kind)] if kinds.count(kind) > 1 else "" for k, kind in enumerate(kinds))

    @property
    def nv(self) -> int:
        """Number of freedoms n_i."""
        return len(self.motion_components)

    @property
    def plane(self) -> tuple[int, int] | None:
        """The coordinate axes (i, j) between which the joint turns; None where it turns about none, or not at all."""
        axis = np.flatnonzero(getattr(self, "axis", (0.0, 0.0, 1.0)))
        if "angle" not in self.coordinates or len(axis) != 1:
            return None
        return (int(axis[0]) + 1) % 3, (int(axis[0]) + 2) % 3

    @property
    def room(self) -> tuple[float, float]:
        """The positions between which each number of q is taken to move; infinite where nothing is known of them."""
        return -math.inf, math.inf

    @property
    def is_angular(self) -> tuple[bool, ...]:
        """Whether each freedom turns; others shift."""
        one = self.coordinates[:1] == ("angle",)
        return tuple(name[0] == "w" if name else one for name in self.motion_components)

    def units(self, turn: str, shift: str) -> tuple[str, ...]:
        """One of two units for each freedom: the first where it turns, the second where it shifts."""
        return tuple(turn if turns else shift for turns in self.is_angular)

    @abstractmethod
    def transform(self, q: Array) -> Transform:
        """X_J(q), from the frame on the parent to the child, for q (nq, ...)."""

    @abstractmethod
    def S(self, q: Array) -> Array:
        """The motion subspace (6, nv) or (6, nv, ...), in child coordinates."""

    def S_rate(self, q: Array, qd: Array) -> Array:
        """The apparent derivative (6, nv) or (6, nv, ...) of S along the motion; zero for a constant S."""
        return np.zeros((6, self.nv))

    def bias(self, q: Array, qd: Array) -> Array:
        """c_J (6, ...), the apparent derivative of S times qd."""
        return matvec(self.S_rate(q, qd), qd)

    def bias_by_q(self, q: Array, qd: Array) -> Array:
        """The derivatives (6, nv) or (6, nv, ...) of c_J along each freedom; zero for a constant S."""
        return np.zeros((6, self.nv))

    def rates(self, q: Array, qd: Array) -> Array:
        """dq/dt (nq, ...) for the velocity qd (nv, ...)."""
        return qd

    def neutral(self) -> Floats:
        """The configuration (nq,) at which X_J is the identity."""
        q = np.zeros(self.nq)
        if "quaternion" in self.coordinates:
            q[-1] = 1.0
        return q

    def random(self, rng: np.random.Generator) -> Floats:
        """A random configuration (nq,): angles in [-pi, pi], lengths in [-1, 1] m, any orientation."""
        spread = np.array([math.pi if kind == "angle" else 1.0 for kind in self.coordinates])
        q = rng.uniform(-spread, spread)
        rotation = np.array([kind == "quaternion" for kind in self.coordinates])
        if rotation.any():
            quaternion = rng.normal(size=4)
            q[rotation] = quaternion / np.linalg.norm(quaternion)
        return q

    def integrate(self, q: Floats, motion: Floats) -> Floats:
        """The configuration reached from q by the constant velocity `motion` in unit time: (nq,) or (nq, N)."""
        return np.asarray(q + motion, dtype=float)

    def difference(self, start: Floats, end: Floats) -> Floats:
        """The constant velocity (nv, ...) from one configuration (nq, ...) to another in unit time."""
        return np.asarray(end - start, dtype=float)


@dataclass(frozen=True, slots=True)
class _AxisJoint(Joint):
    """A joint along or about a unit axis fixed in the child.

    Attributes:
        axis: unit vector, in child coordinates.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        if len(self.axis) != 3 or not math.isclose(math.hypot(*self.axis), 1.0, abs_tol=1e-9):
            raise ModelError(f"the axis of a {self.kind} joint must be a unit vector of three numbers: {self.axis}")


@dataclass(frozen=True, slots=True)
class _LimitedJoint(_AxisJoint):
    """A joint of one freedom.

    Attributes:
        limits: smallest and largest position [rad or m], infinite where there is none.
    """

    limits: tuple[float, float] = (-math.inf, math.inf)

    motion_components: ClassVar[tuple[str, ...]] = ("",)
    force_components: ClassVar[tuple[str, ...]] = ("",)

    @property
    def room(self) -> tuple[float, float]:
        """The limits, but where they leave no room: exporters write 0 and 0 where nobody gave any."""
        lower, upper = self.limits
        return self.limits if lower < upper else (-math.inf, math.inf)

    def random(self, rng: np.random.Generator) -> Floats:
        """A random position (1,) within the room of the joint.

        Where that is infinite: pi rad or 1 m beyond zero, and beyond the other end.
        """
        spread = math.pi if self.coordinates[0] == "angle" else 1.0
        lower, upper = self.room
        if math.isinf(lower):
            lower = min(-spread, upper - spread)
        if math.isinf(upper):
            upper = max(spread, lower + spread)
        return np.array([rng.uniform(lower, upper)])


@dataclass(frozen=True, slots=True)
class Revolute(_LimitedJoint):
    """A turn by q about an axis: RBDA table 4.1."""

    kind: ClassVar[str] = "revolute"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("angle",)

    def transform(self, q: Array) -> Transform:
        return Transform(axis_rotation(self.axis, q[0]), zeros((3,), q))

    def S(self, q: Array) -> Array:
        return np.array([[*self.axis, 0.0, 0.0, 0.0]]).T


@dataclass(frozen=True, slots=True)
class Continuous(Revolute):
    """A revolute joint without limits; differences of its angle are taken the short way round."""

    kind: ClassVar[str] = "continuous"

    def difference(self, start: Floats, end: Floats) -> Floats:
        return np.asarray((end - start + math.pi) % (2 * math.pi) - math.pi)


@dataclass(frozen=True, slots=True)
class Prismatic(_LimitedJoint):
    """A shift by q along an axis: RBDA table 4.1."""

    kind: ClassVar[str] = "prismatic"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("length",)

    def transform(self, q: Array) -> Transform:
        return Transform(np.eye(3), stack(*(q[0] * u for u in self.axis)))

    def S(self, q: Array) -> Array:
        return np.array([[0.0, 0.0, 0.0, *self.axis]]).T


@dataclass(frozen=True, slots=True)
class Helical(_LimitedJoint):
    """A turn by q about an axis with a shift of pitch q along it: RBDA table 4.1.

    Attributes:
        pitch: shift by radian [m/rad].
    """

    pitch: float = 0.0

    kind: ClassVar[str] = "helical"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("angle",)

    def transform(self, q: Array) -> Transform:
        return Transform(axis_rotation(self.axis, q[0]), stack(*(q[0] * (self.pitch * u) for u in self.axis)))

    def S(self, q: Array) -> Array:
        return np.array([[*self.axis, *(self.pitch * u for u in self.axis)]]).T


@dataclass(frozen=True, slots=True)
class Cylindrical(_AxisJoint):
    """An independent turn about and shift along one axis, q = (angle, shift): RBDA table 4.1."""

    kind: ClassVar[str] = "cylindrical"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("angle", "length")
    motion_components: ClassVar[tuple[str, ...]] = ("w", "a")
    force_components: ClassVar[tuple[str, ...]] = ("m", "f")

    def transform(self, q: Array) -> Transform:
        return Transform(axis_rotation(self.axis, q[0]), stack(*(q[1] * u for u in self.axis)))

    def S(self, q: Array) -> Array:
        return np.array([[*self.axis, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, *self.axis]]).T


@dataclass(frozen=True, slots=True)
class Planar(Joint):
    """Motion in the x-y plane of the frame on the parent, q = (angle, x, y), qd its time derivative.

    The position is in parent axes, so S turns with the angle and c_J is not zero (RBDA table 4.1 puts the
    position in child axes). Source: own derivation; tests/contracts/test_joints.py.
    """

    kind: ClassVar[str] = "planar"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("angle", "length", "length")
    motion_components: ClassVar[tuple[str, ...]] = ("wz", "ax", "ay")
    force_components: ClassVar[tuple[str, ...]] = ("mz", "fx", "fy")

    def transform(self, q: Array) -> Transform:
        return Transform(axis_rotation((0.0, 0.0, 1.0), q[0]), stack(q[1], q[2], q[2] * 0))

    def S(self, q: Array) -> Array:
        S = zeros((6, 3), q)
        s, c = sin(q[0]), cos(q[0])
        S[2, 0] = 1
        S[3, 1], S[3, 2] = c, s
        S[4, 1], S[4, 2] = -s, c
        return S

    def S_rate(self, q: Array, qd: Array) -> Array:
        S_rate = zeros((6, 3), q[:1] * qd[:1])
        turn_s, turn_c = qd[0] * sin(q[0]), qd[0] * cos(q[0])
        S_rate[3, 1], S_rate[3, 2] = -turn_s, turn_c
        S_rate[4, 1], S_rate[4, 2] = -turn_c, -turn_s
        return S_rate

    def bias_by_q(self, q: Array, qd: Array) -> Array:
        bias_by_q = zeros((6, 3), q[:1] * qd[:1])
        turn_s, turn_c = qd[0] * sin(q[0]), qd[0] * cos(q[0])
        bias_by_q[3, 0] = -turn_c * qd[1] - turn_s * qd[2]
        bias_by_q[4, 0] = turn_s * qd[1] - turn_c * qd[2]
        return bias_by_q


@dataclass(frozen=True, slots=True)
class Spherical(Joint):
    """A ball joint: q a unit quaternion (x, y, z, w), qd the angular velocity in child coordinates."""

    kind: ClassVar[str] = "spherical"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("quaternion",) * 4
    motion_components: ClassVar[tuple[str, ...]] = MOTION[:3]
    force_components: ClassVar[tuple[str, ...]] = FORCE[:3]

    def transform(self, q: Array) -> Transform:
        return Transform(quaternion_rotation(q), zeros((3,), q))

    def S(self, q: Array) -> Array:
        return np.eye(6, 3)

    def rates(self, q: Array, qd: Array) -> Array:
        return _quaternion_rates(q, qd)

    def integrate(self, q: Floats, motion: Floats) -> Floats:
        from scipy.spatial.transform import Rotation

        return np.asarray((_rotation(q) * Rotation.from_rotvec(motion.T)).as_quat()).T

    def difference(self, start: Floats, end: Floats) -> Floats:
        return np.asarray((_rotation(start).inv() * _rotation(end)).as_rotvec()).T


@dataclass(frozen=True, slots=True)
class Free(Joint):
    """A free body: q the position [m] in parent axes, then a unit quaternion (x, y, z, w).

    qd is the spatial velocity in child coordinates, angular first.
    """

    kind: ClassVar[str] = "free"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ("length",) * 3 + ("quaternion",) * 4
    motion_components: ClassVar[tuple[str, ...]] = MOTION
    force_components: ClassVar[tuple[str, ...]] = FORCE

    def transform(self, q: Array) -> Transform:
        return Transform(quaternion_rotation(q[3:]), q[:3])

    def S(self, q: Array) -> Array:
        return np.eye(6)

    def rates(self, q: Array, qd: Array) -> Array:
        R = np.swapaxes(quaternion_rotation(q[3:]), 0, 1)
        return np.concatenate([matvec(R, qd[3:]), _quaternion_rates(q[3:], qd[:3])])

    def integrate(self, q: Floats, motion: Floats) -> Floats:
        from scipy.spatial.transform import RigidTransform

        step = RigidTransform.from_exp_coords(motion.T)
        end = RigidTransform.from_components(q[:3].T, _rotation(q[3:])) * step
        return np.concatenate([np.transpose(end.translation), np.transpose(end.rotation.as_quat())])

    def difference(self, start: Floats, end: Floats) -> Floats:
        from scipy.spatial.transform import RigidTransform

        X, Y = (RigidTransform.from_components(q[:3].T, _rotation(q[3:])) for q in (start, end))
        return np.asarray((X.inv() * Y).as_exp_coords()).T


@dataclass(frozen=True, slots=True)
class Fixed(Joint):
    """A joint of no freedoms: it transmits the wrench f, which a sensor in it may read, and does not move."""

    kind: ClassVar[str] = "fixed"
    coordinates: ClassVar[tuple[Coordinate, ...]] = ()
    motion_components: ClassVar[tuple[str, ...]] = ()
    force_components: ClassVar[tuple[str, ...]] = ()

    def transform(self, q: Array) -> Transform:
        return Transform(np.eye(3), zeros((3,), q))

    def S(self, q: Array) -> Array:
        return np.zeros((6, 0))


@dataclass(frozen=True, slots=True)
class DriveLimits:
    """Limits of the drive of a joint with one freedom; infinite where unknown.

    Attributes:
        speed: the largest speed [rad/s or m/s].
        effort: the largest torque or force [N m or N].
    """

    speed: float = math.inf
    effort: float = math.inf


def _rotation(quaternion: Floats) -> Rotation:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(quaternion.T)


def notes_on_limits(names: Sequence[str], joints: Sequence[Joint]) -> Iterator[str]:
    """Yield notes on joints whose upper limit is not above the lower one."""
    pairs = zip(names, joints, strict=True)
    without = [name for name, joint in pairs if getattr(joint, "limits", joint.room) != joint.room]
    if without:
        yield f"limits of zero range ignored: {', '.join(without)}"


JOINTS: dict[str, type[Joint]] = {
    joint.kind: joint
    for joint in (Revolute, Continuous, Prismatic, Helical, Cylindrical, Planar, Spherical, Free, Fixed)
}
"""Every joint model by its kind."""
