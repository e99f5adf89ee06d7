"""Joint accelerations that a log lacks, from its velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter

from nori_dyn.errors import InputError
from nori_dyn.typing import Booleans, Floats

SMOOTHING_ORDER = 3
"""Order of the Savitzky-Golay polynomial that differentiates velocities."""

JUMP = 5.0
"""Usual steps of time from which on what is before and after are not of one motion."""


@dataclass(frozen=True, slots=True)
class Differentiation:
    """How accelerations that a log lacks are made from its velocities.

    Attributes:
        window: length of the Savitzky-Golay window in samples, odd.
        dt: time between samples [s]; that of the log's column of times when None.
    """

    window: int
    dt: float | None = None

    def __post_init__(self) -> None:
        if self.window <= SMOOTHING_ORDER or self.window % 2 == 0:
            raise InputError(f"the window must be odd and at least {SMOOTHING_ORDER + 2} samples, not {self.window}.")
        if self.dt is not None and not 0 < self.dt < np.inf:
            raise InputError(f"the time between samples must be positive, not {self.dt} s.")

    def apply(self, qd: Floats, dt: float) -> Floats:
        """Return the derivative of velocities (N, nv), dt [s] apart; nan where one is, and in runs too short for it.

        Raises:
            InputError: fewer samples than the window.
        """
        if len(qd) < self.window:
            raise InputError(f"the log has {len(qd)} samples, fewer than the window of {self.window}.")
        is_known = np.isfinite(qd).all(axis=1)
        if is_known.all():
            return self._derivative(qd, dt)
        found = np.full(qd.shape, np.nan)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_known, [False]]).astype(int)))
        for start, stop in edges.reshape(-1, 2).tolist():
            if stop - start >= self.window:
                found[start:stop] = self._derivative(qd[start:stop], dt)
        return found

    def _derivative(self, qd: Floats, dt: float) -> Floats:
        return np.asarray(savgol_filter(qd, self.window, SMOOTHING_ORDER, deriv=1, delta=dt, axis=0))

    def across(self, t: Floats, dt: float) -> Booleans:
        """Return which of the derivatives at times (N,) are over a window in which time jumps (N,)."""
        jumps = np.flatnonzero((np.diff(t) > JUMP * dt) | (np.diff(t) < 0))
        found = np.zeros(len(t), dtype=bool)
        half = self.window // 2
        for k in jumps.tolist():
            found[max(k - half + 1, 0) : k + half + 1] = True
        return found
