"""What the logs of arms have in common: joints that move, torques that are read, inverse dynamics between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import lsq_linear

import nori_dyn as nd
from benchmarks.real.recording import beside, readings
from benchmarks.real.signals import low_passed
from nori_dyn.typing import Floats

SENSORS = "joint_torques"


@dataclass(frozen=True, slots=True)
class ArmLog:
    """The log of an arm, and how it is read.

    Attributes:
        log: the log, with its mapping.
        window: samples over which velocities are differentiated.
        cutoff: what is slower than this is compared [Hz]; None compares everything.
        edge: samples at both ends that filters have touched.
    """

    log: nd.results.Log
    window: int
    cutoff: float | None = None
    edge: int = 0

    @staticmethod
    def of(path: Path, mapping: str, window: int, cutoff: float | None = None, edge: int = 0) -> ArmLog:
        """The log in a file, with a mapping of this room."""
        return ArmLog(nd.read_log(path, beside(mapping)), window, cutoff, edge)

    def torques(self, tree: nd.KinematicTree) -> JointTorques:
        """What the torques of an arm should be, of its friction and rotors too, and what they were."""
        plan = nd.plan(nd.System(tree, SENSORS), outputs=["tau"])
        found = nd.estimate(
            self.log, plan, differentiate=self.window, backend="numpy"
        )  # one log: compiling takes longer
        measured = readings(found, *(f"tau:{name}" for name in tree.joint_names))
        t, tau = found.samples.t, found["tau"]
        assert t is not None
        if self.cutoff is not None:
            rate = 1 / float(np.median(np.diff(t)))
            tau, measured = (low_passed(x, rate, self.cutoff) for x in (tau, measured))
        inner = slice(self.edge, len(t) - self.edge)
        return JointTorques(t[inner] - t[0], found.samples.q[inner], tau[inner], measured[inner])


@dataclass(frozen=True, slots=True, eq=False)
class JointTorques:
    """The torques at the joints of an arm over time.

    Attributes:
        t: times (n,) [s], from the beginning of the log.
        q: configurations (n, nq).
        expected: by inverse dynamics (n, nv) [N m].
        measured: (n, nv) [N m].
    """

    t: Floats
    q: Floats
    expected: Floats
    measured: Floats


@dataclass(frozen=True, slots=True)
class Drive:
    """What the motor of a joint has to overcome beside the dynamics of the links.

    Attributes:
        viscous: [N m s/rad].
        coulomb: [N m].
        rotor: inertia, seen from the joint [kg m^2].
        offset: [N m].
    """

    viscous: float
    coulomb: float
    rotor: float
    offset: float


def fitted_drives(tree: nd.KinematicTree, log: ArmLog, width: float, chosen: slice = slice(None)) -> list[Drive]:
    """Friction, rotor and offset of each joint that fit the torques of a log best, no friction below zero.

    Each column of the regression is what a component of size 1 adds to inverse dynamics.

    Args:
        tree: the arm.
        log: its log.
        width: velocity over which friction changes its sign [rad/s].
        chosen: the samples to fit; all when left out.
    """
    units = (
        nd.components.Friction(joints="all", viscous=1),
        nd.components.Friction(joints="all", coulomb=1, width=width),
        nd.components.Rotor(joints="all", inertia=1),
    )
    rigid = log.torques(tree)
    parts = [log.torques(tree.replace(components=(unit,))).expected - rigid.expected for unit in units]
    rest, drives = rigid.measured - rigid.expected, []
    for k in range(tree.nv):
        columns = np.stack([*(part[:, k] for part in parts), np.ones(len(rigid.t))], axis=1)
        drives.append(Drive(*map(float, least_squares(columns[chosen], rest[chosen, k], free=1))))
    return drives


def with_drives(tree: nd.KinematicTree, drives: Sequence[Drive], width: float) -> nd.KinematicTree:
    """An arm with friction and rotors."""
    components: list[nd.components.Component] = []
    for joint, drive in zip(tree.joint_names, drives, strict=True):
        components += [
            nd.components.Friction(joints=joint, viscous=drive.viscous, coulomb=drive.coulomb, width=width),
            nd.components.Rotor(joints=joint, inertia=drive.rotor),
        ]
    return tree.replace(components=tuple(components))


def least_squares(columns: Floats, values: Floats, free: int) -> Floats:
    """What times each column (n, m) comes nearest to values (n,); only the last few may be below zero."""
    lower = np.zeros(columns.shape[1])
    lower[columns.shape[1] - free :] = -np.inf
    return np.asarray(lsq_linear(columns, values, bounds=(lower, np.inf)).x)
