"""Ticks drawn from the model itself: what persists moves on as it says, and readings have the noise that they are told.

The velocities that ticks are given are chosen first; where velocities persist, the true ones are those less the noise
of the reading, and accelerations are chosen so that these follow. All else of which nothing is known is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.measurements.memory import SpeedReading
from nori_dyn.system.builder import System
from tests.kalman import Instant, Part, biases

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
