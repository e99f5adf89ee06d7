"""A zero-phase low-pass with fewer samples after it, over samples that come piece by piece.

W phi + c = 0 stays true when both sides are filtered alike, whatever the filter: so W and the readings lose the noise
above a frequency, and nothing is delayed. A symmetric window of fixed length makes that exact in pieces too.

Source: Gautier, Dynamic identification of robots with power model (1997), for the parallel filter with decimation.
"""

from __future__ import annotations

import math

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.typing import Floats

ATTENUATION = 60.0
"""Of what is above the stop frequency [dB], for the length of the window."""

TRANSITION = 0.5
"""Of the cutoff: half the range of frequencies from the one that passes to the one that does not."""


class Decimation:
    """A low-pass with its window, and the samples that it still needs.

    Args:
        cutoff: the frequency [Hz] at which a half is left.
        dt: time between samples [s].

    Attributes:
        step: of how many samples one is left.
        taps: the window (2 half + 1,), which adds up to 1.

    Raises:
        InputError: a cutoff that the samples cannot have.
    """

    def __init__(self, cutoff: float, dt: float) -> None:
        from scipy.signal import firwin  # takes seconds to load

        highest = 0.5 / dt
        if not 0 < cutoff < highest / (1 + TRANSITION):
            raise InputError(
                f"the cutoff is {cutoff:g} Hz, and must be above 0 and below {highest / (1 + TRANSITION):.4g} Hz for "
                f"samples {dt:g} s apart. Leave it out to filter nothing."
            )
        width = 2 * TRANSITION * cutoff
        half = math.ceil((ATTENUATION - 7.95) / (2.285 * 2 * math.pi * width * dt) / 2)
        self.taps: Floats = firwin(2 * half + 1, cutoff, width=width, fs=1 / dt)
        self.step = max(1, int(highest / (cutoff * (1 + TRANSITION))))
        self._half = half
        self._kept: Floats | None = None

    def add(self, rows: Floats) -> Floats:
        """Filter the next samples (n, k): what is left (m, k), nothing where more are needed."""
        all_rows = rows if self._kept is None else np.concatenate([self._kept, rows])
        n = len(all_rows) - 2 * self._half
        if n <= 0:
            self._kept = np.array(all_rows)
            return np.empty((0, rows.shape[1]), order="F")
        m = (n - 1) // self.step + 1
        used = all_rows[: (m - 1) * self.step + 2 * self._half + 1]
        found = np.empty((m, rows.shape[1]), order="F")
        for k in range(m):
            found[k] = self.taps @ used[k * self.step : k * self.step + len(self.taps)]
        self._kept = np.array(all_rows[m * self.step :])
        return found

    def restart(self) -> None:
        """Begin anew: the next samples do not follow those before."""
        self._kept = None
