"""How often a statistic exceeds a threshold by chance: of white noise, or by peaks that were learnt.

A statistic x of unit variance that is smoothed white noise, x(t) = a x(t - dt) + sqrt(1 - a^2) e(t), exceeds a
threshold now and then; how often it begins to do so is known exactly, as x is a Markov process: given x before, x^2 is
a noncentral chi-square.

No model of a real robot is off by white noise alone. From logs in which nothing touches it the threshold follows by the
peaks of the statistic, of clusters that are apart: how far they exceed a level is a generalised Pareto distribution,
whatever that of x is.

Source: own derivation of the rate (tests/unit/filtering/test_collisions.py); Coles, An Introduction to Statistical
Modeling of Extreme Values, 2001, ch. 4 and 5.3.2, for the peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import boxcox, expit, inv_boxcox

from nori_dyn.errors import InputError
from nori_dyn.filtering.instants import checked_time
from nori_dyn.typing import Booleans, Floats

TIME = 0.01
"""Over which time what was not expected is smoothed by default [s]."""

HOUR = 3600.0

MOST_OFTEN = 0.01
"""Share of the ticks at which a collision may begin by chance at most."""

APART = 0.5
"""How long nothing is above a level until what is above it next counts as another peak, or collision [s]."""

NODES = 400
"""Nodes of Gauss and Legendre in the integral of false alarms."""

SHARE = 1e-3
"""Where a threshold is looked for: it is exceeded at least at this share of the ticks asked for."""

LEAST_PEAKS = 20
"""Peaks by which a distribution of peaks is known, at the least."""

SHARES = 0.001, 0.003, 0.01, 0.03, 0.1, 0.3
"""Shares of the ticks that are above a level whose peaks are taken, the first that has enough."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """How statistics peak where nothing touches a robot: what exceeds a level is generalised Pareto.

    Attributes:
        level: the level.
        per_hour: peaks above it in an hour.
        shape, scale: of the distribution of what they exceed it by.
    """

    level: float
    per_hour: float
    shape: float
    scale: float

    def exceeded(self, per_hour: float) -> float:
        """The statistic that so many peaks an hour exceed."""
        return self.level + self.scale * float(boxcox(self.per_hour / per_hour, self.shape))

    def rate(self, statistic: Floats) -> Floats:
        """How many peaks an hour exceed a statistic (...); inf where it is below the level."""
        over = (statistic - self.level) / self.scale
        last = -1 / self.shape if self.shape < 0 else np.inf  # no peak is further above it
        with np.errstate(divide="ignore"):
            rate = self.per_hour / inv_boxcox(np.clip(over, 0.0, last), self.shape)
        return np.where(over < 0, np.inf, rate)


@dataclass(frozen=True, slots=True)
class Alarms:
    """When collisions count as seen.

    Attributes:
        per_hour: how many begin by chance in an hour in which nothing touches the robot.
        time: over which time what was not expected is smoothed [s].
        peaks: what was learnt of logs in which nothing touches it; None where noise is as the sensors' config says.

    Raises:
        InputError: a number or a time that is not positive.

    Example:
        >>> rare, often = (nd.tools.Alarms(per_hour).threshold(0.01, 6) for per_hour in (1, 60))
        >>> rare > often
        True
    """

    per_hour: float = 1.0
    time: float = TIME
    peaks: Peaks | None = None

    def __post_init__(self) -> None:
        checked_time("time", self.time)
        if isinstance(self.per_hour, bool) or not self.per_hour > 0:
            raise InputError(f"false alarms are {self.per_hour!r}: how many an hour, above 0.")

    def threshold(self, dt: float, n_readings: int) -> float:
        """Above which a statistic of any of some readings counts, at ticks that are so far apart [s].

        Raises:
            InputError: more false alarms than one in a hundred ticks.
        """
        if not self.per_hour * dt < MOST_OFTEN * HOUR:
            raise InputError(
                f"false alarms are {self.per_hour:g} an hour: give less than {MOST_OFTEN * HOUR / dt:g} at {1 / dt:g} "
                "ticks a second."
            )
        if self.peaks is not None:
            return self.peaks.exceeded(self.per_hour)
        return threshold(float(np.exp(-dt / self.time)), self.per_hour * dt / HOUR / n_readings)

    def probabilities(self, statistics: Floats, threshold: float) -> Floats:
        """Probabilities that statistics (...) are no chance, 1/2 at the threshold.

        Each is one less the false discovery rate of what is as large or larger, where touches are as frequent as the
        false alarms that are chosen. Of white noise the rate of chance falls as exp(-x^2 / 2).

        Source: Efron, Large-Scale Inference, 2010, ch. 2; Rice, Mathematical analysis of random noise, 1945.
        """
        if self.peaks is None:
            return np.asarray(expit((np.square(statistics) - threshold**2) / 2))
        return np.asarray(1 / (1 + self.peaks.rate(statistics) / self.per_hour))


def peaks_of(free: Sequence[tuple[Floats, Floats]], per_hour: float) -> Peaks:
    """Learn how statistics peak where nothing touches a robot, of which some peaks an hour are false alarms.

    Args:
        free: times (N,) [s] and statistics (N,) of logs.
        per_hour: see above.

    Raises:
        InputError: there are too few peaks.
    """
    from scipy.stats import genpareto

    hours = sum(float(t[-1] - t[0]) for t, _ in free) / HOUR
    statistics = np.concatenate([np.zeros(0), *(x for _, x in free)])
    for share in SHARES if len(statistics) else ():
        level = float(np.quantile(statistics, 1 - share))
        peaks = [x[first:stop].max() for t, x in free for first, stop in clusters(t, x > level)]
        over = np.array(peaks) - level
        if len(over) >= max(LEAST_PEAKS, 2 * per_hour * hours):
            shape, _, scale = genpareto.fit(over, floc=0.0)
            return Peaks(level, len(over) / hours, float(shape), float(scale))
    raise InputError(
        f"{len(statistics)} ticks hold too few peaks for {per_hour:g} false alarms an hour: give longer logs in which "
        "nothing touches the robot, or choose fewer."
    )


def clusters(t: Floats, above: Booleans, apart: float = APART) -> list[tuple[int, int]]:
    """The first tick of each cluster of ticks at which something is above a level, and the one after its last.

    Args:
        t: times (N,) [s].
        above: whether it is (N,).
        apart: ticks that are less so, or that follow each other, are of one cluster [s].
    """
    places = np.flatnonzero(above)
    begins = (np.diff(t[places]) >= apart) & (np.diff(places) > 1)
    parts = np.split(places, np.flatnonzero(begins) + 1) if len(places) else []
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]


def begins_by_chance(level: float, a: float) -> float:
    """Probability that a stationary x of unit variance is beyond +-level at a tick, and was not before.

    P(x^2 > h, x_before^2 <= h) = integral from 0 to h of p(s) P(x^2 > h | x_before^2 = s) ds, where x^2 / (1 - a^2)
    given s is a noncentral chi-square with the noncentrality a^2 s / (1 - a^2).

    Args:
        level: sqrt(h).
        a: correlation of x with x at the tick before.
    """
    from scipy.stats import ncx2, norm

    nodes, shares = np.polynomial.legendre.leggauss(NODES)
    x = level * (nodes + 1) / 2
    rest = 1 - a**2
    exceeds = ncx2.sf(level**2 / rest, 1, a**2 * x**2 / rest)
    return float(level * (shares * norm.pdf(x) * exceeds).sum())


@cache
def threshold(a: float, per_tick: float) -> float:
    """The level that |x| begins to exceed so often by chance, see `begins_by_chance`.

    Args:
        a: correlation of x with x at the tick before.
        per_tick: the probability at each tick.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    highest, lowest = float(norm.isf(per_tick * SHARE)), 1.0
    return float(brentq(lambda level: np.log(begins_by_chance(level, a) / per_tick), lowest, highest))
