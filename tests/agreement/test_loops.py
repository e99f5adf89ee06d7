"""Mechanisms with closed loops and coupled joints, against Pinocchio and in reduced coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nori_dyn.components import Coupling, Loop
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions import bias_force, crba
from tests.cassie import CASSIE_SPRINGS, cassie, mjcf_model
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
from tests.oracles import derivative
from tests.peers import pin
from tests.tolerances import SOLVED, assert_close

MECHANISMS = {make.__name__: make for make in (five_bar, sprung_leg, delta, stewart)}
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


Position = Callable[[np.ndarray], float]


def mimic(q) -> float:
    return 0.3 - 1.4 * q[1]


def curve(q) -> float:
    return 0.1 + 0.5 * q[1] - 0.3 * q[1] ** 2 + 0.2 * q[1] ** 3


def differential(q) -> float:
    return 0.5 * q[2] - 0.5 * q[5]


def nonlinear_sum(q) -> float:
    return -0.2 * q[0] + 0.4 * q[2] ** 2


COUPLED: dict[int, tuple[Position, Coupling]] = {
    7: (mimic, Coupling(name="mimic", joint="joint8", of={"joint2": -1.4}, offset=0.3)),
    6: (differential, Coupling(name="differential", joint="joint7", of={"joint3": 0.5, "joint6": -0.5})),
    4: (nonlinear_sum, Coupling(name="sum", joint="joint5", of={"joint1": -0.2, "joint3": [0.0, 0.4]})),
    3: (curve, Coupling(name="curve", joint="joint4", of={"joint2": [0.5, -0.3, 0.2]}, offset=0.1)),
}
"""What joints follow, by the number of their freedom."""


def test_coupled_joints_move_as_in_reduced_coordinates():
    """G^T H G x'' + G^T (C + H G' x') = G^T tau, q = g(x) and G its slope by differences."""
    bare = random_tree(8, seed=41, kinds=("revolute", "prismatic", "revolute"), chain=0.6)
    tree = bare.replace(components=tuple(coupling for _, coupling in COUPLED.values()))
    free = [k for k in range(tree.nv) if k not in COUPLED]

    def whole(x) -> np.ndarray:
        q = np.zeros(tree.nv)
        q[free] = x
        for k, (position, _) in COUPLED.items():
            q[k] = position(q)
        return q

    rng = np.random.default_rng(0)
    x, dx, tau = rng.normal(size=len(free)), rng.normal(size=len(free)), 10 * rng.normal(size=tree.nv)
    G = np.array([derivative(lambda t, e=e: whole(x + t * e)) for e in np.eye(len(free))]).T
    bend = derivative(lambda s: derivative(lambda t: whole(x + (s + t) * dx)))
    q, qd = whole(x), G @ dx
    H, C = crba(bare, q), bias_force(bare, q, qd)
    qdd = G @ np.linalg.solve(G.T @ H @ G, G.T @ (tau - C - H @ bend)) + bend
    found, forces = forward_dynamics(tree, q, qd, tau)
    assert_close(found, qdd, SOLVED)
    held = H @ qdd + C - tau
    found = np.concatenate([forces[f"coupling:{coupling.name}"] for _, coupling in COUPLED.values()])
    assert_close(found, held[list(COUPLED)], SOLVED)
