"""Logs for filters and smoothers, and what one least-squares problem over all ticks says of them."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

import nori_dyn as nd
from tests.systems import ACCELERATIONS, UNLOADED, sensor_set

DT = 0.01
"""Time between ticks [s]."""

TREE, WIDE = nd.autotree(2, skew=0.3), nd.autotree(6, skew=0.3)
"""Arms; that with six joints has more that is free in a tick than two of the widest vectors hold."""

TORQUES = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 2}}
SPEED = {"of": "qd", "rate": "qdd", "noise": 0.02, "walk": 0.01}


def remembering(*measurements, memory, **more):
    """Sensors of which some things persist."""
    return sensor_set(*measurements, name="arm", memory=memory, **more)


def sensors(**memory):
    """Torque sensors with offsets, of which some things persist."""
    known = {"speed": SPEED, "offsets": {"of": "offset", "walk": 0.5}} | memory
    return remembering(TORQUES, UNLOADED, memory={k: v for k, v in known.items() if v is not None})


def felt(*others):
    """Sensors of the push on a link that lasts: nothing is known of it at first."""
    force = {"type": "external_wrench", "links": ["link1"], "sigma": 1.0}
    unloaded = UNLOADED | {"links": ["link2"]}
    return remembering(force, *others, unloaded, ACCELERATIONS, memory={"push": {"of": "fx:link1", "walk": 0.1}})


def planned(set_of=None, tree=TREE, outputs=("qdd", "tau")):
    """A plan of an arm with memory."""
    return nd.plan(nd.System(tree, set_of or sensors()), outputs=list(outputs))


@dataclass
class Ticks:
    """Ticks that were recorded: times, states, readings."""

    T: np.ndarray
    Q: np.ndarray
    Qd: np.ndarray
    Y: np.ndarray

    @property
    def all(self):
        """What `Filter.over` takes."""
        return self.T, self.Q, self.Qd, self.Y


def recorded(system, n, seed, steps=None):
    """Ticks with motions and readings that have nothing to do with each other: algebra minds not."""
    rng, tree = np.random.default_rng(seed), system.tree
    steps = DT * rng.uniform(0.5, 2, n) if steps is None else np.asarray(steps)
    Q = tree.random_configurations(1, rng)[0] + rng.normal(0, 0.1, (n, tree.nq)).cumsum(axis=0)
    return Ticks(np.cumsum(steps), Q, rng.normal(size=(n, tree.nv)), rng.normal(size=(n, system.ny)))


def by_least_squares(system, T, Q, Qd, Y, gap=np.inf, weights=None):
    """The mean (N, n_d) and covariance (N, n_d, n_d) of all d; see `by_least_squares_of`."""
    mean, covariance = by_least_squares_of([system] * len(T), T, Q, Qd, Y, gap, weights)
    return np.array(mean), np.array(covariance)


def by_least_squares_of(systems, T, Q, Qd, Y, gap=np.inf, weights=None, turns=None):
    """The means and covariances of all d of each tick, by one dense least-squares problem.

    The rows are those of `System.D` and `System.b` at each tick: those that hold exactly leave d = d_0 + B c, the
    others are weighed; those of what is known at first stand there once; and between two ticks stand the laws of what
    persists.

    Args:
        systems: the system of each tick.
        T, Q, Qd, Y: times, states, readings.
        gap: time from which on what has a rate does not go on.
        weights: those of the rows of each tick (N, n_weights).
        turns: by what (3, 3) velocity and gravity of a base turn before a tick, by its number.
    """
    N = len(T)
    weights = [system.weights for system in systems] if weights is None else weights
    spans, offsets, rows = [], [], []
    for k, system in enumerate(systems):
        known_first = {one.known_by for one in system.memory}
        D, b = system.D(Q[k]).toarray(), system.b(Q[k], Qd[k], Y[k])
        exact = [row.slice for row in system.rows if row.is_exact]
        E, e = np.vstack([D[s] for s in exact]), np.concatenate([b[s] for s in exact])
        spans.append(la.null_space(E))
        offsets.append(-la.lstsq(E, e)[0])
        for row in (row for row in system.rows if not row.is_exact):
            is_first = row.name in known_first
            if is_first and k > 0:
                continue
            root = np.sqrt(weights[k][list(row.weight_of_rows)])[:, None]
            rows.append(([(k, root * D[row.slice])], -root[:, 0] * b[row.slice]))
    for k in range(N - 1):
        dt = T[k + 1] - T[k]
        for one, later in zip(systems[k].memory, systems[k + 1].memory, strict=True):
            own, a, Qs = one.variable.slice, one.decay(dt), one.variance(dt)
            if one.rate is not None and dt > gap:
                continue
            now, after = (np.zeros((len(Qs), systems[j].shape[1])) for j in (k, k + 1))
            after[:, later.variable.slice], now[:, own] = np.eye(len(Qs)), -a * np.eye(len(Qs))
            if one.rate is not None:
                now[:, systems[k].column(*one.rate)] = -dt * np.eye(len(Qs))
            if turns and k + 1 in turns and one.variable.name in ("base:velocity", "base:gravity"):
                now = turns[k + 1] @ now
            root = 1 / np.sqrt(np.maximum(Qs, 1e-12))[:, None]  # what holds exactly holds to a millionth
            rows.append(([(k, root * now), (k + 1, root * after)], np.zeros(len(Qs))))
    starts = np.cumsum([0, *(span.shape[1] for span in spans)])
    M = np.zeros((sum(len(rhs) for _, rhs in rows), starts[-1]))
    r = np.concatenate([rhs for _, rhs in rows])
    at = 0
    for parts, rhs in rows:
        for k, block in parts:
            M[at : at + len(rhs), starts[k] : starts[k + 1]] += block @ spans[k]
            r[at : at + len(rhs)] -= block @ offsets[k]
        at += len(rhs)
    scale = np.linalg.norm(M, axis=0)
    scale[scale == 0] = 1.0
    root = la.pinv(M / scale) / scale[:, None]
    c, P = root @ r, root @ root.T
    mean = [offsets[k] + spans[k] @ c[starts[k] : starts[k + 1]] for k in range(N)]
    parts = [slice(starts[k], starts[k + 1]) for k in range(N)]
    return mean, [span @ P[part, part] @ span.T for span, part in zip(spans, parts, strict=True)]


def columns(system, name):
    """The columns of d of a kind, "qdd", or of a variable."""
    return [k for v in system.variables if name in (v.kind, v.name) for k in range(v.slice.start, v.slice.stop)]
