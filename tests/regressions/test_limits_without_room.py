"""Joints whose limits are 0 and 0, as exporters write them: they were sampled at that one pose, where rank is lost."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.joints import Helical, Prismatic, Revolute
from tests.robots import EXAMPLE_ROBOT_DATA
from tests.systems import ACCELERATIONS, sensor_set

PENDULUM = EXAMPLE_ROBOT_DATA / "double_pendulum_description/urdf/double_pendulum_simple.urdf"
FEET = ["base_link", "link2"]
CELLS = sensor_set(
    ACCELERATIONS,
    {"type": "joint_torque", "joints": "root_joint", "value": 0},
    {"type": "external_wrench", "links": FEET, "components": ["mx", "my", "fx", "fy", "fz"]},
    {"type": "external_wrench", "links": {"except": FEET}, "value": 0},
)
"""What loses a rank where both joints are at zero: there the normals are parallel."""


@pytest.fixture(scope="module")
def system() -> nd.System:
    return nd.System(nd.load_urdf(PENDULUM, base="floating"), CELLS)


@pytest.mark.parametrize("joint", [Revolute, Prismatic, Helical])
@pytest.mark.parametrize("limits", [(0.0, 0.0), (0.3, 0.3), (1.0, -1.0)])
def test_a_joint_without_room_moves_as_one_without_limits(joint, limits):
    free, tight = joint(), joint(limits=limits)
    assert tight.room == free.room
    assert tight.random(np.random.default_rng(3)) == free.random(np.random.default_rng(3))


def test_the_tree_says_so(system):
    assert "limits that leave no room taken as none: joint1, joint2" in system.tree.notes


def test_what_the_report_calls_observable_is_so_at_the_poses_that_it_samples(system):
    report = nd.observability(system)
    assert report.is_observable
    assert report.numerical_rank == report.generic_rank
    assert {condition.condition for condition in report.loses_rank} == {"at_zero", "parallel", "coplanar"}
    assert not len(nd.conditioning(system, n=10).lacking)


def test_it_can_be_planned(system):
    plan = nd.plan(system, cache=False)
    q, qd, y = system.tree.random_configuration(1), np.ones(system.tree.nv), np.ones(system.ny)
    estimate = plan.solver("numpy").solve(q, qd, y)
    assert np.isfinite(estimate.tau).all()
    assert not estimate.fell_back


def test_what_suffices_in_exact_arithmetic_only_is_not_called_observable():
    """Two readings that differ by one part in 1e13."""
    terms = [{"qdd:joint1": 1.0, "qdd:joint2": 1.0}, {"qdd:joint1": 1.0, "qdd:joint2": 1.0 + 1e-13}]
    relations = [{"type": "linear_relation", "name": f"r{k}", "terms": t} for k, t in enumerate(terms)]
    wrenches = {"type": "external_wrench", "links": "all", "value": 0}
    report = nd.observability(nd.System(nd.autotree(2), sensor_set(wrenches, *relations)), where=None)
    assert str(report).startswith("No, these sensors suffice on paper only. Exact arithmetic would tell")
    assert "in doubles the rank is 39 of 40." in " ".join(str(report).split())
