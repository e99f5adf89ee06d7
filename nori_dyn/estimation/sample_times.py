"""The times of the samples of a log, as filters and smoothers need them: they increase."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.clock import median_step
from nori_dyn.logs.samples import Samples
from nori_dyn.typing import Floats


class SampleTimes:
    """The times of samples, which increase.

    Args:
        dt: the usual time between them [s]; as they come when None.
    """

    def __init__(self, dt: float | None) -> None:
        self._dt, self._last, self._usual = dt, -np.inf, dt

    @property
    def usual(self) -> float:
        """The usual time between samples [s]."""
        return np.inf if self._usual is None else self._usual

    def timed(self, samples: Samples) -> tuple[Samples, Floats]:
        """Samples with their times, and the time from the one before to each (n,) [s], 0 for the very first.

        Raises:
            InputError: nothing tells the times, or they do not increase; says where.
        """
        if samples.t is None and self._dt is None:
            raise InputError(
                f"{samples.place(0)}: nothing says when it is of, and estimates over time need that: the log has no "
                "column 't' or 'time'. Give the time between samples: --dt 0.001, in seconds."
            )
        t = samples.t if samples.t is not None else np.asarray((self._dt or 0.0) * samples.numbers, dtype=float)
        self._usual = median_step(t) if self._usual is None else self._usual
        steps = np.diff(t, prepend=self._last)
        for k in np.flatnonzero(~(steps > 0))[:1].tolist():
            before = self._last if k == 0 else t[k - 1]
            raise InputError(
                f"{samples.place(k)}: it is of {t[k]:.9g} s, and the one before of {before:.9g} s: time must go on. "
                "Leave out what was recorded twice and sort the rest; or have it resampled by a mapping, clock: "
                "{rate: 1000}, which does."
            )
        self._last = float(t[-1])
        return replace(samples, t=t), np.where(np.isinf(steps), 0.0, steps)
