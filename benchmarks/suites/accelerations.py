"""Accelerations from velocities that were read, against those of a simulated Panda.

Pinocchio integrates the arm at 5 kHz under computed torques and with Coulomb friction, along sines of up to 1 Hz, from
point to point, and so while it is pushed. Velocities are read with noise, or are differences of rounded positions. A
figure is the rms error over the rms acceleration, the mean of the joints and of the three motions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, figure_tables
from benchmarks.robots import robot_file
from benchmarks.suites.base import Options, Suite
from nori_dyn.errors import MissingExtraError
from nori_dyn.live.differentiation import live_derivative
from nori_dyn.logs.motion.differentiation import Differentiate, SavitzkyGolay
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

STEP = 2e-4
RATES = (1000, 250, 100)
WINDOWS = (7, 11, 21, 31, 51, 101)
WAYS = ("smoother", "51", "kalman", "live auto", "live 21", "live 51")
"""The ways that are shown, beside the best windows of all."""

Reference: TypeAlias = Callable[[float], tuple[Floats, Floats, Floats]]
"""Positions, velocities and accelerations to follow at a time."""


def panda() -> Any:
    """The arm, its fingers fixed."""
    pin = import_module("pinocchio")
    whole = pin.buildModelFromUrdf(str(robot_file("panda")))
    fingers = [whole.getJointId(name) for name in whole.names if "finger" in name]
    return pin.buildReducedModel(whole, fingers, pin.neutral(whole))


def references(n: int) -> tuple[Reference, Reference]:
    """Sines, and moves from point to point."""
    rng, middle = np.random.default_rng(0), np.array([0, -0.5, 0, -2, 0, 1.6, 0.7])
    points = middle + np.vstack([np.zeros(n), rng.uniform(-0.6, 0.6, (20, n))])
    w = 2 * np.pi * 0.1 * np.arange(1, 11)[:, None]
    size, phase = rng.normal(size=(10, n)) / (4 * w), rng.uniform(0, 2 * np.pi, (10, n))

    def sines(t: float) -> tuple[Floats, Floats, Floats]:
        at, fade = w * t + phase, np.exp(-t) * (size * np.sin(phase)).sum(axis=0)  # it begins where the arm is
        q = middle + (size * np.sin(at)).sum(axis=0) - fade
        return q, (size * w * np.cos(at)).sum(axis=0) + fade, -(size * w**2 * np.sin(at)).sum(axis=0) - fade

    def moves(t: float) -> tuple[Floats, Floats, Floats]:
        k = int(t // 1.5)
        s, way = min(t - 1.5 * k, 1.0), points[k + 1] - points[k]
        q = points[k] + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        return q, way * (30 * s**2 - 60 * s**3 + 30 * s**4), way * (60 * s - 180 * s**2 + 120 * s**3)

    return sines, moves


def simulated(follow: Reference, is_pushed: bool, seconds: float) -> tuple[Floats, Floats, Floats]:
    """Positions, velocities and accelerations (N, n) of the arm."""
    pin, arm = import_module("pinocchio"), panda()
    data, level = arm.createData(), np.array([0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4])
    q, v, tau = follow(0.0)[0], np.zeros(arm.nv), np.zeros(arm.nv)
    forces = pin.StdVec_Force()
    for _ in range(arm.njoints):
        forces.append(pin.Force.Zero())
    found = []
    for k in range(int(seconds / STEP)):
        t = k * STEP
        if k % 5 == 0:
            q_ref, v_ref, a_ref = follow(t)
            tau = pin.rnea(arm, data, q, v, a_ref + 400 * (q_ref - q) + 40 * (v_ref - v)).copy()
        push = np.array([25.0, -15, 10]) * (is_pushed and 2.0 < t % 5 < 2.4)
        forces[arm.njoints - 1] = pin.Force(push, np.zeros(3))
        a = pin.aba(arm, data, q, v, tau - level * np.tanh(v / 0.02), forces).copy()
        found.append((q, v, a))
        v = v + STEP * a
        q = q + STEP * v
    q, v, a = (np.array(each) for each in zip(*found, strict=True))
    return q, v, a


def read(q: Floats, v: Floats, dt: float) -> Iterator[tuple[str, Floats]]:
    """Velocities as they may be read."""
    rng = np.random.default_rng(1)
    for sigma in (1e-3, 1e-2):
        yield f"noise of {sigma:g} rad/s", v + rng.normal(0, sigma, v.shape)
    for bits in (19, 16):
        unit = 2 * np.pi / 2**bits
        yield f"encoder of {bits} bits", np.diff(np.round(q / unit) * unit, axis=0, prepend=q[:1]) / dt


def live(qd: Floats, dt: float, differentiate: Differentiate) -> Floats:
    """Accelerations (N, n) that a stream is given."""
    derivative = live_derivative(differentiate, qd.shape[1])
    assert derivative is not None
    none = np.full(qd.shape[1], np.nan)
    found = [derivative.add(k * dt, each, dt) for k, each in enumerate(qd)]
    return np.array([none if each is None else each for each in found])


def ways(qd: Floats, dt: float) -> dict[str, Floats]:
    """Accelerations (N, n) by each way."""
    t = dt * np.arange(len(qd))
    found = {
        "smoother": nd.tools.joint_motion(t, None, qd).qdd,
        "kalman": nd.tools.joint_motion(t, None, qd, causal=True).qdd,
    }
    found["live auto"] = live(qd, dt, "auto")
    for window in WINDOWS:
        found[f"{window}"] = SavitzkyGolay(window).apply(qd, dt)
        found[f"live {window}"] = live(qd, dt, window)
    return found


def measure(options: Options, progress: Progress) -> list[Result]:
    if find_spec("pinocchio") is None:
        return [Result({}, skipped={"accelerations": "pin is not installed"})]
    seconds, rates = (4.0, RATES[:1]) if options.quick else (20.0, RATES)
    try:
        sines, moves = references(7)
        motions = [simulated(follow, pushed, seconds) for follow, pushed in ((sines, 0), (moves, 0), (moves, 1))]
    except MissingExtraError as error:
        return [Result({}, skipped={"robot panda": str(error)})]
    return [result for rate in rates for result in _at(rate, motions, progress)]


def _at(rate: int, motions: Sequence[tuple[Floats, Floats, Floats]], progress: Progress) -> Iterator[Result]:
    """What comes of velocities at a rate [Hz]."""
    every = round(1 / (STEP * rate))
    errors: dict[str, dict[str, list[float]]] = {}
    for q, v, a in motions:
        truth = a[::every][rate:-rate]
        for name, qd in read(q[::every], v[::every], 1 / rate):
            progress(f"accelerations, {rate} Hz, {name}")
            for way, qdd in ways(qd, 1 / rate).items():
                off = np.sqrt(np.mean((qdd[rate:-rate] - truth) ** 2, axis=0) / np.mean(truth**2, axis=0))
                errors.setdefault(name, {}).setdefault(way, []).append(float(off.mean()))
    for name, by_way in errors.items():
        mean = {way: float(np.mean(each)) for way, each in by_way.items()}
        figures = {way: mean[way] for way in WAYS}
        for kind in ("", "live "):
            best = min(WINDOWS, key=lambda w: mean[f"{kind}{w}"])
            figures |= {f"best {kind}window": best, f"best {kind}".strip(): mean[f"{kind}{best}"]}
        yield Result({"read": f"{rate} Hz, {name}"}, figures=figures)


SUITE = Suite(
    "accelerations",
    "Errors of accelerations made of velocities, over their rms",
    measure,
    tables=figure_tables,
)
