"""Ticks of trackers: beside textbook Kalman filters, with a lag, over a log, and with contacts recognised.

Ours is the whole tick: from q, qd and readings to the outputs, dynamics included. The Kalman filters, in NumPy and in
C, are of the same size and given the rows of the tick for nothing, with all that is no state eliminated: they predict
and update mean and covariance, in covariance form, with dense matrices. Contacts are recognised over walks that MuJoCo
simulated, recorded with noise by `tests/walking.py`: feet are lifted or put down in them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import scipy.linalg as la
from threadpoolctl import threadpool_limits

import nori_dyn as nd
from benchmarks.harness import Result, Run, compare, figure_tables, timing_tables
from benchmarks.real.recording import beside
from benchmarks.suites.base import Options, Suite
from nori_dyn.errors import MissingExtraError, ModelError
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracker import TrackerBase
from nori_dyn.program.compiler import load_library, needed_compiler
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

FOLDER = Path(__file__).parents[1] / "over_time"
KALMAN = Path(__file__).parents[1] / "cpp" / "kalman.c"

FINGERS = "panda_finger_joint1", "panda_finger_joint2"
LEGS = ("LF", "RF", "LH", "RH")
CONTACT_STATES = {
    "biped": [("l", "r"), ("l",), ("r",), ()],
    "quadruped": [state for n in range(5) for state in combinations(LEGS, n)],
}
TOUCH, DT = 0.1, 1e-3
"""Of the walks: force over mass of a touch that counts as contact [m/s^2], and the time between ticks [s]."""

LAG = 8


def sensors(name: str) -> nd.SensorSet:
    return nd.load_sensors(FOLDER / f"{name}.sensors.yaml")


def panda() -> tuple[nd.Plan, float]:
    """The observer of the external torques of a Panda, and the time between ticks [s]."""
    tree = nd.load_robot("panda", locked=FINGERS)
    return nd.plan(nd.System(tree, "momentum_observer"), outputs=["offset"]), 0.001


def icub() -> tuple[nd.Plan, float]:
    tree = nd.load_robot("icub", base="floating", kept="sensors")
    return nd.plan(nd.System(tree, sensors("icub")), outputs=["tau", "fx:l_sole", "fx:r_sole"]), 0.01


def solo12() -> tuple[nd.Plan, float]:
    tree = nd.load_robot("solo12", base="floating")
    return nd.plan(nd.System(tree, sensors("solo12")), outputs=["qdd", "fx"]), 0.002


def tracker(plan: nd.Plan, dt: float, lag: int = 0) -> Any:
    """A tracker at a state, some ticks after its beginning."""
    one = nd.Tracker(plan, dt, lag)
    one.inputs.q[:] = plan.system.tree.random_configuration(0)
    for _ in range(20):
        one.tick()
    return one


def sizes(one: Any) -> dict[str, int]:
    n_memory = len(one.memory_names)
    return {"state": n_memory, "null space besides": len(one.free_names) - n_memory}


def kalman_filters(plan: nd.Plan, dt: float) -> dict[str, Run]:
    """Ticks of the textbook's filter in C and in NumPy, for the rows of a plan at a configuration."""
    tick, q = TickPrograms(plan), plan.system.tree.random_configuration(0)
    n_s, n_v, n_f = tick.sizes
    k, system = n_v + n_f, tick.system
    measured = tick.measured(q, np.zeros(system.tree.nv), np.zeros(system.ny))
    rows = np.sqrt(system.weights[tick.coordinates.weight_of_rows])[:, None] * np.column_stack([measured.A, measured.c])
    left = la.null_space(rows[:, :n_s].T).T @ rows if n_s else rows
    H, z = np.ascontiguousarray(left[:, n_s:-1]), np.ascontiguousarray(-left[:, -1])
    given, *_ = np.linalg.lstsq(rows[:, :n_s], -rows[:, n_s:-1], rcond=None) if n_s else (np.zeros((0, k)),)
    F = np.diag(tick.decay(dt))
    F[:n_v] += dt * (measured.X[:, n_s:] + measured.X[:, :n_s] @ given)
    Q, m = tick.gained(dt), len(H)
    x, P = np.zeros(k), np.eye(k)

    def in_numpy() -> None:
        nonlocal x, P
        x, P = F @ x, F @ P @ F.T + np.diag(Q)
        G = H @ P
        gain = la.cho_solve(la.cho_factor(G @ H.T + np.eye(m)), G).T
        x, P = x + gain @ (z - H @ x), P - gain @ G

    ffi = cffi.FFI()
    ffi.cdef("void kalman(double *, double *, double *, double *, double *, double *);")
    source = f"#define K {k}\n#define M {m}\n{KALMAN.read_text()}"
    library = load_library(ffi, source, needed_compiler("a Kalman filter in C"))
    arrays = [F, Q, H, z, np.zeros(k), np.eye(k)]
    at = [ffi.cast("double *", array.ctypes.data) for array in arrays]

    def in_c(kept: object = arrays) -> None:
        library.kalman(*at)

    for _ in range(50):
        in_numpy()
        in_c()
    assert np.allclose(P, arrays[-1], rtol=1e-6, atol=1e-9 * np.abs(P).max()), "the two peers do not agree"
    return {"Kalman filter in C": Run(in_c), "Kalman filter in NumPy": Run(in_numpy)}


def measure(options: Options, progress: Progress) -> list[Result]:
    results = []
    cases: dict[str, Callable[[], tuple[nd.Plan, float]]] = {
        "Panda, external torques": panda,
        "iCub, offsets and pushes": icub,
        "Solo12, four feet": solo12,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        for k, (name, make) in enumerate(cases.items()):
            progress(f"trackers, {name}", 0.2 * k)
            try:
                plan, dt = make()
            except (MissingExtraError, ModelError) as error:
                results.append(Result({"robot": name}, skipped={f"robot {name}": str(error)}))
                continue
            one, late = tracker(plan, dt), tracker(plan, dt, LAG)
            own = {"nori_dyn tick": Run(one.tick), f"nori_dyn tick, lag {LAG}": Run(late.tick)}
            peers = kalman_filters(plan, dt)
            results.append(compare({"robot": name}, sizes(one), own, peers, {}, options.budget))
        progress("trackers, a log", 0.6)
        results.append(_over_log(options))
        for name in CONTACT_STATES if not options.quick else ("biped",):
            progress(f"trackers, {name}, contacts recognised", 0.7)
            results += _recognising(name, options)
    return results


def _over_log(options: Options) -> Result:
    """A sample of a Panda's log, with its standard deviations, by the filter and by the smoother."""
    case, path = {"log": "a sample of a Panda's"}, options.data / "panda_log" / "beam_z_15cm_1khz.csv.gz"
    if not path.exists():
        return Result(case, skipped={"the Panda's log": f"{path} is not there"})
    plan, dt = panda()
    read = nd.smooth(nd.read_log(path, beside("panda_log.log.yaml")), plan, dt=dt, causal=True)
    arrays, one = (read.t, read.samples.q, read.samples.qd, read.samples.y), nd.Tracker(plan, dt)
    ways = {"filter": True, "smoother": False}
    own = {name: Run(partial(one.over, *arrays, causal=causal), None, len(read.t)) for name, causal in ways.items()}
    return compare(case, sizes(one), own, {}, {}, options.budget)


def on_a_base(known: nd.SensorSet) -> nd.SensorSet:
    """The same sensors, and a gyroscope; both of the IMU have offsets, the base is state, and closed feet stand."""
    content = known.to_dict()
    content["measurements"][0]["offset"] = {"sigma": 0.1}
    gyroscope = {"type": "gyroscope", "links": "base", "sigma": 0.01, "offset": {"sigma": 0.05}}
    content["measurements"].insert(1, gyroscope)
    for contact in content["contacts"].values():
        foot = {field: contact["closed"][-1][field] for field in ("links", "frame")}
        contact["closed"].append(foot | {"type": "zero_velocity", "components": ["vx", "vy", "vz"], "sigma": 0.1})
    return nd.SensorSet.from_dict(content | {"memory": {"base": {"of": "base"}, "bias": {"of": "offset"}}})


def _recognising(name: str, options: Options) -> list[Result]:
    """Ticks of trackers that recognise contacts, with the base as state too, in turns: the least of some rounds."""
    tree, known, states = nd.load_mjcf(FOLDER / f"{name}.xml"), sensors(name), CONTACT_STATES[name]
    walk = np.load(FOLDER / f"{name}.npz")
    q, qd, y = (walk[each].astype(float) for each in ("q", "qd", "y"))
    cases: dict[str, tuple[nd.SensorSet, Floats]] = {name: (known, y)}
    if name == "quadruped":
        read = np.column_stack([y[:, :3], qd[:, :3], y[:, 3:]])
        cases[f"{name}, its base estimated"] = on_a_base(known), read
    found: dict[tuple[str, str], list[list[float]]] = {}
    counts = {}
    for backend in ("native", "numpy"):
        trackers: dict[str, Any] = {}
        for case, (of, _) in cases.items():
            steps = HypothesisSteps.of(tree, of, states, DT, Hypotheses(acceleration=TOUCH), ["fx"], backend)
            trackers[case] = TrackerBase(steps, of.contact_names, states, DT)
            counts[case] = {"hypotheses": len(states), **sizes(trackers[case])}
        for _ in range(1 if backend == "numpy" else min(options.budget.rounds, 9)):
            for case, (_, read) in cases.items():
                with threadpool_limits(1):
                    found.setdefault((case, backend), []).append(_walked(trackers[case], q, qd, read))
    results = []
    for case in cases:
        of_runs = {"nori_dyn tick": "native", "nori_dyn tick (numpy)": "numpy"}
        seconds = {run: np.min(found[case, backend], axis=0).tolist() for run, backend in of_runs.items()}
        first = next(iter(seconds))
        least, most = (1e6 * float(x) for x in np.percentile(seconds[first], [5, 95]))
        figures = {"nine ticks in ten, from [us]": least, "to [us]": most}
        results.append(Result({"robot": case, "contacts": "recognised"}, counts[case], seconds, first, figures))
    return results


def _walked(one: Any, q: Floats, qd: Floats, y: Floats) -> list[float]:
    """Time of each tick of a walk [s]."""
    one.reset()
    times = []
    for state in zip(unit_quaternions(q), qd, y, strict=True):
        one.inputs.q[:], one.inputs.qd[:], one.inputs.y[:] = state
        start = time.perf_counter()
        one.tick()
        times.append(time.perf_counter() - start)
    return times


def unit_quaternions(q: Floats) -> Floats:
    """Configurations that begin with a free root, with its quaternions of unit length again."""
    q = q.copy()
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    return q


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    spreads = [Result(one.case, figures=one.figures) for one in results]
    return [*timing_tables(title, results), *figure_tables("Over a walk", spreads)]


SUITE = Suite(
    "trackers",
    "Estimates over time: a tick",
    measure,
    tables=tables,
    notes=(
        "Kalman filters are given their rows for nothing. With contacts recognised, times are those of the ticks of a "
        "recorded walk, and quartiles those over its ticks.",
    ),
)
