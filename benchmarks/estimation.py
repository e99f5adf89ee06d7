"""Time a tick of weighted estimation on iCub: ours and iDynTree's BERDY, alternating in one process.

Run from the repository: `python -m benchmarks.estimation [--quick] [--json FILE] [--plot FILE]`. The robot is
iCubGenova04 with a floating base; the sensors are 6 force-torque sensors, 62 accelerometers, all joint accelerations,
and all external wrenches with a prior. A tick of BERDY is a new state and readings (`update`), then its equations, its
normal matrices and their factorisation (`estimate`); what Python adds is left out: its arrays are filled beforehand,
for a number of states that take turns. Ours is the same states written into `inputs`, and `tick`: all torques and
external wrenches, with exact equations of motion ("tick", "batch" for a state of 4096), and with all the covariances of
BERDY ("map_tick", "map_batch": the very same problem). Each figure is the median over rounds, with the quartiles; the
ratio is taken round by round, so that what disturbs the machine disturbs both. Planning, compiling and peak memory are
those of a process of its own, without caches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import idyntree.bindings as idyn
import numpy as np
import yaml

import nori_dyn as nd
from benchmarks.common import arguments, keep, quartiles, rounds
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.solver import Solver
from tests.berdy import Berdy, normal_matrix
from tests.robots import ROBOTS, load

ROBOT = "iCubGenova04"
N_STATES = 16
N_BATCH = 4096
OUTPUTS = ("tau", "fx")

SIGMA = {"force_torque": 0.1, "accelerometer": 0.1, "joint_acceleration": 1.0, "external_wrench": 1.0}
"""Standard deviations of the readings [N and N m, m/s^2, rad/s^2, N and N m]."""

DYNAMICS, PRIOR = 1e-4, 1e4
"""BERDY's covariances of its equations of motion, which our plain tick holds exactly, and of its prior on d, which has
mean 0."""

MODES: dict[str, Any] = {
    "": {"dynamics": {}, "prior": {}},
    "map_": {"dynamics": DYNAMICS**0.5, "prior": PRIOR**0.5},
}
"""Ours: with exact equations of motion and no prior, and with all of BERDY's covariances."""

State = tuple[np.ndarray, np.ndarray, np.ndarray]

ALONE = """
import json, pathlib, re, sys, time
import nori_dyn as nd

urdf, config, outputs, mode = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
tree = nd.load_urdf(urdf, base="floating", kept="sensors")
sensors = nd.load_sensors(config, model=urdf, tree=tree)
system = nd.System(tree, nd.berdy_map(sensors, **mode))
start = time.perf_counter()
plan = nd.plan(system, outputs=outputs)
planned = time.perf_counter()
plan.solver("native")
compiled = time.perf_counter()
peak = re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]
figures = {"operations": plan.cost.total, "planning_seconds": planned - start, "compiling_seconds": compiled - planned}
print(json.dumps({**figures, "peak_megabytes": int(peak) / 1e3}))
"""
"""What a user does first, in a process that imports nothing else."""


def covariances(berdy: Berdy) -> np.ndarray:
    """Return the variance of each reading of BERDY (ny,); gyroscopes, which say nothing of d, have 1."""
    return np.concatenate([np.full(b.slice.stop - b.slice.start, SIGMA.get(b.kind, 1.0) ** 2) for b in berdy.sensors])


def states(berdy: Berdy, tree: KinematicTree, seed: int = 0) -> list[State]:
    """Return random q, qd, and the readings y of BERDY (ny,) of a random d, with noise."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(N_STATES):
        q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
        berdy.update(*berdy.state(tree, q, qd), np.zeros(berdy.ny))
        at = berdy.matrices()
        # the motion that BERDY's equations allow and that is nearest to a random one
        wish = rng.normal(size=berdy.shape[1])
        d = wish - np.linalg.lstsq(at.D, at.D @ wish + at.bD, rcond=None)[0]
        noise = np.sqrt(covariances(berdy)) * rng.normal(size=berdy.ny)
        found.append((q, qd, at.Y @ d + at.bY + noise))
    return found


def berdys(berdy: Berdy, tree: KinematicTree, at: list[State]) -> dict[str, Callable[[], object]]:
    """Return what BERDY does in a tick, whole and in parts, each call at the next of the states."""
    berdy.set_covariances(DYNAMICS, PRIOR, 0.0, covariances(berdy))
    base = berdy.model.getLinkIndex(berdy.base)
    inputs = []
    for q, qd, y in at:
        s, ds, w = berdy.state(tree, q, qd)
        positions, rates = idyn.JointPosDoubleArray(berdy.model), idyn.JointDOFsDoubleArray(berdy.model)
        for k in range(len(s)):
            positions.setVal(k, float(s[k]))
            rates.setVal(k, float(ds[k]))
        inputs.append((positions, rates, base, idyn.Vector3.FromPython(w), idyn.VectorDynSize.FromPython(y)))
    turns, update, estimate = cycle(inputs), berdy.solver.updateEstimateInformationFloatingBase, berdy.solver.doEstimate
    (m, n), ny = berdy.shape, berdy.ny
    matrices = (
        idyn.SparseMatrixColMajor(m, n),
        idyn.VectorDynSize(m),
        idyn.SparseMatrixColMajor(ny, n),
        idyn.VectorDynSize(ny),
    )
    berdy.helper.resizeAndZeroBerdyMatrices(*matrices)

    def tick() -> None:
        update(*next(turns))
        estimate()

    return {
        "berdy": tick,
        "berdy_update": lambda: update(*next(turns)),
        "berdy_matrices": lambda: berdy.helper.getBerdyMatrices(*matrices),
        "berdy_estimate": estimate,
    }


def solvers(berdy: Berdy, tree: KinematicTree) -> dict[str, Solver]:
    """Return ours, by the names of `MODES`."""
    sensors = nd.SensorSet.from_dict({"name": "berdy", "measurements": berdy.measurements(SIGMA)})
    systems = {key: nd.System(tree, nd.berdy_map(sensors, **mode)) for key, mode in MODES.items()}
    return {key: nd.plan(system, outputs=OUTPUTS).solver("native") for key, system in systems.items()}


def ours(berdy: Berdy, solver: Solver, key: str, at: list[State]) -> dict[str, Callable[[], object]]:
    """Return what a solver does with the same states: one after the other, and many at a time."""
    own = [(q, qd, berdy.reading(y)) for q, qd, y in at]
    turns, inputs = cycle(own), solver.inputs
    batch = [np.array([own[k % len(own)][part] for k in range(N_BATCH)]) for part in range(3)]

    def tick() -> None:
        inputs.q[:], inputs.qd[:], inputs.y[:] = next(turns)
        solver.tick()

    return {f"{key}tick": tick, f"{key}batch": lambda: solver.solve_batch(*batch)}


def agreement(berdy: Berdy, tree: KinematicTree, solver: Solver, at: list[State]) -> dict[str, float]:
    """Return the largest difference of torques and of external wrenches from BERDY's.

    Relative to the largest of BERDY's, and ("in_sigmas") to the standard deviation that its covariances leave each.
    """
    (m, n), found = berdy.shape, {"tau": 0.0, "fx": 0.0, "in_sigmas": 0.0}
    largest = dict.fromkeys(OUTPUTS, 0.0)
    everything = np.full(m, DYNAMICS), np.full(n, PRIOR), covariances(berdy)
    for q, qd, y in at[:4]:
        berdy.update(*berdy.state(tree, q, qd), y)
        theirs, estimate = berdy.to_nori(tree, q, qd, berdy.estimate()), solver.solve(q, qd, berdy.reading(y))
        P = np.linalg.inv(normal_matrix(berdy.matrices(), *everything))
        sigma = {key: np.sqrt(value) for key, value in berdy.to_nori_variances(tree, q, P).items()}
        for i, (link, joint) in enumerate(zip(tree.names, tree.joint_names, strict=True)):
            for kind, name, values in (
                ("fx", f"fx:{link}", estimate.fx[i]),
                ("tau", f"tau:{joint}", estimate.tau[tree.v_slices[i]]),
            ):
                if name in sigma and values.size:
                    off = np.abs(theirs[name] - values)
                    found[kind] = max(found[kind], off.max())
                    largest[kind] = max(largest[kind], np.abs(theirs[name]).max())
                    found["in_sigmas"] = max(found["in_sigmas"], (off / sigma[name]).max())
    return {key: float(value / largest.get(key, 1.0)) for key, value in found.items()}


def alone(mode: dict[str, Any]) -> dict[str, float]:
    """Return what planning and compiling take in a process of its own, from files, without caches."""
    kinds = {kind: {"sigma": SIGMA[kind]} for kind in ("force_torque", "accelerometer")}
    entries: list[dict[str, Any]] = [
        {"type": "joint_acceleration", "joints": "actuated", "sigma": SIGMA["joint_acceleration"]},
        {"type": "external_wrench", "links": "all", "sigma": SIGMA["external_wrench"]},
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "sensors.yaml"
        config.write_text(yaml.safe_dump({"name": "berdy", "from_model": kinds, "measurements": entries}))
        call = [sys.executable, "-c", ALONE, str(ROBOTS[ROBOT]), str(config), json.dumps(OUTPUTS), json.dumps(mode)]
        environment = {**os.environ, "NORI_DYN_CACHE": folder}
        return json.loads(subprocess.run(call, env=environment, check=True, capture_output=True, text=True).stdout)


def measure(n_rounds: int, seconds: float) -> dict[str, Any]:
    """Return the figures."""
    berdy = Berdy(ROBOTS[ROBOT])
    tree = berdy.with_sensor_frames(load(ROBOT, "floating", kept="sensors"))
    at = states(berdy, tree)
    functions = berdys(berdy, tree, at)
    own = solvers(berdy, tree)
    for key, solver in own.items():
        functions |= ours(berdy, solver, key, at)
    times = rounds(functions, n_rounds, seconds)
    for key in own:
        times[f"{key}batch"] /= N_BATCH
    return {
        "robot": ROBOT,
        "idyntree": version("idyntree"),
        "berdy": {"variables": berdy.shape[1], "equations": berdy.shape[0], "measurements": berdy.ny},
        "microseconds": {key: quartiles(1e6 * value) for key, value in times.items()},
        "faster_than_berdy": {
            f"{key}{kind}": quartiles(times["berdy"] / times[f"{key}{kind}"])
            for key in own
            for kind in ("tick", "batch")
        },
        "difference": {f"{key}tick": agreement(berdy, tree, solver, at) for key, solver in own.items()},
        "alone": {f"{key}tick": alone(mode) for key, mode in MODES.items()},
    }


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the times as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    axes = figure.subplots()
    times = results[0]["microseconds"]
    middle = np.array(list(times.values()))
    error = np.abs(middle[:, [0, 2]] - middle[:, [1]]).T
    bars = axes.barh(np.arange(len(times)), middle[:, 1], 0.6, xerr=error)
    ratios = [results[0]["faster_than_berdy"].get(key) for key in times]
    axes.bar_label(bars, [f"{ratio[1]:.0f} times faster" if ratio else "" for ratio in ratios], padding=6)
    axes.set(xlabel="microseconds", xscale="log", yticks=range(len(times)), title=f"a tick of estimation, {ROBOT}")
    axes.set_yticklabels([key.replace("_", " ") for key in times])
    axes.margins(x=0.2)
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    found = measure(*((9, 0.05) if options.quick else (31, 0.2)))
    print(f"{ROBOT}: BERDY has {found['berdy']}")
    print(f"{'':<16}{'median':>10}{'quartiles':>20}   [us]; BERDY's tick over it")
    for key, (low, middle, high) in found["microseconds"].items():
        ratio = found["faster_than_berdy"].get(key)
        times = f"   {ratio[1]:.0f} ({ratio[0]:.0f} to {ratio[2]:.0f})" if ratio else ""
        print(f"{key:<16}{middle:>10.2f}{low:>10.2f}{high:>10.2f}{times}")
    for key, off in found["difference"].items():
        print(
            f"{key}: from BERDY's estimate by {off['tau']:.1e} of the torques, {off['fx']:.1e} of the wrenches, "
            f"at most {off['in_sigmas']:.1e} of what its covariances leave open"
        )
    for key, figures in found["alone"].items():
        print(
            f"{key}: {figures['operations']} operations, planned in {figures['planning_seconds']:.1f} s, compiled in "
            f"{figures['compiling_seconds']:.1f} s, {figures['peak_megabytes']:.0f} MB at the peak"
        )
    keep([found], options, draw)


if __name__ == "__main__":
    main()
