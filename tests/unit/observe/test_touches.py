"""What sensors tell of touches, held against ranks of Jacobians by Pinocchio at a random configuration."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import PlanError, UnknownSensorNameError
from tests.closed_robots import four_bar
from tests.in_pinocchio import in_pinocchio
from tests.peers import pin
from tests.systems import SPEED, sensor_set

BASE = {"type": "force_torque", "joints": {"at": 0}, "sigma": 0.1}


def torques(joints="all"):
    return {"type": "joint_torque", "joints": joints, "sigma": 0.1}


def sensors(*rows, links="all") -> nd.SensorSet:
    return sensor_set(*rows, name="touch", memory={"speed": SPEED}, touch={"links": links})


def readings(tree: nd.KinematicTree, joints: list[int], with_base: bool) -> dict[str, np.ndarray]:
    """What readings change by a wrench on each link, linear first: J^T, and the wrench in the world."""
    model, *_ = in_pinocchio(tree)
    data, q = model.createData(), tree.random_configuration(np.random.default_rng(0))
    pin.computeJointJacobians(model, data, q)
    found = {}
    for i, name in enumerate(tree.names):
        J = pin.getJointJacobian(model, data, i + 1, pin.LOCAL)
        found[name] = np.vstack([J.T[joints], data.oMi[i + 1].toDualActionMatrix()[: 6 * with_base]])
    return found


@pytest.mark.parametrize(
    "tree", [nd.autotree(7, skew=1.0), nd.autotree(7, branching=2.0, skew=1.0)], ids=["arm", "tree"]
)
@pytest.mark.parametrize("with_base", [True, False], ids=["base", "torques"])
@pytest.mark.parametrize("joints", [[0, 1, 2, 3, 4, 5, 6], [0, 1, 3]], ids=["all", "some"])
def test_ranks_are_those_of_jacobians(tree, with_base, joints):
    changes, rank = readings(tree, joints, with_base), np.linalg.matrix_rank
    found = nd.tools.touch_observability(
        tree, sensors(torques([tree.joint_names[i] for i in joints]), *([BASE] if with_base else []))
    )
    assert found.error < 1e-30
    for one in found.links:
        M = changes[one.link]
        assert one.rank == rank(M)
        assert one.is_localized == (rank(M) >= 5)
        others = {name: each for name, each in changes.items() if name != one.link}
        like = {name for name, each in others.items() if rank(np.hstack([M, each])) == rank(each)}
        assert set(one.like) == like
        assert set(one.same) == {name for name in like if rank(others[name]) == rank(M)}


def test_links_that_no_reading_tells_apart_are_named():
    arm = nd.autotree(4, skew=1.0)
    found = nd.tools.touch_observability(arm, sensors(torques(["joint1", "joint2"])))
    assert [(one.link, one.same) for one in found.links] == [
        ("link1", ()),
        ("link2", ("link3", "link4")),
        ("link3", ("link2", "link4")),
        ("link4", ("link2", "link3")),
    ]
    text = found.shown().text(200)
    assert "No reading tells apart: link2, link3, link4." in text
    assert "determine force and line of action of a touch on no link" in text
    assert not found.suffices


def test_some_links_and_refusals():
    arm = nd.autotree(7, skew=1.0)
    untouched = {"type": "external_wrench", "links": {"except": ["link3", "link6"]}, "value": 0}
    found = nd.tools.touch_observability(arm, sensors(torques(), BASE, untouched, links=["link3", "link6"]))
    assert [one.link for one in found.links] == ["link3", "link6"]
    assert found.suffices
    made = sensors(torques(), BASE, untouched, links=["link3", "link6"]).touching(arm)  # as a plan's file has them
    assert nd.tools.touch_observability(arm, made).links == found.links
    with pytest.raises(PlanError, match="no links that may be touched"):
        nd.tools.touch_observability(arm, nd.sensors("momentum_observer"))
    with pytest.raises(PlanError, match="loops or couplings"):
        nd.tools.touch_observability(four_bar(), sensors(torques()))
    with pytest.raises(UnknownSensorNameError, match="link9"):
        nd.tools.touch_observability(arm, sensors(torques(), links="link9"))
