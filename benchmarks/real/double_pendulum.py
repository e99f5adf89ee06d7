"""A real double pendulum with a motor in each joint: what links alone explain, and what motors and friction do.

Estimated: the torques of the motors, once by links alone, once with rotors and friction as well. No inertias come
with the data: they are fitted on the first half of the log, in both cases anew, and held against the torques of the
second half.

Inverse dynamics is linear in inertias: each column of the regression is what a link with one of them at 1 takes, or
what a component of size 1 adds. That a rotor turns with the first joint cannot be told from the link that does; one
that turns with the second can, as it feels only that joint.

The same by `nd.identify`, where torques count only while their joint moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.arms import ArmLog, least_squares
from benchmarks.real.finding import Finding, held_against
from benchmarks.real.identified import judged, with_friction
from benchmarks.real.recording import beside
from nori_dyn.typing import Floats

DATA = "Double pendulum"
CUTOFF = 8.0
"""What is slower than this is compared [Hz]."""
WINDOW = 15
"""Samples over which velocities are differentiated."""
WIDTH = 0.1
"""Velocity over which friction changes its sign [rad/s]: that of the noise of the velocities."""
EDGE = 50
"""Samples at both ends that the filter has touched."""
MOVING = 0.1
"""Speed above which a joint moves [rad/s]."""

JOINTS = ("shoulder", "elbow")


@dataclass(frozen=True, slots=True)
class TorquePart:
    """Something that takes torque in proportion to a number: an inertia, friction, a rotor.

    Attributes:
        tree: the pendulum with that number at 1, and all others at 0.
        is_link: whether it is an inertia of a link.
    """

    tree: nd.KinematicTree
    is_link: bool


def parts_of(tree: nd.KinematicTree) -> list[TorquePart]:
    """All that may take torque; of each link the first moment and the inertia about its joint."""
    bare, found = tree.replace(I=np.zeros_like(tree.I)), []
    for i in range(tree.nv):
        inertia, moment = np.zeros_like(tree.I), np.zeros_like(tree.I)
        inertia[i, 1, 1] = 1.0
        moment[i, 0, 4], moment[i, 1, 3], moment[i, 3, 1], moment[i, 4, 0] = 1.0, -1.0, -1.0, 1.0  # 1 kg m along -z
        found += [TorquePart(bare.replace(I=inertia), True), TorquePart(bare.replace(I=moment), True)]
    for joint in tree.joint_names:
        for component in (
            nd.components.Friction(joints=joint, viscous=1),
            nd.components.Friction(joints=joint, coulomb=1, width=WIDTH),
            nd.components.Rotor(joints=joint, inertia=1),
        ):
            found.append(TorquePart(bare.replace(components=(component,)), False))
    return found


def explained(parts: list[TorquePart], log: ArmLog, measured: Floats) -> Floats:
    """The torques (n, 2) of parts that are fitted to the first half of them, with an offset of each joint."""
    torques = [log.torques(part.tree).expected for part in parts]
    offsets = [np.tile(row, (len(measured), 1)) for row in np.eye(2)]
    table, half = np.stack([*torques, *offsets], axis=-1), len(measured) // 2
    sizes = least_squares(table[:half].reshape(-1, table.shape[-1]), measured[:half].ravel(), free=2)
    return np.asarray(table @ sizes)


def run(data: Path) -> list[Finding]:
    """What came of the data set."""
    tree = nd.load_urdf(beside("double_pendulum.urdf"))
    path = data / "real" / "double_pendulum" / "PM_measured.csv.gz"
    log = ArmLog.of(path, "double_pendulum.log.yaml", WINDOW, CUTOFF, EDGE)
    measured, parts = log.torques(tree).measured, parts_of(tree)
    second = slice(len(measured) // 2, None)
    links = explained([part for part in parts if part.is_link], log, measured)
    return [
        compared("torques, links alone", links[second], measured[second]),
        compared("torques, with rotors and friction", explained(parts, log, measured)[second], measured[second]),
        *identified(log, tree),
    ]


def identified(log: ArmLog, tree: nd.KinematicTree) -> list[Finding]:
    """What inertias alone, and all parameters, found on the first half of the log explain of the second."""
    found, every = [], ["inertias", "friction", "rotors", "offsets"]
    for title, wanted, moving in (
        ("torques, all identified", every, None),
        ("torques, all identified, with presliding", [*every, "presliding"], None),
        ("torques of joints that move, inertias identified", ["inertias", "offsets"], MOVING),
        ("torques of joints that move, all identified", every, MOVING),
    ):
        one = nd.identify(
            log.log,
            with_friction(tree, WIDTH),
            wanted,
            held_out=0.5,
            cutoff=CUTOFF,
            differentiate=WINDOW,
            moving=moving,
        )
        found.append(judged(DATA, title, "torques of the motors, second half", JOINTS, one))
    return found


def compared(estimate: str, tau: Floats, measured: Floats) -> Finding:
    """How far torques are from those measured."""
    return held_against(DATA, estimate, "torques of the motors, second half", JOINTS, ("N m",), tau, measured)
