"""The shipped sets of sensors on real robots: what they promise, by Pinocchio; by their rank; on flat feet."""

from functools import partial

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.peers import pin
from tests.robots import (
    ROBOTS,
    Pinocchio,
    load,
    pinocchio_model,
    pinocchio_on_contacts,
    pinocchio_with_revolutes,
    velocity_map,
)
from tests.systems import random_states
from tests.tolerances import ILL_SOLVED, SOLVED, assert_close

Floats = np.ndarray
LINEAR = slice(0, 3)

QUADRUPEDS = {
    "anymal": ("LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT"),
    "solo12": ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
    "go2": ("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
    "hyq": ("lf_foot", "rf_foot", "lh_foot", "rh_foot"),
}
HUMANOIDS = {"iCubGenova04": ("l_sole", "r_sole"), "talos_reduced": ("left_sole_link", "right_sole_link")}
long = partial(pytest.param, marks=pytest.mark.long)
every_quadruped = pytest.mark.parametrize("name", ["anymal", *(long(name) for name in ("solo12", "go2", "hyq"))])


def solver(tree: KinematicTree, config: str, *outputs: str):
    system = System(tree, nd.sensors(config))
    assert system.shape[0] == system.shape[1]
    return nd.plan(system, outputs=outputs).solver("numpy")


@every_quadruped
def test_forward_dynamics_of_a_quadruped_on_point_feet(name):
    tree, feet = load(name, "floating", clean=False), QUADRUPEDS[name]
    peer = Pinocchio.of(name, "floating", tree)
    truth = random_states(tree, 10, seed=1)
    tau = np.random.default_rng(1).normal(size=(10, tree.nv))
    tau[:, :6] = 0
    estimate = solver(tree, "quadruped_point_feet", "qdd", "fx").solve_batch(truth.q, truth.qd, tau)
    frames = [peer.model.getFrameId(foot) for foot in feet]
    for k in range(10):
        q, v, rate = peer.state(truth.q[k], truth.qd[k], estimate.qdd[k])
        torques = np.linalg.solve(velocity_map(tree, peer.model, truth.q[k]).T, tau[k])
        expected, forces = pinocchio_on_contacts(peer.model, q, v, torques, frames, LINEAR)
        assert_close(rate, expected, SOLVED)
        for foot, force in zip(feet, forces, strict=True):
            frame = tree.frame(foot)
            assert_close(frame.X.force_matrix() @ estimate.fx[k, frame.link], np.r_[np.zeros(3), force], SOLVED)


@every_quadruped
def test_inverse_dynamics_of_a_quadruped_with_sensors_in_its_feet(name):
    tree = load(name, "floating", clean=False)
    peer = Pinocchio.of(name, "floating", tree)
    model = peer.model
    estimator = solver(tree, "quadruped_foot_forces", "tau")
    names = estimator.plan.system.measurement_names
    rng = np.random.default_rng(2)
    truth = random_states(tree, 10, seed=2)
    pushes = rng.normal(size=(10, 4, 3))
    Y = np.hstack([truth.qdd, pushes.reshape(10, -1)])
    order = list(dict.fromkeys(n.split(":")[1].split(".")[0] for n in names if n.startswith("fx:")))
    assert sorted(order) == sorted(QUADRUPEDS[name])
    found = estimator.solve_batch(truth.q, truth.qd, Y)
    for k in range(10):
        forces = pin.StdVec_Force(model.njoints, pin.Force.Zero())
        for foot, push in zip(order, pushes[k], strict=True):
            frame = model.frames[model.getFrameId(foot)]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(push, np.zeros(3)))
        state = peer.state(truth.q[k], truth.qd[k], truth.qdd[k])
        expected = peer.joint_forces(truth.q[k], pin.rnea(model, peer.data, *state, forces))
        assert_close(found.tau[k], expected, SOLVED)


@pytest.mark.parametrize("name", ["anymal", *(long(x) for x in ("go2", "iCubGenova04", "talos_reduced", "g1"))])
def test_inverse_dynamics_of_a_floating_base_from_what_is_on_board(name):
    """An accelerometer and an angular one in the base, as Pinocchio has it move, give the torques of its RNEA."""
    tree = load(name, "floating", clean=False)
    peer = Pinocchio.of(name, "floating", tree)
    model, data = peer.model, peer.data
    truth = random_states(tree, 10, seed=3)
    Y, expected = np.empty((10, tree.nv)), np.empty((10, tree.nv))
    base = model.getFrameId(tree.names[0])
    for k in range(10):
        state = truth.q[k], truth.qd[k], truth.qdd[k]
        expected[k] = peer.rnea(*state)
        pin.forwardKinematics(model, data, *peer.state(*state))
        pin.updateFramePlacements(model, data)
        a = pin.getFrameClassicalAcceleration(model, data, base, pin.LOCAL)
        proper = a.linear - data.oMf[base].rotation.T @ np.array(tree.gravity)
        Y[k] = np.concatenate([truth.qdd[k, 6:], proper, a.angular])
    estimator = solver(tree, "floating_base", "tau")
    assert_close(estimator.solve_batch(truth.q, truth.qd, Y).tau, expected, SOLVED)
    elsewhere = truth.q.copy()
    elsewhere[:, :7] = tree.neutral_configuration()[:7]
    assert_close(estimator.solve_batch(elsewhere, truth.qd, Y).tau, expected, SOLVED)


def test_a_sensor_in_the_wrist_tells_what_the_tool_meets():
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    tree = load("panda", clean=False, locked=fingers, kept=("panda_hand_joint",))
    # after the arm's seven, before the fingers
    model = pinocchio_with_revolutes(ROBOTS["panda"], ("panda_hand_joint",))
    data = model.createData()
    hand = model.getJointId("panda_hand_joint")
    truth = random_states(tree, 10, seed=4)
    fx = np.random.default_rng(4).normal(size=(10, 6))
    Y, expected = [], []
    for k in range(10):
        q, v, a = (np.r_[part[k], np.zeros(3)] for part in (truth.q, truth.qd, truth.qdd))
        forces = pin.StdVec_Force(model.njoints, pin.Force.Zero())
        forces[hand] = pin.Force(fx[k, 3:], fx[k, :3])
        expected.append(pin.rnea(model, data, q, v, a, forces)[:7])
        Y.append(np.concatenate([truth.qdd[k], -np.roll(data.f[hand].vector, 3)]))
    estimate = solver(tree, "wrist_sensor", "tau", "fx").solve_batch(truth.q, truth.qd, np.array(Y))
    assert_close(estimate.tau, expected, SOLVED)
    assert_close(estimate.fx[:, tree.link("panda_hand")], fx, SOLVED)


def test_torques_tell_what_touches_the_tool():
    tree = load("panda", clean=False, locked=("panda_finger_joint1", "panda_finger_joint2"))
    model = pinocchio_model(ROBOTS["panda"])
    data = model.createData()
    truth = random_states(tree, 10, seed=5)
    fx = np.random.default_rng(5).normal(size=(10, 6))
    Y = []
    for k in range(10):
        q, v, a = (np.r_[part[k], np.zeros(2)] for part in (truth.q, truth.qd, truth.qdd))  # closed fingers
        forces = pin.StdVec_Force(model.njoints, pin.Force.Zero())
        forces[7] = pin.Force(fx[k, 3:], fx[k, :3])
        Y.append(np.concatenate([truth.qdd[k], pin.rnea(model, data, q, v, a, forces)[:7]]))
    plan = nd.plan(System(tree, nd.sensors("touch")), outputs=("fx", "tau"))
    estimate = plan.solver("numpy").solve_batch(truth.q, truth.qd, np.array(Y))
    assert_close(estimate.fx[:, tree.link("panda_link7")], fx, ILL_SOLVED)
    assert_close(estimate.tau, np.array(Y)[:, 7:], ILL_SOLVED)


# What rank sets of load cells lose where both soles are on flat ground.
LOST = {"load_cells_five": 1, "four_cells_a_foot": 1, "three_axes_a_foot": 0, "load_cells_square": 1}


def rank(system: System, q: Floats) -> int:
    """The rank by singular values, of which none must be near the bound."""
    values = np.linalg.svd(system.D(q).toarray(), compute_uv=False) / 10
    assert not ((values > 1e-12) & (values < 1e-6)).any()
    return int((values > 1e-9).sum())


@pytest.mark.parametrize("name", ["talos_reduced", long("iCubGenova04")])
@pytest.mark.parametrize("config", LOST)
def test_load_cells_suffice_but_on_flat_ground(config, name):
    tree = load(name, "floating")
    system = System(tree, nd.sensors(config))
    lost, n = LOST[config], system.shape[1]
    assert {row.is_exact for row in system.measurements} == {config == "load_cells_square"}
    assert rank(system, tree.random_configuration(6)) == n
    flat = tree.neutral_configuration()
    frames, X_0 = [tree.frame(sole) for sole in HUMANOIDS[name]], positions(tree, flat).X_0
    left, right = ((frame.X @ X_0[frame.link]).E[2] for frame in frames)
    assert np.abs(np.cross(left, right)).max() < 1e-9
    assert n - rank(system, flat) in ((1, 2) if config == "load_cells_square" else (lost,))  # upright, it may lose more
    report = nd.observability(system, where={"flat": HUMANOIDS[name]}, n=2)
    assert report.is_observable
    assert [condition.lost for condition in report.conditions] == [lost]


def test_four_cells_see_three_numbers_of_the_wrench():
    """As the config says: the sums that four forces across the sole make, and how uncertain those are."""
    (entry,) = (m for m in nd.sensors("four_cells_a_foot").measurements if m.type == "external_wrench" and m.sigma)
    assert entry.components == ["mx", "my", "fz"]
    corners = np.array([(x, y, 0.0) for x in (0.07, -0.07) for y in (0.025, -0.025)])
    cells = np.array([[*np.cross(corner, (0, 0, 1)), 0, 0, 1] for corner in corners]).T
    np.testing.assert_allclose(cells[[2, 3, 4]], 0)
    seen = cells[[0, 1, 5]]
    np.testing.assert_allclose(np.vstack([corners[:, 1], -corners[:, 0], np.ones(4)]), seen)
    covariance = seen @ seen.T
    np.testing.assert_allclose(covariance, np.diag(entry.sigma) ** 2, atol=1e-12)
    assert np.linalg.matrix_rank(seen) == 3
