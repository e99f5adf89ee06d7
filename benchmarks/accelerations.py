"""Accelerations from velocities that were read, against those of a simulated Panda.

Run from the repository: `python -m benchmarks.accelerations`, some minutes. Pinocchio integrates the arm at 5 kHz under
computed torques and with Coulomb friction, along sines of up to 1 Hz, from point to point, and so while it is pushed.
Velocities are read with noise, or are differences of rounded positions. A figure is the rms error over the rms
acceleration, the mean of the joints and of the three motions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pinocchio as pin

import nori_dyn as nd
from benchmarks.robots import robot_file
from nori_dyn.live.differentiation import live_derivative
from nori_dyn.logs.motion.differentiation import Differentiate, SavitzkyGolay
from nori_dyn.typing import Floats

STEP, SECONDS = 2e-4, 20.0
WINDOWS = (7, 11, 21, 31, 51, 101)

Reference = Callable[[float], tuple[Floats, Floats, Floats]]


def panda() -> pin.Model:
    """Return the arm, its fingers fixed."""
    whole = pin.buildModelFromUrdf(str(robot_file("panda")))
    fingers = [whole.getJointId(name) for name in whole.names if "finger" in name]
    return pin.buildReducedModel(whole, fingers, pin.neutral(whole))


def references(n: int) -> tuple[Reference, Reference]:
    """Return positions, velocities and accelerations to follow, of sines and from point to point."""
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


def simulated(follow: Reference, is_pushed: bool) -> tuple[Floats, Floats, Floats]:
    """Return positions, velocities and accelerations (N, n) of the arm."""
    arm = panda()
    data, level = arm.createData(), np.array([0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4])
    q, v, tau = follow(0.0)[0], np.zeros(arm.nv), np.zeros(arm.nv)
    forces = pin.StdVec_Force()
    for _ in range(arm.njoints):
        forces.append(pin.Force.Zero())
    found = []
    for k in range(int(SECONDS / STEP)):
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
    """Yield velocities as they may be read."""
    rng = np.random.default_rng(1)
    for sigma in (1e-3, 1e-2):
        yield f"noise of {sigma:g} rad/s", v + rng.normal(0, sigma, v.shape)
    for bits in (19, 16):
        unit = 2 * np.pi / 2**bits
        yield f"encoder of {bits} bits", np.diff(np.round(q / unit) * unit, axis=0, prepend=q[:1]) / dt


def live(qd: Floats, dt: float, differentiate: Differentiate) -> Floats:
    """Return the accelerations (N, n) that a stream is given."""
    derivative = live_derivative(differentiate, qd.shape[1])
    assert derivative is not None
    none = np.full(qd.shape[1], np.nan)
    found = [derivative.add(k * dt, each, dt) for k, each in enumerate(qd)]
    return np.array([none if each is None else each for each in found])


def ways(qd: Floats, dt: float) -> dict[str, Floats]:
    """Return accelerations (N, n) by each way."""
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


def main() -> None:
    """Print the table."""
    sines, moves = references(7)
    motions = [simulated(sines, False), simulated(moves, False), simulated(moves, True)]
    for rate in (1000, 250, 100):
        every = round(1 / (STEP * rate))
        errors: dict[str, dict[str, list[float]]] = {}
        for q, v, a in motions:
            truth = a[::every][rate:-rate]
            for name, qd in read(q[::every], v[::every], 1 / rate):
                for way, qdd in ways(qd, 1 / rate).items():
                    off = np.sqrt(np.mean((qdd[rate:-rate] - truth) ** 2, axis=0) / np.mean(truth**2, axis=0))
                    errors.setdefault(name, {}).setdefault(way, []).append(float(off.mean()))
        for name, by_way in errors.items():
            mean = {way: float(np.mean(each)) for way, each in by_way.items()}
            best = {kind: min(WINDOWS, key=lambda w: mean[f"{kind}{w}"]) for kind in ("", "live ")}
            shown = [
                f"{way} {mean[way]:.3f}" for way in ("smoother", "51", "kalman", "live auto", "live 21", "live 51")
            ]
            shown += [f"best {kind}{w} {mean[f'{kind}{w}']:.3f}" for kind, w in best.items()]
            print(f"{rate} Hz, {name}: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
