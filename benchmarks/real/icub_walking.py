"""A real iCub that walks: its weight, how its feet share it, and when which foot bears it.

Estimated: the wrench on each foot, from the joints and the IMU at the base alone, in three contact states; and which
state it is at each instant: the one whose weighed rows fit best, by their chi-square.

Held against: the vertical force that the force-torque sensors of the feet found. No foot's force has gone into the
estimate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.ndimage import uniform_filter1d

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.recording import RecordedSamples, beside, recorded
from benchmarks.real.signals import derivative, low_passed
from nori_dyn.typing import Floats, Indices

DATA = "iCub walking"
CUTOFF = 5.0
"""What is slower than this is compared [Hz]: the IMU shakes with every step."""
WINDOW = 9
"""Samples over which velocities are differentiated."""
LAST = -12
"""The filter has nothing to hold on to in the last samples."""
STATES = (("l_foot",), ("r_foot",), ("l_foot", "r_foot"))
"""The contact states: left, right, both."""
TOGETHER = 11
"""Samples over which it is judged how well a state fits: a tenth of a second."""
BEARS = 0.2
"""Share of the weight from which on a foot stands: more than a swinging foot brushes with."""
LONG = 10
"""Samples of the shortest phase that is counted."""

WRISTS = tuple(f"{side}_wrist_{part}" for side in "lr" for part in ("prosup", "pitch", "yaw"))
AGAINST = "force-torque sensors of the feet"


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What was estimated of the walk, and what was measured.

    Attributes:
        t: times (n,) [s], from 0.
        forces: vertical forces on the left foot and on the right (n, 2) [N], in the state that was found.
        both: the same as if both feet stood all the time.
        measured: the same, measured.
        state: which of `STATES` was found (n,).
        stands: which of them the measured forces say (n,).
    """

    t: Floats
    forces: Floats
    both: Floats
    measured: Floats
    state: Indices
    stands: Indices


def prepared(log: RecordedSamples, tree: nd.KinematicTree) -> RecordedSamples:
    """The log low-passed, with accelerations of the joints, and the base's turning, from its velocities."""
    low = {name: low_passed(values, log.rate, CUTOFF) for name, values in log.readings.items()}
    q, qd = log.q.copy(), low_passed(log.qd, log.rate, CUTOFF)
    q[:, 7:] = low_passed(q[:, 7:], log.rate, CUTOFF)
    rates = derivative(qd, log.rate, WINDOW)
    for name, part in zip(tree.joint_names[1:], tree.v_slices[1:], strict=True):
        low[f"qdd:{name}"] = rates[:, part][:, 0]
    turning = rates[:, :3] @ tree.frame("root_link_imu_frame").X.E.T
    low |= {f"turning.w{axis}": turning[:, k] for k, axis in enumerate("xyz")}
    return RecordedSamples(log.t - log.t[0], q, qd, low)


@lru_cache(maxsize=1)
def read(data: Path) -> tuple[nd.KinematicTree, RecordedSamples]:
    """The robot, and what the log says of it."""
    folder = data / "real" / "icub_walking"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        tree = nd.load_urdf(folder / "model.urdf", base="floating", locked=WRISTS)
    reads = nd.System(tree, beside("icub_walking.read.sensors.yaml"))
    return tree, recorded(nd.read_log(folder / "walking.mat", beside("icub_walking.log.yaml")), reads)


@lru_cache(maxsize=1)
def estimated(data: Path) -> Walk:
    """What was estimated of the walk, its base given."""
    return walk_of(*read(data))


def walk_of(tree: nd.KinematicTree, log: RecordedSamples) -> Walk:
    """What is estimated of a walk."""
    log = prepared(log, tree)
    outputs = ["fx:l_sole", "fx:r_sole"]
    plans = nd.plan(tree, beside("icub_walking.sensors.yaml"), outputs=outputs, states=STATES)
    fits, forces = [], []
    for state in STATES:
        plan = plans[state]
        found = plan.monitor("numpy").check_batch(log.q, log.qd, log.of(*plan.system.measurement_names))
        fits.append(found.chi_square)
        forces.append(np.stack([found.estimate[name][:, 5] for name in outputs], axis=1))
    state = np.argmin(uniform_filter1d(np.array(fits), TOGETHER, axis=1), axis=0)
    measured = log.of("l_force.fz", "r_force.fz")
    left, right = (measured / measured.sum(axis=1).mean()).T
    stands = np.where(right < BEARS, 0, np.where(left < BEARS, 1, 2))
    chosen = np.choose(state[:, None], forces)
    inner = slice(0, LAST)
    return Walk(log.t[inner], chosen[inner], forces[2][inner], measured[inner], state[inner], stands[inner])


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    return findings(estimated(data))


def findings(walk: Walk) -> list[Finding | Figure]:
    """What came of a walk."""
    on_one = walk.stands < 2
    wrong = (walk.state < 2) & on_one & (walk.state != walk.stands)
    weight, read = walk.both.sum(axis=1), walk.measured.sum(axis=1)
    return [
        Figure(DATA, "weight on both feet, mean", float(weight.mean()), "N", float(read.mean())),
        compared("weight on both feet", ("sum",), weight, read, "N"),
        compared("left foot's share, both taken to stand", ("share",), share(walk.both), share(walk.measured), ""),
        compared("left foot's share, in the states found", ("share",), share(walk.forces), share(walk.measured), ""),
        compared("vertical force, in the states found", ("left", "right"), walk.forces, walk.measured, "N"),
        Figure(DATA, "instants on one foot that were found so", float(np.mean(walk.state[on_one] < 2))),
        Figure(DATA, "instants on one foot that were given to the other", float(np.mean(wrong))),
        Figure(DATA, "phases on one foot that were found", phases(walk.state), "", phases(walk.stands)),
    ]


def share(forces: Floats) -> Floats:
    """The left foot's share of the forces (n, 2)."""
    return forces[:, 0] / forces.sum(axis=1)


def phases(state: Indices) -> int:
    """How many phases on one foot there are among contact states (n,)."""
    edges = np.flatnonzero(np.diff(state)) + 1
    parts = np.split(state, edges)
    return sum(part[0] < 2 and len(part) >= LONG for part in parts)


def compared(estimate: str, names: tuple[str, ...], values: Floats, measured: Floats, unit: str) -> Finding:
    """How far an estimate (n,) or (n, m) is from what was measured."""
    n = len(values)
    return held_against(DATA, estimate, AGAINST, names, (unit,), values.reshape(n, -1), measured.reshape(n, -1))
