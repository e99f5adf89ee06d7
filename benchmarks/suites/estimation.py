"""A tick of weighted estimation on iCub: ours and iDynTree's BERDY.

iCubGenova04 with a floating base; 6 force-torque sensors, 62 accelerometers, all joint accelerations, and all external
wrenches with a prior. Ours, with all of BERDY's covariances, is the very same problem; with exact equations of motion,
it is the one that BERDY's large weights on them stand for.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.drawing import draw_seconds
from benchmarks.fresh import alone
from benchmarks.measure import Run
from benchmarks.peers.berdy import MODULE, Berdy
from benchmarks.records import Record, compare, own_name
from benchmarks.robots import robot_file
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.scaling import peak_memory
from benchmarks.tables import figure_tables, timing_tables
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import MissingExtraError, NoriWarning
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.system import System
from nori_dyn.measurements.berdy import berdy_map
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.solver import Solver
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

ROBOT = "iCubGenova04"
STATES = 16
"""Number of states that take turns."""
BATCH = 1024
OUTPUTS = ("tau", "fx")

SIGMA = {"force_torque": 0.1, "accelerometer": 0.1, "joint_acceleration": 1.0, "external_wrench": 1.0}
"""Standard deviations of the readings [N and N m, m/s^2, rad/s^2, N and N m]."""

DYNAMICS, PRIOR = 1e-4, 1e4
"""BERDY's variances of its equations of motion, and of its prior on d, which has mean 0."""

MODES: dict[str, dict[str, Any]] = {
    "all covariances": {"dynamics": DYNAMICS**0.5, "prior": PRIOR**0.5},
    "exact dynamics": {"dynamics": {}, "prior": {}},
}


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record of all runs, and one of what is done once in each mode."""
    try:
        path = robot_file(ROBOT)
    except MissingExtraError as error:
        return [Record({"robot": ROBOT}, skipped={f"robot {ROBOT}": str(error)})]
    if importlib.util.find_spec(MODULE.partition(".")[0]) is None:
        return [Record({"robot": ROBOT}, skipped={"BERDY": "idyntree is not installed"})]
    progress("estimation, preparing", 0.0)
    berdy = Berdy(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        tree = berdy.with_sensor_frames(load_urdf(path, base="floating", kept="sensors"))
    berdy.set_covariances(DYNAMICS, PRIOR, berdy.variances(SIGMA))
    states = _states(berdy, tree, options.seed)
    sensors = SensorSet.from_dict({"name": "berdy", "measurements": berdy.measurements(SIGMA)})
    own: dict[str, Run] = {}
    counts: dict[str, int] = {"BERDY's variables": berdy.shape[1], "BERDY's readings": berdy.ny}
    for k, (mode, covariances) in enumerate(MODES.items()):
        progress(f"estimation, {mode}", 0.1 + 0.4 * k)
        solver = Solver(plan(System(tree, berdy_map(sensors, **covariances)), outputs=OUTPUTS))
        counts[f"operations, {mode}"] = solver.plan.cost.total
        runs = _own(berdy, tree, solver, mode, states)
        own |= {name: run for name, run in runs.items() if run.states == 1 or not options.quick}
    inputs = [berdy.inputs(tree, *state) for state in states]
    peers = {name: Run(call) for name, call in berdy.runs(inputs).items()}
    peers["BERDY"] = replace(peers["BERDY"], answer=_answer(berdy, tree, states[0], inputs[0]))
    record = compare({"robot": ROBOT, "base": "floating"}, counts, own, peers, {}, options.budget)
    records = [record]
    for k, mode in enumerate(MODES):
        if not options.quick:
            progress(f"estimation, alone, {mode}", 0.8 + 0.1 * k)
            figures = alone(_once, tree, sensors, mode)
            records.append(Record({"robot": ROBOT, "done once": mode}, figures=figures))
    return records


def _states(berdy: Berdy, tree: KinematicTree, seed: int) -> list[tuple[Floats, Floats, Floats]]:
    """Return random q, qd, and the readings of BERDY of a random motion, with noise."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(STATES):
        q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
        berdy.update(*berdy.inputs(tree, q, qd, np.zeros(berdy.ny)))
        D, bD, Y, bY = berdy.equations()
        wish = rng.normal(size=berdy.shape[1])
        d = wish - np.linalg.lstsq(D, D @ wish + bD, rcond=None)[0]  # the nearest motion that its equations allow
        noise = np.sqrt(berdy.variances(SIGMA)) * rng.normal(size=berdy.ny)
        found.append((q, qd, Y @ d + bY + noise))
    return found


def _own(
    berdy: Berdy, tree: KinematicTree, solver: Solver, mode: str, states: list[tuple[Floats, Floats, Floats]]
) -> dict[str, Run]:
    own = [(q, qd, berdy.reading(y)) for q, qd, y in states]
    turns, inputs = cycle(own), solver.inputs
    Q, Qd, Y = (np.array([own[k % len(own)][part] for k in range(BATCH)]) for part in range(3))

    def tick() -> None:
        inputs.q[:], inputs.qd[:], inputs.y[:] = next(turns)
        solver.tick()

    def answer() -> Floats:
        inputs.q[:], inputs.qd[:], inputs.y[:] = own[0]
        solver.tick()
        outputs = {f"fx:{name}": solver.outputs.fx[i] for i, name in enumerate(tree.names)}
        outputs |= {f"tau:{name}": solver.outputs.tau[tree.v_slices[i]] for i, name in enumerate(tree.joint_names)}
        return _joined(outputs, berdy, tree, own[0][0])

    same = mode == next(iter(MODES))
    return {
        own_name(f"tick, {mode}", solver.backend): Run(tick, answer if same else None),
        own_name(f"batch, {mode}", solver.backend): Run(lambda: solver.solve_batch(Q, Qd, Y), None, BATCH),
    }


def _answer(
    berdy: Berdy, tree: KinematicTree, state: tuple[Floats, Floats, Floats], inputs: tuple[Any, ...]
) -> Callable[[], Floats]:
    def answer() -> Floats:
        berdy.update(*inputs)
        return _joined(berdy.to_nori(tree, state[0], berdy.estimate()), berdy, tree, state[0])

    return answer


def _joined(values: dict[str, Floats], berdy: Berdy, tree: KinematicTree, q: Floats) -> Floats:
    """Return all that BERDY says of tau and fx, in one array."""
    names = berdy.to_nori(tree, q, np.zeros(berdy.shape[1]))
    return np.concatenate([np.ravel(values[name]) for name in names])


def _once(tree: KinematicTree, sensors: SensorSet, mode: str) -> dict[str, float]:
    """Return what planning and compiling take [s], and the memory of the process [MB]."""
    system = System(tree, berdy_map(sensors, **MODES[mode]))
    start = time.perf_counter()
    made = plan(system, outputs=OUTPUTS)
    planned = time.perf_counter()
    made.solver()
    return {"planning": planned - start, "compiling": time.perf_counter() - planned} | peak_memory()


def tables(title: str, records: Any) -> list[Table]:
    """Return the times, and what is done once."""
    return [*timing_tables(title, records), *figure_tables("Done once [s, MB]", records[1:])]


SUITE = Suite(
    "estimation",
    "A tick of weighted estimation",
    measure,
    tables=tables,
    draw=draw_seconds,
    notes=(
        "all covariances: BERDY's very problem. exact dynamics: the equations of motion hold exactly, and there is no "
        f"prior on d. A batch has {BATCH:,} states; --quick leaves it out. The weights are those planned for, so that "
        "states are usual ones, which are not refined.",
    ),
)
