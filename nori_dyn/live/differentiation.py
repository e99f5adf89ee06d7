"""Joint accelerations of a stream, from the velocities so far."""

from __future__ import annotations

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.motion.differentiation import ACCELERATION, AUTO, JUMP, METHODS, Differentiate
from nori_dyn.logs.motion.joint_filter import DERIVATIVES, JointModel, JointNoise
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


class AdaptiveFilter:
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
        """The accelerations (n,) at a sample that comes; None while samples are collected.

        Args:
            t: its time [s].
            v: its velocities (n,).
            period: the usual time between samples [s]; not finite while it is not known.
        """
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


def live_derivative(differentiate: Differentiate, size: int) -> AdaptiveFilter | None:
    """Differentiator of the velocities of a stream, as users name it, or None.

    Args:
        differentiate: "auto" or "kalman" for the adaptive filter; None.
        size: the number of velocities.

    Raises:
        InputError: no such way, or one that looks ahead.
    """
    if differentiate in (None, AUTO, "kalman"):
        return None if differentiate is None else AdaptiveFilter(size)
    looks_ahead = differentiate in METHODS or isinstance(differentiate, int)
    why = "looks ahead, which a stream cannot" if looks_ahead else "is not known"
    raise InputError(
        f"accelerations are made by '{differentiate}', which {why}. Known for a stream: '{AUTO}', or 'kalman', which "
        "is the same."
    )
