"""Signals of logs: what is too quick for a robot is taken out of all alike; velocities are differentiated."""

from __future__ import annotations

import numpy as np
from scipy.signal import butter, lfilter, savgol_coeffs, savgol_filter, sosfiltfilt

from nori_dyn.typing import Booleans, Floats

ORDER = 3
"""Order of the polynomial of Savitzky and Golay."""


def low_passed(x: Floats, rate: float, cutoff: float, order: int = 2) -> Floats:
    """Signals (n, ...) without what is above a cutoff [Hz], forwards and backwards, so that nothing is late."""
    return np.asarray(sosfiltfilt(butter(order, cutoff, fs=rate, output="sos"), x, axis=0))


def derivative(x: Floats, rate: float, window: int) -> Floats:
    """The derivative of signals (n, ...), by a filter of Savitzky and Golay over a window of samples."""
    return np.asarray(savgol_filter(x, window, ORDER, deriv=1, delta=1 / rate, axis=0))


def causal_derivative(x: Floats, rate: float, window: int, order: int = 1) -> Floats:
    """A derivative of signals (n, ...) at each sample, by a parabola through it and those before it."""
    taps = savgol_coeffs(window, 2, deriv=order, delta=1 / rate, pos=window - 1)
    return np.asarray(lfilter(taps, 1.0, x - x[0], axis=0))


def lagging(x: Floats, rate: float, bandwidth: float) -> Floats:
    """What a first-order filter of some bandwidth [1/s] makes of signals (n, ...), in a steady state before."""
    pole = np.exp(-bandwidth / rate)
    return np.asarray(lfilter([1 - pole], [1, -pole], x - x[0], axis=0)) + x[0]


def hung(x: Floats, shortest: int) -> Booleans:
    """Where readings (n, ...) repeat themselves to the last digit for so many samples or more (n,)."""
    same = np.concatenate([[False], np.all(np.diff(x.reshape(len(x), -1), axis=0) == 0, axis=1)])
    found = np.zeros(len(x), dtype=bool)
    for start, stop in runs(same):
        if stop - start >= shortest:
            found[start - 1 : stop] = True
    return found


def runs(is_so: Booleans) -> list[tuple[int, int]]:
    """From which sample, and before which, something is so (n,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_so, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
