"""Filters over drawn truth: errors are as large as they say, and what no reading tells apart does not drift."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from nori_dyn.algebra.ranges import numbers
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import System
from tests.observers import observer
from tests.unseen import exactly, pushed_or_off

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """Ticks, and what was true.

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
    makers, tree = [Maker(system, names, dt) for system in systems], systems[0].tree
    start, direction = tree.random_configuration(rng), 0.3 * rng.normal(size=tree.nv)
    angles = 2 * np.pi * np.arange(poses) / poses
    q = np.array([tree.integrate(start, direction * np.sin(angle)) for angle in angles])[np.arange(n) % poses]
    time = dt * np.arange(1, n + 1)
    waves = rng.uniform(0.3, 2.0, tree.nv), rng.uniform(0, 2 * np.pi, tree.nv)
    qd = 0.5 * np.sin(np.multiply.outer(time, waves[0]) + waves[1])
    which = (np.arange(n) // stay) % len(systems)
    states = [(q[which == k], qd[which == k]) for k in range(len(systems))]
    biases = [
        iter(system.each(*at, np.zeros((len(at[0]), system.ny)))) for system, at in zip(systems, states, strict=True)
    ]
    first, speeds = makers[0], np.full((n, len(names)), np.nan)
    for row in systems[0].rows:
        if isinstance(row.equation, SpeedReading):
            columns = numbers(systems[0].column(*row.equation.key))
            freedoms = numbers(tree.v_slices[row.equation.key.body])
            for column, k, spread in zip(columns, freedoms, row.equation.sigma, strict=True):
                speeds[:, first.memory.index(column)] = qd[:, k] + spread * rng.normal(size=n)
    told, spread = np.isfinite(speeds[0]), np.where(np.isfinite(first.sigma), first.sigma, 0.0)
    m, y, memory = first.mean, [], []
    for k in range(n):
        if k % run == 0:
            m = np.where(told, speeds[k], first.mean + spread * rng.normal(size=len(m)))
        maker = makers[which[k]]
        w = np.sqrt(maker.Q) * rng.normal(size=len(m))
        later = speeds[k + 1] if k + 1 < n else maker.a * m
        rates = np.where(told, (later - maker.a * m - w) / dt, 0.0)
        assert np.abs(m - speeds[k])[told].max(initial=0.0) < 1e-6, "accelerations cannot be chosen so"
        d, y_now = maker.tick(q[k], next(biases[which[k]])[1], m, rates, rng)
        y.append(y_now)
        memory.append(m.copy())
        m = maker.a * m + w + np.where(maker.is_rated, dt * d[maker.rates], 0.0)
    return Drawn(which, q, qd, tuple(y), np.array(memory))


class Maker:
    """Draws the unknowns of ticks of a system, and their readings: any d that obeys its rows.

    Attributes:
        memory: the columns of d that persist, in the order of some names.
        rates: those of their rates, where they are rated.
        mean, sigma: of what is known at first (k,), inf where nothing is.
        a, Q: what the memory is multiplied by over a tick, and the variance that it gains (k,).
    """

    def __init__(self, system: System, names: Sequence[str], dt: float) -> None:
        self.system, self.memory = system, [system.variable_names.index(name) for name in names]
        known = np.zeros((5, system.shape[1]))
        for one in system.memory:
            T, walk = one.time_constant, np.array(one.walk)
            known[0, one.variable.slice] = one.mean
            known[1, one.variable.slice] = np.inf if one.sigma is None else one.sigma
            known[2, one.variable.slice] = 1.0 if T is None else np.exp(-dt / T)
            known[3, one.variable.slice] = walk**2 * (dt if T is None else T / 2 * (1 - np.exp(-2 * dt / T)))
            known[4, one.variable.slice] = -1 if one.rate is None else numbers(system.column(*one.rate))
        self.mean, self.sigma, self.a, self.Q, rates = known[:, self.memory]
        self.rates, self.is_rated = rates.astype(int), rates >= 0
        told_first = {one.known_by for one in system.memory}
        rows = [row for row in system.rows if row.name not in told_first]
        exact, read = [row for row in rows if row.is_exact], [row for row in rows if row.equation.is_measured]
        assert not any(row.is_exact for row in read), "readings that hold exactly are not drawn"
        soft = [row for row in rows if row not in (*exact, *read) and not isinstance(row.equation, SpeedReading)]
        self.exact, self.soft, self.read = ([k for row in of for k in numbers(row.slice)] for of in (exact, soft, read))
        self.y = [k for row in read for k in numbers(row.y)]
        self.noise = [system.weights[[k for row in of for k in row.weight_of_rows]] ** -0.5 for of in (soft, read)]
        self.known: dict[bytes, Any] = {}

    def tick(self, q: Floats, b: Floats, m: Floats, rates: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The unknowns (N,) and the readings (ny,) at a pose, with a bias, a memory (k,) and rates of it (k,)."""
        N = self.system.shape[1]
        if q.tobytes() not in self.known:
            D = self.system.D(q).toarray()
            A = np.vstack([D[self.exact], np.eye(N)[self.memory], np.eye(N)[self.rates[self.is_rated]], D[self.soft]])
            self.known[q.tobytes()] = D, A, np.linalg.pinv(A)
        D, A, inverse = self.known[q.tobytes()]
        soft, read = (sigma * rng.normal(size=len(sigma)) for sigma in self.noise)
        wanted = np.concatenate([-b[self.exact], m, rates[self.is_rated], soft - b[self.soft]])
        d = rng.normal(size=N)
        for _ in range(2):
            d = d + inverse @ (wanted - A @ d)
        np.testing.assert_allclose(A @ d, wanted, atol=1e-9 * np.abs(wanted).max())
        y = np.zeros(self.system.ny)
        y[self.y] = D[self.read] @ d + b[self.read] - read
        return d, y


DRAWN = 10_000
"""Ticks that are drawn for consistency."""

EACH = ("arm", *(pytest.param(name, marks=pytest.mark.long) for name in ("quadruped", "humanoid")))
every_robot = pytest.mark.parametrize("name", EACH)

RUN = 100
"""Ticks from one beginning to the next, in these."""

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
    innovations, degrees, errors, n = 0.0, 0, 0.0, 0
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
            n += len(state.mean)
    filter_.inputs.weights[:] = configured
    return float(chi2.cdf(innovations, degrees)), float(chi2.cdf(errors, n))


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
