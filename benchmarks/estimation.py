"""Time a tick of weighted estimation on iCub: ours and iDynTree's BERDY, alternating in one process.

Run from the repository: `python -m benchmarks.estimation [--quick] [--json FILE] [--plot FILE]`. The robot is
iCubGenova04 with a floating base; the sensors are 6 force-torque sensors, 62 accelerometers, all joint accelerations,
and all external wrenches with a prior. A tick of BERDY is a new state and readings (`update`), then its equations, its
normal matrices and their factorisation (`estimate`); what Python adds is left out: its arrays are filled beforehand,
for a number of states that take turns. Each figure is the median over rounds, with the quartiles; the ratio is taken
round by round, so that what disturbs the machine disturbs both.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import idyntree.bindings as idyn
import numpy as np

from benchmarks.common import arguments, keep, quartiles, rounds
from nori_dyn.model.tree import KinematicTree
from tests.berdy import Berdy
from tests.robots import ROBOTS, load

ROBOT = "iCubGenova04"
N_STATES = 16

SIGMA = {"force_torque": 0.1, "accelerometer": 0.1, "joint_acceleration": 1.0, "external_wrench": 1.0}
"""Standard deviations of the readings [N and N m, m/s^2, rad/s^2, N and N m]."""

DYNAMICS, PRIOR = 1e-4, 1e4
"""BERDY's covariances of its equations of motion, which ours hold exactly, and of its prior on d, which has mean 0."""


def covariances(berdy: Berdy) -> np.ndarray:
    """Return the variance of each reading of BERDY (ny,); gyroscopes, which say nothing of d, have 1."""
    return np.concatenate([np.full(b.slice.stop - b.slice.start, SIGMA.get(b.kind, 1.0) ** 2) for b in berdy.sensors])


def states(berdy: Berdy, tree: KinematicTree, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
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


def berdys(
    berdy: Berdy, tree: KinematicTree, at: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> dict[str, Callable[[], object]]:
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


def ours(
    berdy: Berdy, tree: KinematicTree, at: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> dict[str, Callable[[], object]]:
    """Return our ticks, by name, on the same states: "tick" is compared with BERDY's.

    To be written: a system of `berdy.with_sensor_frames(tree)` with `berdy.measurements(SIGMA)`, its plan, its solver;
    `berdy.reading(y)` are its readings. The wrench from the world on the base is zero: a `joint_torque` of value 0 on
    `tree.joint_names[0]`.
    """
    raise NotImplementedError


def measure(n_rounds: int, seconds: float) -> dict[str, Any]:
    """Return the figures."""
    berdy, tree = Berdy(ROBOTS[ROBOT]), load(ROBOT, "floating", kept="sensors")
    at = states(berdy, tree)
    functions = berdys(berdy, tree, at)
    try:
        functions = ours(berdy, tree, at) | functions
    except NotImplementedError:
        print("ours is still to be written: BERDY alone")
    times = rounds(functions, n_rounds, seconds)
    result: dict[str, Any] = {
        "robot": ROBOT,
        "idyntree": version("idyntree"),
        "berdy": {"variables": berdy.shape[1], "equations": berdy.shape[0], "measurements": berdy.ny},
        "microseconds": {key: quartiles(1e6 * value) for key, value in times.items()},
    }
    if "tick" in times:
        result["faster_than_berdy"] = quartiles(times["berdy"] / times["tick"])
    return result


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draw the times as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), dpi=150, layout="constrained")
    axes = figure.subplots()
    times = results[0]["microseconds"]
    middle = np.array(list(times.values()))
    error = np.abs(middle[:, [0, 2]] - middle[:, [1]]).T
    axes.barh(np.arange(len(times)), middle[:, 1], 0.6, xerr=error)
    axes.set(xlabel="microseconds", xscale="log", yticks=range(len(times)), title=f"a tick of estimation, {ROBOT}")
    axes.set_yticklabels(list(times))
    figure.savefig(path)


def main() -> None:
    options = arguments(__doc__)
    found = measure(*((9, 0.05) if options.quick else (31, 0.2)))
    print(f"{ROBOT}: BERDY has {found['berdy']}")
    print(f"{'':<16}{'median':>10}{'quartiles':>20}   [us]")
    for key, (low, middle, high) in found["microseconds"].items():
        print(f"{key:<16}{middle:>10.1f}{low:>10.1f}{high:>10.1f}")
    if "faster_than_berdy" in found:
        low, middle, high = found["faster_than_berdy"]
        print(f"BERDY's tick over ours: {middle:.1f} ({low:.1f} to {high:.1f})")
    keep([found], options, draw)


if __name__ == "__main__":
    main()
