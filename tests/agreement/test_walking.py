"""Robots that walk in MuJoCo: its motions, contacts, torques and sensors fit together by our dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.system.builder import System
from tests.systems import sensor_set
from tests.walking import Walk, walk

CLOSE = 1e-9
"""Of forces of some hundred newtons, and of what a step of MuJoCo's own differs from them by."""


@pytest.fixture(params=["quadruped", "biped"])
def record(request) -> Walk:
    return walk(request.param)


def solved(record: Walk, every: int):
    """Return the estimate of inverse dynamics from true accelerations and contact wrenches."""
    tree = record.tree
    sensors = sensor_set(
        {"type": "joint_acceleration", "joints": "all"},
        {"type": "external_wrench", "links": list(record.feet)},
        {"type": "external_wrench", "links": {"except": list(record.feet)}, "value": 0},
    )
    N = len(record.q[::every])
    y = np.concatenate([record.qdd[::every], record.fx[::every].reshape(N, -1)], axis=1)
    return plan(System(tree, sensors)).solver("numpy").solve_batch(record.q[::every], record.qd[::every], y)


def test_inverse_dynamics_gives_the_torques_of_the_joints_and_none_on_the_base(record):
    np.testing.assert_allclose(solved(record, 20).tau, record.tau[::20], atol=CLOSE)


def test_force_torque_sensors_read_the_wrenches_through_the_ankles(record):
    f = solved(record, 20).f
    for number, foot in enumerate(record.feet):
        i = record.tree.names.index(foot)
        np.testing.assert_allclose(f[:, i], record.force_torque[::20, number], atol=CLOSE)


def test_the_accelerometer_reads_the_base(record):
    w, u = record.qd[:, :3], record.qd[:, 3:6]
    down = np.array([record.tree.joints[0].transform(q[:7]).E @ record.tree.gravity for q in record.q])
    expected = record.qdd[:, 3:6] + np.cross(w, u) - down
    np.testing.assert_allclose(record.accelerometer, expected, atol=CLOSE)


def test_every_state_of_the_gaits_occurs(record):
    states = {tuple(state) for state in record.contact.tolist()}
    if len(record.feet) == 2:
        assert states == {(True, True), (True, False), (False, True)}
    else:
        assert {(True, False, False, True), (False, True, True, False), (True,) * 4} <= states
