"""Regressors of real robots are Pinocchio's, and base parameters as many as the literature counts.

Counts of arms by the rule of Mayeda, Yoshida and Osuka, Base parameters of manipulator dynamic models (1990), and of
Gautier and Khalil, Direct calculation of minimum set of inertial parameters of serial robots (1990).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import NoriWarning
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.regression import Regression
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.peers import pin
from tests.robots import EXAMPLE_ROBOT_DATA, ROBOTS, Pinocchio, load, pinocchio_model, pinocchio_with_revolutes
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import RECURSION, assert_close
from tests.unit.identification.simulated import at_motions

TORQUES_ALONE = sensor_set(ACCELERATIONS, TORQUES, UNLOADED)

FEW = (("panda", "fixed"), ("kinova", "fixed"), ("anymal", "floating"))
MORE = [(name, "fixed") for name in ("ur5", "xarm7", "double_pendulum", "allegro", "anymal", "go2", "hyq", "g1")]
MORE += [(name, "floating") for name in ("go2", "solo12", "ur5", "double_pendulum")]

COUNTS = {"panda": 43, "ur5": 36, "xarm7": 43, "ur10": 36}
"""Published: Gaz et al., Dynamic identification of the Franka Emika Panda robot (2019); 7 n - 6 for an upright axis."""

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")


def read(path: Path, base: str = "fixed", **options) -> KinematicTree:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        return load_urdf(path, base=base, **options)


def inertias_of(tree: KinematicTree) -> Regression:
    return Regression.of(System(tree, TORQUES_ALONE), ["inertias"])


def states(tree: KinematicTree, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motions whose positions are beside all limits: joints turn right round, and shift by a metre."""
    rng = np.random.default_rng(seed)
    Q = rng.uniform(-3.0, 3.0, size=(n, tree.nq))
    for part in tree.quaternions:
        Q[:, part] /= np.linalg.norm(Q[:, part], axis=1, keepdims=True)
    return Q, *rng.normal(size=(2, n, tree.nv))


def pinocchio_regressor(tree: KinematicTree, model: pin.Model, q, qd, qdd) -> np.ndarray:
    """d tau / d phi (nv, 10 n_links) of Pinocchio, in the order of the tree."""
    peer = Pinocchio(tree, model)
    found = pin.computeJointTorqueRegressor(model, peer.data, *peer.state(q, qd, qdd))
    columns = [10 * (model.getJointId(name) - 1) + k for name in tree.joint_names for k in range(10)]
    return peer.joint_forces(q, found[:, columns])


@pytest.mark.parametrize(("name", "base"), [*FEW, *(pytest.param(*case, marks=pytest.mark.long) for case in MORE)])
def test_regressors_are_pinocchios(name, base):
    """Also the columns that are compiled, on a batch."""
    tree = load(name, base, clean=False)
    found = inertias_of(tree)
    assert [each.owner for each in found.parameters.each[::10]] == list(tree.names)
    model = pinocchio_model(ROBOTS[name], base)
    Q, Qd, Qdd = states(tree, 17, 0)
    W, _, c = at_motions(found, Q, Qd, Qdd)
    assert not c.any()
    program, layout = found.program(range(5, 15), "auto")
    compiled, _, _ = layout.dense(program.batch(Q, Qd, Qdd, np.zeros((len(Q), found.system.ny))))
    for k in range(len(Q)):
        expected = pinocchio_regressor(tree, model, Q[k], Qd[k], Qdd[k])
        assert_close(W[k], expected, RECURSION)
        assert_close(compiled[k], expected[:, 5:15], RECURSION)


def test_a_force_torque_sensor_on_board_reads_pinocchios_regressor_of_what_it_carries():
    tree = load("panda", kept=("panda_hand_joint",), clean=False)
    ft = {"type": "force_torque", "joints": "panda_hand_joint"}
    found = Regression.of(System(tree, sensor_set(ACCELERATIONS, ft, UNLOADED)), ["inertias"])
    model = pinocchio_with_revolutes(ROBOTS["panda"], ("panda_hand_joint",))
    data = model.createData()
    Q, Qd, Qdd = states(tree, 3, 2)
    W, _, _ = at_motions(found, Q, Qd, Qdd)
    hand = model.getJointId("panda_hand_joint")
    for k in range(len(Q)):
        q, v, a = np.zeros((3, model.nv))
        for i in (i for i, joint in enumerate(tree.joints) if joint.nv):
            at = model.joints[model.getJointId(tree.joint_names[i])].idx_v
            q[at], v[at], a[at] = Q[k][tree.q_slices[i]][0], Qd[k][tree.v_slices[i]][0], Qdd[k][tree.v_slices[i]][0]
        pin.forwardKinematics(model, data, q, v, a)
        expected = np.zeros((6, 10 * tree.n_links))
        for i in range(tree.n_links):
            j = model.getJointId(tree.joint_names[i])
            if j < hand:
                continue
            motion = data.a[j] - data.oMi[j].actInv(model.gravity)
            there = data.oMi[hand].actInv(data.oMi[j]).toDualActionMatrix()
            expected[:, 10 * i : 10 * i + 10] = there @ pin.bodyRegressor(data.v[j], motion)
        assert_close(W[k], np.roll(expected, 3, axis=0), RECURSION)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_the_literature(name):
    path = EXAMPLE_ROBOT_DATA / "ur_description/urdf/ur10_robot.urdf" if name == "ur10" else ROBOTS[name]
    tree = read(path, locked=FINGERS if name == "panda" else ())
    assert base_parameters(inertias_of(tree)).rank == COUNTS[name]
