"""What the logs of arms have in common: joints that move, torques that are read, inverse dynamics between the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import lsq_linear

import nori_dyn as nd
from benchmarks.real.recording import Recording, beside, recorded
from nori_dyn.typing import Floats

SENSORS = "joint_torques.sensors.yaml"


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """How an arm moved, and what the torques at its joints were.

    Attributes:
        t: times (n,) [s], from 0.
        q: configurations (n, nq).
        qd: velocities (n, nv).
        qdd: accelerations (n, nv).
        tau: torques (n, nv).
    """

    t: Floats
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats

    def at(self, chosen: slice | Floats) -> Motion:
        """Return some of the samples."""
        parts = (self.t, self.q, self.qd, self.qdd, self.tau)
        return Motion(*(part[chosen] for part in parts))

    def moved(self, **parts: Floats) -> Motion:
        """Return it with other numbers."""
        return replace(self, **parts)


def recorded_arm(log: Path, mapping: str, tree: nd.KinematicTree, sensors: str = SENSORS) -> Recording:
    """Return the log of an arm, with its joint torques among the readings."""
    return recorded(log, mapping, nd.System(tree, beside(sensors)))


def torques(recording: Recording, tree: nd.KinematicTree) -> Floats:
    """Return the torques at the joints of an arm (n, nv)."""
    return recording.of(*(f"tau:{name}" for name in tree.joint_names))


def inverse_dynamics(tree: nd.KinematicTree, motion: Motion) -> Floats:
    """Return the torques that a motion takes (n, nv), friction and rotors of the tree among them."""
    plan = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau"])
    return plan.solver().solve_batch(motion.q, motion.qd, motion.qdd).tau


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


def fitted_drives(tree: nd.KinematicTree, motion: Motion, width: float) -> list[Drive]:
    """Return friction, rotor and offset of each joint that fit the torques of a motion best, none of them below zero.

    Each column of the regression is what a component of size 1 adds to inverse dynamics.
    """
    rigid = inverse_dynamics(tree, motion)
    parts = [inverse_dynamics(tree.replace(components=(unit,)), motion) - rigid for unit in units(width)]
    drives = []
    for k in range(tree.nv):
        columns = np.stack([*(part[:, k] for part in parts), np.ones(len(rigid))], axis=1)
        drives.append(Drive(*map(float, least_squares(columns, motion.tau[:, k] - rigid[:, k], free=1))))
    return drives


def units(width: float) -> tuple[nd.components.Component, ...]:
    """Return friction and rotors of size 1, of all joints."""
    return (
        nd.components.Friction(joints="all", viscous=1),
        nd.components.Friction(joints="all", coulomb=1, width=width),
        nd.components.Rotor(joints="all", inertia=1),
    )


def least_squares(columns: Floats, values: Floats, free: int) -> Floats:
    """Return what times each column (n, m) comes nearest to values (n,); only the last few may be below zero."""
    lower = np.zeros(columns.shape[1])
    lower[columns.shape[1] - free :] = -np.inf
    return np.asarray(lsq_linear(columns, values, bounds=(lower, np.inf)).x)


def with_drives(tree: nd.KinematicTree, drives: Sequence[Drive], width: float) -> nd.KinematicTree:
    """Return an arm with friction and rotors."""
    components: list[nd.components.Component] = []
    for joint, drive in zip(tree.joint_names, drives, strict=True):
        components += [
            nd.components.Friction(joints=joint, viscous=drive.viscous, coulomb=drive.coulomb, width=width),
            nd.components.Rotor(joints=joint, inertia=drive.rotor),
        ]
    return tree.replace(components=tuple(components))
