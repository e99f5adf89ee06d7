"""Filters over drawn truth: errors are as large as they say, and what no reading tells apart does not drift."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import System
from tests.observers import observer
from tests.ticks import Part, biases
from tests.unseen import exactly, pushed_or_off

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """ContactPrograms, and what was true.

    Attributes:
        which: for each tick the number of the system that holds.
        q, qd: states (T, nq), (T, nv).
        y: readings of each tick, as its system has them.
        memory: what persists (T, k).
    """

    which: NDArray[np.intp]
    q: Floats
    qd: Floats
    y: tuple[Floats, ...]
    memory: Floats


def drawn(
    systems: Sequence[System], names: Sequence[str], n: int, dt: float, seed: int, stay: int, run: int, poses: int = 16
) -> Drawn:
    """n ticks.

    Args:
        systems: those that hold in turn, each for `stay` ticks.
        names: the memory's numbers in the order that is wanted.
        n: how many ticks.
        dt: time between ticks.
        seed: of all that is drawn.
        stay: see above.
        run: number of ticks after which what persists is drawn anew, from what is known at first.
        poses: number of configurations, which come again and again.
    """
    rng = np.random.default_rng(seed)
    parts = tuple(Part.of(system, names) for system in systems)
    tree = systems[0].tree
    start, direction = tree.random_configuration(rng), 0.3 * rng.normal(size=tree.nv)
    angles = 2 * np.pi * np.arange(poses) / poses
    configurations = np.array([tree.integrate(start, direction * np.sin(angle)) for angle in angles])
    q = configurations[np.arange(n) % poses]
    time = dt * np.arange(1, n + 1)
    waves = rng.uniform(0.3, 2.0, tree.nv), rng.uniform(0, 2 * np.pi, tree.nv)
    qd = 0.5 * np.sin(np.multiply.outer(time, waves[0]) + waves[1])
    which = (np.arange(n) // stay) % len(parts)
    silent = [
        biases(part.system, q[own], qd[own], np.zeros((int(own.sum()), part.system.ny))) if own.any() else np.zeros(0)
        for part, own in ((part, which == k) for k, part in enumerate(parts))
    ]
    speeds = np.full((n, len(names)), np.nan)
    mean, sigma = parts[0].beginning()
    place = {column: k for k, column in enumerate(parts[0].memory.tolist())}
    for row in systems[0].rows:
        if isinstance(row.equation, SpeedReading):
            columns = systems[0].column(*row.equation.unknown.key)
            own = tree.v_slices[row.equation.unknown.key.body]
            for column, k, spread in zip(_range(columns), _range(own), row.equation.sigma, strict=True):
                speeds[:, place[column]] = qd[:, k] + spread * rng.normal(size=n)
    told = np.isfinite(speeds[0])
    spread, m = np.where(np.isfinite(sigma), sigma, 0.0), mean
    y, memory = [], []
    counters = [0] * len(parts)
    makers = [Maker(part) for part in parts]
    for k in range(n):
        if k % run == 0:
            m = np.where(told, speeds[k], mean + spread * rng.normal(size=len(mean)))
        number = int(which[k])
        b = silent[number][counters[number]]
        counters[number] += 1
        a, Q = parts[number].motion(dt)
        w = np.sqrt(Q) * rng.normal(size=len(m))
        later = speeds[k + 1] if k + 1 < n else a * m
        wanted = np.where(told, (later - a * m - w) / dt, 0.0)
        assert np.abs(m - speeds[k])[told].max(initial=0.0) < 1e-6, "accelerations cannot be chosen so"
        d_now, y_now = makers[number].tick(q[k], b, m, wanted, rng)
        y.append(y_now)
        memory.append(m.copy())
        rates = parts[number].rates
        m = a * m + w + np.where(rates >= 0, dt * d_now[rates], 0.0)
    return Drawn(which, q, qd, tuple(y), np.array(memory))


class Maker:
    """Draws the unknowns of a tick, and its readings."""

    def __init__(self, part: Part) -> None:
        self.part = part
        system = part.system
        is_read = np.zeros(system.shape[0], dtype=bool)
        self.y = np.full(system.shape[0], -1)
        speed = np.zeros(system.shape[0], dtype=bool)
        for row in system.rows:
            if row.equation.is_measured:
                is_read[row.slice] = True
                self.y[row.slice] = _range(row.y)
            speed[row.slice] = isinstance(row.equation, SpeedReading)
        self.read = is_read[part.weighed]
        self.soft = ~is_read[part.weighed] & ~speed[part.weighed]
        assert not is_read[part.exact].any(), "readings that hold exactly are not drawn"
        self.sigma = system.weights[part.weights] ** -0.5
        self.known: dict[bytes, Any] = {}

    def tick(self, q: Floats, b: Floats, m: Floats, wanted: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The unknowns (N,) and the readings (ny,)."""
        part = self.part
        rated = np.flatnonzero(part.rates >= 0)
        pose = part.pose(q)
        if q.tobytes() not in self.known:
            C = pose.C.astype(float)
            A = np.vstack([C[part.rates[rated]], pose.YC.astype(float)[self.soft]])[:, : pose.n_s]
            inverse = np.linalg.pinv(A) if A.size else np.zeros((pose.n_s, len(A)))
            self.known[q.tobytes()] = C, inverse, A, pose.Y.toarray()
        C, inverse, A, Y = self.known[q.tobytes()]
        d_0 = pose.inverse @ np.concatenate([-b[part.exact], np.zeros(len(m))])
        d = d_0 + C[:, pose.n_s :] @ m
        noise = self.sigma * rng.normal(size=len(self.sigma))
        goal = np.concatenate([wanted[rated] - d[part.rates[rated]], (noise - Y @ d - b[part.weighed])[self.soft]])
        # Any d, brought onto the exact rows.
        s = C[:, : pose.n_s].T @ (rng.normal(size=len(d)) - d)
        s += inverse @ (goal - A @ s)
        d = d + C[:, : pose.n_s] @ s
        y = np.zeros(part.system.ny)
        rows = part.weighed[self.read]
        y[self.y[rows]] = (Y @ d + b[part.weighed] - noise)[self.read]
        return d, y


def _range(part: slice) -> range:
    return range(part.start, part.stop)


DRAWN = 10_000
"""Ticks that are drawn for consistency."""

EACH = ("arm", *(pytest.param(name, marks=pytest.mark.long) for name in ("quadruped", "humanoid")))
every_robot = pytest.mark.parametrize("name", EACH)

RUN = 100
"""ContactPrograms from one beginning to the next, in these."""

LEVEL = 1e-3
"""Probability beyond a chi-square bound on either side, at which what is drawn by these seeds must not be."""

WRONG = 1.5
"""Factor by which noise is told wrong."""


@lru_cache(maxsize=8)
def truth(name: str, ticks: int) -> Drawn:
    """Drawn ticks that begin anew now and then."""
    observing = observer(name)
    names = observing.filter("native").memory_names
    return drawn(observing.systems, names, ticks, observing.dt, seed=5, stay=RUN // 4, run=RUN)


def consistency(name: str, ticks: int, told: float = 1.0) -> tuple[float, float]:
    """The probabilities below the sums of the normalised squares of innovations, and of errors.

    Innovations of different ticks are independent; errors are not, and count at the end of each run.

    Args:
        name: the robot.
        ticks: how many.
        told: the deviations of noise that are told over those that are true.
    """
    observing, found = observer(name), truth(name, ticks)
    filter_ = observing.filter("native")
    places = [
        [observing.measurement_names.index(name) for name in system.measurement_names] for system in observing.systems
    ]
    configured = filter_.inputs.weights.copy()
    filter_.inputs.weights[:] = configured / told**2
    innovations, degrees, errors, numbers = 0.0, 0, 0.0, 0
    for k in range(ticks):
        filter_.switch(observing.states[found.which[k]])
        filter_.inputs.q[:], filter_.inputs.qd[:] = found.q[k], found.qd[k]
        filter_.inputs.y[places[found.which[k]]] = found.y[k]
        if k % RUN == 0:
            filter_.reset()
            filter_.tick().raise_for_status()
            first = filter_.consistency  # a speed that is known within 10 rad/s at first is no draw of that
            continue
        filter_.tick().raise_for_status()
        if k % RUN == RUN - 1:
            innovations += filter_.consistency.nis - first.nis
            degrees += filter_.consistency.degrees - first.degrees
            state = filter_.state
            error = state.mean - found.memory[k]
            errors += float(error @ np.linalg.solve(state.covariance, error))
            numbers += len(state.mean)
    filter_.inputs.weights[:] = configured
    return float(chi2.cdf(innovations, degrees)), float(chi2.cdf(errors, numbers))


@every_robot
def test_innovations_and_errors_are_as_large_as_said(name):
    for found in consistency(name, DRAWN):
        assert LEVEL < found < 1 - LEVEL


@every_robot
def test_noise_that_is_told_wrong_shows(name):
    for small, large in zip(consistency(name, DRAWN, 1 / WRONG), consistency(name, DRAWN, WRONG), strict=True):
        assert small > 1 - LEVEL
        assert large < LEVEL


@pytest.mark.parametrize(("sigma", "noise", "mean", "covariance"), [(10.0, 0.1, 1e-8, 1e-6), (1e3, 1e-2, 1e-4, 0.1)])
def test_what_cannot_be_told_apart_does_not_drift(sigma, noise, mean, covariance):
    """A push and offsets at one pose, all constants: sums are known 1e4 and 1e7 times better than each of them.

    The covariance is worse than what the filter carries, as the known directions drown in the rounding of the others.
    """
    system, q = pushed_or_off(sigma, noise), np.array([0.3, 0.7])
    running = Filter(plan(system, outputs=["tau"]), 1e-3, "native")
    Y = np.array([1.0, 2.0]) + noise * np.random.default_rng(6).normal(size=(10_000, 2))
    running.inputs.q[:] = q
    for y in Y:
        running.inputs.y[:] = y
        running.tick().raise_for_status()
    known = running.state
    P = known.covariance
    assert np.array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0
    off = exactly(system, running.memory_names, q, Y).off(known.mean, P)
    assert off[0] < mean
    assert off[1] < covariance
