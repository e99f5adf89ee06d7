"""Robots that walk in MuJoCo: its motions, contacts, torques and sensors fit together by our dynamics."""

import numpy as np
import pytest

from nori_dyn.estimation.plan import plan
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, sensor_set
from tests.walking import Walk, walk

CLOSE = 1e-9
"""Of forces of some hundred newtons, and of what a step of MuJoCo's own differs from them by."""


@pytest.fixture(params=[pytest.param("quadruped", marks=pytest.mark.long), "biped"])
def record(request) -> Walk:
    return walk(request.param)


def test_inverse_dynamics_gives_the_torques_and_the_wrenches_through_the_ankles(record):
    """From true accelerations and contact wrenches; nothing acts on the base."""
    tree, ticks = record.tree, slice(None, None, 20)
    sensors = sensor_set(
        ACCELERATIONS,
        {"type": "external_wrench", "links": list(record.feet)},
        {"type": "external_wrench", "links": {"except": list(record.feet)}, "value": 0},
    )
    wrenches = record.fx[ticks]
    y = np.hstack([record.qdd[ticks], wrenches.reshape(len(wrenches), -1)])
    found = plan(System(tree, sensors)).solver("numpy").solve_batch(record.q[ticks], record.qd[ticks], y)
    np.testing.assert_allclose(found.tau, record.tau[ticks], atol=CLOSE)
    ankles = [tree.names.index(foot) for foot in record.feet]
    np.testing.assert_allclose(found.f[:, ankles], record.force_torque[ticks], atol=CLOSE)


def test_the_accelerometer_reads_the_base(record):
    w, u = record.qd[:, :3], record.qd[:, 3:6]
    down = np.array([record.tree.joints[0].transform(q[:7]).E @ record.tree.gravity for q in record.q])
    expected = record.qdd[:, 3:6] + np.cross(w, u) - down
    np.testing.assert_allclose(record.accelerometer, expected, atol=CLOSE)
