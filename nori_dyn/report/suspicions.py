"""Which sensors do not fit the others, and when: the tests of a monitor, window by window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc, ndtri

from nori_dyn.solve.diagnosis import Diagnosis, Fault
from nori_dyn.typing import Floats

FALSE_ALARMS = 1e-3
"""How often a whole log of sound sensors may be accused."""

WINDOWS = 100
"""Windows of a log, at most."""

SHORTEST = 10
"""Samples of a window, at least."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A sensor that does not fit the others in a window.

    Attributes:
        first, stop: the samples of the window.
        fault: what the monitor says.
        is_first: whether it is the clearest of the window; others may be disturbed by that one.
        strength: the largest residual of its reading there, over what is to be expected of it.
    """

    first: int
    stop: int
    fault: Fault
    is_first: bool
    strength: float


def windows(n: int) -> Iterator[tuple[int, int]]:
    """Yield the windows of a log of n samples: the first of each, and the one after its last."""
    count = max(1, min(WINDOWS, n // SHORTEST))
    edges = np.linspace(0, n, count + 1).round().astype(int).tolist()
    yield from pairwise(edges)


def suspicions(found: Diagnosis) -> tuple[Suspicion, ...]:
    """Return who does not fit in which window; a log of sound sensors is accused as often as `FALSE_ALARMS` says."""
    parts = list(windows(len(found.residuals)))
    number = {name: k for k, name in enumerate(found.readings)}
    result = []
    for first, stop in parts:
        for rank, fault in enumerate(found.flagged(FALSE_ALARMS / len(parts), slice(first, stop))):
            k = number[fault.reading]
            z = found.residuals[first:stop, k] / found.spreads[first:stop, k]
            result.append(Suspicion(first, stop, fault, rank == 0, float(np.nanmax(np.abs(z)))))
    return tuple(result)


def alarm(found: Diagnosis) -> float:
    """Return how many sigma no residual of a log exceeds, but of one log of sound sensors in a thousand."""
    count = max(1, int(np.count_nonzero(~np.isnan(found.residuals))))
    return float(-ndtri(0.5 * FALSE_ALARMS / count))


def misfit(found: Diagnosis) -> Floats:
    """Return chi-square over its degrees of freedom (N,), 1 on average for sound sensors; nan where it has none."""
    freedom = np.asarray(found.degrees_of_freedom)
    return np.where(freedom > 0, found.chi_square / np.maximum(freedom, 1), np.nan)


def window_probabilities(found: Diagnosis) -> tuple[tuple[int, int, float], ...]:
    """Return for each window how likely it is that sound sensors fit together as badly: first, stop, p."""
    squares, freedom = np.asarray(found.chi_square), np.maximum(np.asarray(found.degrees_of_freedom), 0)
    result = []
    for first, stop in windows(len(found.residuals)):
        n = int(freedom[first:stop].sum())
        total = float(np.nansum(np.where(freedom[first:stop] > 0, squares[first:stop], 0.0)))
        result.append((first, stop, float(chdtrc(n, total)) if n else 1.0))
    return tuple(result)
