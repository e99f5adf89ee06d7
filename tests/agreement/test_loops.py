"""Mechanisms with closed loops against Pinocchio's constrained dynamics."""

import numpy as np
import pytest

from nori_dyn.components import Loop
from nori_dyn.model.tree import KinematicTree
from tests.cassie import CASSIE_SPRINGS, cassie, cassie_leg, cassie_on_one_foot, mjcf_model
from tests.in_pinocchio import PROXIMAL, constrained_dynamics
from tests.mechanisms import (
    closed_state,
    delta,
    five_bar,
    forward_dynamics,
    four_bar,
    sprung_leg,
    stewart,
    welded_limbs,
)
from tests.peers import pin
from tests.tolerances import SOLVED, assert_close

MECHANISMS = {make.__name__: make for make in (five_bar, sprung_leg, delta, stewart, cassie_leg, cassie_on_one_foot)}
LONG = {make.__name__: pytest.param(make, marks=pytest.mark.long) for make in (four_bar, cassie)}
every_mechanism = pytest.mark.parametrize("make", (MECHANISMS | LONG).values(), ids=MECHANISMS | LONG)


def check_against_pinocchio(tree: KinematicTree, q, qd, tau) -> None:
    qdd, forces = forward_dynamics(tree, q, qd, tau)
    expected, wrenches = constrained_dynamics(tree, q, qd, tau)
    assert_close(qdd, expected, SOLVED)
    for loop in tree.components:
        if isinstance(loop, Loop):
            assert_close(forces[f"loop:{loop.name}"], loop.subspace()[0].T @ wrenches[loop.name], SOLVED)


@every_mechanism
def test_forward_dynamics_and_wrenches_of_loops_equal_pinocchio(make):
    tree = make()
    for seed in range(2):
        check_against_pinocchio(tree, *closed_state(tree, seed))


BAUMGARTE = {"position": 60.0, "velocity": 12.0}


@pytest.mark.parametrize("constrains", ["point", "pose"])
def test_welded_limbs_equal_pinocchio(constrains):
    """Closed, and with correctors off the closed configurations by a gap, and by a velocity that widens it."""
    rng = np.random.default_rng(3)
    for seed, (stabilisation, gap) in enumerate([(None, 0.0), *((BAUMGARTE, gap) for gap in (0.0, 1e-6, 0.05))]):
        tree = welded_limbs(constrains, stabilisation)
        q, qd, tau = closed_state(tree, seed)
        q = tree.integrate(q, gap * rng.normal(size=tree.nv))
        check_against_pinocchio(tree, q, qd + gap * rng.normal(size=tree.nv), tau)


def test_cassie_equals_pinocchios_own_reading_of_its_file():
    """Loops, inertias of rotors and joints as Pinocchio reads them from the MJCF; springs it leaves out."""
    tree = cassie()
    model, loops = pin.buildModelAndLegacyConstraintsFromMJCF(str(mjcf_model("cassie.xml")))
    for seed in range(2):
        q, qd, tau = closed_state(tree, seed)
        without = tau.copy()
        for i, name in enumerate(tree.joint_names):
            stiffness = CASSIE_SPRINGS.get(name.partition("-")[2], 0.0)
            without[tree.v_slices[i]] -= stiffness * q[tree.q_slices[i]][: tree.joints[i].nv]
        data, datas = model.createData(), pin.StdVec_RigidConstraintData()
        datas.extend([loop.createData() for loop in loops])
        pin.initConstraintDynamics(model, data, loops, datas)
        expected = pin.constraintDynamics(model, data, q, qd, without, loops, datas, pin.ProximalSettings(*PROXIMAL))
        found, forces = forward_dynamics(tree, q, qd, tau)
        assert_close(found, expected, SOLVED)
        for loop, theirs in zip(loops, datas, strict=True):
            z = forces[f"loop:{model.names[loop.joint1_id]}"]
            assert_close(z, theirs.contact_force.linear[: len(z)], SOLVED)
