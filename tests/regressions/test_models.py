"""What is said of a model: joints whose limits leave no room, and sensors that were known by what they are called."""

from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import LogCounts
from nori_dyn.model.joints import Helical, Prismatic, Revolute
from nori_dyn.system.side_by_side import SideBySide
from tests.logs import samples_in
from tests.robots import EXAMPLE_ROBOT_DATA
from tests.systems import ACCELERATIONS, UNLOADED, sensor_set

# --------------------------------------------------------------------------------------------------------------
# Joints whose limits are 0 and 0, as exporters write them: they were sampled at that one pose, where rank is lost.


PENDULUM = EXAMPLE_ROBOT_DATA / "double_pendulum_description/urdf/double_pendulum_simple.urdf"
ENDS = ["base_link", "link2"]
CELLS = sensor_set(
    ACCELERATIONS,
    {"type": "joint_torque", "joints": "root_joint", "value": 0},
    {"type": "external_wrench", "links": ENDS, "components": ["mx", "my", "fx", "fy", "fz"]},
    {"type": "external_wrench", "links": {"except": ENDS}, "value": 0},
)
"""What loses a rank where both joints are at zero: there the normals are parallel."""


@pytest.fixture(scope="module")
def system() -> nd.System:
    return nd.System(nd.load_urdf(PENDULUM, base="floating"), CELLS)


def test_a_joint_without_room_moves_as_one_without_limits():
    for joint, limits in product((Revolute, Prismatic, Helical), ((0.0, 0.0), (0.3, 0.3), (1.0, -1.0))):
        free, tight = joint(), joint(limits=limits)
        assert tight.room == free.room, (joint, limits)
        assert tight.random(np.random.default_rng(3)) == free.random(np.random.default_rng(3)), (joint, limits)


def test_what_the_report_calls_observable_is_so_at_the_poses_that_it_samples(system):
    report = nd.observability(system)
    assert report.is_observable
    assert report.numerical_rank == report.generic_rank
    assert {condition.condition for condition in report.loses_rank} == {"at_zero", "parallel", "coplanar"}
    assert not len(nd.conditioning(system, n=10).lacking)


def test_it_can_be_planned(system):
    plan = nd.plan(system)
    q, qd, y = system.tree.random_configuration(1), np.ones(system.tree.nv), np.ones(system.ny)
    estimate = plan.solver("numpy").solve(q, qd, y)
    assert np.isfinite(estimate.tau).all()
    assert not estimate.fell_back


# --------------------------------------------------------------------------------------------------------------
# Sensors were known by what they are called: their frames, units and joints were read from their names.


def test_units_in_c_are_those_of_what_is_read():
    tree = nd.autotree(2)
    torque = {"type": "joint_torque", "joints": "joint1", "name": "qdd:joint2"}
    others = {"type": "joint_torque", "joints": "joint2", "name": "knee"}
    forces = {"type": "external_wrench", "links": "link2", "components": ["mz", "fx"], "name": "a:link1"}
    felt = {"type": "accelerometer", "links": "link2", "components": ["ax"]}
    system = nd.System(tree, sensor_set(torque, others, forces, felt))
    assert [unit for unit, _ in SideBySide([system], "").described.values()] == ["N m", "N m", "N m", "N", "m/s^2"]


def test_accelerations_that_a_log_lacks_are_made_for_sensors_of_any_name(tmp_path):
    tree = nd.autotree(2)
    renamed = [{"type": "joint_acceleration", "joints": joint, "name": f"my {joint}"} for joint in tree.joint_names]
    system = nd.System(tree, sensor_set(*renamed, UNLOADED))
    t = 0.01 * np.arange(20)
    np.savez(tmp_path / "log.npz", q=np.zeros((20, 2)), qd=np.column_stack([3 * t, 5 * t]))
    window = SavitzkyGolay(7, dt=0.01)
    counts = LogCounts()
    log = samples_in(tmp_path / "log.npz", system, window, counts=counts)
    np.testing.assert_allclose(log.y, np.tile([3.0, 5.0], (20, 1)), rtol=1e-9)
    assert counts.differentiated == ("my joint1", "my joint2")
    torques = [{"type": "joint_torque", "joints": joint, "name": f"qdd:{joint}"} for joint in tree.joint_names]
    with pytest.raises(nd.errors.InputError, match=r"lacks 2 of 2 measurements: 'qdd:joint1', 'qdd:joint2'\. Its"):
        samples_in(tmp_path / "log.npz", nd.System(tree, sensor_set(*torques, UNLOADED)), window)


def test_names_with_dots_are_counted_apart():
    tree = nd.autotree(2).replace(names=("arm.1", "arm.2"))
    system = nd.System(tree, sensor_set(ACCELERATIONS))
    text = " ".join(str(nd.observability(system, where=None)).split())
    assert "Not determined: fx:arm.1 (6), fx:arm.2 (6), f:arm.1 (6)" in text
