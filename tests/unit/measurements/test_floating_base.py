"""The base as state: its rows against Pinocchio's velocities and differences of a known motion, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import SensorConfigError
from nori_dyn.measurements.floating_base import BASE, RATE, BaseRates
from nori_dyn.model.kinematics import velocities
from nori_dyn.system.variables import VariableKey
from tests.in_pinocchio import in_pinocchio
from tests.peers import pin
from tests.robots import load
from tests.standing import GRAVITY, robot, sensors, sway
from tests.systems import sensor_set
from tests.tolerances import PEER, Tolerance, assert_close

DIFFERENCES = Tolerance(1e-6, "central differences of a motion over 2e-4 s")
MEMORY = {"base": {"of": "base"}}
POSE = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.4, -0.5, 2.6]}
ALL = ["wx", "wy", "wz", "vx", "vy", "vz"]


def system(tree: nd.KinematicTree, *rows: dict, memory: dict | None = MEMORY) -> nd.System:
    return nd.System(tree, sensor_set(*rows, **({"memory": memory} if memory else {})))


def test_velocities_of_frames_are_those_of_pinocchio_whatever_the_reference():
    """A reference turned by any rotation, and that turns with any angular velocity."""
    tree, rng = load("solo12", "floating"), np.random.default_rng(0)
    gyro = {"type": "gyroscope", "links": "all", "frame": POSE}
    foot = {"type": "zero_velocity", "links": "all", "frame": POSE, "components": ALL, "value": None, "name": None}
    of = system(tree, gyro, foot)
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    turn, w_ref = Rotation.from_rotvec([0.4, -1.1, 2.0]), rng.normal(size=3)
    given_q, given_qd = q.copy(), qd.copy()
    given_q[:7] = [0.0, 0.0, 0.0, *turn.as_quat()]
    given_qd[:6] = [*w_ref, 0.0, 0.0, 0.0]
    d = np.zeros(of.shape[1])
    place = {v.key: v.slice for v in of.variables}
    d[place[VariableKey(BASE, 0, "angular_velocity")]] = qd[:3]
    d[place[VariableKey(BASE, 0, "velocity")]] = turn.apply(qd[3:6])
    read = of.D(given_q) @ d + of.b(given_q, given_qd, np.zeros(of.ny))
    model, places, q_order, v_order = in_pinocchio(tree)
    data = model.createData()
    pin.forwardKinematics(model, data, q[q_order], qd[v_order])
    for row in of.measurements:
        kind, name = row.name.split(":")
        joint, at = places[tree.names.index(name)]
        own = at * pin.SE3(Rotation.from_euler("xyz", POSE["rpy"]).as_matrix(), np.array(POSE["xyz"]))
        theirs = own.actInv(data.v[joint])
        expected = theirs.angular if kind == "gyro" else np.concatenate([theirs.angular, theirs.linear])
        assert_close(read[row.slice], expected, PEER)


def test_a_batch_of_states_is_each_of_them():
    tree, rng = load("solo12", "floating"), np.random.default_rng(1)
    rows = [{"type": "gyroscope", "links": "all"}, {"type": "zero_velocity", "links": "all", "components": ALL}]
    of = sensor_set(*rows, memory=MEMORY).equations(tree)
    Q, Qd = tree.random_configurations(3, rng), rng.normal(size=(3, tree.nv))
    batch = velocities(tree, Q.T, Qd.T)
    for equation in of:
        for k in range(3):
            at, y = velocities(tree, Q[k], Qd[k]), np.zeros(len(equation.components) * equation.is_measured)
            for key, block in equation.blocks(at).items():
                theirs = equation.blocks(batch)[key]
                np.testing.assert_allclose(block, theirs[..., k] if theirs.ndim > 2 else theirs, atol=1e-14)
            theirs = equation.bias(batch, np.repeat(y[:, None], 3, axis=1))
            np.testing.assert_allclose(equation.bias(at, y), theirs[:, k] if theirs.ndim > 1 else theirs, atol=1e-13)


def test_rates_are_those_of_a_known_motion():
    """For any angular velocity of the reference, with the velocity where the position would be."""
    tree, h = robot(), 1e-4
    motion = sway(np.array([0.3 - h, 0.3, 0.3 + h]), tilt=np.array([0.3, -0.2, 0.0]))
    (before, now, after), (v_before, v, v_after) = motion.R, motion.v
    w = motion.w[1]
    rows = BaseRates(0)
    a = nd.System(tree, "inverse_dynamics").variables[0].key
    for w_ref in (w, np.array([0.5, -0.4, 0.9])):
        turns = [Rotation.from_rotvec(w_ref * k).as_matrix() for k in (-h, 0.0, h)]
        R = [Rotation.from_euler("z", 0.7).as_matrix() @ now @ turn for turn in turns]
        q = np.concatenate([R[1] @ v, Rotation.from_matrix(R[1]).as_quat(), motion.q[1]])
        at = velocities(tree, q, np.concatenate([w_ref, np.zeros(3), motion.qd[1]]))
        blocks, bias = rows.blocks(at), rows.bias(at, np.zeros(0))
        turning = (motion.w[2] - motion.w[0]) / (2 * h)
        rates = -(blocks[a] @ np.concatenate([turning, motion.acc[1]]) + bias)
        rates -= (
            blocks[VariableKey(BASE, 0, "gravity")] @ GRAVITY + blocks[VariableKey(BASE, 0, "angular_velocity")] @ w
        )
        G = [axes @ true.T @ GRAVITY for axes, true in zip(R, (before, now, after), strict=True)]
        assert_close(rates[3:6], (G[2] - G[0]) / (2 * h), DIFFERENCES)
        assert_close(rates[6:9], turning, DIFFERENCES)
        assert_close(rates[:3], (R[2] @ v_after - R[0] @ v_before) / (2 * h), DIFFERENCES)
    for name in ("velocity", "gravity", "angular_velocity"):
        assert np.linalg.matrix_rank(blocks[VariableKey(RATE, 0, name)]) == 3


@pytest.mark.parametrize(
    ("rows", "memory", "base", "words"),
    [
        (
            [{"type": "gyroscope", "links": "link1"}],
            None,
            "floating",
            "'gyro:link1' reads the velocity of the base",
        ),
        ([{"type": "gyroscope", "links": "link1"}], MEMORY, "fixed", "the base of robot .* is fixed"),
        ([], {"base": {"of": ["base", "offset"]}}, "floating", "the state of the base is one entry"),
        ([], {"base": {"of": "base", "noise": 0.1}}, "floating", "the state of the base is one entry"),
    ],
)
def test_what_is_refused(rows, memory, base, words):
    tree = nd.autotree(3) if base == "fixed" else robot()
    rows = [row | {"links": tree.names[0]} for row in rows]
    with pytest.raises(SensorConfigError, match=words.replace("link1", tree.names[0])):
        system(tree, *rows, memory=memory)


def test_a_robot_without_gravity_has_no_attitude():
    with pytest.raises(SensorConfigError, match="has no gravity, and nothing else tells"):
        nd.System(robot().replace(gravity=(0.0, 0.0, 0.0)), sensors())


@pytest.mark.parametrize(("turn", "shift"), [(0.0, 0.1), (0.1, 0.0)])
def test_a_base_begins_at_the_origin_of_the_world(turn, shift):
    """What a reference writes into q is velocity and attitude in the axes of the world."""
    tree = robot()
    X = Transform(Rotation.from_rotvec([0.0, 0.0, turn]).as_matrix(), np.array([0.0, 0.0, shift]))
    with pytest.raises(SensorConfigError, match=f"'{tree.joint_names[0]}' places the base of robot"):
        nd.System(tree.replace(X_tree=(X, *tree.X_tree[1:])), sensors())
