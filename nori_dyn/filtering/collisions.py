"""Collisions: a robot that something touches of which its filter knows nothing does not read what the filter expects.

What a reading is off from what was expected of it, over its expected spread, is white noise e of unit variance as long
as nothing touches the robot. A touch drives all that follows to one side. Smoothed,

    x(t) = a x(t - dt) + (1 - a) e(t),   a = exp(-dt / time),

and over its own deviation, |x| exceeds a threshold now and then by chance; how often it begins to do so is known
exactly, as x is a Markov process: given x before, x^2 is a noncentral chi-square. The threshold is the one at which
that is as rare as is asked for, shared out evenly among the readings.

No model of a real robot is off by white noise alone. From logs in which nothing touches it the threshold follows by its
peaks: how far they exceed a level is a generalised Pareto distribution, whatever that of the readings is.

Source: Roberts, Control chart tests based on geometric moving averages, Technometrics 1, 1959, for the chart; the rate
of its false alarms is an own derivation (tests/unit/filtering/test_collisions.py); Coles, An Introduction to
Statistical Modeling of Extreme Values, 2001, ch. 4, for the peaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.errors import InputError, PlanError
from nori_dyn.filtering.history import History
from nori_dyn.filtering.instants import checked_time
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices

TIME = 0.01
"""Over which time what was not expected is smoothed unless told [s]."""

HOUR = 3600.0

MOST_OFTEN = 0.01
"""Share of the ticks at which a collision may begin by chance at most."""

NODES = 400
"""Nodes of Gauss and Legendre in the integral of false alarms."""

SHARE = 1e-3
"""Where a threshold is looked for: it is exceeded at least at this share of the ticks asked for."""

LEAST_PEAKS = 20
"""Peaks by which a distribution of peaks is known, at the least."""

SHARES = 0.001, 0.003, 0.01, 0.03, 0.1, 0.3
"""Shares of the ticks that are above a level whose peaks are taken, the first that has enough."""


@dataclass(frozen=True, eq=False, repr=False)
class Watched(Shown):
    """Whether something touches a robot at a tick.

    Attributes:
        tracked: the estimate, if nothing does.
        statistic: how far the reading that is furthest off is from what was expected, in its deviations.
        threshold: above which it counts as a collision.
        reading: its name.
        collision: whether it is above the threshold.
        begins: whether it was not at the tick before.
    """

    tracked: Tracked
    statistic: float
    threshold: float
    reading: str
    collision: bool
    begins: bool

    def __repr__(self) -> str:
        says = "collision" if self.collision else "no collision"
        return f"Watched({says}, {self.statistic:.3g} of {self.threshold:.3g}, {self.reading})"


@dataclass(frozen=True, eq=False, repr=False)
class WatchedHistory(Shown):
    """Whether something touches a robot, over N ticks.

    Attributes:
        t: their times (N,) [s].
        statistic, threshold: see `Watched`; (N,) and a number.
        readings: the readings that are watched.
        furthest: which of them is furthest off at each (N,).
    """

    t: Floats
    statistic: Floats
    threshold: float
    readings: tuple[str, ...]
    furthest: Indices

    @property
    def collision(self) -> Booleans:
        """Whether something touches the robot at each tick (N,)."""
        return self.statistic > self.threshold

    @cached_property
    def begins(self) -> Indices:
        """The ticks at which collisions begin."""
        return np.flatnonzero(np.diff(self.collision.astype(int), prepend=0) > 0)

    @property
    def duration(self) -> float:
        """How long the ticks last [s]."""
        return float(self.t[-1] - self.t[0])

    def peaks(self, level: float) -> Floats:
        """The largest statistic of each stretch that is above a level."""
        edges = np.flatnonzero(np.diff((self.statistic > level).astype(int), prepend=0, append=0))
        return np.array([self.statistic[a:b].max() for a, b in edges.reshape(-1, 2)])

    def __repr__(self) -> str:
        return f"WatchedHistory({len(self.begins)} collisions in {len(self.statistic):,} ticks)"


class CollisionDetector:
    """Tells when something touches a robot of which its filter knows nothing; not to be shared between threads.

    It watches the velocities, where they persist in the filter; else all readings that others and what persists check,
    such as torques of joints whose motion is known.

    Attributes:
        filter: the filter.
        false_alarms: how many collisions begin by chance in an hour in which nothing touches the robot.
        time: over which time what was not expected is smoothed [s].
        readings: what is watched.

    Args:
        filter: a filter, `nd.Tracker`, without a lag, of contacts that are told if there are any.
        false_alarms: see above; as true as the noise that the sensors' config tells, or as the logs of `calibrate`.
        time: see above: about the delay of a touch that is well seen; a longer one sees lighter ones.

    Raises:
        PlanError: no reading is checked.
        InputError: a time that is not positive; more false alarms than one in a hundred ticks, or none; contacts that
            are recognised, or a lag.

    Source: Roberts, Technometrics 1, 1959; Coles, Statistical Modeling of Extreme Values, 2001, ch. 4.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "arm", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> observer = nd.Tracker(nd.plan(system, outputs=["qdd"]), dt=0.001)
        >>> detector = nd.tools.CollisionDetector(observer, false_alarms=0.1)
        >>> any(detector.step(np.zeros(1), np.zeros(1), [0.0]).collision for _ in range(50))
        False
        >>> any(detector.step(np.zeros(1), np.zeros(1), [2.0]).collision for _ in range(50))  # held, although driven
        True
    """

    def __init__(self, filter: TrackerBase[Tracked], false_alarms: float = 1.0, time: float = TIME) -> None:
        self.filter, self.time = filter, checked_time("time", time)
        if filter.recognises or filter.lag:
            raise InputError("collisions are seen by a tracker without a lag and without hypotheses.")
        self._per_tick = false_alarms * filter.dt / HOUR
        if not 0 < self._per_tick < MOST_OFTEN:
            raise InputError(
                f"false_alarms is {false_alarms!r}: how many an hour, above 0 and below "
                f"{MOST_OFTEN * HOUR / filter.dt:g} at {1 / filter.dt:g} ticks a second."
            )
        self.false_alarms = float(false_alarms)
        rows = filter.steps.tick.coordinates.weighed
        wanted = [row for row in rows if isinstance(row.equation, SpeedReading)] or [
            row for row in rows if row.equation.is_measured
        ]
        if not wanted:
            raise PlanError(
                f"sensors '{filter.steps.tick.system.sensors.name}' have no reading that could be off: give readings a "
                "sigma, or let velocities persist, memory: {speed: {of: qd, rate: qdd, noise: 0.001}}."
            )
        names = [name for row in wanted for name in row.component_names]
        self.readings = tuple(names)
        self._watched = np.array([filter.row_names.index(name) for name in names])
        self._found: float | None = None
        self._checked = len(names)
        self.reset()

    @property
    def threshold(self) -> float:
        """Above which a statistic counts as a collision."""
        if self._found is not None:
            return self._found
        return threshold(float(np.exp(-self.filter.dt / self.time)), self._per_tick / self._checked)

    def reset(self) -> None:
        """Forget what was not expected so far; the filter goes on."""
        self._x, self._spread, self._above = np.zeros(len(self.readings)), 0.0, False

    def step(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Watched:
        """Estimate a tick as if nothing touched the robot, and say whether that can be; see `Tracker.step`.

        Raises:
            InputError: see `Tracker.step`.
            SingularSystemError: see `Tracker.step`.
        """
        tracked = self.filter.step(q, qd, y, dt, weights, missing)
        residuals, spreads = self.filter.residuals()
        e = (residuals / spreads)[None, self._watched]
        statistic, furthest = self._statistics(e, np.array([self.filter.dt if dt is None else dt]))
        level, before = self.threshold, self._above
        self._above = bool(statistic[0] > level)
        begins = self._above and not before
        return Watched(tracked, float(statistic[0]), level, self.readings[furthest[0]], self._above, begins)

    def over(self, history: History) -> WatchedHistory:
        """Say of ticks that were recorded whether something touched the robot; the detector forgets what was before.

        Args:
            history: estimates of them by a filter of the same plan, with the diagnosis of their readings:
                `Tracker.over(..., monitor=True)`, `nd.estimate(..., monitor=True).history`.

        Raises:
            InputError: it has no diagnosis, or of other readings.
        """
        diagnosis = history.diagnosis
        if diagnosis is None or diagnosis.readings != self.filter.row_names:
            has = "no diagnosis of its readings" if diagnosis is None else "one of the readings of another plan"
            raise InputError(f"the history has {has}: take that of Tracker.over(..., monitor=True), by this plan.")
        self.reset()
        steps = np.diff(history.t, prepend=history.t[0] - self.filter.dt)
        statistic, furthest = self._statistics(diagnosis.normalised[:, self._watched], steps)
        self.reset()
        return WatchedHistory(history.t, statistic, self.threshold, self.readings, furthest)

    def calibrate(self, free: Iterable[WatchedHistory]) -> float:
        """Take, and return, the threshold that is exceeded as often as chosen where nothing touches the robot.

        Args:
            free: what `over` says of ticks at which nothing touches it, long enough for twenty peaks.

        Raises:
            InputError: there are too few peaks.
        """
        every = list(free)
        expected = self.false_alarms / HOUR * sum(one.duration for one in every)
        statistics = np.concatenate([one.statistic for one in every] or [np.zeros(0)])
        for share in SHARES if len(statistics) else ():
            level = float(np.quantile(statistics, 1 - share))
            over = np.concatenate([one.peaks(level) for one in every]) - level
            if len(over) >= max(LEAST_PEAKS, 2 * expected):
                self._found = level + exceeded(over, expected / len(over))
                return self._found
        raise InputError(
            f"{len(statistics)} ticks hold too few peaks for {self.false_alarms:g} false alarms an hour: give longer "
            "logs in which nothing touches the robot, or choose fewer."
        )

    def _statistics(self, e: Floats, steps: Floats) -> tuple[Floats, Indices]:
        """How far the reading that is furthest off is at each tick (N,), in its deviations, and which it is (N,).

        Args:
            e: normalised residuals (N, m), nan where nothing checks a reading.
            steps: times to each from the one before (N,) [s].
        """
        self._checked = max(1, int(np.isfinite(e).sum(axis=1).max()))
        sizes = np.empty_like(e)
        for k, a in enumerate(np.exp(-steps / self.time).tolist()):
            self._x = a * self._x + (1 - a) * np.nan_to_num(e[k])
            self._spread = a**2 * self._spread + (1 - a) ** 2
            sizes[k] = np.abs(self._x) / np.sqrt(self._spread)
        furthest = sizes.argmax(axis=1)
        return sizes[np.arange(len(e)), furthest], furthest


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


def exceeded(over: Floats, share: float) -> float:
    """How far above a level a share of peaks lies, by a generalised Pareto distribution of the peaks.

    Args:
        over: how far peaks are above it (n,).
        share: see above.
    """
    from scipy.stats import genpareto

    shape, _, scale = genpareto.fit(over, floc=0.0)
    return float(genpareto.isf(share, shape, 0.0, scale))
