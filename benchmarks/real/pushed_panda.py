"""A Panda in simulation that is pushed at its hand while it moves: the torques from outside are known.

It follows sums of sines by its dynamics and a spring and a damper a joint, so that a push moves it; or it is held to
them whatever pushes. The wrench at the hand has steps and what is smooth. Torques, positions and velocities are read
with noise, at 1 kHz. So an estimate of the torques from outside has an error and a delay: `python -m
benchmarks.real.pushed_panda` prints those of the peers and of the filter over their tuning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import nori_dyn as nd
from benchmarks.real.arm_filter import FilterNoise, by_filter
from benchmarks.real.peers import by_differences, delay, momentum_observer, outside, rms
from benchmarks.real.signals import derivative, lagging
from nori_dyn.tables import Document, Table
from nori_dyn.typing import Floats

RATE = 1000.0
"""Samples a second."""

HAND = "panda_hand"
LOCKED = ("panda_finger_joint1", "panda_finger_joint2")

STIFFNESS = np.array([600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0])
"""Of the joints [N m/rad]: about what a Panda has by default."""

DAMPING = np.array([30.0, 30.0, 30.0, 30.0, 10.0, 8.0, 4.0])
"""Of the joints [N m s/rad]."""

BEGINNING = 500
"""Samples that estimators are given to begin in."""

TUNINGS = (5.0, 10.0, 15.0, 25.0, 40.0, 60.0, 100.0, 150.0, 250.0)
"""Bandwidths [1/s] at which the peers are tried."""

WALKS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
"""Walks [N m] that the filter is told."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations of what is read.

    Attributes:
        q: of positions [rad].
        qd: of velocities [rad/s].
        tau: of torques [N m].
    """

    q: float = 4e-6
    qd: float = 1e-3
    tau: float = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Push:
    """What is read of a Panda that is pushed, and what is true.

    Attributes:
        tree: the robot.
        t: times (n,) [s].
        q: positions that are read (n, 7) [rad].
        qd: velocities that are read [rad/s].
        tau: torques that are read [N m].
        outside: the torques that act from outside on each joint [N m].
        wrench: the wrench on the hand (n, 6), moment first, in its own axes [N m, N].
        motion: the true q, qd, qdd, each (n, 7).
    """

    tree: nd.KinematicTree
    t: Floats
    q: Floats
    qd: Floats
    tau: Floats
    outside: Floats
    wrench: Floats
    motion: tuple[Floats, Floats, Floats]


def pushed(seed: int = 0, seconds: float = 10.0, noise: Noise | None = None, is_held: bool = False) -> Push:
    """What is read of a Panda that moves and is pushed at its hand.

    Args:
        seed: of the motion, of the pushes and of the noise.
        seconds: how long it goes.
        noise: of what is read; about that of a real Panda when None.
        is_held: whether it is held to its path, whatever pushes.
    """
    noise = noise or Noise()
    rng = np.random.default_rng(seed)
    tree = nd.load_robot("panda", locked=LOCKED)
    t = np.arange(int(seconds * RATE)) / RATE
    path = _motion(t, tree, rng)
    wrench = _wrench(t, rng)
    if is_held:
        q, qd, qdd = path
        acting = np.einsum("ijn,ni->nj", nd.jacobian(tree, q.T, HAND), wrench)
        tau = nd.rnea(tree, q.T, qd.T, qdd.T).T - acting
    else:
        q, qd, qdd, tau, acting = _followed(tree, path, wrench)
    read = (x + rng.normal(0.0, s, x.shape) for x, s in ((q, noise.q), (qd, noise.qd), (tau, noise.tau)))
    return Push(tree, t, *read, acting, wrench, (q, qd, qdd))


def _motion(t: Floats, tree: nd.KinematicTree, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """A smooth motion about the usual posture of the arm."""
    w = 2 * np.pi * rng.uniform(0.05, 0.5, (4, tree.nv))
    phase = rng.uniform(0, 2 * np.pi, (4, tree.nv))
    a = rng.uniform(0.3, 1.0, (4, tree.nv)) * 0.1 / w
    at = np.multiply.outer(t, w) + phase
    rest = np.array([0.0, -0.5, 0.0, -2.1, 0.0, 1.6, 0.8])
    q = rest + np.sum(a * np.sin(at), axis=1)
    return q, np.sum(a * w * np.cos(at), axis=1), -np.sum(a * w**2 * np.sin(at), axis=1)


def _followed(tree: nd.KinematicTree, path: tuple[Floats, Floats, Floats], wrench: Floats) -> tuple[Floats, ...]:
    """q, qd, qdd, the torques of the joints and those from outside (n, 7 each), of an arm that follows a path.

    Torques are held over a sample; between samples by Runge and Kutta's method of fourth order.
    """
    aba, jacobian = nd.compile(nd.aba, tree), nd.compile(partial(nd.jacobian, frame=HAND), tree)
    planned = nd.rnea(tree, *(x.T for x in path)).T
    found = tuple(np.empty_like(path[0]) for _ in range(5))
    q, qd, h = path[0][0], path[1][0], 1 / RATE
    for k, w in enumerate(wrench):
        acting = jacobian(q).T @ w
        tau = planned[k] + STIFFNESS * (path[0][k] - q) + DAMPING * (path[1][k] - qd)
        total = tau + acting
        first = aba(q, qd, total)
        for whole, now in zip(found, (q, qd, first, tau, acting), strict=True):
            whole[k] = now
        second = aba(q + h / 2 * qd, qd + h / 2 * first, total)
        third = aba(q + h / 2 * qd + h**2 / 4 * first, qd + h / 2 * second, total)
        last = aba(q + h * qd + h**2 / 2 * second, qd + h * third, total)
        q = q + h * qd + h**2 / 6 * (first + second + third)
        qd = qd + h / 6 * (first + 2 * second + 2 * third + last)
    return found


def _wrench(t: Floats, rng: np.random.Generator) -> Floats:
    """A wrench on the hand (n, 6): steps, one after the other, in its first half; then smooth pushes."""
    size = np.array([2.0, 2.0, 2.0, 20.0, 20.0, 20.0])
    each = 0.5
    steps = rng.uniform(-1, 1, (int(t[-1] / each) + 1, 6)) * size
    steps[::2] = 0.0
    w, phase = 2 * np.pi * rng.uniform(0.1, 1.5, (3, 6)), rng.uniform(0, 2 * np.pi, (3, 6))
    smooth = size * np.mean(np.sin(np.multiply.outer(t, w) + phase), axis=1)
    return np.where((t < t[-1] / 2)[:, None], steps[(t / each).astype(int)], smooth)


@dataclass(frozen=True, slots=True)
class Score:
    """How good an estimate of the torques from outside is.

    Attributes:
        name: of what estimates.
        tuning: its number: a bandwidth [1/s], or a window in samples.
        error: the root mean square of what it is off, over all joints [N m].
        delay: how late it is [s].
    """

    name: str
    tuning: float
    error: float
    delay: float


def score(name: str, tuning: float, push: Push, estimate: Floats) -> Score:
    """How good an estimate (n, 7) is; nan where it says nothing yet."""
    at = slice(BEGINNING, None)
    off = rms(estimate[at] - push.outside[at])
    return Score(name, tuning, float(np.sqrt(np.mean(off**2))), delay(estimate[at], push.outside[at], RATE))


def peers(push: Push) -> Iterator[Score]:
    """Yield how good the peers are, over their tuning, and the joints' own Kalman filter beside them."""
    tree, q, qd, tau = push.tree, push.q, push.qd, push.tau
    for gain in TUNINGS:
        yield score("momentum observer", gain, push, momentum_observer(tree, q, qd, tau, RATE, gain))
    for bandwidth in TUNINGS:
        yield score("differences, low-passed", bandwidth, push, by_differences(tree, q, qd, tau, RATE, bandwidth))
    motion = nd.tools.joint_motion(push.t, q, qd, causal=True)
    filtered = outside(tree, q, qd, motion.qdd, tau)
    yield score("joint filter", np.nan, push, filtered)
    for bandwidth in TUNINGS:
        yield score("joint filter, low-passed", bandwidth, push, lagging(filtered, RATE, bandwidth))
    for window in (21, 51, 101, 201):
        estimate = outside(tree, q, qd, derivative(qd, RATE, window), tau)
        yield score("Savitzky-Golay, ahead", window, push, estimate)
    smooth = nd.tools.joint_motion(push.t, q, qd)
    yield score("joint smoother, ahead", np.nan, push, outside(tree, q, qd, smooth.qdd, tau))


def filters(push: Push, walks: tuple[float, ...] = WALKS) -> Iterator[Score]:
    """Yield how good the filter is, over the walk that it is told, with the true noise of what is read."""
    for walk in walks:
        found = by_filter(push.tree, push.t, push.q, push.qd, push.tau, FilterNoise(Noise().qd, Noise().tau, walk))
        yield score("filter", walk, push, found.torques)


def best(scores: Iterator[Score]) -> dict[str, Score]:
    """The tuning of least error of each estimator."""
    found: dict[str, Score] = {}
    for each in scores:
        if each.name not in found or each.error < found[each.name].error:
            found[each.name] = each
    return found


def main() -> None:
    """Print error and delay of the peers and of the filter, over their tuning."""
    columns = ("estimator", "tuning", "error [N m]", "delay [ms]")
    for title, is_held in (("A Panda that is pushed", False), ("A Panda that is held to its path", True)):
        push = pushed(is_held=is_held)
        found = [*peers(push), *filters(push)]
        rows = tuple((s.name, s.tuning, s.error, 1e3 * s.delay) for s in found)
        print(Document((Table(title, columns, rows),)).text(120))


if __name__ == "__main__":
    main()
