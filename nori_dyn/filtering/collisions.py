"""Collisions: a robot that something touches of which its filter knows nothing does not read what the filter expects.

What a reading is off from what was expected of it, over its expected spread, is white noise e of unit variance as long
as nothing touches the robot. A touch drives all that follows to one side. Smoothed,

    x(t) = a x(t - dt) + (1 - a) e(t),   a = exp(-dt / time),

and over its own deviation, |x| exceeds a threshold now and then by chance: as rarely as is asked for, see
`false_alarms`.

Source: Roberts, Control chart tests based on geometric moving averages, Technometrics 1, 1959.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.errors import InputError, PlanError
from nori_dyn.filtering.false_alarms import APART, TIME, Alarms, Peaks, peaks_of
from nori_dyn.filtering.history import History
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.filtering.watched import Watched, WatchedHistory
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing
from nori_dyn.typing import Floats


class CollisionChart:
    """The control chart of the readings that are checked: tick by tick, or over a stretch of a log.

    Attributes:
        alarms: when collisions count as seen.
        dt: usual time between ticks [s].
        readings: what is watched.

    Args:
        tick: the programs of the filter's tick.
        dt: see above.
        alarms: see above.

    Raises:
        PlanError: no reading is checked.
    """

    def __init__(self, tick: TickPrograms, dt: float, alarms: Alarms) -> None:
        self.alarms, self.dt = alarms, dt
        rows = tick.coordinates.weighed
        measured = [row for row in rows if row.equation.is_measured]
        forces = [row for row in measured if {*row.units} <= {"N", "N m"}]
        wanted = [row for row in rows if isinstance(row.equation, SpeedReading)] or forces or measured
        if not wanted:
            raise PlanError(
                f"sensors '{tick.system.sensors.name}' have no reading that could be off: give readings a "
                "sigma, or let velocities persist, memory: {speed: {of: qd, rate: qdd, noise: 0.001}}."
            )
        names = [name for row in wanted for name in row.component_names]
        self.readings, self._names = tuple(names), tick.coordinates.row_names
        self._watched = np.array([self._names.index(name) for name in names])
        self._checked = len(names)
        self.reset()

    @property
    def threshold(self) -> float:
        """Above which a statistic counts as a collision."""
        return self.alarms.threshold(self.dt, self._checked)

    def reset(self) -> None:
        """Forget what was not expected so far."""
        self._x, self._spread, self._since = np.zeros(len(self.readings)), 0.0, math.inf

    def watched(self, tracked: Tracked, residuals: Floats, spreads: Floats, dt: float) -> Watched:
        """Say of a tick, a time [s] after the last, whether something touches the robot; see `Tracker.residuals`."""
        sizes = self._statistics((residuals / spreads)[None, self._watched], np.array([dt]))
        now = WatchedHistory(np.zeros(1), sizes, self.readings, self.threshold, self.alarms)
        self._since += dt
        begins = bool(now.collision[0]) and self._since >= APART
        if now.collision[0]:
            self._since = 0.0
        return Watched(tracked, now, begins)

    def over(self, history: History) -> WatchedHistory:
        """Say of ticks that follow the last whether something touched the robot; see `CollisionDetector.over`."""
        diagnosis = history.diagnosis
        if diagnosis is None or diagnosis.readings != self._names:
            has = "no diagnosis of its readings" if diagnosis is None else "one of the readings of another plan"
            raise InputError(f"the history has {has}: take that of Tracker.over(..., monitor=True), by this plan.")
        steps = np.diff(history.t, prepend=history.t[0] - self.dt)
        sizes = self._statistics(diagnosis.normalised[:, self._watched], steps)
        return WatchedHistory(history.t, sizes, self.readings, self.threshold, self.alarms)

    def _statistics(self, e: Floats, steps: Floats) -> Floats:
        """How far each reading is off at each tick (N, m), in its deviations.

        Args:
            e: normalised residuals (N, m), nan where nothing checks a reading.
            steps: times to each from the one before (N,) [s].
        """
        checked = np.isfinite(e)
        self._checked = max(1, int(checked.sum(axis=1).max()))
        sizes, e = np.empty_like(e), np.where(checked, e, 0.0)
        for k, a in enumerate(np.exp(-steps / self.alarms.time).tolist()):
            self._x = a * self._x + (1 - a) * e[k]
            self._spread = a**2 * self._spread + (1 - a) ** 2
            sizes[k] = np.abs(self._x) / math.sqrt(self._spread)
        return sizes


class CollisionDetector(CollisionChart):
    """Tells when something touches a robot of which its filter knows nothing; not to be shared between threads.

    It watches the velocities, where they persist in the filter; else forces and torques that are read, of joints whose
    motion is known; else all readings that others and what persists check.

    Attributes:
        filter: the filter.
        readings: what is watched.

    Args:
        filter: a filter, `nd.Tracker`, without a lag, of contacts that are given if there are any.
        false_alarms: how many collisions begin by chance in an hour in which nothing touches the robot; as true as the
            noise that the sensors' config tells, or as the logs of `calibrate`.
        time: over which time what was not expected is smoothed [s]: about the delay of a touch that is well seen; a
            longer one sees lighter ones.
        peaks: what `calibrate` has learnt before.

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

    def __init__(
        self,
        filter: TrackerBase[Tracked],
        false_alarms: float = 1.0,
        time: float = TIME,
        peaks: Peaks | None = None,
    ) -> None:
        self.filter = filter
        if filter.recognises or filter.lag:
            raise InputError("collisions are seen by a tracker without a lag and without hypotheses.")
        super().__init__(filter.steps.tick, filter.dt, Alarms(false_alarms, time, peaks))
        _ = self.threshold  # more false alarms than can be are refused

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
        return self.watched(tracked, *self.filter.residuals(), self.filter.dt if dt is None else dt)

    def over(self, history: History) -> WatchedHistory:
        """Say of ticks that were recorded whether something touched the robot; the detector forgets what was before.

        Args:
            history: estimates of them by a filter of the same plan, with the diagnosis of their readings:
                `Tracker.over(..., monitor=True)`, `nd.estimate(..., monitor=True).history`.

        Raises:
            InputError: it has no diagnosis, or of other readings.
        """
        self.reset()
        found = super().over(history)
        self.reset()
        return found

    def calibrate(self, free: Iterable[WatchedHistory]) -> float:
        """Take, and return, the threshold that is exceeded as often as chosen where nothing touches the robot.

        Args:
            free: what `over` says of ticks at which nothing touches it, long enough for twenty peaks.

        Raises:
            InputError: there are too few peaks.
        """
        every = [(one.t, one.statistic) for one in free]
        self.alarms = replace(self.alarms, peaks=peaks_of(every, self.alarms.per_hour))
        return self.threshold
