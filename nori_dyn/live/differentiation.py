"""Joint accelerations of a stream, from the velocities so far."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.motion.differentiation import ACCELERATION, AUTO, JUMP, METHODS, Differentiate, SavitzkyGolay
from nori_dyn.logs.motion.joint_model import DERIVATIVES, JointModel, JointNoise
from nori_dyn.logs.motion.joint_noise import BANDWIDTHS, EXACT
from nori_dyn.typing import Floats

SIDE_BY_SIDE = 20
"""Bandwidths of the filters that run side by side, evenly in their logarithm."""

REMEMBERED = 100
"""Samples over which it is weighed which of them expects a joint best."""

COLLECTED = 16
"""Samples before the first acceleration."""

STEADY = 1.25
"""The share by which the usual time between samples may change before filters begin anew."""


class LiveDerivative(ABC):
    """What makes accelerations of velocities, sample by sample."""

    @abstractmethod
    def add(self, t: float, v: Floats, period: float) -> Floats | None:
        """Return the accelerations (n,) at a sample that comes; None while samples are collected.

        Args:
            t: its time [s].
            v: its velocities (n,).
            period: the usual time between samples [s]; not finite while it is not known.

        Raises:
            numpy.linalg.LinAlgError: the times are too uneven.
        """

    @abstractmethod
    def told(self, period: float) -> str:
        """Description of it, for samples a period [s] apart."""


class AdaptiveFilter(LiveDerivative):
    """Kalman filters of constant jerk side by side, of which each joint takes that whose noise is likeliest.

    They have settled, each for another ratio of the walk of the jerk to the noise of the velocities. The likeliest
    scale of both has a closed form, as in `joint_noise.likeliest`; here the samples before fade away. So nothing has to
    be known of a joint beforehand, and one that stood still and then moves is followed at once.

    Args:
        size: the number of velocities.

    Source: filters side by side, Magill (1965); the likelihood by innovations, Schweppe (1965).
    """

    def __init__(self, size: int) -> None:
        bandwidths = np.geomspace(*BANDWIDTHS, SIDE_BY_SIDE)
        noise = JointNoise(bandwidths ** (DERIVATIVES - 1), None, np.ones(SIDE_BY_SIDE))
        self._model = JointModel(noise, 1.0)
        settled = self._model.settled
        self._K, self._E = settled.K[:, None, :, 0], settled.E[:, :, 0]
        self._joints = np.arange(size)
        self._t, self._dt, self._held = -np.inf, np.nan, 0

    def add(self, t: float, v: Floats, period: float) -> Floats | None:
        gap, self._t = t - self._t, t
        if not self._dt / STEADY < period < self._dt * STEADY or gap <= 0 or gap > JUMP * period:
            self._held, self._dt = 0, period
            self._x = np.zeros((SIDE_BY_SIDE, len(v), self._model.order))
            self._x[..., 0] = v
            self._squares, self._count = np.zeros((SIDE_BY_SIDE, len(v))), 0.0
            return None
        x = self._x @ self._model.F(gap / self._dt).T
        off = v - x[..., 0]
        self._x = x + self._K * off[..., None]
        kept = 1 - 1 / REMEMBERED
        self._squares = kept * self._squares + (off / self._E) ** 2
        self._count = kept * self._count + 1.0
        self._held += 1
        if self._held < COLLECTED:
            return None
        scale = np.maximum(np.sqrt(self._squares / self._count), EXACT[0])
        best = np.argmin(np.log(scale * self._E), axis=0)
        found: Floats = self._x[best, self._joints, ACCELERATION] / self._dt
        return found

    def told(self, period: float) -> str:
        del period
        return "by a Kalman filter a joint, of the noise that makes its velocities likeliest"


class WindowDerivative(LiveDerivative):
    """A Savitzky-Golay filter at the end of its window, over the times that samples have.

    A sample that was lost does no harm; after a gap as long as the window, or where time goes back, it begins anew.

    Args:
        window: the number of samples that are fitted.
        size: the number of velocities.

    Raises:
        InputError: a window that is too short.
    """

    def __init__(self, window: int, size: int) -> None:
        self._filter = SavitzkyGolay(window)
        self._t, self._v = np.full(window, -np.inf), np.zeros((window, size))
        self._held = 0

    def add(self, t: float, v: Floats, period: float) -> Floats | None:
        window = self._filter.window
        gap = t - self._t[-1]
        if gap <= 0 or gap > window * period:
            self._held = 0
        self._t[:-1], self._v[:-1] = self._t[1:], self._v[1:]
        self._t[-1], self._v[-1] = t, v
        self._held = min(self._held + 1, window)
        return self._filter.weights(self._t) @ self._v if self._held == window else None

    def told(self, period: float) -> str:
        return (
            f"of the velocities of {self._filter.window} samples: a jump is told by half after "
            f"{1e3 * self.delay(period):.3g} ms, and noise of velocities is taken times {self.noise(period):.3g} 1/s"
        )

    def delay(self, dt: float) -> float:
        """Return after how long a jump of the acceleration is told by half [s], of samples dt apart."""
        told = np.cumsum(np.cumsum(self._weights(dt)[::-1])) * dt  # a velocity that begins to grow by 1 m/s^2
        return float(np.argmax(told >= 0.5) + 1) * dt

    def noise(self, dt: float) -> float:
        """Return the standard deviation of the derivative, over that of the velocities [1/s], of samples dt apart."""
        return float(np.linalg.norm(self._weights(dt)))

    def _weights(self, dt: float) -> Floats:
        return self._filter.weights(np.linspace(0.0, dt * (self._filter.window - 1), self._filter.window))


def live_derivative(differentiate: Differentiate, size: int) -> LiveDerivative | None:
    """Differentiator of the velocities of a stream, as users name it, or None.

    Args:
        differentiate: a window in samples; "auto" or "kalman" for the adaptive filter; None.
        size: the number of velocities.

    Raises:
        InputError: no such way, one that looks ahead, or a window that is too short.
    """
    if differentiate is None:
        return None
    if isinstance(differentiate, int):
        return WindowDerivative(differentiate, size)
    if differentiate in (AUTO, "kalman"):
        return AdaptiveFilter(size)
    why = "looks ahead, which a stream cannot" if differentiate in METHODS else "is not known"
    raise InputError(
        f"accelerations are made by '{differentiate}', which {why}. Known for a stream: a window in samples, such as "
        f"51, or '{AUTO}', or 'kalman', which is the same."
    )
