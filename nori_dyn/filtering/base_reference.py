"""The reference of a floating base, which a tick is given in place of q and qd of the root, and the base itself.

See `measurements.floating_base` for the state. The reference turns with the last estimate of the angular velocity, so
that what is left of the product with gravity is noise. Where gravity as estimated is no longer that of the tree in the
axes of the reference, these are turned, and the state with them. The length of gravity is a row that counts once its
direction is known. Over a gap, and a tick without readings, the base is forgotten but for gravity, which turns by no
more than a base does in the time.

Source: own derivation (tests/unit/filtering/test_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation, triangular
from nori_dyn.measurements.floating_base import BASE, SIGMAS, SIZE_SIGMA, UNITS, floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

if TYPE_CHECKING:  # importing it takes longer than all else
    from scipy.spatial.transform import Rotation

TILT = 0.01
"""Angle between gravity as estimated and that of the tree above which the axes of the reference are turned [rad]."""

SURE = 0.1
"""Standard deviation of gravity's direction from which on it is sure enough to turn by [rad]."""

SECOND_ORDER = 0.1
"""What the row of gravity's length leaves out, as a share of its standard deviation, above which it does not count."""

ROUNDING = 1e-9
"""Size of gravity as estimated, as a share of the tree's, below which it has no direction."""

SIZED_FOR = 50.0
"""Time after which the row of gravity's length counts again: by then gravity's walk has made it unsure [s]."""

NOISE = 4.0
"""By how many variances of its noise the square of an angular velocity is less before the axes follow it."""

TURNING = 1.0
"""Standard deviation of the angular velocity about each axis of a base that nothing is read of [rad/s]."""

Quaternion: TypeAlias = tuple[float, float, float, float]
"""A unit quaternion (x, y, z, w), in plain numbers: a tick is too short for arrays of four."""


@dataclass(frozen=True, slots=True, eq=False)
class BaseEstimate:
    """The floating base at a tick, or at N with a leading N.

    Yaw and position are integrated from the first tick: no sensor reads them.

    Attributes:
        rotation: unit quaternion (x, y, z, w) from base to world coordinates (..., 4).
        position: of the origin of the base, in world coordinates (..., 3) [m].
        velocity: of that, in base coordinates (..., 3) [m/s].
        angular_velocity: in base coordinates (..., 3) [rad/s].
        gravity: in base coordinates (..., 3) [m/s^2].
        covariance: of velocity, gravity and angular velocity (..., 9, 9).
    """

    rotation: Floats
    position: Floats
    velocity: Floats
    angular_velocity: Floats
    gravity: Floats
    covariance: Floats

    @property
    def q(self) -> Floats:
        """Configuration of the root joint (..., 7): position, then the quaternion."""
        return np.concatenate([self.position, self.rotation], axis=-1)

    @property
    def qd(self) -> Floats:
        """Velocity of the root joint (..., 6): angular velocity, then velocity, in base coordinates."""
        return np.concatenate([self.angular_velocity, self.velocity], axis=-1)

    @property
    def tilt_deviation(self) -> Floats:
        """Standard deviation of the direction of gravity (...) [rad], both ways together."""
        return _tilt_deviation(self.gravity, self.covariance[..., 3:6, 3:6])

    @property
    def mean(self) -> Floats:
        """Velocity, gravity and angular velocity (..., 9)."""
        return np.concatenate([self.velocity, self.gravity, self.angular_velocity], axis=-1)

    @property
    def deviations(self) -> Floats:
        """The standard deviations of these (..., 9)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=-2, axis2=-1), 0.0))

    def at(self, part: slice | int) -> BaseEstimate:
        """That of some of the ticks, or of one."""
        return BaseEstimate(*(getattr(self, each.name)[part] for each in fields(self)))

    @staticmethod
    def joined(parts: Sequence[BaseEstimate]) -> BaseEstimate:
        """Return those of ticks that follow each other as one."""
        names = [each.name for each in fields(BaseEstimate)]
        return BaseEstimate(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class AxesTurn:
    """A turn of the axes of a reference between two ticks: what of the memory is along them turns as well.

    Attributes:
        parts: where velocity and gravity are among the numbers of the memory.
        matrix: from the axes before to those after (3, 3).
    """

    parts: tuple[Indices, Indices]
    matrix: Floats

    def prior(self, known: SquareRootInformation) -> SquareRootInformation:
        """A prior of the memory in the axes after."""
        R = known.R.copy()
        for part in self.parts:
            R[:, part] = R[:, part] @ self.matrix.T
        R, z, _ = triangular(np.column_stack([R, known.z]))
        return SquareRootInformation(R, z)

    def mean_back(self, mean: Floats) -> Floats:
        """An estimate of the memory (k,) in the axes before."""
        mean = mean.copy()
        for part in self.parts:
            mean[part] = self.matrix.T @ mean[part]
        return mean

    def back(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """An estimate of the memory (k,) and its covariance (k, k) in the axes before."""
        P = covariance.copy()
        for part in self.parts:
            P[part] = self.matrix.T @ P[part]
            P[:, part] = P[:, part] @ self.matrix
        return self.mean_back(mean), P


@dataclass(frozen=True, slots=True, eq=False)
class Bridge:
    """What is known of a floating base after a time through which nothing is read of it, whatever was known before.

    Attributes:
        places: where its state is among the numbers of the memory (9,).
        R, z: what is known of that (9, 9), (9,).
    """

    places: Indices
    R: Floats
    z: Floats

    def prior(self, known: SquareRootInformation) -> SquareRootInformation:
        """A prior of the memory."""
        R, z = known.R.copy(), known.z.copy()
        R[self.places], z[self.places] = 0.0, self.z
        R[np.ix_(self.places, self.places)] = self.R
        return SquareRootInformation(R, z)

    def mean_back(self, mean: Floats) -> Floats:
        """An estimate of the memory (k,) at the tick after: it tells nothing of the base before."""
        return mean

    def back(self, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """The same with its covariance (k, k)."""
        return mean, covariance


class BaseReference:
    """The reference of a floating base.

    Attributes:
        q, qd: what a tick is given of the root.
        places: where the state of the base is among the numbers of the memory (9,).
        change: what was done to the prior of the last tick, see `AxesTurn` and `Bridge`; None where nothing was.
        position: of the origin of the base at the last tick, in world coordinates (3,) [m].
        yaw: how far the base has turned about the vertical beyond its axes [rad].
        missed: whether the last tick had no readings to go by.
        is_sizing: whether the row of gravity's length counts in the last tick.

    Args:
        tree: the robot.
        memory_names: the name of each number of the memory.
    """

    def __init__(self, tree: KinematicTree, memory_names: Sequence[str]) -> None:
        root = floating_root(tree)
        self.q, self.qd = tree.q_slices[root], tree.v_slices[root]
        self._gravity = np.asarray(tree.gravity, dtype=float)
        self._size = float(np.linalg.norm(self._gravity))
        down = self._gravity / (self._size or 1.0)
        self._down, self._up, self._cos_tilt = tuple(down.tolist()), tuple((-down).tolist()), math.cos(TILT)
        self._across = np.eye(3) - np.outer(down, down)
        first = next(k for k, name in enumerate(memory_names) if name.startswith(f"{BASE}:"))
        self.places, self._k = np.arange(first, first + 3 * len(UNITS)), len(memory_names)
        self._along_axes = self.places[:3], self.places[3:6]
        self.begin()

    @staticmethod
    def of(tree: KinematicTree, memory_names: Sequence[str]) -> BaseReference | None:
        """The reference of a robot whose base is state; None where it is not."""
        if not any(name.startswith(f"{BASE}:") for name in memory_names):
            return None
        return BaseReference(tree, memory_names)

    def begin(self, prior: SquareRootInformation | None = None) -> None:
        """Go back to before the first tick, where the axes are those of the base.

        Args:
            prior: what is known of the memory there, where something is.
        """
        self._R, self._w, self._dt, self.position = (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 0.0, np.zeros(3)
        self.yaw = self._yaw_rate = 0.0
        self.change: AxesTurn | Bridge | None = None
        self._last: Floats | None = None
        self._velocity: Floats | None = None
        self._after: Posterior | None = None
        self._held = np.eye(3) * SIGMAS["gravity"] ** 2
        self.missed, self.is_sizing, self._sized_for = False, False, 0.0
        if prior is None:
            return
        mean, own = prior.mean()[self.places], self.places[3:6]
        if np.isfinite(mean).all():
            self._last, self._w, self._held = mean, tuple(mean[6:].tolist()), prior.covariance()[np.ix_(own, own)]
            G = mean[3:6]
            if G @ self._held @ G < SIZE_SIGMA**2 * (G @ G):  # the row has counted before
                self._sized_for = SIZED_FOR

    @property
    def is_off(self) -> bool:
        """Whether gravity as last estimated is off the tree's by more than `TILT`."""
        if self._last is None:
            return False
        G = self._last[3:6].tolist()
        return _dot(G, self._down) < self._cos_tilt * math.sqrt(_dot(G, G))

    def advance(self, dt: float) -> None:
        """Turn the reference to the next tick, a time [s] after the last."""
        self._dt, self._R, self._sized_for = dt, self._ahead(dt), self._sized_for - dt
        self.yaw += dt * self._yaw_rate
        if self._last is not None:
            self._w = tuple(self._last[6:].tolist())
        if self._velocity is not None:
            self.position = self.position + dt * self._velocity

    def _ahead(self, dt: float) -> Quaternion:
        """The axes a time [s] after the last tick, at unit length."""
        R = _product(self._R, _turning(self._w, dt))
        size = math.sqrt(sum(x * x for x in R))
        return R[0] / size, R[1] / size, R[2] / size, R[3] / size

    def write(self, q: Floats, qd: Floats) -> None:
        """Write what a tick is given of the root into q (..., nq) and qd (..., nv)."""
        q[..., self.q] = 0.0, 0.0, 0.0, *self._R
        qd[..., self.qd] = *self._w, 0.0, 0.0, 0.0

    def size_weight(self) -> float:
        """Work out the weight of the row of gravity's length in the tick that comes, see `floating_base.gravity_size`.

        It counts once in `SIZED_FOR`, where gravity's direction is known: the rates keep the length, and what the row
        leaves out is no noise that would be another at each tick.
        """
        self.is_sizing = False
        if self._sized_for <= 0.0 and self._last is not None and not self.is_off:
            left_out = float((self._across * self._P).sum()) / (2 * self._size)
            self.is_sizing = left_out < SECOND_ORDER * SIZE_SIGMA
        return SIZE_SIGMA**-2 if self.is_sizing else 0.0

    def take(self, after: Posterior) -> None:
        """Take the posterior of a tick."""
        self._last = after.u[len(after.u) - self._k + self.places]
        self._after, self.missed = after, False
        upright = _product(_turning(self._up, self.yaw), self._upright(self._last[3:6]))
        beyond = [a - b for a, b in zip(self._last[6:].tolist(), self._w, strict=True)]
        self._yaw_rate = _dot(_turned(_product(upright, self._R), beyond), self._up)
        self._follow()
        if self.is_sizing:
            self._sized_for = SIZED_FOR
        velocity = np.array(_turned(upright, self._last[:3].tolist()))
        if self._velocity is not None:
            self.position = self.position + self._dt / 2 * (velocity - self._velocity)
        self._velocity = velocity

    @property
    def _P(self) -> Floats:
        """Covariance of gravity as last estimated (3, 3)."""
        if self._after is None:
            return self._held
        return self._covariance(self._after.R[-self._k :, -self._k :])

    def _covariance(self, R: Floats, part: int = 3) -> Floats:
        """Covariance of gravity, or of the part from another number on, by rows R of the memory (k, k)."""
        first = int(self.places[part])
        root = _forward(R[first:, first:].T, np.eye(len(R) - first)[:, :3])
        return np.asarray(root.T @ root)

    def _follow(self) -> None:
        """Take of the angular velocity what is more than noise, by which the axes would wander.

        The product of that and of what gravity is off is in no row: it would seem to tell offsets of an accelerometer.
        """
        assert self._last is not None
        assert self._after is not None
        w = self._last[6:]
        noise = float(np.trace(self._covariance(self._after.R[-self._k :, -self._k :], 6)))
        w *= max(0.0, 1.0 - NOISE * noise / max(float(w @ w), NOISE * noise))

    def bridged(self, prior: SquareRootInformation, dt: float) -> SquareRootInformation:
        """The prior of the memory over a time [s] whose rates are not known: the base forgotten but for gravity."""
        angle = min((float(np.linalg.norm(self._w)) + TURNING) * dt, 1.0)
        P = self._P + (self._size * angle) ** 2 * np.eye(3)
        self._held = P * min(1.0, SIGMAS["gravity"] ** 2 / P.diagonal().max())
        self._after, self._sized_for = None, 0.0
        R, z = np.diag(1.0 / np.repeat([*SIGMAS.values()], 3)), np.zeros(9)
        if self._last is not None:
            known = SquareRootInformation.of_covariance(self._last[3:6], self._held)
            R[3:6, 3:6], z[3:6] = known.R, known.z
        self.change = Bridge(self.places, R, z)
        return self.change.prior(prior)

    def turned(self, prior: SquareRootInformation) -> SquareRootInformation | None:
        """Turn the axes along gravity: the prior in the new ones, or None where gravity is not sure enough."""
        if not np.diagonal(prior.R).all():
            return None
        mean = _forward(prior.R[::-1, ::-1], prior.z[::-1, None])[::-1, 0]
        G, P = mean[self.places[3:6]], self._covariance(prior.R)
        if not _tilt_deviation(G, P) < SURE:
            return None
        upright = self._upright(G)
        T = _rotations().from_quat(upright).as_matrix()
        self.change, self._R = AxesTurn(self._along_axes, T), _product(upright, self._R)
        self._after, self._held = None, T @ P @ T.T
        if self._last is not None:
            self._last[:3], self._last[3:6] = T @ self._last[:3], T @ self._last[3:6]
        return self.change.prior(prior)

    def _upright(self, G: Floats) -> Quaternion:
        return _upright(G.tolist(), self._gravity.tolist())

    def configuration(self, dt: float = 0.0) -> Floats:
        """What a tick is given of the root (7,), a time [s] after the last."""
        return np.array([0.0, 0.0, 0.0, *self._ahead(dt)])

    def at(self, dt: float = 0.0) -> ReferenceAxes:
        """The axes at the last tick, or a time [s] after it."""
        return self.over(self.configuration(dt), self.position, np.asarray(self.yaw))

    def over(self, of_root: Floats, position: Floats, yaw: Floats) -> ReferenceAxes:
        """The axes at ticks that were given this of the root (N, 7), with position (N, 3) and yaw (N,) of the base."""
        return ReferenceAxes(self._gravity, self.places, of_root, position, yaw)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceAxes:
    """The axes of a reference at a tick, or at N with a leading N, and what the memory along them says of the base.

    Attributes:
        gravity: that of the tree (3,).
        places: where the state of the base is among the numbers of the memory (9,).
        of_root: what ticks were given of the root (..., 7).
        position: of the origin of the base, in world coordinates (..., 3) [m].
        yaw: see `BaseReference` (...) [rad].
    """

    gravity: Floats
    places: Indices
    of_root: Floats
    position: Floats
    yaw: Floats

    def estimate(self, mean: Floats, covariance: Floats) -> BaseEstimate:
        """The base, by the estimate of the memory (..., k) and its covariance (..., k, k)."""
        T, x = self._to_base(), mean[..., self.places]
        each = [_upright(G, self.gravity.tolist()) for G in x[..., 3:6].reshape(-1, 3).tolist()]
        upright = _rotations().from_quat(np.reshape(each, (*x.shape[:-1], 4)))
        up = -self.gravity / np.linalg.norm(self.gravity)
        upright = _rotation(self.yaw[..., None] * up) * upright
        rotation = (upright * _rotations().from_quat(self.of_root[..., 3:])).as_quat()
        rotation = np.where(np.isfinite(x).all(axis=-1, keepdims=True), rotation, np.nan)
        velocity, gravity, w = np.split((T @ x[..., None])[..., 0], 3, axis=-1)
        P = T @ covariance[..., self.places[:, None], self.places] @ np.swapaxes(T, -1, -2)
        return BaseEstimate(rotation, self.position.copy(), velocity, w, gravity, P)

    def state(self, state: MemoryState) -> MemoryState:
        """What is known of the memory along the axes of the base, from the same along those of the reference."""
        T, unknown = np.eye(len(state.mean)), np.isinf(np.diagonal(state.covariance))
        T[self.places[:, None], self.places] = self._to_base()
        for part in np.split(self.places, 3):
            unknown[part] = unknown[part].any()
        P = T @ np.where(np.isinf(state.covariance), 0.0, state.covariance) @ T.T
        P[unknown] = P[:, unknown] = 0.0
        P[unknown, unknown] = np.inf
        return replace(state, mean=np.where(unknown, 0.0, T @ state.mean), covariance=P)

    def integrated(self, base: BaseEstimate, steps: Floats, end: BaseEstimate) -> BaseEstimate:
        """The base at ticks with yaw and position that its velocities say, back from the tick after them.

        Args:
            base: the base at N ticks, with the yaw of their references.
            steps: the time from each to the next (N,) [s].
            end: the base at the tick after them, with a leading 1.
        """
        known = np.isfinite(base.rotation).all(axis=1, keepdims=True)
        R, last = (_rotations().from_quat(x) for x in (np.where(known, base.rotation, [0, 0, 0, 1]), end.rotation))
        turning, up = _rotation(base.angular_velocity * steps[:, None]), -self.gravity / np.linalg.norm(self.gravity)
        at_last = (last * turning[-1:].inv() * R[-1:].inv()).as_rotvec() @ up
        gained = (R[:-1] * turning[:-1] * R[1:].inv()).as_rotvec() @ up
        yaw = at_last - np.append(np.cumsum(gained[::-1])[::-1], 0.0)
        C = _rotation(yaw[:, None] * up) * R
        v = np.concatenate([C.apply(base.velocity), last.apply(end.velocity)])
        moved = steps[:, None] / 2 * (v[:-1] + v[1:])
        position = end.position - np.cumsum(moved[::-1], axis=0)[::-1]
        return replace(base, rotation=np.where(known, C.as_quat(), np.nan), position=position)

    def _to_base(self) -> Floats:
        """What turns the state of the base into that along the axes of the base (..., 9, 9)."""
        R = _rotations().from_quat(self.of_root[..., 3:]).as_matrix()
        T = np.zeros((*R.shape[:-2], 9, 9))
        T[..., :3, :3] = T[..., 3:6, 3:6] = np.swapaxes(R, -1, -2)
        T[..., 6:, 6:] = np.eye(3)
        return T


class ReferenceTrack:
    """The references at ticks that follow each other.

    Attributes:
        reference: that of the last that was taken.
        q, qd: the configurations (N, nq) and velocities (N, nv) with what the ticks were given of the root.
        position, yaw: of the base at each (N, 3) [m], (N,) [rad].
        weights: those of the row of gravity's length (N,).
        changes: what was done to the prior of a tick, by its number, where something was.
    """

    def __init__(self, reference: BaseReference, q: Floats, qd: Floats) -> None:
        self.reference, self.q, self.qd = reference, q.copy(), qd.copy()
        self.position, self.yaw = np.zeros((len(q), 3)), np.zeros(len(q))
        self.weights = np.zeros(len(q))
        self.changes: dict[int, AxesTurn | Bridge] = {}

    def take(self, tick: int) -> None:
        """Take the tick of a number, which ran last."""
        self.reference.write(self.q[tick], self.qd[tick])
        self.position[tick], self.yaw[tick] = self.reference.position, self.reference.yaw
        self.weights[tick] = SIZE_SIGMA**-2 if self.reference.is_sizing else 0.0
        if self.reference.change is not None:
            self.changes[tick] = self.reference.change

    @property
    def axes(self) -> ReferenceAxes:
        """The axes at all of them."""
        return self.reference.over(self.q[:, self.reference.q], self.position, self.yaw)


def based(axes: ReferenceAxes | None) -> ReferenceAxes:
    """The axes of a reference, where there is one.

    Raises:
        InputError: the base is not state.
    """
    if axes is None:
        raise InputError("the base is no memory here: say so in the sensors' config, memory: {base: {of: base}}.")
    return axes


def _forward(L: Floats, B: Floats) -> Floats:
    """Solution X of L X = B, L lower triangular: without a library, whose threads take longer to wake up."""
    X = np.zeros_like(B)
    for i in range(len(L)):
        X[i] = (B[i] - L[i, :i] @ X[:i]) / L[i, i]
    return X


def _upright(G: Sequence[float], gravity: Sequence[float]) -> Quaternion:
    """The smallest rotation that turns G (3,) along gravity (3,); none where G is not known, or rounding."""
    a, b = math.sqrt(_dot(G, G)), math.sqrt(_dot(gravity, gravity))
    if not a > ROUNDING * b:
        return 0.0, 0.0, 0.0, 1.0
    x, y, z = _cross(G, gravity)
    w = a * b + _dot(G, gravity)
    if w < 1e-12 * a * b:  # opposite: about any axis across
        x, y, z = _cross(gravity, min(np.eye(3).tolist(), key=lambda e: abs(_dot(e, gravity))))
        w = 0.0
    size = math.sqrt(x * x + y * y + z * z + w * w)
    return x / size, y / size, z / size, w / size


def _turning(w: Sequence[float], dt: float) -> Quaternion:
    """The rotation by an angular velocity (3,) over a time."""
    angle = math.sqrt(_dot(w, w)) * dt
    share = math.sin(angle / 2) / angle * dt if abs(angle) > 1e-3 else dt * (0.5 - angle * angle / 48)
    return w[0] * share, w[1] * share, w[2] * share, math.cos(angle / 2)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    x, y, z = _cross(a, b)
    return (
        a[3] * b[0] + b[3] * a[0] + x,
        a[3] * b[1] + b[3] * a[1] + y,
        a[3] * b[2] + b[3] * a[2] + z,
        a[3] * b[3] - _dot(a, b),
    )


def _turned(q: Quaternion, v: Sequence[float]) -> tuple[float, float, float]:
    t = _cross(q, v)
    u = _cross(q, t)
    x, y, z = (v[i] + 2 * (q[3] * t[i] + u[i]) for i in range(3))
    return x, y, z


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _tilt_deviation(G: Floats, P: Floats) -> Floats:
    """Standard deviation of the direction of gravity G (..., 3) [rad], both ways together, by its covariance."""
    size = np.linalg.norm(G, axis=-1)
    g = G / size[..., None]
    within = (g[..., None, :] @ P @ g[..., None])[..., 0, 0]
    return np.asarray(np.sqrt(np.trace(P, axis1=-2, axis2=-1) - within) / size)


def _rotation(vector: Floats) -> Rotation:
    return _rotations().from_rotvec(vector)


def _rotations() -> type[Rotation]:
    from scipy.spatial.transform import Rotation

    return Rotation
