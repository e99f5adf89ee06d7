"""The model of joints whose encoders are all that is known of them: the jerk is constant, but for a random walk.

The state of a joint is x = (q, qd, qdd, qddd), or without q where velocities alone are read. From sample to sample, dt
apart,

    x+ = F x + w,   F = exp(N dt),   w ~ N(0, Q),   Q = j^2 int_0^dt exp(N s) e e' exp(N s)' ds,   y = H x + v

with N the shift, e the axis of the jerk, j how far the jerk walks in a second, and v the noise of what is read.

All joints are computed at once, in units in which the usual dt is 1. Covariances are kept as triangular factors, P =
S'S, and updated by orthogonal transformations, so that they stay positive however little was known before.

Source: Kalman (1960); the jerk as a state as in Mehrotra and Mahapatra (1997); the factors as in Kaminski, Bryson and
Schmidt (1971).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.typing import Booleans, Floats

BEFORE = (1e2, 1e3, 1e5, 1e7)
"""Standard deviations of position, velocity, acceleration and jerk before anything is read, in units of SI."""

SETTLED = 1e-12
"""A covariance has settled where it is within this share of the one that it settles to."""

DERIVATIVES = 4
"""Numbers of a state with its position: position, velocity, acceleration, jerk."""


@dataclass(frozen=True, slots=True, eq=False)
class JointNoise:
    """How restless joints are, and how noisy their encoders.

    Attributes:
        jerk: how far the jerk walks in a second (n,) [rad/s^3/sqrt(s), or m/s^3/sqrt(s)].
        sigma_q: standard deviation of a position that is read (n,) [rad or m]; None where positions are not read.
        sigma_qd: of a velocity (n,) [rad/s or m/s]; None where velocities are not read.

    Example:
        >>> t = 0.01 * np.arange(500)
        >>> read = np.sin(t)[:, None] + np.random.default_rng(0).normal(0.0, 1e-3, (500, 1))
        >>> noise = nd.joint_motion(t, read).noise
        >>> print(np.round(noise.sigma_q, 4), noise.sigma_qd)
        [0.001] None
    """

    jerk: Floats
    sigma_q: Floats | None = None
    sigma_qd: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("jerk", "sigma_q", "sigma_qd"):
            value = getattr(self, name)
            if value is not None and not np.all((value > 0) & (value < np.inf)):
                wrong = float(value[~((value > 0) & (value < np.inf))][0])
                raise InputError(f"{name} is {wrong:g}: it must be positive.")
        if self.sigma_q is None and self.sigma_qd is None:
            raise InputError("nothing is read: positions, velocities, or both are needed, each with its sigma.")

    def __len__(self) -> int:
        return len(self.jerk)


class JointModel:
    """The model of joints in units in which the usual time between samples is 1.

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
        self.read = tuple(k - self.first for k, s in enumerate((noise.sigma_q, noise.sigma_qd)) if s is not None)
        self.sigma = np.stack([s * dt**-self.first for s in sigmas], axis=1)
        self._shares = [1 / factorial(k) for k in range(self.order)]
        self._root = _walk_in_one_step(self.order)

    def F(self, tau: float) -> Floats:
        """Return what takes states on (order, order) over a time, in usual steps."""
        powers = tau ** np.arange(self.order) * self._shares
        return np.array([np.concatenate([np.zeros(k), powers[: self.order - k]]) for k in range(self.order)])

    def walk(self, tau: float) -> Floats:
        """Return the factor of Q (n, order, order), Q = S'S, over a time, in usual steps."""
        powers = np.sqrt(tau) * tau ** np.arange(self.order - 1, -1, -1, dtype=float)
        return np.asarray(self.jerk[:, None, None] * (self._root * powers))

    @property
    def before(self) -> Floats:
        """The factor of the covariance (n, order, order) before anything is read."""
        factor: Floats = np.diag(np.array(BEFORE)[self.first :] / self.units)
        return np.broadcast_to(factor, (self.n_joints, self.order, self.order))

    def predicted(self, S: Floats, tau: float) -> Floats:
        """Return the factor of the covariance after a time, in usual steps."""
        return triangular(np.concatenate([S @ self.F(tau).T, self.walk(tau)], axis=1))

    def updated(self, S: Floats, is_read: Booleans) -> tuple[Floats, Floats, Floats]:
        """Return what readings make of a covariance.

        Args:
            S: its factor (n, order, order).
            is_read: which readings there are (n, p).

        Returns:
            The factor afterwards, the gain (n, order, p), and the factor of what the readings differ by (n, p, p).
        """
        n, p = is_read.shape
        rows = np.zeros((n, p + self.order, p + self.order))
        large = S[:, ::-1]  # rows that may be large come first, so that they drown none that are small
        rows[:, : self.order, :p] = large[:, :, list(self.read)] * is_read[:, None]
        rows[:, : self.order, p:] = large
        rows[:, range(self.order, self.order + p), range(p)] = self.sigma
        R = triangular(rows)
        K = np.linalg.solve(R[:, :p, :p], R[:, :p, p:]).transpose(0, 2, 1)
        return R[:, p:, p:], np.asarray(K), R[:, :p, :p]

    @cached_property
    def settled(self) -> Settled:
        """What the filter settles to where samples follow each other evenly and all is read.

        Source: the doubling of the Riccati equation, Anderson (1978).
        """
        n, order = self.n_joints, self.order
        H = np.eye(order)[list(self.read)]
        A = np.broadcast_to(self.F(1.0).T, (n, order, order))
        G = H.T @ (H / self.sigma[:, :, None] ** 2)
        walk = self.walk(1.0)
        P = walk.transpose(0, 2, 1) @ walk
        for _ in range(64):
            W = np.eye(order) + G @ P
            step = A.transpose(0, 2, 1) @ P @ np.linalg.solve(W, A)
            G = G + A @ np.linalg.solve(W, G) @ A.transpose(0, 2, 1)
            A = A @ np.linalg.solve(W, A)
            P = P + step
            if np.all(np.abs(step) <= 1e-17 * scale_of(P)):
                break
        S = np.asarray(np.linalg.cholesky((P + P.transpose(0, 2, 1)) / 2).transpose(0, 2, 1), dtype=float)
        for _ in range(3):  # rounding of the doubling is forgotten
            S = self.predicted(self.updated(S, np.ones(self.sigma.shape, dtype=bool))[0], 1.0)
        after, K, E = self.updated(S, np.ones(self.sigma.shape, dtype=bool))
        return Settled(S, after, K, E, (np.eye(order) - K @ H) @ self.F(1.0), self.units)


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What a filter settles to.

    Attributes:
        before: the factor of the covariance before the readings (n, order, order).
        after: after them.
        K: the gain (n, order, p).
        E: the factor of the covariance of what readings differ by from what is expected (n, p, p).
        A: what takes a state on (n, order, order):  x+ = A x + K y.
        units: what a number of the state is in SI (order,).
    """

    before: Floats
    after: Floats
    K: Floats
    E: Floats
    A: Floats
    units: Floats

    @property
    def deviations(self) -> Floats:
        """The standard deviations of the state after the readings (n, order), in units of SI."""
        return np.asarray(np.sqrt(np.einsum("nii->ni", square(self.after))) * self.units)

    @property
    def memory(self) -> float:
        """Number of samples after which a state is forgotten to twelve digits."""
        slowest = float(np.abs(np.linalg.eigvals(self.A)).max())
        return float(np.log(SETTLED) / np.log(slowest))


def _walk_in_one_step(order: int) -> Floats:
    """Return the factor of Q (order, order) of a walk of 1 in a time of 1."""
    back = np.arange(order - 1, -1, -1)
    shares = np.array([1 / factorial(k) for k in back.tolist()])
    factor: Floats = np.linalg.cholesky(np.outer(shares, shares) / (np.add.outer(back, back) + 1)).T
    return factor


def triangular(rows: Floats) -> Floats:
    """Return R (n, order, order), upper triangular, of which R'R is that of rows."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def square(S: Floats) -> Floats:
    """Return the covariances (n, order, order) of factors."""
    return S.transpose(0, 2, 1) @ S


def scale_of(P: Floats) -> Floats:
    """Return how large the entries of covariances may be, by their diagonals."""
    deviations = np.sqrt(np.einsum("...ii->...i", P))
    return np.asarray(deviations[..., :, None] * deviations[..., None, :])
