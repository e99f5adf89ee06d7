"""Sensor sets that no recursion covers, against Pinocchio: standing on the ground, and force-torque sensors."""

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.errors import SingularSystemError
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.system.builder import System
from tests.peers import pin
from tests.robots import (
    ROBOTS,
    acceleration_to_pinocchio,
    load,
    pinocchio_model,
    pinocchio_on_contacts,
    to_pinocchio,
    velocity_map,
)
from tests.systems import ACCELERATIONS, TORQUES, random_states, sensor_set
from tests.tolerances import SOLVED, assert_close

FEET = {
    "talos_reduced": ("left_sole_link", "right_sole_link"),
    "iCubGenova04": ("l_sole", "r_sole"),
    "anymal": ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
}
POINTS = ("anymal",)
"""Robots that stand on points: their feet transmit no moment, and may turn."""


def standing(name: str):
    """Return a floating robot, and sensors that know the torques and that the feet do not move."""
    tree = load(name, "floating", clean=False)
    feet = list(FEET[name])
    bodies = [tree.names[tree.frame(foot).link] for foot in feet]
    entries = [
        TORQUES,
        {"type": "external_wrench", "links": {"except": bodies}, "value": 0},
        {"type": "rigid_contact", "links": feet},
    ]
    if name in POINTS:
        entries[2]["components"] = ["ax", "ay", "az"]
        entries.append({"type": "external_wrench", "links": feet, "components": ["mx", "my", "mz"], "value": 0})
    return tree, sensor_set(*entries, name="standing")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "anymal" else pytest.mark.long) for name in FEET]
)
def test_forward_dynamics_of_a_robot_on_its_feet(name):
    tree, known = standing(name)
    system = System(tree, known)
    solver = plan(system, outputs=("qdd", "fx")).solver("numpy")
    model = pinocchio_model(ROBOTS[name], "floating")
    truth = random_states(tree, 20, seed=1)
    rng = np.random.default_rng(1)
    tau = rng.normal(size=(20, tree.nv))
    estimate = solver.solve_batch(truth.q, truth.qd, tau)
    rows = slice(0, 3) if name in POINTS else slice(0, 6)
    frames = [model.getFrameId(foot) for foot in FEET[name]]
    for k in range(20):
        q, v = to_pinocchio(tree, model, truth.q[k], truth.qd[k])
        P = velocity_map(tree, model, truth.q[k])
        expected, forces = pinocchio_on_contacts(model, q, v, np.linalg.solve(P.T, tau[k]), frames, rows)
        rate = acceleration_to_pinocchio(tree, model, truth.q[k], truth.qd[k], estimate.qdd[k])
        assert_close(rate, expected, SOLVED)
        for foot, force in zip(FEET[name], forces, strict=True):
            frame = tree.frame(foot)
            there = frame.X.force_matrix() @ estimate.fx[k, frame.link]
            assert_close(there[3:], force[:3], SOLVED)
            assert_close(there[:3], force[3:] if len(force) == 6 else np.zeros(3), SOLVED)


def test_a_force_torque_sensor_takes_the_place_of_a_known_wrench():
    """An arm whose tool meets something: the wrist's sensor, and the motion, tell the wrench on it."""
    tree = load("ur5", "fixed", clean=False)
    tool = tree.names[-1]
    known = sensor_set(
        ACCELERATIONS,
        {"type": "external_wrench", "links": {"except": tool}, "value": 0},
        {"type": "force_torque", "joints": tree.joint_names[-1], "measures": "child_on_parent"},
    )
    system = System(tree, known)
    solver = plan(system).solver("numpy")
    model = pinocchio_model(ROBOTS["ur5"])
    data = model.createData()
    truth = random_states(tree, 20, seed=2)
    fx = np.random.default_rng(2).normal(size=(20, 6))
    forces = pin.StdVec_Force(model.njoints, pin.Force.Zero())
    tau, readings = [], []
    for k in range(20):
        q, v = to_pinocchio(tree, model, truth.q[k], truth.qd[k])
        forces[model.njoints - 1] = pin.Force(fx[k, 3:], fx[k, :3])
        tau.append(pin.rnea(model, data, q, v, truth.qdd[k], forces))
        readings.append(-np.roll(data.f[model.njoints - 1].vector, 3))
    estimate = solver.solve_batch(truth.q, truth.qd, np.hstack([truth.qdd, readings]))
    assert_close(estimate.tau, tau, SOLVED)
    assert_close(estimate.fx[:, -1], fx, SOLVED)


def test_three_axes_in_each_foot_do_not_suffice():
    """Nori (18), as shipped: a humanoid on two three-axis load cells; the wrench between the feet is not all seen."""
    tree = load("iCubGenova04", "floating")
    system = System(tree, sensors("icub_feet_three_axes"))
    assert system.shape[0] == system.shape[1]
    with pytest.raises(SingularSystemError, match="rank is 669 of 670") as raised:
        plan(system)
    undetermined = raised.value.undetermined
    feet = {f"fx:{tree.names[tree.frame(foot).link]}" for foot in FEET["iCubGenova04"]}
    assert feet <= {name.split(".")[0] for name in undetermined}
    assert {name.split(":")[0] for name in undetermined} <= {"fx", "f", "tau"}


@pytest.mark.long
def test_shipped_sets_of_the_icub():
    """Torques that hold it up on its feet, from its imu, are those with which it does what it does."""
    tree = load("iCubGenova04", "floating")
    truth = random_states(tree, 5, seed=4)
    torques = np.random.default_rng(4).normal(size=(5, tree.nv))
    torques[:, :6] = 0
    stands = plan(System(tree, sensors("icub_standing"))).solver("numpy")
    moving = stands.solve_batch(truth.q, truth.qd, torques)
    on_board = sensor_set(
        *sensors("icub_imu").to_dict()["measurements"][:-1], {"type": "external_wrench", "links": "all"}
    )
    felt = plan(System(tree, on_board), outputs=("tau",)).solver("numpy")
    w, u, a = truth.qd[:, :3], truth.qd[:, 3:6], moving.a[:, 0]
    Y = np.hstack([moving.qdd[:, 6:], a[:, 3:] + np.cross(w, u), a[:, :3], moving.fx.reshape(5, -1)])
    assert_close(felt.solve_batch(truth.q, truth.qd, Y).tau, torques, SOLVED)
