"""The Kalman filter and the smoother of joints, over samples evenly spaced or not, all joints at once.

Where samples follow each other evenly the gain settles; from then on it is kept, and the rest is a linear recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nori_dyn.logs.joint_model import SETTLED, JointModel, JointNoise, scale_of, square, triangular
from nori_dyn.logs.recursion import linear_recursion
from nori_dyn.typing import Floats, Indices

EVEN = 1e-3
"""Steps of time that differ from the usual one by less than this share of it are taken for it: stamps are rounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """The motion of joints over samples, and how sure it is.

    Attributes:
        x: positions, velocities, accelerations, jerks (N, n, 4), or without positions (N, n, 3) where none is read.
        sigma: their standard deviations, of the same shape.
        covariance: their covariances, as they differ from each other (k, n, order, order).
        which: which of these each sample has (N,).
    """

    x: Floats
    sigma: Floats
    covariance: Floats
    which: Indices


class JointFilter:
    """The filter, sample by sample.

    Args:
        model: the model of the joints.
    """

    def __init__(self, model: JointModel) -> None:
        self.model = model
        self.x = np.zeros((model.n_joints, model.order))
        self.S = model.before
        self.predicted = self.S
        self.begun = False

    def step(self, tau: float, y: Floats) -> None:
        """Take a sample.

        Args:
            tau: the time since the one before, in usual steps; of no importance for the first.
            y: the readings (n, p), in units of the model; nan where there is none.
        """
        model = self.model
        if self.begun:
            self.x, self.S = self.x @ model.F(tau).T, model.predicted(self.S, tau)
        self.begun, self.predicted = True, self.S
        is_read = np.isfinite(y)
        self.S, K, _ = model.updated(self.S, is_read)
        off = np.where(is_read, y - self.x[:, list(model.read)], 0.0)
        self.x = self.x + (K @ off[..., None])[..., 0]

    @property
    def has_settled(self) -> bool:
        """Whether the covariance before the last sample is the one that it settles to."""
        return is_close(self.predicted, self.model.settled.before)


def is_close(S: Floats, other: Floats) -> bool:
    """Return whether covariances are the same to `SETTLED`, by their factors."""
    P, Q = square(S), square(other)
    return bool(np.all(np.abs(P - Q) <= SETTLED * scale_of(Q)))


@dataclass(slots=True, eq=False)
class _Run:
    """What the filter left behind of samples that follow each other, in units of the model.

    Attributes:
        model: the model.
        tau: the time before each sample (N,), in usual steps.
        x: the states (N, n, order).
        S: the factors of the covariances before and after the readings, as they differ from each other.
        which: which of these each sample has (N,).
        settled: the stretches in which it had settled.
    """

    model: JointModel
    tau: Floats
    x: Floats
    S: list[tuple[Floats, Floats]] = field(default_factory=list)
    which: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    settled: list[tuple[int, int]] = field(default_factory=list)


def even_step(t: Floats, dt: float) -> float:
    """Return the time between samples [s] at times (N,) that is usual: the mean of those that are taken for it.

    Args:
        t: the times [s].
        dt: about that time [s]: stamps are rounded, and a single step may be off.
    """
    steps = np.diff(t)
    near = steps[np.abs(steps / dt - 1) < EVEN]
    return float(near.mean()) if len(near) else dt


def filtered(noise: JointNoise, t: Floats, y: Floats, dt: float) -> Motion:
    """Return what the filter says at each sample, of the samples so far.

    Args:
        noise: how restless joints are, and how noisy what is read.
        t: times (N,) [s], none before the one before.
        y: readings (N, n, p), of positions, of velocities, or of both in this order; nan where there is none.
        dt: the usual time between samples [s].
    """
    run = _run(noise, t, y, dt)
    P = np.array([square(after) for _, after in run.S])
    return _motion(run.model, run.x, P, run.which)


def smoothed(noise: JointNoise, t: Floats, y: Floats, dt: float) -> Motion:
    """Return what the smoother says at each sample, of all samples; for the arguments see `filtered`.

    Backwards from the last sample, with G = P F' (F P F' + Q)^-1 and C what is left to know of x when x+ is known,

        x_s = x + G (x_s+ - F x),   P_s = G P_s+ G' + C

    Source: Rauch, Tung and Striebel (1965).
    """
    run = _run(noise, t, y, dt)
    model, x = run.model, run.x.copy()
    n = len(x)
    found = [square(run.S[int(run.which[-1])][1])]
    which = np.zeros(n, dtype=np.intp)
    k, stretches = n - 2, list(run.settled)
    G, C = _backwards(model, model.settled.after, 1.0)
    limit = _lyapunov(G, C)
    while k >= 0:
        while stretches and k < stretches[-1][0]:
            stretches.pop()
        first, stop = stretches[-1] if stretches else (n, n)
        if first <= k < stop - 1 and np.all(np.abs(found[-1] - limit) <= SETTLED * scale_of(limit)):
            own = x[first : k + 1]
            off = own - (G @ model.F(1.0) @ own[..., None])[..., 0]
            x[first : k + 1] = linear_recursion(G, off[::-1], x[k + 1])[::-1]
            which[first : k + 1] = len(found)
            found.append(limit)
            k = first - 1
            continue
        tau = float(run.tau[k + 1])
        back, left = _backwards(model, run.S[int(run.which[k])][1], tau)
        x[k] += (back @ (x[k + 1] - x[k] @ model.F(tau).T)[..., None])[..., 0]
        found.append(back @ found[-1] @ back.transpose(0, 2, 1) + left)
        which[k] = len(found) - 1
        k -= 1
    return _motion(model, x, np.array(found), which)


def _run(noise: JointNoise, t: Floats, y: Floats, dt: float) -> _Run:
    model = JointModel(noise, dt)
    tau = np.concatenate([[1.0], np.diff(t) / dt])
    tau[np.abs(tau - 1) < EVEN] = 1.0
    y = y * dt ** (np.array(model.read, dtype=float))
    is_usual = (tau == 1.0) & np.isfinite(y).all(axis=(1, 2))
    others = np.append(np.flatnonzero(~is_usual), len(t))
    run = _Run(model, tau, np.empty((len(t), model.n_joints, model.order)))
    run.which = np.empty(len(t), dtype=np.intp)
    one, settled, k = JointFilter(model), model.settled, 0
    while k < len(t):
        if k and is_usual[k - 1] and is_usual[k] and one.has_settled:
            stop = int(others[np.searchsorted(others, k)])
            run.x[k:stop] = linear_recursion(settled.A, (settled.K @ y[k:stop, ..., None])[..., 0], one.x)
            run.which[k:stop] = len(run.S)
            run.S.append((settled.before, settled.after))
            run.settled.append((k, stop))
            one.x, one.S, one.predicted = run.x[stop - 1], settled.after, settled.before
            k = stop
            continue
        one.step(float(tau[k]), y[k])
        run.x[k], run.which[k] = one.x, len(run.S)
        run.S.append((one.predicted, one.S))
        k += 1
    return run


def _motion(model: JointModel, x: Floats, P: Floats, which: Indices) -> Motion:
    """Return states and covariances in units of SI."""
    sigma = np.sqrt(np.einsum("knii->kni", P)) * model.units
    return Motion(x * model.units, sigma[which], P * np.outer(model.units, model.units), which)


def _backwards(model: JointModel, after: Floats, tau: float) -> tuple[Floats, Floats]:
    """Return G (n, order, order), and C, what is left to know of a state when the next is known (n, order, order).

    Source: the factors as in Park and Kailath (1996).
    """
    order = model.order
    rows = np.zeros((model.n_joints, 2 * order, 2 * order))
    large = after[:, ::-1]  # as in `JointModel.updated`
    rows[:, :order, :order], rows[:, :order, order:] = large @ model.F(tau).T, large
    rows[:, order:, :order] = model.walk(tau)
    R = triangular(rows)
    G = np.linalg.solve(R[:, :order, :order], R[:, :order, order:]).transpose(0, 2, 1)
    return np.asarray(G), square(R[:, order:, order:])


def _lyapunov(G: Floats, C: Floats) -> Floats:
    """Return P (n, order, order) of  P = G P G' + C,  by doubling."""
    P = C
    for _ in range(64):
        step = G @ P @ G.transpose(0, 2, 1)
        P, G = P + step, G @ G
        if np.all(np.abs(step) <= 1e-17 * scale_of(P)):
            break
    return P
