"""The Kalman filter and the smoother of joints, over samples evenly spaced or not, all joints at once.

Where samples follow each other evenly the gain settles; from then on it is kept, and the rest is a linear recursion.
"""

from __future__ import annotations

import numpy as np

from nori_dyn.filtering.square_root import SquareRootInformation
from nori_dyn.logs.motion.joint_model import (
    SETTLED,
    JointModel,
    JointNoise,
    covariance,
    deviations,
    linear_recursion,
    smooth_step,
    state_of,
)
from nori_dyn.typing import Floats

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
