"""The reference of a floating base, which a tick is given in place of q and qd of the root, and the base itself.

See `measurements.floating_base` for the state. The reference turns with the last estimate of the angular velocity, so
that what is left of the product with gravity is noise. Where gravity as estimated is no longer that of the tree in the
axes of the reference, these are turned, and the state with them. The length of gravity is a row that counts once its
direction is known. Over a gap, and a tick without readings, the base is forgotten but for gravity, which turns by no
more than a base does in the time.

Source: own derivation (tests/unit/filtering/test_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from nori_dyn.errors import InputError
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation, triangular
from nori_dyn.measurements.floating_base import BASE, SIGMAS, SIZE_SIGMA, UNITS, floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

TILT = 0.01
"""Angle between gravity as estimated and that of the tree above which the axes of the reference are turned [rad]."""

SURE = 0.1
"""Standard deviation of gravity's direction from which on it is sure enough to turn by [rad]."""

SECOND_ORDER = 0.1
"""What the row of gravity's length leaves out, as a share of its standard deviation, above which it does not count."""

TURNING = 1.0
"""Standard deviation of the angular velocity about each axis of a base that nothing is read of [rad/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class BaseEstimate:
    """The floating base at a tick. Yaw and position are integrated from the beginning: no sensor reads them.

    Attributes:
        rotation: unit quaternion (x, y, z, w) from base to world coordinates.
        position: of the origin of the base, in world coordinates (3,) [m].
        velocity: of that, in base coordinates (3,) [m/s].
        angular_velocity: in base coordinates (3,) [rad/s].
        gravity: in base coordinates (3,) [m/s^2].
        covariance: of velocity, gravity and angular velocity (9, 9), the first two along base axes.
    """

    rotation: Floats
    position: Floats
    velocity: Floats
    angular_velocity: Floats
    gravity: Floats
    covariance: Floats

    @property
    def q(self) -> Floats:
        """Configuration of the root joint (7,): position, then the quaternion."""
        return np.concatenate([self.position, self.rotation])

    @property
    def qd(self) -> Floats:
        """Velocity of the root joint (6,): angular velocity, then velocity, in base coordinates."""
        return np.concatenate([self.angular_velocity, self.velocity])

    @property
    def tilt_deviation(self) -> float:
        """Standard deviation of the direction of gravity [rad], both ways together."""
        g = self.gravity / np.linalg.norm(self.gravity)
        across = np.eye(3) - np.outer(g, g)
        return float(np.sqrt(np.trace(across @ self.covariance[3:6, 3:6])) / np.linalg.norm(self.gravity))


def refuse_base(memory_names: Sequence[str], what: str) -> None:
    """Refuse a way to run that does not follow a floating base.

    Raises:
        InputError: the base is in the memory.
    """
    if any(name.startswith(f"{BASE}:") for name in memory_names):
        raise InputError(
            f"{what} of a robot whose base is memory: not yet. Its reference follows the estimates tick by tick: "
            "nd.Tracker(plan, dt).step, or tick."
        )


class BaseReference:
    """The reference of a floating base.

    Attributes:
        q, qd: what a tick is given of the root.
        places: where the state of the base is among the numbers of the memory (9,).
        missed: whether the last tick had no readings to go by.

    Args:
        tree: the robot.
        root: the base.
        memory_names: the name of each number of the memory.
    """

    def __init__(self, tree: KinematicTree, root: int, memory_names: Sequence[str]) -> None:
        self.q, self.qd = tree.q_slices[root], tree.v_slices[root]
        self._gravity = np.asarray(tree.gravity, dtype=float)
        self._size = float(np.linalg.norm(self._gravity))
        down = self._gravity / (self._size or 1.0)
        self._across = np.eye(3) - np.outer(down, down)
        first = next(k for k, name in enumerate(memory_names) if name.startswith(f"{BASE}:"))
        self.places, self._k = np.arange(first, first + 3 * len(UNITS)), len(memory_names)
        self.begin()

    @staticmethod
    def of(tree: KinematicTree, memory_names: Sequence[str]) -> BaseReference | None:
        """The reference of a robot whose base is state; None where it is not."""
        if not any(name.startswith(f"{BASE}:") for name in memory_names):
            return None
        return BaseReference(tree, floating_root(tree), memory_names)

    def begin(self) -> None:
        """Go back to before the first tick: the axes of the reference are those of the base."""
        self._R, self._w, self._position = _rotation(np.zeros(3)), np.zeros(3), np.zeros(3)
        self._last: Floats | None = None
        self._after: Posterior | None = None
        self._held = np.eye(3) * SIGMAS["gravity"] ** 2
        self.missed = self._is_sizing = self._is_sized = False

    @property
    def is_off(self) -> bool:
        """Whether gravity as last estimated is off the tree's by more than `TILT`."""
        if self._last is None:
            return False
        G, down = self._last[3:6], self._gravity
        return bool(G @ down < np.cos(TILT) * np.linalg.norm(G) * np.linalg.norm(down))

    def advance(self, dt: float) -> None:
        """Turn the reference to the next tick, a time [s] after the last."""
        self._R = self._R * _rotation(self._w * dt)
        if self._last is not None:
            U, G, self._w = self._last[:3], self._last[3:6], self._last[6:]
            self._position = self._position + dt * (_turn(G, self._gravity) @ U)

    def write(self, q: Floats, qd: Floats) -> None:
        """Write what a tick is given of the root into q (nq,) and qd (nv,)."""
        q[self.q] = [0.0, 0.0, 0.0, *self._R.as_quat()]
        qd[self.qd] = [*self._w, 0.0, 0.0, 0.0]

    @property
    def size_weight(self) -> float:
        """The weight of the row of gravity's length in the tick that comes, see `floating_base.gravity_size`.

        It counts once, where gravity's direction is known: the rates keep the length, and what the row leaves out is no
        noise that would be another at each tick.
        """
        self._is_sizing = False
        if self._last is not None and not self._is_sized and not self.is_off:
            left_out = float((self._across * self._P).sum()) / (2 * self._size)
            self._is_sizing = left_out < SECOND_ORDER * SIZE_SIGMA
        return SIZE_SIGMA**-2 if self._is_sizing else 0.0

    def take(self, after: Posterior) -> None:
        """Take the posterior of a tick."""
        self._last = after.u[len(after.u) - self._k + self.places]
        self._after, self.missed = after, False
        self._is_sized = self._is_sized or self._is_sizing

    @property
    def _P(self) -> Floats:
        """Covariance of gravity as last estimated (3, 3)."""
        if self._after is None:
            return self._held
        R = self._after.R
        first = len(R) - self._k + int(self.places[3])
        root, _ = dtrtrs(R[first:, first:], np.eye(len(R) - first)[:, :3], lower=0, trans=1)
        return np.asarray(root.T @ root)

    def bridged(self, prior: SquareRootInformation, dt: float) -> SquareRootInformation:
        """The prior of the memory over a time [s] whose rates are not known: the base forgotten but for gravity."""
        angle = min((float(np.linalg.norm(self._w)) + TURNING) * dt, 1.0)
        P = self._P + (self._size * angle) ** 2 * np.eye(3)
        self._held = P * min(1.0, SIGMAS["gravity"] ** 2 / P.diagonal().max())
        self._after, self._is_sized = None, False
        found = SquareRootInformation(prior.R.copy(), prior.z.copy())
        for part, sigma in zip(np.split(self.places, 3), SIGMAS.values(), strict=True):
            found.R[part], found.R[part, part], found.z[part] = 0.0, 1.0 / sigma, 0.0
        if self._last is not None:
            gravity = self.places[3:6]
            known = SquareRootInformation.of_covariance(self._last[3:6], self._held)
            found.R[np.ix_(gravity, gravity)], found.z[gravity] = known.R, known.z
        return found

    def turned(self, prior: SquareRootInformation) -> SquareRootInformation | None:
        """Turn the axes of the reference along gravity: the prior in the new ones, or None where that is not sure."""
        G = prior.mean()[self.places[3:6]]
        size = float(np.linalg.norm(G))
        if not np.isfinite(size) or size == 0.0:
            return None
        P = prior.covariance()[np.ix_(self.places[3:6], self.places[3:6])]
        across = np.eye(3) - np.outer(G, G) / size**2
        if not np.sqrt(np.trace(across @ P)) / size < SURE:
            return None
        turn = _turn(G, self._gravity)
        self._R = _rotation_of(turn) * self._R
        self._after, self._held = None, turn @ P @ turn.T
        if self._last is not None:
            self._last[:3], self._last[3:6] = turn @ self._last[:3], turn @ self._last[3:6]
        R = prior.R.copy()
        for part in (self.places[:3], self.places[3:6]):
            R[:, part] = R[:, part] @ turn.T
        R, z, _ = triangular(np.column_stack([R, prior.z]))
        return SquareRootInformation(R, z)

    def estimate(self, mean: Floats, covariance: Floats) -> BaseEstimate:
        """The base, by the estimate of the memory (k,) after the last tick and its covariance (k, k)."""
        own, P = mean[self.places], covariance[np.ix_(self.places, self.places)]
        to_base = self._R.as_matrix().T
        T = np.zeros((9, 9))
        T[:3, :3] = T[3:6, 3:6] = to_base
        T[6:, 6:] = np.eye(3)
        rotation = _rotation_of(_turn(own[3:6], self._gravity)) * self._R
        return BaseEstimate(
            rotation=np.asarray(rotation.as_quat()),
            position=self._position.copy(),
            velocity=to_base @ own[:3],
            angular_velocity=own[6:].copy(),
            gravity=to_base @ own[3:6],
            covariance=T @ P @ T.T,
        )


def _turn(G: Floats, gravity: Floats) -> Floats:
    """The smallest rotation (3, 3) that turns G along gravity."""
    a, b = G / np.linalg.norm(G), gravity / np.linalg.norm(gravity)
    axis, c = np.cross(a, b), float(a @ b)
    if c < -1.0 + 1e-12:
        axis = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
        return np.asarray(2.0 * np.outer(axis, axis) / (axis @ axis) - np.eye(3))
    K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.asarray(np.eye(3) + K + K @ K / (1.0 + c))


def _rotation(vector: Floats) -> Any:
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(vector)


def _rotation_of(matrix: Floats) -> Any:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(matrix)
