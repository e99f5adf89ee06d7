"""The motion of joints from encoders alone: `nd.tools.joint_motion`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import numeric
from nori_dyn.errors import InputError
from nori_dyn.logs.clock import median_step
from nori_dyn.logs.motion.joint_filter import JointNoise, check_positive, even_step, joint_states
from nori_dyn.logs.motion.joint_noise import likeliest, stretches
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class JointMotion:
    """Motion of joints and its standard deviations.

    Attributes:
        t: times (N,) [s].
        q: positions (N, n) [rad or m]; None where none was read.
        qd: velocities (N, n) [rad/s or m/s].
        qdd: accelerations (N, n) [rad/s^2 or m/s^2].
        sigma_q: standard deviation of each position (N, n); None where none was read.
        sigma_qd: of each velocity (N, n).
        sigma_qdd: of each acceleration (N, n).
        noise: the noise that was given, or found.

    Example:
        >>> t = 0.01 * np.arange(500)
        >>> read = np.sin(t)[:, None] + np.random.default_rng(0).normal(0.0, 1e-3, (500, 1))
        >>> motion = nd.tools.joint_motion(t, read)
        >>> motion.qdd.shape, bool(np.all(motion.sigma_q < 1e-3))
        ((500, 1), True)
    """

    t: Floats
    q: Floats | None
    qd: Floats
    qdd: Floats
    sigma_q: Floats | None
    sigma_qd: Floats
    sigma_qdd: Floats
    noise: JointNoise


def joint_motion(
    t: ArrayLike,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    *,
    jerk: ArrayLike | None = None,
    sigma_q: ArrayLike | None = None,
    sigma_qd: ArrayLike | None = None,
    causal: bool = False,
) -> JointMotion:
    """Motion of joints from their encoders: positions, velocities, accelerations, and standard deviations.

    The jerk of each joint is taken to be constant, but for a random walk. A Kalman filter says what the readings so far
    tell (`causal`), a smoother what all of them do. Times may be uneven and readings missing: then the deviations say
    so. What is not given of the noise is that which makes the readings likeliest.

    The coordinates are each for itself: angles that do not jump by a turn, lengths, velocities. A quaternion is none.

    Args:
        t: times (N,) [s], none before the one before.
        q: positions that were read (N, n) [rad or m]; nan where one is missing.
        qd: velocities that were read (N, n) [rad/s or m/s]; nan where one is missing.
        jerk: how far the jerk walks in a second, that of each joint or of all [rad/s^3/sqrt(s) or m/s^3/sqrt(s)].
        sigma_q: standard deviation of a position that is read, of each joint or of all [rad or m].
        sigma_qd: of a velocity [rad/s or m/s].
        causal: whether only readings so far count.

    Raises:
        InputError: nothing is read, arrays that do not fit together, times that go backwards, noise that is not
            positive, or too few readings to find it.

    Source: Kalman (1960); Rauch, Tung and Striebel (1965); the model as in Mehrotra and Mahapatra (1997).

    Example:
        >>> t = 0.01 * np.arange(1000)
        >>> read = np.sin(t)[:, None] + np.random.default_rng(0).normal(0.0, 1e-4, (1000, 1))
        >>> motion = nd.tools.joint_motion(t, read)
        >>> off = motion.qdd + np.sin(t)[:, None]
        >>> print(np.sqrt(np.mean((off / motion.sigma_qdd) ** 2)) < 1.5)
        True
    """
    times = numeric("t", t)
    given = {name: _readings(name, y, times) for name, y in (("q", q), ("qd", qd)) if y is not None}
    if not given:
        raise InputError("nothing is read: give q, qd, or both.")
    if len({y.shape for y in given.values()}) > 1:
        raise InputError(f"q has {given['q'].shape[1]} columns, and qd has {given['qd'].shape[1]}: they must be alike.")
    y = np.stack(list(given.values()), axis=2)
    dt = _usual(times)
    known = {"jerk": jerk, "sigma_q": sigma_q, "sigma_qd": sigma_qd}
    each = {name: None if value is None else _noise(name, value, y.shape[1]) for name, value in known.items()}
    for name, reading in (("sigma_q", "q"), ("sigma_qd", "qd")):
        if each[name] is not None and reading not in given:
            raise InputError(f"{name} is given, and no {reading}: give {reading}, or leave {name} out.")
    sigmas = tuple(each[f"sigma_{name}"] for name in given)
    first = 0 if "q" in given else 1
    if each["jerk"] is None or any(sigma is None for sigma in sigmas):
        noise = likeliest(stretches(times, y, dt), dt, first, each["jerk"], sigmas)
    else:
        noise = JointNoise(each["jerk"], each["sigma_q"], each["sigma_qd"])
    x, sigma = (np.moveaxis(value, 2, 0) for value in joint_states(noise, times, y, dt, smooth=not causal))
    q_and_sigma = (None, None) if first else (x[0], sigma[0])
    return JointMotion(
        times, q_and_sigma[0], x[1 - first], x[2 - first], q_and_sigma[1], sigma[1 - first], sigma[2 - first], noise
    )


def _readings(name: str, value: ArrayLike, t: Floats) -> Floats:
    """Readings (N, n), checked."""
    y = numeric(name, value)
    if y.ndim != 2 or t.ndim != 1 or len(y) != len(t):
        raise InputError(f"{name} must be (N, n), a row for each of the times (N,): it is {y.shape}, and t {t.shape}.")
    if np.isinf(y).any():
        raise InputError(
            f"{name} is infinite at sample {int(np.argwhere(np.isinf(y))[0, 0])}: nan where one is missing."
        )
    lacking = np.flatnonzero(~np.isfinite(y).any(axis=0))
    if len(lacking):
        raise InputError(f"column {int(lacking[0])} of {name} has no reading at all: leave that joint out.")
    return y


def _usual(t: Floats) -> float:
    """Nominal time between samples at checked times."""
    if not np.isfinite(t).all():
        raise InputError(f"t is not a number at sample {int(np.flatnonzero(~np.isfinite(t))[0])}.")
    back = np.flatnonzero(np.diff(t) < 0)
    if len(back):
        k = int(back[0]) + 1
        raise InputError(
            f"time goes backwards: t is {t[k]:g} s at sample {k}, after {t[k - 1]:g} s. Sort the samples, or leave out "
            "those that came late."
        )
    dt = median_step(t)
    if not np.isfinite(dt):
        raise InputError(f"{len(t)} samples share one time: at least two times are needed.")
    return even_step(t, dt)


def _noise(name: str, value: ArrayLike, n: int) -> Floats:
    """Noise of each joint (n,)."""
    found = numeric(name, value)
    if found.ndim > 1 or (found.ndim == 1 and len(found) != n):
        raise InputError(f"{name} must be one number, or one for each of {n} joints: it is {found.shape}.")
    check_positive(name, np.atleast_1d(found))
    return np.broadcast_to(found, (n,)).copy()
