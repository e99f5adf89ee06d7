"""Collisions: a robot that something touches of which its filter knows nothing does not move as the filter expects.

What the velocities are off from what was expected of them is white noise e as long as nothing touches the robot, of
unit variance once its covariance is taken out. A touch drives all that follows to one side. Smoothed,

    x(t) = a x(t - dt) + (1 - a) e(t),   a = exp(-dt / time),

and over its own variance, x^T x is a chi-square of as many degrees of freedom as there are velocities. It exceeds a
threshold now and then by chance; how often it begins to do so is known exactly, as x is a Markov process: given x
before, x^T x is a noncentral chi-square. The threshold is the one at which that is as rare as is asked for.

Source: Lowry, Woodall, Champ and Rigdon, A multivariate exponentially weighted moving average control chart,
Technometrics 34, 1992, for the chart; the rate of its false alarms is an own derivation
(tests/unit/filtering/test_collisions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from nori_dyn.errors import InputError, PlanError
from nori_dyn.filtering.instants import checked_time
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing
from nori_dyn.tables import Shown

TIME = 0.01
"""Over which time what was not expected is smoothed unless told [s]."""

HOUR = 3600.0

MOST_OFTEN = 0.01
"""Share of the ticks at which a collision may begin by chance at most."""

NODES = 400
"""Nodes of Gauss and Legendre in the integral of false alarms."""

SHARE = 1e-3
"""Where a threshold is looked for: it is exceeded at least at this share of the ticks asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class Watched(Shown):
    """Whether something touches a robot at a tick.

    Attributes:
        tracked: the estimate, if nothing does.
        statistic: the chi-square.
        threshold: above which it counts as a collision.
        collision: whether it is above it.
        begins: whether it was not at the tick before.
    """

    tracked: Tracked
    statistic: float
    threshold: float
    collision: bool
    begins: bool

    def __repr__(self) -> str:
        says = "collision" if self.collision else "no collision"
        return f"Watched({says}, {self.statistic:.3g} of {self.threshold:.3g})"


class CollisionDetector:
    """Tells when something touches a robot of which its filter knows nothing; not to be shared between threads.

    The joint velocities persist in the filter, and it reads the joints' torques: what these do not explain is a touch.

    Attributes:
        filter: the filter.
        false_alarms: how many collisions begin by chance in an hour in which nothing touches the robot.
        time: over which time what was not expected is smoothed [s].
        threshold: of the chi-square.
        collision: whether it was above the threshold at the last tick.

    Args:
        filter: a filter, `nd.Tracker`, in whose memory joint velocities are.
        false_alarms: see above; as true as the noise that the sensors' config tells.
        time: see above; a shorter one sees hard touches sooner, a longer one light ones at all.

    Raises:
        PlanError: no joint velocities persist.
        InputError: a time that is not positive; more false alarms than one in a hundred ticks, or none.

    Source: Lowry, Woodall, Champ and Rigdon, Technometrics 34, 1992.

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
        per_tick = false_alarms * filter.dt / HOUR
        if not 0 < per_tick < MOST_OFTEN:
            raise InputError(
                f"false_alarms is {false_alarms!r}: how many an hour, above 0 and below "
                f"{MOST_OFTEN * HOUR / filter.dt:g} at {1 / filter.dt:g} ticks a second."
            )
        self.false_alarms = float(false_alarms)
        system = next(iter(filter.plans.values())).system
        rows = [row.equation for row in system.rows if isinstance(row.equation, SpeedReading)]
        if not rows:
            raise PlanError(
                f"sensors '{system.sensors.name}' have no joint velocities that persist, by which a touch is seen: "
                "memory: {speed: {of: qd, rate: qdd, noise: 0.001}}."
            )
        self._places = np.array([k for row in rows for k in filter.state.places(row.name)])
        slices = [system.tree.v_slices[row.unknown.key.body] for row in rows]
        self._speeds = np.concatenate([np.arange(part.start, part.stop) for part in slices])
        self._variances = np.square([sigma for row in rows for sigma in row.sigma])
        self.threshold = threshold(len(self._places), float(np.exp(-filter.dt / self.time)), per_tick)
        self.reset()

    def reset(self) -> None:
        """Forget what was not expected so far; the filter goes on."""
        self._x, self._spread, self.collision = np.zeros(len(self._places)), 0.0, False

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
        expected = self.filter.expected
        P = expected.covariance[np.ix_(self._places, self._places)]
        statistic = 0.0
        if np.isfinite(P).all():
            off = np.asarray(qd, dtype=float)[self._speeds] - expected.mean[self._places]
            e = solve_triangular(np.linalg.cholesky(P + np.diag(self._variances)), off, lower=True)
            a = float(np.exp(-(self.filter.dt if dt is None else dt) / self.time))
            self._x = a * self._x + (1 - a) * e
            self._spread = a**2 * self._spread + (1 - a) ** 2
            statistic = float(self._x @ self._x) / self._spread
        before, self.collision = self.collision, statistic > self.threshold
        return Watched(tracked, statistic, self.threshold, self.collision, self.collision and not before)


def begins_by_chance(level: float, degrees: int, a: float) -> float:
    """Return the probability that the chi-square of a stationary x is above a level at a tick, and was not before.

    P(T > h, T_before <= h) = integral from 0 to h of p(s) P(T > h | T_before = s) ds, where T / (1 - a^2) given s is a
    noncentral chi-square with the noncentrality a^2 s / (1 - a^2).

    Args:
        level: h.
        degrees: of freedom.
        a: correlation of x with x at the tick before.
    """
    from scipy.stats import chi2, ncx2

    nodes, shares = np.polynomial.legendre.leggauss(NODES)
    s = level * (nodes + 1) / 2
    rest = 1 - a**2
    exceeds = ncx2.sf(level / rest, degrees, a**2 * s / rest)
    return float(level / 2 * (shares * chi2.pdf(s, degrees) * exceeds).sum())


def threshold(degrees: int, a: float, per_tick: float) -> float:
    """Return the level that the chi-square begins to exceed so often by chance.

    Args:
        degrees: of freedom.
        a: see `begins_by_chance`.
        per_tick: the probability at each tick.
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2

    highest = float(chi2.isf(per_tick * SHARE, degrees))
    lowest = float(chi2.isf(0.3, degrees))
    return float(brentq(lambda h: np.log(begins_by_chance(h, degrees, a) / per_tick), lowest, highest))
