"""What is said of a model: joints whose limits leave no room, and sensors that were known by what they are called."""

from itertools import product

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import LogCounts
from nori_dyn.model.joints import Helical, Prismatic, Revolute
from nori_dyn.system.side_by_side import SideBySide
from tests.cli.test_observe import UPPER
from tests.logs import samples_in
from tests.robots import EXAMPLE_ROBOT_DATA, load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set

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


FEET = {"l_ankle_2": "l_sole", "r_ankle_2": "r_sole"}
FIVE_AXES = ["mx", "my", "fx", "fy", "fz"]


def test_the_soles_of_icub_are_found_whatever_their_load_cells_are_called():
    """On flat ground the five-axis set loses a rank; under other names, "nothing lost" was reported."""
    tree = load("iCubGenova04", "floating", locked=UPPER)
    elsewhere = {"type": "external_wrench", "links": {"except": [*FEET]}, "value": 0}
    base = {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0}
    for fields in ({"name": "{} cell"}, {"links": "{ankle}", "frame": "{}"}, {"name": "fx:{ankle}"}):
        cells = [
            {"type": "external_wrench", "links": sole, "components": FIVE_AXES}
            | {key: value.format(sole, ankle=ankle) for key, value in fields.items()}
            for ankle, sole in FEET.items()
        ]
        report = nd.observability(nd.System(tree, sensor_set(ACCELERATIONS, base, elsewhere, *cells)), n=1)
        found = {condition.condition: condition for condition in report.conditions}
        assert set(found["parallel"].frames) == set(FEET.values()), fields
        assert (found["parallel"].lost, found["coplanar"].lost) == (1, 1), fields


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


def test_a_relation_is_not_at_the_frame_that_it_is_called_after():
    tree = load("iCubGenova04", "floating")
    relation = {"type": "linear_relation", "name": "l_sole", "terms": {"fx:l_ankle_2.mz": 1.0}, "value": None}
    rows = nd.System(tree, sensor_set(ACCELERATIONS, TORQUES, relation)).rows
    assert rows[-1].frame is None
    assert rows[-1].units == ("",)


def test_what_is_dynamics_is_not_a_matter_of_a_name():
    class Posing:
        """Sensors of another package whose type is called as the group of the equations of motion."""

        name = fingerprint = "posing"

        def equations(self, tree):
            for equation in sensor_set(ACCELERATIONS, WRENCHES).equations(tree):
                object.__setattr__(equation, "group", "dynamics")
                yield equation

    tree = nd.autotree(2)
    system = nd.System(tree, Posing())
    assert sum(row.is_dynamic for row in system.rows) == 3 * tree.n_links
    assert nd.observability(system, where=None).is_observable


def test_names_with_dots_are_counted_apart():
    tree = nd.autotree(2).replace(names=("arm.1", "arm.2"))
    system = nd.System(tree, sensor_set(ACCELERATIONS))
    text = " ".join(str(nd.observability(system, where=None)).split())
    assert "Not determined: fx:arm.1 (6), fx:arm.2 (6), f:arm.1 (6)" in text
