"""Joint accelerations from the velocities so far: a Savitzky-Golay filter at the end of its window."""

from __future__ import annotations

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.typing import Floats

ORDER = 2
"""Order of the polynomial: accelerations that grow evenly are told without delay."""


class CausalDerivative:
    """The derivative, at its last sample, of the polynomial that fits the last samples best.

    It is fitted over the times that samples have, so that a sample that was lost does no harm. Of an acceleration that
    grows evenly it has no delay; one that jumps it tells only by and by, see `delay`.

    Args:
        window: the number of samples that are fitted.
        size: the length of a sample.

    Raises:
        InputError: a window that is too short.
    """

    def __init__(self, window: int, size: int) -> None:
        check_window(window)
        self.window = window
        self._t = np.zeros(window)
        self._v = np.zeros((window, size))
        self._held = 0

    def forget(self) -> None:
        """Begin anew."""
        self._held = 0

    def add(self, t: float, v: Floats) -> Floats | None:
        """Return the derivative (size,) at a sample that comes; None until the window is full.

        Args:
            t: its time [s], later than the one before.
            v: the sample (size,).
        """
        self._t[:-1], self._v[:-1] = self._t[1:], self._v[1:]
        self._t[-1], self._v[-1] = t, v
        self._held = min(self._held + 1, self.window)
        return self.weights(self._t) @ self._v if self._held == self.window else None

    @staticmethod
    def weights(t: Floats) -> Floats:
        """Return the weights (n,) of samples at increasing times (n,) in the derivative at the last of them."""
        span = t[-1] - t[0]
        powers = np.ones((ORDER + 1, len(t)))
        np.cumprod(np.broadcast_to((t - t[-1]) / span, (ORDER, len(t))), axis=0, out=powers[1:])
        weights: Floats = np.linalg.inv(powers @ powers.T)[1] @ powers / span
        return weights

    def delay(self, dt: float) -> float:
        """Return after how long a jump of the acceleration is told by half [s], of samples dt apart."""
        taps = self.weights(np.linspace(0.0, dt * (self.window - 1), self.window))[::-1]
        told = np.cumsum(np.cumsum(taps)) * dt  # a velocity that begins to grow by 1 m/s^2
        return float(np.argmax(told >= 0.5) + 1) * dt

    def noise(self, dt: float) -> float:
        """Return the standard deviation of the derivative, over that of the velocities [1/s], of samples dt apart."""
        return float(np.linalg.norm(self.weights(np.linspace(0.0, dt * (self.window - 1), self.window))))


def check_window(window: int) -> None:
    """Check a number of samples that are to be fitted.

    Raises:
        InputError: there are too few.
    """
    if window < ORDER + 2:
        raise InputError(f"the window is {window} samples: at least {ORDER + 2} are needed to differentiate.")
