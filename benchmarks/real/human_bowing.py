"""A human who bows on a force plate: what the ground bears, and iDynTree's BERDY on the same data.

Estimated: the wrench of the ground on the foot and what the accelerometer at the torso feels, from the joints alone;
and the maximum a posteriori estimate from all sensors, with the variances of those who made the data.

Held against: the plate, and the accelerometer; and BERDY's estimate, with the same variances, and its time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.peers.berdy import SWAP, Berdy
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.recording import beside, readings
from nori_dyn.bench import in_turns
from nori_dyn.typing import Floats

DATA = "Human bowing"
PLATE = tuple(f"plate.{component}" for component in ("fx", "fy", "fz", "mx", "my", "mz"))
ACCELEROMETER = tuple(f"imu_acc.a{axis}" for axis in "xyz")
ACCELERATIONS = ("qdd:ankle", "qdd:hip")

DYNAMICS = 1e-10
"""BERDY's variance of the equations of motion, which hold exactly here."""
PRIOR = 1e4
"""BERDY's variance of its prior."""
VARIANCES = {
    "accelerometer": np.full(3, 0.001111),
    "gyroscope": np.ones(3),  # says nothing of what is estimated
    "joint_acceleration": np.array([6.66e-6]),
    "external_wrench": np.full(6, 1e-6),
    "plate": np.array([59, 59, 36, 2.25, 2.25, 0.56]),
}
"""Of BERDY's readings, forces before couples."""

COMPARED = ("tau:ankle", "tau:hip", "f:leg", "f:torso", "qdd")
"""What both estimate."""
STATES = 64
"""How many instants take turns when times are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class MapEstimate:
    """The maximum a posteriori estimate of the log, ours and BERDY's.

    Attributes:
        ours: each of `COMPARED` (n, ...).
        theirs: likewise.
        plate: the estimated wrench of the ground (n, 6), forces before couples.
        read: what the plate reads (n, 6).
        runs: what takes one of either.
    """

    ours: dict[str, Floats]
    theirs: dict[str, Floats]
    plate: Floats
    read: Floats
    runs: dict[str, Callable[[], object]]

    def difference(self) -> float:
        """The largest difference, relative to the largest of its kind."""
        return max(
            float(np.abs(self.ours[name] - self.theirs[name]).max() / np.abs(self.theirs[name]).max())
            for name in COMPARED
        )


def estimated(data: Path, sensors: str, outputs: tuple[str, ...]) -> nd.results.LogEstimate:
    """What a set of sensors of this room estimates from the log."""
    folder = data / "real" / "human_bowing"
    tree = human(folder)
    sensor_set = nd.load_sensors(beside(sensors), model=folder / "model.urdf", tree=tree)
    log = nd.read_log(folder / "ExperimentDataset.mat", beside("human_bowing.log.yaml"))
    return nd.estimate(log, nd.plan(nd.System(tree, sensor_set), outputs=list(outputs)), backend="numpy")


def human(folder: Path) -> nd.KinematicTree:
    """The human: a foot that could move, a leg and a torso."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        return nd.load_urdf(folder / "model.urdf", base="floating")


def map_estimate(data: Path) -> MapEstimate:
    """The maximum a posteriori estimate of the log, ours and BERDY's."""
    found = estimated(data, "human_bowing_map.sensors.yaml", (*COMPARED, "fx:foot"))
    samples, own = found.samples, found.estimate.system
    ours = {name: np.asarray(found[name]) for name in COMPARED}
    ours["qdd"] = ours["qdd"][:, 6:]

    berdy = Berdy(data / "real" / "human_bowing" / "model.urdf", floating=False)
    variances = [VARIANCES["plate" if block.owner == "foot" else block.kind] for block in berdy.sensors]
    berdy.set_covariances(DYNAMICS, PRIOR, np.concatenate(variances))
    y = berdy_readings(berdy, found)
    theirs = []
    inputs = [berdy.inputs(own.tree, *state) for state in zip(samples.q, samples.qd, y, strict=True)]
    for k in range(len(samples)):
        berdy.update(*inputs[k])
        d = berdy.estimate()
        named = {f"{block.kind}:{block.owner}": d[block.slice] for block in berdy.variables}
        theirs.append(
            {
                "tau:ankle": named["tau:ankle"],
                "tau:hip": named["tau:hip"],
                "f:leg": named["f:ankle"][SWAP],
                "f:torso": named["f:hip"][SWAP],
                "qdd": np.concatenate([named["qdd:ankle"], named["qdd:hip"]]),
            }
        )
    chosen = np.linspace(0, len(samples) - 1, STATES).astype(int).tolist()
    solver = nd.plan(own, outputs=list(COMPARED)).solver()
    turns = cycle(chosen)

    def tick() -> None:
        k = next(turns)
        solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = samples.q[k], samples.qd[k], samples.y[k]
        solver.tick()

    return MapEstimate(
        ours,
        {name: np.array([each[name] for each in theirs]) for name in COMPARED},
        found["fx:foot"][:, SWAP],
        readings(found, *PLATE),
        {"ours": tick, "BERDY": berdy.runs([inputs[k] for k in chosen])["BERDY"]},
    )


def berdy_readings(berdy: Berdy, found: nd.results.LogEstimate) -> Floats:
    """The readings of the log as BERDY takes them (n, ny)."""
    y = np.zeros((len(found.samples), berdy.ny))
    for block in berdy.sensors:
        if block.kind == "accelerometer":
            y[:, block.slice] = readings(found, *ACCELEROMETER)
        elif block.kind == "joint_acceleration":
            y[:, block.slice] = readings(found, f"qdd:{block.owner}")
        elif block.owner == "foot":
            y[:, block.slice] = readings(found, *PLATE)
    return y


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    alone = estimated(data, "human_bowing.sensors.yaml", ("fx:foot", "offset:imu_acc"))
    ground, plate = alone["fx:foot"][:, SWAP], readings(alone, *PLATE)
    felt = readings(alone, *ACCELEROMETER)
    found: list[Finding | Figure] = [
        Figure(DATA, "vertical force of the ground, mean", float(ground[:, 2].mean()), "N", float(plate[:, 2].mean())),
        compared(
            "vertical force of the ground, from the joints alone",
            "force plate",
            ("fz",),
            "N",
            ground[:, 2:3],
            plate[:, 2:3],
        ),
        compared(
            "couple about the ankle's axis at the foot", "force plate", ("my",), "N m", ground[:, 4:5], plate[:, 4:5]
        ),
        compared(
            "what the torso's accelerometer feels",
            "accelerometer",
            ("ax", "ay", "az"),
            "m/s^2",
            felt - alone["offset:imu_acc"],
            felt,
        ),
    ]
    together = map_estimate(data)
    read, said = together.read[:, 2:3], together.plate[:, 2:3]
    found.append(
        compared(
            "vertical force of the ground, MAP of all sensors", "force plate (one of them)", ("fz",), "N", said, read
        )
    )
    found.append(
        Figure(DATA, "largest difference of our MAP estimate from BERDY's, relative", together.difference(), "", 0.0)
    )
    seconds = in_turns(together.runs, rounds=15, seconds=0.05)
    ratios = np.array(seconds["BERDY"]) / np.array(seconds["ours"])
    low, middle, high = np.percentile(ratios, [10, 50, 90])
    found.append(
        Figure(DATA, f"time of BERDY's tick in ours (10 % to 90 % of rounds: {low:.0f} to {high:.0f})", middle)
    )
    found.append(Figure(DATA, "our tick", float(np.median(seconds["ours"])) * 1e6, "µs"))
    return found


def compared(
    estimate: str, against: str, names: tuple[str, ...], unit: str, values: Floats, measured: Floats
) -> Finding:
    """How far an estimate is from what was measured."""
    return held_against(DATA, estimate, against, names, (unit,), values, measured)
