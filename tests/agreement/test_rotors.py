"""Rotors, friction and springs in the recursions, against Pinocchio with armature, and MuJoCo both ways."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.tree import KinematicTree
from tests.agreement.test_compiled import Case, everything
from tests.agreement.test_mujoco import MODELS, model_of
from tests.peers import mujoco
from tests.robots import mujoco_joint, mujoco_state
from tests.systems import random_states
from tests.tolerances import SOLVED, assert_close

N = 20


def rotors(tree: KinematicTree, seed: int = 0) -> dict[int, float]:
    """Return an inertia for each joint but free ones."""
    sizes = np.random.default_rng(seed).uniform(0.01, 1.0, tree.n_links)
    return {i: float(size) for i, size in enumerate(sizes) if tree.joints[i].kind != "free"}


class Armoured(Case):
    """A robot with rotors, and Pinocchio's with armature."""

    def __init__(self, name: str, base: str) -> None:
        super().__init__(name, base, N)
        self.model = self.model.copy()  # others are given the same one
        self.data = self.model.createData()
        inertias = rotors(self.tree)
        for i, inertia in inertias.items():
            number = self.model.getJointId(self.tree.joint_names[i])
            self.model.armature[self.model.idx_vs[number]] = inertia
        self.tree = self.tree.replace(
            components=tuple(
                nd.components.Rotor(joints=self.tree.joint_names[i], inertia=inertia / 16, gear=-4)
                for i, inertia in inertias.items()
            )
        )
        self.tau = nd.compile(nd.rnea, self.tree, backend="numpy").batch(self.q, self.qd, self.qdd)


@pytest.mark.parametrize(("name", "base"), [("panda", "fixed"), ("anymal", "floating"), ("kinova", "floating")])
def test_pinocchio_with_armature(name, base):
    case = Armoured(name, base)
    batches = [np.moveaxis(x, 0, -1) for x in (case.q, case.qd, case.qdd, case.tau)]
    expected = case.algorithms()
    for ours, reference in zip(everything(case.tree, *batches), expected, strict=True):
        assert_close(np.moveaxis(ours, -1, 0), reference, SOLVED)
    assert_close(expected.qdd, case.qdd, SOLVED)


def test_derivatives_with_armature():
    case = Armoured("ur5", "fixed")
    found = (
        *nd.compile(nd.rnea, case.tree, backend="numpy").derivative("q", "qd", "qdd").batch(case.q, case.qd, case.qdd),
        *nd.compile(nd.aba, case.tree, backend="numpy").derivative("q", "qd", "tau").batch(case.q, case.qd, case.tau),
    )
    for ours, reference in zip(found, case.derivatives(), strict=True):
        assert_close(ours, reference, SOLVED)


@pytest.mark.parametrize("name", MODELS)
def test_mujoco_with_armature_damping_and_springs(name, tmp_path):
    tree, model = model_of(name, tmp_path)
    rng = np.random.default_rng(4)
    components = []
    for i, inertia in rotors(tree).items():
        joint, number = tree.joint_names[i], mujoco_joint(tree, model, i)
        damping, stiffness, reference = rng.uniform(0.1, 5.0, 3)
        v = slice(model.jnt_dofadr[number], model.jnt_dofadr[number] + tree.joints[i].nv)
        model.dof_armature[v], model.dof_damping[v] = inertia, damping
        components += [
            nd.components.Rotor(joints=joint, inertia=inertia),
            nd.components.Friction(joints=joint, viscous=damping),
        ]
        if tree.joints[i].nv == 1:
            model.jnt_stiffness[number], model.qpos_spring[model.jnt_qposadr[number]] = stiffness, reference
            components.append(nd.components.Spring(joints=joint, stiffness=stiffness, reference=reference))
    tree = tree.replace(components=tuple(components))
    data = mujoco.MjData(model)
    truth = random_states(tree, N, seed=3)
    for q, qd, qdd in zip(truth.q, truth.qd, truth.qdd, strict=True):
        tau = nd.rnea(tree, q, qd, qdd)
        data.qpos[:], data.qvel[:], acceleration = mujoco_state(tree, model, q, qd, qdd)
        data.qacc[:] = acceleration
        mujoco.mj_inverse(model, data)
        for i, joint in enumerate(tree.joints):
            if joint.kind != "free":
                v = model.jnt_dofadr[mujoco_joint(tree, model, i)]
                assert_close(tau[tree.v_slices[i]], data.qfrc_inverse[v : v + joint.nv], SOLVED)
        data.qfrc_applied[:] = data.qfrc_inverse
        mujoco.mj_forward(model, data)
        assert_close(data.qacc, acceleration, SOLVED)
        assert_close(nd.aba(tree, q, qd, tau), qdd, SOLVED)
