"""Filters against the textbook in extended precision, and drawn truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from nori_dyn.api.plan import plan
from nori_dyn.filtering.consistency import nees
from nori_dyn.filtering.filter import Filter
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import System
from tests.kalman import Instant, Known, Part, biases, filtered
from tests.observers import Observer, observer
from tests.tolerances import SOLVED, assert_close
from tests.unseen import exactly, pushed_or_off

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """Ticks, and what was true.

    Attributes:
        parts: the systems that hold in turn.
        which: for each tick the number of its system.
        q, qd: states (T, nq), (T, nv).
        y: readings of each tick, as its system has them.
        dt: time before each tick (T,) [s].
        d: all unknowns of each tick.
        memory: what persists (T, k).
        run: number of ticks after which what persists is drawn anew, from what is known at first.
    """

    parts: tuple[Part, ...]
    which: NDArray[np.intp]
    q: Floats
    qd: Floats
    y: tuple[Floats, ...]
    dt: Floats
    d: tuple[Floats, ...]
    memory: Floats
    run: int

    def instants(self, weights: Sequence[Floats] | None = None) -> list[Instant]:
        """Return the ticks for the oracle, with weights of each, those of the system by default."""
        found: dict[int, Instant] = {}
        for number, part in enumerate(self.parts):
            own = np.flatnonzero(self.which == number)
            if not len(own):
                continue
            B = biases(part.system, self.q[own], self.qd[own], np.array([self.y[k] for k in own]))
            for k, b in zip(own.tolist(), B, strict=True):
                w = part.system.weights if weights is None else weights[k]
                found[k] = Instant(part, self.q[k], b, w, float(self.dt[k]))
        return [found[k] for k in range(len(self.which))]


def drawn(
    systems: Sequence[System],
    names: Sequence[str],
    n: int,
    dt: float | Floats,
    seed: int,
    poses: int = 16,
    stay: int = 100,
    run: int | None = None,
) -> Drawn:
    """Return n ticks.

    Args:
        systems: those that hold in turn, each for `stay` ticks.
        names: the memory's numbers in the order that is wanted.
        n: how many ticks.
        dt: time between ticks, one or (n,).
        seed: of all that is drawn.
        poses: number of configurations, which come again and again.
        stay: see above.
        run: see `Drawn`; all ticks when None.
    """
    rng = np.random.default_rng(seed)
    parts = tuple(Part.of(system, names) for system in systems)
    tree = systems[0].tree
    start, direction = tree.random_configuration(rng), 0.3 * rng.normal(size=tree.nv)
    angles = 2 * np.pi * np.arange(poses) / poses
    configurations = np.array([tree.integrate(start, direction * np.sin(angle)) for angle in angles])
    q = configurations[np.arange(n) % poses]
    time = np.cumsum(np.broadcast_to(dt, (n,)))
    waves = rng.uniform(0.3, 2.0, tree.nv), rng.uniform(0, 2 * np.pi, tree.nv)
    qd = 0.5 * np.sin(np.multiply.outer(time, waves[0]) + waves[1])
    which = (np.arange(n) // stay) % len(parts)
    dt = np.broadcast_to(dt, (n,)).astype(float)
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
    spread, run, m = np.where(np.isfinite(sigma), sigma, 0.0), run or n, mean
    d, y, memory = [], [], []
    counters = [0] * len(parts)
    makers = [Maker(part) for part in parts]
    for k in range(n):
        if k % run == 0:
            m = np.where(told, speeds[k], mean + spread * rng.normal(size=len(mean)))
        number = int(which[k])
        b = silent[number][counters[number]]
        counters[number] += 1
        step = float(dt[min(k + 1, n - 1)])
        a, Q = parts[number].motion(step)
        w = np.sqrt(Q) * rng.normal(size=len(m))
        later = speeds[k + 1] if k + 1 < n else a * m
        wanted = np.where(told, (later - a * m - w) / step, 0.0)
        assert np.abs(m - speeds[k])[told].max(initial=0.0) < 1e-6, "accelerations cannot be chosen so"
        d_now, y_now = makers[number].tick(q[k], b, m, wanted, rng)
        d.append(d_now)
        y.append(y_now)
        memory.append(m.copy())
        rates = parts[number].rates
        m = a * m + w + np.where(rates >= 0, step * d_now[rates], 0.0)
    return Drawn(parts, which, q, qd, tuple(y), dt, tuple(d), np.array(memory), run)


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
        """Return the unknowns (N,) and the readings (ny,)."""
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


TICKS = {"arm": 300, "quadruped": 120, "humanoid": 120}
"""Ticks that are held against the textbook: 1,000 of each where there is time, `python -m benchmarks.filters`."""


DRAWN = dict.fromkeys(TICKS, 10_000)
"""Ticks that are drawn for consistency."""

EACH = ("arm", *(pytest.param(name, marks=pytest.mark.long) for name in ("quadruped", "humanoid")))
every_robot = pytest.mark.parametrize("name", EACH)

RUN = 100
"""Ticks from one beginning to the next, in these."""

LEVEL = 1e-3
"""Probability beyond a chi-square bound on either side, at which what is drawn by these seeds must not be."""

WRONG = 1.5
"""Factor by which noise is told wrong."""


@dataclass(frozen=True)
class Ran:
    """A filter that ran over drawn ticks.

    Attributes:
        observer, drawn: of what.
        free: names of what is free in each tick.
        weights: those of each tick.
        tracked: what the filter found.
    """

    observer: Observer
    drawn: Drawn
    free: list[tuple[str, ...]]
    weights: list[Floats]
    tracked: list[Tracked]

    @property
    def instants(self) -> list[Instant]:
        """The ticks, for the oracle."""
        return self.drawn.instants(self.weights)

    def columns(self, tick: int, output: str) -> list[int]:
        """Return where an output lies in d."""
        system = self.drawn.parts[self.drawn.which[tick]].system
        return [k for v in system.variables if output in (v.kind, v.name) for k in range(v.slice.start, v.slice.stop)]


@lru_cache(maxsize=8)
def hard(name: str, ticks: int, backend: str = "native") -> Ran:
    """Return a run with varying times, readings that are missing, weights that change, and contacts that switch."""
    observing = observer(name)
    filter_ = observing.filter(backend)
    rng = np.random.default_rng(20)
    dt = observing.dt * rng.choice([0.5, 1.0, 2.0], size=ticks)
    found = drawn(observing.systems, filter_.memory_names, ticks, dt, seed=3, stay=max(10, ticks // 7))
    free, weights, tracked = [], [], []
    for k in range(ticks):
        system = observing.systems[found.which[k]]
        w, y = system.weights.copy(), found.y[k].copy()
        if k % 5 == 1:
            w *= rng.uniform(0.5, 2.0, size=len(w))
        if k % 7 == 3:
            lost = system.weight_of_readings[k % system.ny]
            y[system.weight_of_readings == lost] = np.nan
            w[lost] = 0.0
        given = {row.name: w[row.weights] for row in system.rows if not row.is_exact} if k % 5 == 1 else None
        tracked.append(stepped(filter_, observing, found, k, y, dt[k], given))
        free.append(filter_.free_names)
        weights.append(w)
    return Ran(observing, found, free, weights, tracked)


def stepped(
    filter_: Filter,
    observing: Observer,
    found: Drawn,
    k: int,
    y: Floats | None = None,
    dt: float | None = None,
    weights: dict[str, Floats] | None = None,
) -> Tracked:
    """Return a step of a filter over a drawn tick."""
    system = observing.systems[found.which[k]]
    filter_.switch(observing.states[found.which[k]])
    read = dict(zip(system.measurement_names, found.y[k] if y is None else y, strict=True))
    return filter_.step(found.q[k], found.qd[k], read, dt, weights, missing="drop")


@pytest.fixture(scope="module", params=["arm on numpy", *EACH])
def both(request) -> tuple[Ran, list[Known]]:
    """Return a run, and the same by the textbook."""
    name, _, backend = request.param.partition(" on ")
    return hard(name, TICKS[name], backend or "native"), textbook(name)


@lru_cache(maxsize=8)
def textbook(name: str) -> list[Known]:
    """Return a run by the textbook."""
    return filtered(hard(name, TICKS[name]).instants)


def test_the_memory_is_that_of_a_textbook_filter(both):
    for tracked, known in zip(both[0].tracked, both[1], strict=True):
        assert_close(tracked.memory.mean, known.mean, SOLVED)
        assert_close(
            tracked.memory.deviations / np.sqrt(np.diagonal(known.covariance)).astype(float),
            np.ones(len(known.mean)),
            SOLVED,
        )
        assert_close(tracked.memory.covariance, known.covariance, SOLVED)


def test_outputs_and_their_deviations_are_those_of_a_textbook_filter(both):
    ran, every = both
    for k, (tracked, known) in enumerate(zip(ran.tracked, every, strict=True)):
        for output in ran.observer.outputs:
            columns = ran.columns(k, output)
            assert_close(tracked[output].ravel(), known.d[columns], SOLVED)
            if k % 20 == 0:
                assert_close(tracked.deviations[output].ravel(), known.deviations(columns), SOLVED)


def test_what_readings_are_off_is_that_of_a_textbook_filter(both):
    ran, every = both
    for k, (tracked, known) in enumerate(zip(ran.tracked, every, strict=True)):
        assert tracked.degrees == known.degrees
        assert_close(tracked.nis, known.nis, SOLVED)
        names = ran.drawn.parts[ran.drawn.which[k]].system.variable_names
        free = [names.index(name) for name in ran.free[k][: known.n_s]]
        in_other_coordinates = np.linalg.slogdet(known.C[free, : known.n_s].astype(float))[1]
        assert_close(tracked.log_likelihood, known.evidence + in_other_coordinates, SOLVED)


@lru_cache(maxsize=8)
def truth(name: str, ticks: int) -> Drawn:
    """Return drawn ticks that begin anew now and then."""
    observing = observer(name)
    names = observing.filter("native").memory_names
    return drawn(observing.systems, names, ticks, observing.dt, seed=5, stay=RUN // 4, run=RUN)


def consistency(name: str, ticks: int, told: float = 1.0) -> tuple[float, float]:
    """Return the probabilities below the sums of the normalised squares of innovations, and of errors.

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
            errors += nees(state.mean - found.memory[k], state.covariance)
            numbers += len(state.mean)
    filter_.inputs.weights[:] = configured
    return float(chi2.cdf(innovations, degrees)), float(chi2.cdf(errors, numbers))


@every_robot
def test_innovations_and_errors_are_as_large_as_said(name):
    for found in consistency(name, DRAWN[name]):
        assert LEVEL < found < 1 - LEVEL


@every_robot
def test_noise_that_is_told_wrong_shows(name):
    for small, large in zip(
        consistency(name, DRAWN[name], 1 / WRONG), consistency(name, DRAWN[name], WRONG), strict=True
    ):
        assert small > 1 - LEVEL
        assert large < LEVEL


@pytest.mark.parametrize(("sigma", "noise", "mean", "covariance"), [(10.0, 0.1, 1e-8, 1e-6), (1e3, 1e-2, 1e-4, 0.1)])
def test_what_cannot_be_told_apart_does_not_drift(sigma, noise, mean, covariance):
    """A push and offsets at one pose, all constants: sums are known 1e4 and 1e7 times better than each of them.

    The covariance is worse than what the filter carries, as the known directions drown in the rounding of the others.
    """
    system, q = pushed_or_off(sigma, noise), np.array([0.3, 0.7])
    running = Filter({(): plan(system, outputs=["tau"])}, (), 1e-3, "native")
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
