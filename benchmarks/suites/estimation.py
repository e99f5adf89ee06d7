"""A tick of weighted estimation on iCub: ours and iDynTree's BERDY.

iCubGenova04 with a floating base; 6 force-torque sensors, 62 accelerometers, all joint accelerations, and all external
wrenches with a prior. Ours, with all of BERDY's covariances, is the very same problem; with exact equations of motion,
it is the one that BERDY's large weights on them stand for.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, Run, alone, compare, figure_tables, own_name, peak_megabytes, timing_tables
from benchmarks.peers.berdy import MODULE, Berdy
from benchmarks.robots import robot_file
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.planning import cpu_seconds
from nori_dyn.errors import MissingExtraError
from nori_dyn.measurements import berdy_map
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


def measure(options: Options, progress: Progress) -> list[Result]:
    """Time all runs; then, of each mode, what is done once."""
    try:
        path = robot_file(ROBOT)
    except MissingExtraError as error:
        return [Result({"robot": ROBOT}, skipped={f"robot {ROBOT}": str(error)})]
    if importlib.util.find_spec(MODULE.partition(".")[0]) is None:
        return [Result({"robot": ROBOT}, skipped={"BERDY": "idyntree is not installed"})]
    progress("estimation, preparing", 0.0)
    berdy = Berdy(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        tree = berdy.with_sensor_frames(nd.load_urdf(path, base="floating", kept="sensors"))
    berdy.set_covariances(DYNAMICS, PRIOR, berdy.variances(SIGMA))
    sensors = nd.SensorSet.from_dict({"name": "berdy", "measurements": berdy.measurements(SIGMA)})
    states = _states(berdy, tree, options.seed)
    own: dict[str, Run] = {}
    counts: dict[str, int] = {"BERDY's variables": berdy.shape[1], "BERDY's readings": berdy.ny}
    for k, (mode, covariances) in enumerate(MODES.items()):
        progress(f"estimation, {mode}", 0.1 + 0.4 * k)
        solver = nd.plan(nd.System(tree, berdy_map(sensors, **covariances)), outputs=OUTPUTS).solver()
        counts[f"operations, {mode}"] = solver.plan.cost.total
        runs = _own(berdy, tree, solver, mode, states)
        own |= {name: run for name, run in runs.items() if run.states == 1 or not options.quick}
    inputs = [berdy.inputs(tree, *state) for state in states]

    def answer() -> Floats:
        berdy.update(*inputs[0])
        return _joined(berdy.to_nori(tree, states[0][0], berdy.estimate()), berdy, tree, states[0][0])

    peers = {name: Run(call, answer if name == "BERDY" else None) for name, call in berdy.runs(inputs).items()}
    results = [compare({"robot": ROBOT, "base": "floating"}, counts, own, peers, {}, options.budget)]
    for mode in MODES if not options.quick else ():
        progress(f"estimation, alone, {mode}", 0.9)
        results.append(Result({"robot": ROBOT, "done once": mode}, figures=alone(_once, tree, sensors, mode)))
    return results


def _states(berdy: Berdy, tree: nd.KinematicTree, seed: int) -> list[tuple[Floats, Floats, Floats]]:
    """Random q, qd, and the readings of BERDY of a random motion, with noise."""
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
    berdy: Berdy,
    tree: nd.KinematicTree,
    solver: nd.results.Solver,
    mode: str,
    states: Sequence[tuple[Floats, Floats, Floats]],
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

    return {
        own_name(f"tick, {mode}", solver.backend): Run(tick, answer if mode == next(iter(MODES)) else None),
        own_name(f"batch, {mode}", solver.backend): Run(lambda: solver.solve_batch(Q, Qd, Y), None, BATCH),
    }


def _joined(values: dict[str, Floats], berdy: Berdy, tree: nd.KinematicTree, q: Floats) -> Floats:
    """All that BERDY says of tau and fx, in one array."""
    return np.concatenate([np.ravel(values[name]) for name in berdy.to_nori(tree, q, np.zeros(berdy.shape[1]))])


def _once(tree: nd.KinematicTree, sensors: nd.SensorSet, mode: str) -> dict[str, float]:
    """What planning and compiling take [CPU s], and the memory of the process [MB]."""
    system = nd.System(tree, berdy_map(sensors, **MODES[mode]))
    start = cpu_seconds()
    plan = nd.plan(system, outputs=OUTPUTS)
    planned = cpu_seconds()
    plan.solver()
    times = {"planning [CPU s]": planned - start, "compiling [CPU s]": cpu_seconds() - planned}
    return times | {"MB": peak_megabytes()}


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    return [*timing_tables(title, results), *figure_tables("Done once", results[1:])]


SUITE = Suite(
    "estimation",
    "A tick of weighted estimation",
    measure,
    tables=tables,
    notes=(
        "all covariances: BERDY's very problem. exact dynamics: the equations of motion hold exactly, and there is no "
        f"prior on d. A batch has {BATCH:,} states; --quick leaves it out. The weights are those planned for, so that "
        "no state is refined.",
    ),
)
