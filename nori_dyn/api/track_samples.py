"""Samples of a log as filters and smoothers take them: with times that increase, once forward and once back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.smoother import Stretch
from nori_dyn.logs.clock import usual_step
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.spool import Spool
from nori_dyn.typing import Floats

Read: TypeAlias = tuple[Samples, Floats]
"""Samples, and the time from the one before to each [s]."""


class Stored:
    """Samples that a smoother wants twice: on the disk, or in memory.

    Args:
        made: makes of samples, the time from the one before to each, and how many came before them, what filters take.
        folder: where they wait; in memory when None.
    """

    def __init__(self, made: Callable[[Samples, Floats, int], Stretch], folder: Path | None) -> None:
        self._made, self._firsts = made, [0]
        self._whole: list[Read] = []
        self._spool = None if folder is None else Spool(folder)
        self._like: Samples | None = None

    def __len__(self) -> int:
        return len(self._firsts) - 1

    def append(self, samples: Samples, steps: Floats) -> None:
        """Take samples."""
        self._firsts.append(self._firsts[-1] + len(samples))
        if self._spool is None:
            self._whole.append((samples, steps))
            return
        assert samples.t is not None
        self._like = samples.at(slice(0, 0))
        nothing = np.zeros(0)
        rest = [nothing if each is None else each for each in (samples.contacts, samples.sigma)]
        self._spool.append([steps, samples.numbers, samples.t, samples.q, samples.qd, samples.y, *rest])

    def __getitem__(self, number: int) -> Stretch:
        return self._made(*self._read(number), self._firsts[number])

    def samples(self, number: int) -> Samples:
        """Return the samples of a stretch."""
        return self._read(number)[0]

    def _read(self, number: int) -> Read:
        if self._spool is None:
            return self._whole[number]
        assert self._like is not None
        steps, numbers, t, q, qd, y, *rest = self._spool[number]
        contacts, sigma = (each if each.ndim > 1 else None for each in rest)
        told = replace(self._like, numbers=numbers, t=t, q=q, qd=qd, y=y, contacts=contacts, sigma=sigma, silent=None)
        return told, steps


class Clock:
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

    def told(self, samples: Samples) -> tuple[Samples, Floats]:
        """Return samples with their times, and the time from the one before to each (n,) [s], 0 for the very first.

        Raises:
            InputError: nothing tells the times, or they do not increase; says where.
        """
        if samples.t is None and self._dt is None:
            raise InputError(
                f"{samples.place(0)}: nothing says when it is of, and estimates over time need that: the log has no "
                "column 't' or 'time'. Give the time between samples: --dt 0.001, in seconds."
            )
        t = samples.t if samples.t is not None else np.asarray((self._dt or 0.0) * samples.numbers, dtype=float)
        self._usual = usual_step(t) if self._usual is None else self._usual
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
