"""Filters: the time of a tick, beside textbook Kalman filters of the same size in NumPy and in C.

python -m benchmarks.filtering [--rounds 11] [--data ../shared/data] [--only contacts]

Ours is the whole tick: from q, qd and readings to the outputs, dynamics included. Others are given the rows of the tick
for nothing, with what is no memory eliminated: they predict and update mean and covariance of the memory, in covariance
form, with dense matrices. All run in one thread, in turns, and times are of the processor.

Then the tick of a window of eight ticks on a quadruped, beside that of its filter; and samples of a Panda's log by a
filter and by a smoother, with all standard deviations, where the log is.

Filters that recognise contacts run over recorded walks, each tick timed by itself, beside the same in NumPy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path

import cffi
import numpy as np
import scipy.linalg as la
from threadpoolctl import threadpool_limits

import nori_dyn as nd
from benchmarks.machine import machine
from benchmarks.real.recording import beside
from nori_dyn.bench import quartiles
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.program.compiler import find_compiler, load_library
from nori_dyn.typing import Floats
from tests.observers import observer
from tests.recognising import Recogniser, recogniser_of
from tests.unit.filtering.test_contacts import DT, STATES, TOUCH, readings, sensors
from tests.walking import LEGS, walk

FINGERS = "panda_finger_joint1", "panda_finger_joint2"

KALMAN = """
#include <math.h>
/* x+ = F x, P+ = F P F' + Q; then measurements z = H x + noise of unit variance. */
static double A[K * K], S[M * M], G[M * K], e[M];
void kalman(const double *restrict F, const double *restrict Q, const double *restrict H, const double *restrict z,
            double *restrict x, double *restrict P) {
    double y[K];
    for (int i = 0; i < K; ++i) { y[i] = 0; for (int j = 0; j < K; ++j) y[i] += F[i * K + j] * x[j]; }
    for (int i = 0; i < K; ++i) {
        for (int j = 0; j < K; ++j) A[i * K + j] = 0;
        for (int l = 0; l < K; ++l) for (int j = 0; j < K; ++j) A[i * K + j] += F[i * K + l] * P[l * K + j];
    }
    for (int i = 0; i < K; ++i)
        for (int j = 0; j < K; ++j) {
            double sum = i == j ? Q[i] : 0;
            for (int l = 0; l < K; ++l) sum += A[i * K + l] * F[j * K + l];
            P[i * K + j] = sum;
        }
    for (int i = 0; i < M; ++i) {
        for (int j = 0; j < K; ++j) G[i * K + j] = 0;
        for (int l = 0; l < K; ++l) for (int j = 0; j < K; ++j) G[i * K + j] += H[i * K + l] * P[l * K + j];
        e[i] = z[i];
        for (int l = 0; l < K; ++l) e[i] -= H[i * K + l] * y[l];
    }
    for (int i = 0; i < M; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = i == j;
            for (int l = 0; l < K; ++l) sum += G[i * K + l] * H[j * K + l];
            S[i * M + j] = sum;
        }
    for (int j = 0; j < M; ++j) { /* S = L L', G := L^-1 G, e := L^-1 e */
        for (int l = 0; l < j; ++l) S[j * M + j] -= S[j * M + l] * S[j * M + l];
        const double pivot = sqrt(S[j * M + j]), inverse = 1 / pivot;
        S[j * M + j] = pivot;
        for (int i = j + 1; i < M; ++i) {
            for (int l = 0; l < j; ++l) S[i * M + j] -= S[i * M + l] * S[j * M + l];
            S[i * M + j] *= inverse;
        }
        for (int l = 0; l < j; ++l) {
            for (int c = 0; c < K; ++c) G[j * K + c] -= S[j * M + l] * G[l * K + c];
            e[j] -= S[j * M + l] * e[l];
        }
        for (int c = 0; c < K; ++c) G[j * K + c] *= inverse;
        e[j] *= inverse;
    }
    for (int i = 0; i < K; ++i) { x[i] = y[i]; for (int l = 0; l < M; ++l) x[i] += G[l * K + i] * e[l]; }
    for (int l = 0; l < M; ++l)
        for (int i = 0; i < K; ++i) for (int j = 0; j < K; ++j) P[i * K + j] -= G[l * K + i] * G[l * K + j];
}
"""
"""The Kalman filter of textbooks, with dense matrices of fixed size."""


def panda() -> nd.Tracker:
    """Return the observer of the external torques of a Panda."""
    tree = nd.load_robot("panda", locked=FINGERS)
    return nd.Tracker(nd.plan(nd.System(tree, "momentum_observer"), outputs=["offset"]), dt=0.001)


def icub() -> nd.Tracker:
    """Return the filter of an iCub that learns the offsets of its force-torque sensors while its hands are pushed."""
    tree = nd.load_robot("icub", base="floating", kept="sensors")
    own = nd.tools.sensors_from_model("icub", tree)
    read = [sensor.model_dump(by_alias=True) for sensor in own.measurements if sensor.type == "force_torque"]
    base = {"except": "actuated"}
    touched = ["l_sole", "r_sole", "l_hand", "r_hand"]
    push = {"walk": 5.0, "time_constant": 1.0, "sigma": 20}
    content = {
        "name": "icub_over_time",
        "measurements": [
            *({**sensor, "sigma": 0.5, "offset": {"sigma": 50}} for sensor in read),
            {"type": "joint_acceleration", "joints": "actuated"},
            {"type": "accelerometer", "links": base, "sigma": 0.05},
            {"type": "angular_accelerometer", "links": base, "sigma": 0.05},
            {"type": "joint_torque", "joints": base, "value": 0},
            {"type": "external_wrench", "links": {"except": touched}, "value": 0},
        ],
        "memory": {
            "offsets": {"of": "offset", "walk": 0.01},
            "left": {"of": "fx:l_hand", **push},
            "right": {"of": "fx:r_hand", **push},
        },
    }
    system = nd.System(tree, nd.SensorSet.from_dict(content))
    return nd.Tracker(nd.plan(system, outputs=["tau", "fx:l_sole", "fx:r_sole"]), dt=0.01)


def peers(one: nd.Tracker, q: Floats) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a tick of the textbook's filter in NumPy, and in C, for the rows of a filter at a configuration (nq,)."""
    tick = TickPrograms(next(iter(one.plans.values())))
    n_s, n_v, n_f = tick.sizes
    k, system = n_v + n_f, tick.system
    said = tick.said(q, np.zeros(system.tree.nv), np.zeros(system.ny))
    rows = np.sqrt(system.weights[tick.coordinates.weight_of_rows])[:, None] * np.column_stack([said.A, said.c])
    left = la.null_space(rows[:, :n_s].T).T @ rows if n_s else rows
    H, z = np.ascontiguousarray(left[:, n_s:-1]), np.ascontiguousarray(-left[:, -1])
    given, *_ = np.linalg.lstsq(rows[:, :n_s], -rows[:, n_s:-1], rcond=None) if n_s else (np.zeros((0, k)),)
    F = np.diag(tick.decay(one.dt))
    F[:n_v] += one.dt * (said.X[:, n_s:] + said.X[:, :n_s] @ given)
    Q, m = tick.gained(one.dt), len(H)
    x, P = np.zeros(k), np.eye(k)

    def in_numpy() -> None:
        nonlocal x, P
        x, P = F @ x, F @ P @ F.T + np.diag(Q)
        G = H @ P
        gain = la.cho_solve(la.cho_factor(G @ H.T + np.eye(m)), G).T
        x, P = x + gain @ (z - H @ x), P - gain @ G

    ffi = cffi.FFI()
    ffi.cdef("void kalman(double *, double *, double *, double *, double *, double *);")
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit("this needs a C compiler: install gcc or clang.")
    library = load_library(ffi, f"#define K {k}\n#define M {m}\n{KALMAN}", compiler)
    arrays = [F, Q, H, z, np.zeros(k), np.eye(k)]
    at = [ffi.cast("double *", array.ctypes.data) for array in arrays]

    def in_c(kept: object = arrays) -> None:
        library.kalman(*at)

    for _ in range(50):
        in_numpy()
        in_c()
    if not np.allclose(P, arrays[-1], rtol=1e-6, atol=1e-9 * np.abs(P).max()):
        raise SystemExit("the two peers do not agree.")
    return in_numpy, in_c


def windows() -> Iterator[tuple[str, nd.Tracker, nd.Tracker]]:
    """Yield robots, each with its filter and a window of eight ticks, at a state."""
    arm, quadruped = panda(), observer("quadruped")
    for name, plans, dt, state in (
        ("Panda, external torques", next(iter(arm.plans.values())), arm.dt, ()),
        ("quadruped, four feet", quadruped.plans, quadruped.dt, quadruped.states[0]),
    ):
        both = nd.Tracker(plans, dt), nd.Tracker(plans, dt, lag=8)
        for one in both:
            one.switch(state)
            one.inputs.q[:] = next(iter(one.plans.values())).system.tree.random_configuration(0)
            for _ in range(20):
                one.tick()
        yield name, *both


def logged(data: Path) -> tuple[nd.Tracker, tuple[Floats, Floats, Floats, Floats]] | None:
    """Return the observer of a Panda and the times, states and readings of its log; None where there is no log."""
    path = data / "panda_log" / "beam_z_15cm_1khz.csv.gz"
    if not path.exists():
        return None
    of, log = panda(), nd.read_log(path, beside("panda_log.log.yaml"))
    found = nd.smooth(log, next(iter(of.plans.values())), dt=of.dt, causal=True)
    samples = found.samples
    return of, (found.t, samples.q, samples.qd, samples.y)


def told(name: str, ways: Mapping[str, Callable[[], object]], rounds: int, calls: int = 1) -> None:
    """Print the times of some ways, which run in turns, and how they compare with the first.

    Args:
        name: what they do.
        ways: the ways by name.
        rounds: how often each is timed.
        calls: how much each does in a call.
    """
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            found[way].append(per_call(run) / calls)
    first = np.array(found[next(iter(ways))])
    print(f"\n{name}")
    for way, times in found.items():
        low, middle, high = quartiles(times)
        ratio = quartiles(np.array(times) / first)
        print(f"  {way:16} {middle:8.2f} us ({low:.2f} to {high:.2f}), {ratio[1]:.1f} times the first")


def per_call(run: Callable[[], object], seconds: float = 0.05) -> float:
    """Return the processor's time of a call [us]."""
    n = 1
    while True:
        start = time.process_time()
        for _ in range(n):
            run()
        spent = time.process_time() - start
        if spent > seconds:
            return 1e6 * spent / n
        n *= 2


WALKERS = {"biped": STATES["biped"], "quadruped": [state for n in range(5) for state in combinations(LEGS, n)]}
"""The contact states of robots that walk."""

WALKED = {"biped": range(800, 1200), "quadruped": range(300, 700)}
"""The ticks of the records that are timed: feet are lifted or put down in them."""


def walked(of: Recogniser, name: str) -> Floats:
    """Return the time of each tick of a walk [us]."""
    record = walk(name)
    qd, y = readings(record, np.zeros((2, 6)) if name == "biped" else None)
    of.reset()
    times = []
    for k in WALKED[name]:
        of.inputs.q[:], of.inputs.qd[:], of.inputs.y[:] = record.q[k], qd[k], y[k]
        start = time.perf_counter()
        of.tick()
        times.append(1e6 * (time.perf_counter() - start))
    return np.array(times)


def print_contacts(rounds: int) -> None:
    """Print the times of filters that recognise contacts."""
    for name, states in WALKERS.items():
        ways = {
            backend: recogniser_of(
                walk(name).tree, sensors(name), states, DT, ["fx"], acceleration=TOUCH, backend=backend
            )
            for backend in ("native", "numpy")
        }
        found = {way: np.min([walked(of, name) for _ in range(rounds)], axis=0) for way, of in ways.items()}
        ours = ways["native"]
        n_memory = len(ours.memory_names)
        n_others = len(ours.free_names) - n_memory
        print(f"\n{name}, {len(states)} contact states: {n_memory} numbers persist, {n_others} more are free")
        for way, times in found.items():
            low, middle, high = quartiles(times)
            least, most = np.percentile(times, [5, 95])
            print(f"  {way:8} {middle:8.1f} us ({low:.1f} to {high:.1f}; {least:.1f} to {most:.1f} of nine in ten)")


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="how often each is timed")
    parser.add_argument("--only", choices=["contacts"], help="what to time; all when it is not given")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the logs")
    given = parser.parse_args()
    print(machine())
    with threadpool_limits(1):
        if given.only is None:
            print_filters(given.rounds, given.data)
        print_contacts(min(given.rounds, 3))


def print_filters(rounds: int, data: Path) -> None:
    """Print the times of filters of which the contacts are told, of windows, and of samples of a log."""
    for name, make in {"Panda, external torques": panda, "iCub, offsets and pushes": icub}.items():
        one = make()
        q = next(iter(one.plans.values())).system.tree.random_configuration(0)
        one.inputs.q[:] = q
        ways = {"ours, all of it": one.tick, **dict(zip(("NumPy", "C"), peers(one, q), strict=True))}
        n_memory = len(one.memory_names)
        n_others = len(one.free_names) - n_memory
        told(f"{name}: {n_memory} numbers persist, {n_others} more are free", ways, rounds)
    for name, filter_, window in windows():
        told(f"{name}: windows of 8 ticks", {"filter": filter_.tick, "window": window.tick}, rounds)
    log = logged(data)
    if log is not None:
        one, arrays = log
        over = {
            "filter": partial(one.over, *arrays, causal=True),
            "smoother": partial(one.over, *arrays, causal=False),
        }
        told("a sample of the Panda's log, with its standard deviations", over, rounds, len(arrays[0]))


if __name__ == "__main__":
    main()
