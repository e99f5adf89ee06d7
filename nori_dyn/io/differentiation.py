"""Joint accelerations that a log lacks, from its velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter

from nori_dyn.errors import InputError
from nori_dyn.solve.plausibility.motion import step
from nori_dyn.typing import Floats

SMOOTHING_ORDER = 3
"""Order of the Savitzky-Golay polynomial that differentiates velocities."""


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

    def apply(self, qd: Floats, t: Floats | None = None) -> Floats:
        """Return the derivative of velocities (N, nv) at times (N,), where these are known.

        Raises:
            InputError: fewer samples than the window, or nothing says how far apart they are.
        """
        if len(qd) < self.window:
            raise InputError(f"the log has {len(qd)} samples, fewer than the window of {self.window}.")
        dt = step(t) if self.dt is None and t is not None else self.dt
        if dt is None:
            raise InputError(
                "to differentiate, the time between samples must be known: the log has no column 't' that "
                "increases. Give it: --dt 0.001, in seconds."
            )
        return np.asarray(savgol_filter(qd, self.window, SMOOTHING_ORDER, deriv=1, delta=dt, axis=0))
