"""The reference of a floating base, which a tick is given in place of q and qd of the root, and the base itself.

See `measurements.floating_base` for the state. The reference turns with the last estimate of the angular velocity, so
that what is left of the product with gravity is noise. Where gravity as estimated is no longer that of the tree in the
axes of the reference, these are turned, and the state with them.

Source: own derivation (tests/unit/filtering/test_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.square_root import SquareRootInformation, triangular
from nori_dyn.measurements.floating_base import BASE, UNITS, floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

TILT = 0.03
"""Angle between gravity as estimated and that of the tree above which the axes of the reference are turned [rad]."""

SURE = 0.1
"""Standard deviation of gravity's direction from which on it is sure enough to turn by [rad]."""


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

    Args:
        tree: the robot.
        root: the base.
        memory_names: the name of each number of the memory.
    """

    def __init__(self, tree: KinematicTree, root: int, memory_names: Sequence[str]) -> None:
        self.q, self.qd = tree.q_slices[root], tree.v_slices[root]
        self._gravity = np.asarray(tree.gravity, dtype=float)
        first = next(k for k, name in enumerate(memory_names) if name.startswith(f"{BASE}:"))
        self.places = np.arange(first, first + 3 * len(UNITS))
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

    def take(self, mean: Floats) -> None:
        """Take the estimate of the memory (k,) after a tick."""
        self._last = np.array(mean[self.places])

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
