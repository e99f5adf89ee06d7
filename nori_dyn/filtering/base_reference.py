"""The reference of a floating base, which a tick is given in place of q and qd of the root, and the base itself.

See `measurements.floating_base` for the state. The reference turns with what of the last estimate of the angular
velocity is more than noise, so that what is left of the product with gravity is noise. Where gravity as estimated is no
longer that of the tree in the axes of the reference, these are turned, and the state with them. The length of gravity
is a row that counts once its direction is known. Over a gap, and a tick without readings, the base is forgotten but for
gravity, which turns by no more than a base does in the time.

Source: own derivation (tests/unit/filtering/test_base.py); Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm

from nori_dyn.filtering.base_estimate import ReferenceAxes, tilt_deviation
from nori_dyn.filtering.quaternions import Quaternion, dot, product, turned, turning, upright
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation, triangular
from nori_dyn.measurements.floating_base import SIGMAS, SIZE_SIGMA, UNITS, base_place, floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.native_track import axes_change
from nori_dyn.typing import Floats, Indices

TILT = 0.01
"""Angle between gravity as estimated and that of the tree above which the axes of the reference are turned [rad]."""

SURE = 0.1
"""Standard deviation of gravity's direction from which on it is sure enough to turn by [rad]."""

SECOND_ORDER = 0.1
"""What the row of gravity's length leaves out, as a share of its standard deviation, above which it does not count."""

FADED = 2.0
"""By how many variances of the row of gravity's length that length is unsure before the row counts."""

NOISE = 4.0
"""By how many variances of its noise the square of an angular velocity is less before the axes follow it."""

TURNING = 1.0
"""Standard deviation of the angular velocity about each axis of a base that nothing is read of [rad/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class AxesTurn:
    """A turn of the axes of a reference between two ticks: what of the memory is along them turns as well.

    Attributes:
        places: where the state of the base is among the numbers of the memory (9,).
        matrix: from the axes before to those after (3, 3).
    """

    places: Indices
    matrix: Floats

    @property
    def parts(self) -> tuple[Indices, Indices]:
        """Where velocity and gravity are among the numbers of the memory."""
        return self.places[:3], self.places[3:6]

    @property
    def native(self) -> Any:
        """The same as native code takes it."""
        return axes_change(T=self.matrix)

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

    @property
    def native(self) -> Any:
        """The same as native code takes it."""
        return axes_change(R=self.R, z=self.z)

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
        size_weight: that of the row of gravity's length in the last tick.

    Args:
        tree: the robot.
        memory_names: the name of each number of the memory.
    """

    def __init__(self, tree: KinematicTree, memory_names: Sequence[str]) -> None:
        root = floating_root(tree)
        self.q, self.qd = tree.q_slices[root], tree.v_slices[root]
        self._gravity = np.asarray(tree.gravity, dtype=float)
        self._size = float(np.linalg.norm(self._gravity))
        down = self._gravity / self._size
        self._down, self._up, self._cos_tilt = tuple(down.tolist()), tuple((-down).tolist()), math.cos(TILT)
        first = base_place(memory_names)
        assert first is not None
        self.places, self._k = np.arange(first, first + 3 * len(UNITS)), len(memory_names)
        self._of_gravity = first + 3 - self._k
        self._units = np.eye(-self._of_gravity)[:, :6]
        self.begin()

    @staticmethod
    def of(tree: KinematicTree, memory_names: Sequence[str]) -> BaseReference | None:
        """The reference of a robot whose base is state; None where it is not."""
        return None if base_place(memory_names) is None else BaseReference(tree, memory_names)

    def begin(self, prior: SquareRootInformation | None = None) -> None:
        """Go back to before the first tick, where the axes are those of the base.

        Args:
            prior: what is known of the memory there, where something is.
        """
        self._R, self._w, self._U = (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        self._dt, self.position = 0.0, np.zeros(3)
        self.yaw, self._yaw_rate, self._beyond = 0.0, 0.0, (0.0, 0.0, 0.0)
        self.change: AxesTurn | Bridge | None = None
        self._last: Floats | None = None
        self._velocity: Floats | None = None
        self._P = np.eye(3) * SIGMAS["gravity"] ** 2
        self.missed, self.size_weight = False, 0.0
        if prior is None:
            return
        mean, own = prior.mean()[self.places], self.places[3:6]
        if np.isfinite(mean).all():
            self._last, self._P = mean, prior.covariance()[np.ix_(own, own)]
            self._refer()

    @property
    def is_off(self) -> bool:
        """Whether gravity as last estimated is off the tree's by more than `TILT`."""
        if self._last is None:
            return False
        G = self._last[3:6].tolist()
        return dot(G, self._down) < self._cos_tilt * math.sqrt(dot(G, G))

    def advance(self, dt: float) -> None:
        """Turn the reference to the next tick, a time [s] after the last."""
        self._dt, self._R = dt, self._ahead(dt)
        self.yaw += dt * self._yaw_rate
        if self._last is not None:
            self._refer()
        if self._velocity is not None:
            self.position = self.position + dt * self._velocity

    def _refer(self) -> None:
        """Take velocities of the reference from the last estimate."""
        assert self._last is not None
        self._U, self._w = tuple(self._last[:3].tolist()), tuple(self._last[6:].tolist())

    def _ahead(self, dt: float) -> Quaternion:
        """The axes a time [s] after the last tick, at unit length."""
        R = product(self._R, turning(self._w, dt))
        size = math.sqrt(dot(R, R) + R[3] * R[3])
        return R[0] / size, R[1] / size, R[2] / size, R[3] / size

    def write(self, q: Floats, qd: Floats) -> None:
        """Write what a tick is given of the root into q (..., nq) and qd (..., nv)."""
        q[..., self.q] = *self._U, *self._R
        qd[..., self.qd] = *self._w, 0.0, 0.0, 0.0

    def weigh_size(self) -> float:
        """Work out the weight of the row of gravity's length in the tick that comes, see `floating_base.gravity_size`.

        It counts where gravity's direction is known. What it is off is no noise but the same at each tick, so it brings
        gravity's length to `SIZE_SIGMA` and no further, whatever tells it besides: 1 / sigma^2 - 1 / P.
        """
        self.size_weight = 0.0
        if self._last is not None and not self.is_off:
            P: list[list[float]] = self._P.tolist()
            along = dot(self._down, [dot(row, self._down) for row in P])
            left_out = (P[0][0] + P[1][1] + P[2][2] - along) / (2 * self._size)
            if left_out < SECOND_ORDER * SIZE_SIGMA and along > FADED * SIZE_SIGMA**2:
                self.size_weight = SIZE_SIGMA**-2 - 1.0 / along
        return self.size_weight

    def take(self, after: Posterior) -> None:
        """Take the posterior of a tick."""
        self._last, self.missed = after.u[len(after.u) - self._k + self.places], False
        up = product(turning(self._up, self.yaw), self._upright(self._last[3:6]))
        self._beyond = turned(self._R, [a - b for a, b in zip(self._last[6:].tolist(), self._w, strict=True)])
        self._yaw_rate = dot(turned(up, self._beyond), self._up)
        self._know(after.R[self._of_gravity :, self._of_gravity :])
        velocity = np.array(turned(up, self._last[:3].tolist()))
        if self._velocity is not None:
            self.position = self.position + self._dt / 2 * (velocity - self._velocity)
        self._velocity = velocity

    def _know(self, R: Floats) -> None:
        """Take covariances by the rows of the memory from gravity on, and of the angular velocity what is no noise.

        By noise the axes would wander, and the product of that and of what gravity is off is in no row: it would seem
        to tell offsets of an accelerometer.
        """
        assert self._last is not None
        root = dtrsm(1.0, R, self._units, trans_a=1)  # LAPACK starts threads for any size
        self._P, w = root[:, :3].T @ root[:, :3], self._last[6:]
        least = NOISE * float(np.vdot(root[:, 3:], root[:, 3:]))
        w *= max(0.0, 1.0 - least / max(float(w @ w), least))

    def change_axes(self, dt: float, is_gap: bool) -> None:
        """Change the axes before a tick, a time [s] after the last, where there is reason to: see `change`.

        Args:
            dt: see above.
            is_gap: whether the motion since the last tick is not known.
        """
        self.change = self._bridge(dt) if is_gap else self._turn(dt) if self.is_off else None

    def _bridge(self, dt: float) -> Bridge:
        """Forget the base over a time [s] whose rates are not known, but for gravity."""
        angle = min((float(np.linalg.norm(self._w)) + TURNING) * dt, 1.0)
        P = self._P + (self._size * angle) ** 2 * np.eye(3)
        self._P = P * min(1.0, SIGMAS["gravity"] ** 2 / P.diagonal().max())
        R, z = np.diag(1.0 / np.repeat([*SIGMAS.values()], 3)), np.zeros(9)
        if self._last is not None:
            known = SquareRootInformation.of_covariance(self._last[3:6], self._P)
            R[3:6, 3:6], z[3:6] = known.R, known.z
        return Bridge(self.places, R, z)

    def _turn(self, dt: float) -> AxesTurn | None:
        """Turn the axes along gravity as it is a time [s] after the last tick; None where it is not sure enough."""
        assert self._last is not None
        G, P = self._last[3:6], self._P
        if not tilt_deviation(G, P) < SURE:
            return None
        up = self._upright(G - dt * np.cross(self._beyond, G))
        T = np.array([turned(up, axis) for axis in np.eye(3).tolist()]).T
        self._R, self._P = product(up, self._R), T @ P @ T.T
        self._last[:3], self._last[3:6] = T @ self._last[:3], T @ G
        self._U = tuple(self._last[:3].tolist())
        return AxesTurn(self.places, T)

    def _upright(self, G: Floats) -> Quaternion:
        return upright(G.tolist(), self._gravity.tolist())

    def configuration(self, dt: float = 0.0) -> Floats:
        """What a tick is given of the root (7,), a time [s] after the last."""
        return np.array([0.0, 0.0, 0.0, *self._ahead(dt)])

    def at(self, dt: float = 0.0) -> ReferenceAxes:
        """The axes at the last tick, or a time [s] after it."""
        return self.over(self.configuration(dt), self.position, np.asarray(self.yaw))

    def over(self, of_root: Floats, position: Floats, yaw: Floats) -> ReferenceAxes:
        """The axes at ticks that were given this of the root (N, 7), with position (N, 3) and yaw (N,) of the base."""
        return ReferenceAxes(self._gravity, self.places, of_root, position, yaw)


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
        self.weights[tick] = self.reference.size_weight
        if self.reference.change is not None:
            self.changes[tick] = self.reference.change

    @property
    def axes(self) -> ReferenceAxes:
        """The axes at all of them."""
        return self.reference.over(self.q[:, self.reference.q], self.position, self.yaw)
