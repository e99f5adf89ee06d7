"""Kalman filter and smoother of joints with encoders alone, all joints at once: the jerk is a random walk.

The state of a joint is x = (q, qd, qdd, qddd), or without q where velocities alone are read. From sample to sample, dt
apart,

    x+ = F x + w,   F = exp(N dt),   w ~ N(0, Q),   Q = j^2 int_0^dt exp(N s) e e' exp(N s)' ds,   y = H x + v

with N the shift, e the axis of the jerk, j how far the jerk walks in a second, and v the noise of what is read.

Samples may be evenly spaced or not. All is computed in units in which the usual dt is 1. What is known of a state is a
square-root information, rows R x = z + noise of unit variance, as in `filtering.square_root`. Where samples follow each
other evenly the gain settles; from then on it is kept, and the rest is a linear recursion.

Source: Kalman (1960); the jerk as a state as in Mehrotra and Mahapatra (1997); the steps as in Bierman (1977), ch. X.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.errors import InputError
from nori_dyn.filtering.riccati import steady_state
from nori_dyn.filtering.square_root import SquareRootInformation, triangular, with_noise
from nori_dyn.typing import Floats


def linear_recursion(A: Floats, u: Floats, before: Floats) -> Floats:
    """Exact solution x (N, m, n) of  x_k = A x_(k-1) + u_k.

    Args:
        A: what takes the state on (m, n, n).
        u: what comes in (N, m, n).
        before: the state before the first (m, n).
    """
    N, m, n = u.shape
    if not N:
        return u.copy()
    length = int(np.ceil(np.sqrt(N)))
    blocks = -(-N // length)
    x = np.zeros((blocks * length, m, n))
    x[:N] = u
    x = x.reshape(blocks, length, m, n)
    powers = np.empty((length, m, n, n))
    powers[0] = A
    for k in range(1, length):
        powers[k] = A @ powers[k - 1]
        x[:, k] += (A @ x[:, k - 1, ..., None])[..., 0]
    begins = np.empty((blocks, m, n))
    begins[0] = before
    for k in range(1, blocks):
        begins[k] = (powers[-1] @ begins[k - 1, ..., None])[..., 0] + x[k - 1, -1]
    x += (powers @ begins[:, None, ..., None])[..., 0]
    found: Floats = x.reshape(-1, m, n)[:N]
    return found


BEFORE = (1e2, 1e3, 1e5, 1e7)
"""Standard deviations of position, velocity, acceleration and jerk before anything is read, in units of SI."""

FAINT = 1e-10
"""Share of a reading's information that what is known before is at least: less would be lost to rounding beside it."""

SETTLED = 1e-12
"""A covariance has settled where it is within this share of the one that it settles to."""

DERIVATIVES = 4
"""Numbers of a state with its position: position, velocity, acceleration, jerk."""


@dataclass(frozen=True, slots=True, eq=False)
class JointNoise:
    """Process and measurement noise of joints.

    Attributes:
        jerk: how far the jerk walks in a second (n,) [rad/s^3/sqrt(s), or m/s^3/sqrt(s)].
        sigma_q: standard deviation of a position that is read (n,) [rad or m]; None where positions are not read.
        sigma_qd: of a velocity (n,) [rad/s or m/s]; None where velocities are not read.

    Example:
        >>> t = 0.01 * np.arange(500)
        >>> read = np.sin(t)[:, None] + np.random.default_rng(0).normal(0.0, 1e-3, (500, 1))
        >>> noise = nd.tools.joint_motion(t, read).noise
        >>> print(np.round(noise.sigma_q, 4), noise.sigma_qd)
        [0.001] None
    """

    jerk: Floats
    sigma_q: Floats | None = None
    sigma_qd: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("jerk", "sigma_q", "sigma_qd"):
            check_positive(name, getattr(self, name))
        if self.sigma_q is None and self.sigma_qd is None:
            raise InputError("nothing is read: positions, velocities, or both are needed, each with its sigma.")

    def __len__(self) -> int:
        return len(self.jerk)


def check_positive(name: str, values: Floats | None) -> None:
    """Check noise (n,), where there is some.

    Raises:
        InputError: a number of it is not positive, or infinite.
    """
    for wrong in [] if values is None else values[~((values > 0) & (values < np.inf))][:1].tolist():
        raise InputError(f"{name} is {wrong:g}: it must be positive.")


class JointModel:
    """Model of joints in units in which the nominal time between samples is 1.

    Args:
        noise: how restless joints are, and how noisy what is read.
        dt: the usual time between samples [s].
    """

    def __init__(self, noise: JointNoise, dt: float) -> None:
        self.n_joints, self.dt = len(noise), dt
        self.first = 0 if noise.sigma_q is not None else 1
        self.order = DERIVATIVES - self.first
        self.units = dt ** -np.arange(self.order, dtype=float)
        self.jerk = noise.jerk * dt ** (DERIVATIVES - 0.5 - self.first)
        sigmas = [s * dt**k for k, s in enumerate((noise.sigma_q, noise.sigma_qd)) if s is not None]
        self.read = [k - self.first for k, s in enumerate((noise.sigma_q, noise.sigma_qd)) if s is not None]
        self.sigma = np.stack([s * dt**-self.first for s in sigmas], axis=1)
        self.H = np.eye(self.order)[self.read]
        powers = np.arange(self.order)
        self._powers = np.maximum(powers - powers[:, None], 0)
        self._shares = np.triu(1 / np.array([float(factorial(k)) for k in range(self.order)])[self._powers])
        self._root = np.linalg.cholesky(
            np.outer(self._shares[:, -1], self._shares[:, -1]) / (1 + np.add.outer(powers, powers)[::-1, ::-1])
        )

    def F(self, tau: ArrayLike) -> Floats:
        """State transition F (..., order, order) over times (...), in nominal steps; backwards if negative."""
        return np.asarray(self._shares * np.asarray(tau)[..., None, None] ** self._powers)

    def walk(self, tau: ArrayLike) -> Floats:
        """Factor G of the process noise Q = G G' (..., n, order, order) over times (...), in nominal steps."""
        powers = np.asarray(tau)[..., None, None] ** (self.order - 0.5 - np.arange(self.order)[:, None])
        return np.asarray(self.jerk[:, None, None] * (powers * self._root)[..., None, :, :])

    @property
    def before(self) -> SquareRootInformation:
        """What is known before anything is read."""
        known = np.maximum(self.units / np.array(BEFORE)[self.first :], FAINT / self.sigma.min(axis=1, keepdims=True))
        return SquareRootInformation(known[:, :, None] * np.eye(self.order), np.zeros(known.shape))

    def rows(self, y: Floats) -> Floats:
        """Measurement rows [0 | H | y] / sigma (n, p, 2 order + 1) of readings (n, p); zeros where one is nan."""
        rows = np.zeros((*y.shape, 2 * self.order + 1))
        rows[..., self.order : -1], rows[..., -1] = self.H, y
        return np.where(np.isfinite(y)[..., None], rows / self.sigma[..., None], 0.0)

    def step(self, after: SquareRootInformation, back: Floats, walk: Floats, y: Floats) -> SquareRootInformation:
        """Square-root information of process noise e and state at the next sample (n, 2 order).

        Args:
            after: what is known at a sample.
            back: F of the time between the two, backwards (order, order).
            walk: the factor of its noise (n, order, order).
            y: the readings of the next (n, p); nan where there is none.
        """
        moved = np.concatenate([after.R @ back, after.z[..., None]], axis=2)
        R, z, _ = triangular(np.concatenate([self.rows(y), with_noise(moved, walk)], axis=1))
        return SquareRootInformation(R, z)

    @property
    def deviations(self) -> Floats:
        """The standard deviations of the state after the readings (n, order) once it has settled, in units of SI."""
        return deviations(self.settled.P) * self.units

    @cached_property
    def settled(self) -> JointSteadyState:
        """What the filter settles to where samples follow each other evenly and all is read."""
        F, back, walk, one = self.F(1.0), self.F(-1.0), self.walk(1.0), np.eye(self.order)
        Q, H = walk @ walk.swapaxes(1, 2), self.H / self.sigma[..., None]
        P, Y = steady_state(np.broadcast_to(F, Q.shape), Q, H.swapaxes(1, 2) @ H)
        R = np.linalg.inv(np.linalg.cholesky((P + P.swapaxes(1, 2)) / 2))
        y = np.zeros(self.sigma.shape)
        after = state_of(self.step(SquareRootInformation(R, np.zeros(R.shape[:2])), one, 0.0 * walk, y))
        for _ in range(3):  # rounding of the doubling is forgotten
            step = self.step(after, back, walk, y)
            after = state_of(step)
        P = covariance(after.R)
        K = P[..., self.read] / self.sigma[:, None] ** 2
        before = F @ P @ F.T + Q
        E = np.asarray(
            np.linalg.cholesky(self.H @ before @ self.H.T + np.eye(len(self.read)) * self.sigma[..., None] ** 2),
            dtype=float,
        )
        gain, _, spread = smooth_step(step, back, walk)
        return JointSteadyState(
            after.R, P, K, E, (one - K @ self.H) @ F, gain, spread, before @ np.linalg.inv(one + Y @ before)
        )


@dataclass(frozen=True, slots=True, eq=False)
class JointSteadyState:
    """Steady state of the filter, in units of the model.

    Attributes:
        R: the square-root information after the readings (n, order, order).
        P: the covariance after them (n, order, order).
        K: the gain (n, order, p).
        E: the lower factor of the covariance of what readings differ by from what is expected (n, p, p).
        A: what takes a state on (n, order, order):  x+ = A x + K y.
        gain, spread: those of the smoother (n, order, order), see `returned`.
        smoothed: the covariance of the smoother (n, order, order).
    """

    R: Floats
    P: Floats
    K: Floats
    E: Floats
    A: Floats
    gain: Floats
    spread: Floats
    smoothed: Floats

    @property
    def memory(self) -> float:
        """Number of samples after which a state is forgotten to twelve digits."""
        slowest = float(np.abs(np.linalg.eigvals(self.A)).max())
        return float(np.log(SETTLED) / np.log(slowest))


def state_of(step: SquareRootInformation) -> SquareRootInformation:
    """Square-root information of the state, marginal of that of noise and state."""
    order = step.z.shape[-1] // 2
    return SquareRootInformation(step.R[..., order:, order:], step.z[..., order:])


def smooth_step(step: SquareRootInformation, back: Floats, walk: Floats) -> tuple[Floats, Floats, Floats]:
    """Backward step of the smoother,  x = gain x+ + offset + noise.

    Args:
        step: what is known of the noise on the way and of the next (..., n, 2 order).
        back: F of the time between the two, backwards (..., order, order).
        walk: the factor of its noise (..., n, order, order).

    Returns:
        gain (..., n, order, order), offset (..., n, order), and the covariance of the noise (..., n, order, order).
    """
    order = back.shape[-1]
    inverse = np.linalg.inv(step.R[..., :order, :order])
    by_e = back @ walk @ inverse  # x = back (x+ - walk e), and e is what the first rows say, given x+
    gain = back + by_e @ step.R[..., :order, order:]
    offset = -(by_e @ step.z[..., :order, None])[..., 0]
    return gain, offset, by_e @ by_e.swapaxes(-1, -2)


def covariance(R: Floats) -> Floats:
    """Covariances (..., order, order) of square-root information."""
    inverse = np.linalg.inv(R)
    return np.asarray(inverse @ inverse.swapaxes(-1, -2))


def deviations(P: Floats) -> Floats:
    """Standard deviations (..., order) of covariances."""
    return np.asarray(np.sqrt(np.diagonal(P, axis1=-2, axis2=-1)))


EVEN = 1e-3
"""Steps of time that differ from the usual one by less than this share of it are taken for it: stamps are rounded."""

STEPS = 1024
"""Samples of which the steps are kept until what the smoother needs is made of them, at most."""


class JointFilter:
    """Kalman filter of joints, sample by sample.

    Args:
        model: the model of the joints.
    """

    def __init__(self, model: JointModel) -> None:
        self.model = model
        self.known = model.before
        self._tau, self._back, self._walk = 0.0, model.F(0.0), model.walk(0.0)

    def step(self, tau: float, y: Floats) -> SquareRootInformation:
        """Take a sample, and return what is known of the noise on the way to it and of its state.

        Args:
            tau: the time since the one before, in usual steps; 0 for the first.
            y: the readings (n, p), in units of the model; nan where there is none.
        """
        if tau != self._tau:
            self._tau, self._back, self._walk = tau, self.model.F(-tau), self.model.walk(tau)
        whole = self.model.step(self.known, self._back, self._walk, y)
        self.known = state_of(whole)
        return whole

    @property
    def has_settled(self) -> bool:
        """Whether what is known after the last sample is what the filter settles to."""
        R, limit = self.known.R, self.model.settled.R
        if (np.abs(np.abs(R[:, -1, -1] / limit[:, -1, -1]) - 1) > SETTLED).any():
            return False
        H, settled = R.swapaxes(1, 2) @ R, limit.swapaxes(1, 2) @ limit
        size = np.sqrt(np.einsum("nii->ni", settled))
        return bool((np.abs(H - settled) <= SETTLED * size[:, :, None] * size[:, None]).all())


class _FilterPass:
    """Kalman filter of joints over a log.

    Attributes:
        model: the model.
        x: the states (N, n, order), in units of the model.
        sigma: their standard deviations, of the same shape.
        P: the covariance of the last (n, order, order), by the filter.
        stretches: samples that follow each other, all before the filter settles or all after, each with how the state
            before a sample follows from it, see `returned`; None where the filter has settled.
    """

    def __init__(self, noise: JointNoise, t: Floats, y: Floats, dt: float) -> None:
        self.model = model = JointModel(noise, dt)
        self._tau = np.concatenate([[0.0], np.diff(t) / dt])
        self._tau[np.abs(self._tau - 1) < EVEN] = 1.0
        self._y = y * dt ** np.array(model.read, dtype=float)
        self.x = np.empty((len(t), model.n_joints, model.order))
        self.sigma = np.empty_like(self.x)
        self.stretches: list[tuple[range, tuple[Floats, Floats, Floats] | None]] = []
        self._run()

    def _run(self) -> None:
        tau, y, settled, one = self._tau, self._y, self.model.settled, JointFilter(self.model)
        is_usual = (tau == 1.0) & np.isfinite(y).all(axis=(1, 2))
        others = np.append(np.flatnonzero(~is_usual), len(tau))
        k, last, steps = 0, 0, list[SquareRootInformation]()
        while k < len(tau):
            if not (is_usual[k] and (k - last > settled.memory or one.has_settled)):
                last = last if is_usual[k] else k
                steps.append(one.step(float(tau[k]), y[k]))
                k += 1
                if len(steps) == STEPS:
                    self._close(k, steps)
                continue
            self._close(k, steps)
            stop = int(others[np.searchsorted(others, k)])
            self.x[k:stop] = linear_recursion(settled.A, (settled.K @ y[k:stop, ..., None])[..., 0], self.x[k - 1])
            self.sigma[k:stop], self.P = deviations(settled.P), settled.P
            one.known = SquareRootInformation(settled.R, (settled.R @ self.x[stop - 1, ..., None])[..., 0])
            self.stretches.append((range(k, stop), None))
            k = stop
        self._close(k, steps)

    def _close(self, stop: int, steps: list[SquareRootInformation]) -> None:
        """Keep the moments of steps, up to a sample, and forget the steps."""
        if not steps:
            return
        samples = range(stop - len(steps), stop)
        which = slice(samples.start, samples.stop)
        whole = SquareRootInformation(np.stack([step.R for step in steps]), np.stack([step.z for step in steps]))
        known = state_of(whole)
        P = covariance(known.R)
        self.x[which] = np.linalg.solve(known.R, known.z[..., None])[..., 0]
        self.sigma[which], self.P = deviations(P), P[-1]
        tau = self._tau[which]
        self.stretches.append((samples, smooth_step(whole, self.model.F(-tau)[:, None], self.model.walk(tau))))
        steps.clear()

    def smooth(self) -> None:
        """Go back over the log: x and sigma become those that all readings tell.

        Source: Rauch, Tung and Striebel (1965); the steps as in Bierman (1977), ch. X.
        """
        settled, F = self.model.settled, self.model.F(1.0)
        after, P = self.x[-1].copy(), self.P
        for samples, back in self.stretches[::-1]:
            first, k = samples.start, samples.stop - 1
            if back is None:
                before = self.x[first - 1 : k]
                off = before - (settled.gain @ F @ before[..., None])[..., 0]
                found = linear_recursion(settled.gain, off[::-1], after)[::-1]
                self.x[k], self.x[first:k], after = after, found[1:], found[0]
                least = max(first, k - int(settled.memory))
                for j in range(k, least - 1, -1):
                    self.sigma[j] = deviations(P)
                    P = settled.gain @ P @ settled.gain.swapaxes(1, 2) + settled.spread
                if least > first:
                    P = settled.smoothed
                    self.sigma[first:least] = deviations(P)
                continue
            for j, gain, offset, spread in list(zip(samples, *back, strict=True))[::-1]:
                self.x[j], self.sigma[j] = after, deviations(P)
                after = (gain @ after[..., None])[..., 0] + offset
                P = gain @ P @ gain.swapaxes(1, 2) + spread


def even_step(t: Floats, dt: float) -> float:
    """Nominal time between samples [s] at times (N,): the mean of those that are equal but for rounding.

    Args:
        t: the times [s].
        dt: about that time [s]: stamps are rounded, and a single step may be off.
    """
    steps = np.diff(t)
    near = steps[np.abs(steps / dt - 1) < EVEN]
    return float(near.mean()) if len(near) else dt


def joint_states(noise: JointNoise, t: Floats, y: Floats, dt: float, smooth: bool) -> tuple[Floats, Floats]:
    """States of joints at each sample and their standard deviations, in SI.

    Args:
        noise: how restless joints are, and how noisy what is read.
        t: times (N,) [s], none before the one before.
        y: readings (N, n, p), of positions, of velocities, or of both in this order; nan where there is none.
        dt: the usual time between samples [s].
        smooth: whether all samples tell them, and not those so far only.

    Returns:
        Positions, velocities, accelerations, jerks (N, n, 4), or without positions (N, n, 3) where none is read; and
        their deviations, of the same shape.
    """
    run = _FilterPass(noise, t, y, dt)
    if smooth:
        run.smooth()
    return run.x * run.model.units, run.sigma * run.model.units
