"""Torques from outside, as others estimate them: what a filter has to be held against.

Three ways, all of a robot's q, qd and the torques of its joints, that know no noise and have one number to tune:
inverse dynamics with accelerations by Savitzky and Golay, which looks ahead; with causal differences, low-passed; and
the observer of the generalised momentum p = M(q) qd,

    r = K (p - p(0) - int (tau + C' qd - g + r) dt),

which is what acts from outside, low-passed at K.

Source: De Luca and Mattone (2005); De Luca, Albu-Schaeffer, Haddadin and Hirzinger (2006), (9).
"""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate

import nori_dyn as nd
from benchmarks.real.signals import lagging
from nori_dyn.typing import Floats


def outside(tree: nd.KinematicTree, q: Floats, qd: Floats, qdd: Floats, tau: Floats) -> Floats:
    """The torques that act from outside (n, nv), by inverse dynamics: rnea(q, qd, qdd) - tau."""
    return nd.rnea(tree, q.T, qd.T, qdd.T).T - tau


def backward_difference(x: Floats, rate: float) -> Floats:
    """The derivative of signals (n, ...) of the sample and the one before; zero at the first."""
    return np.diff(x, axis=0, prepend=x[:1]) * rate


def by_differences(tree: nd.KinematicTree, q: Floats, qd: Floats, tau: Floats, rate: float, bandwidth: float) -> Floats:
    """The torques from outside (n, nv), by backward differences, low-passed at some bandwidth [1/s]."""
    return lagging(outside(tree, q, qd, backward_difference(qd, rate), tau), rate, bandwidth)


def momentum_observer(
    tree: nd.KinematicTree, q: Floats, qd: Floats, tau: Floats, rate: float, gain: float, explicit: bool = False
) -> Floats:
    """The torques from outside (n, nv), by the observer of the momentum.

    What drives the momentum is integrated by trapezoids, and r exactly; or both as they are usually, by explicit steps
    of Euler, which say about as much, half a sample later.

    Args:
        tree: the robot.
        q: configurations (n, nq).
        qd: velocities (n, nv).
        tau: torques of the joints (n, nv).
        rate: samples a second.
        gain: K [1/s].
        explicit: whether by explicit steps.
    """
    M, Mdot, C = nd.coriolis(tree, q.T, qd.T)
    p, rest = np.einsum("ijn,nj->ni", M, qd), np.zeros_like(qd.T)
    driven = tau + np.einsum("ijn,nj->ni", Mdot - C, qd) - nd.rnea(tree, q.T, rest, rest).T
    r = np.zeros_like(p)
    if explicit:
        integral = driven[0] / rate
        for k in range(1, len(p)):
            integral = integral + (driven[k] + r[k - 1]) / rate
            r[k] = gain * (p[k] - p[0] - integral)
        return r
    pushed = np.diff(p, axis=0) * rate - (driven[1:] + driven[:-1]) / 2
    pole = np.exp(-gain / rate)
    for k in range(1, len(p)):
        r[k] = pole * r[k - 1] + (1 - pole) * pushed[k - 1]
    return r


def correlations(a: Floats, b: Floats) -> Floats:
    """The correlation over time of each column (m,) of signals (n, m)."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    return np.asarray(np.sum(a * b, axis=0) / np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0)))


def rms(x: Floats) -> Floats:
    """The root mean square over time of each column (m,) of signals (n, m)."""
    return np.asarray(np.sqrt(np.mean(x**2, axis=0)))


def delay(estimate: Floats, truth: Floats, rate: float, most: float = 0.5) -> float:
    """How late an estimate is [s]: the shift by which it correlates best with the truth, all columns alike.

    Args:
        estimate: signals (n, m).
        truth: the same (n, m).
        rate: samples a second.
        most: the longest delay that is looked for [s].
    """
    n, lags = len(truth), int(most * rate)
    size = rms(truth - truth.mean(axis=0))
    told = size > 0
    a, b = ((x - x.mean(axis=0))[:, told] / size[told] for x in (estimate, truth))
    found = sum(correlate(x, y, mode="full")[n - 1 - lags : n + lags] for x, y in zip(a.T, b.T, strict=True))
    k = int(np.argmax(found))
    if not 0 < k < 2 * lags:
        return (k - lags) / rate
    before, at, after = found[k - 1 : k + 2]
    return float((k - lags + (before - after) / (2 * (before - 2 * at + after))) / rate)
