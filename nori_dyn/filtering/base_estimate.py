"""A floating base as estimated: along its own axes and in the world, by the memory along those of a reference.

Source: own derivation (tests/unit/filtering/test_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.quaternions import upright
from nori_dyn.solve.over_ticks import some
from nori_dyn.typing import Floats, Indices

if TYPE_CHECKING:  # importing it takes longer than all else
    from scipy.spatial.transform import Rotation


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
        return tilt_deviation(self.gravity, self.covariance[..., 3:6, 3:6])

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
        return some(self, part)


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
        each = [upright(G, self.gravity.tolist()) for G in x[..., 3:6].reshape(-1, 3).tolist()]
        vertical = _rotations().from_quat(np.reshape(each, (*x.shape[:-1], 4)))
        up = -self.gravity / np.linalg.norm(self.gravity)
        vertical = _rotation(self.yaw[..., None] * up) * vertical
        rotation = (vertical * _rotations().from_quat(self.of_root[..., 3:])).as_quat()
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


def based(axes: ReferenceAxes | None) -> ReferenceAxes:
    """The axes of a reference, where there is one.

    Raises:
        InputError: the base is not state.
    """
    if axes is None:
        raise InputError("the base is no memory here: say so in the sensors' config, memory: {base: {of: base}}.")
    return axes


def tilt_deviation(G: Floats, P: Floats) -> Floats:
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
