"""What sensors do not see, in words."""

from __future__ import annotations

from typing import Any

import pytest

from nori_dyn.model.joints import Free
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, sensor_set
from tests.trees import TREES

FREE_BASE = {"type": "joint_torque", "joints": "joint1", "value": 0}


def free_tree(n: int = 7, branching: float = 2.0) -> KinematicTree:
    tree = autotree(n, branching, 0.7, 0.9)
    return tree.replace(joints=(Free(), *tree.joints[1:]))


def report(tree: KinematicTree, *entries: dict[str, Any]) -> ObservabilityReport:
    return observability(System(tree, sensor_set(*entries)), where=None)


def known_but(*links: str) -> dict[str, Any]:
    return {"type": "external_wrench", "links": {"except": list(links)}, "value": 0}


def words(found: ObservabilityReport) -> list[str]:
    assert sum(part.dimension for part in found.unseen) == found.deficiency == len(found.null_space)
    return [part.words for part in found.unseen]


def test_nothing_where_all_is_seen():
    assert words(report(free_tree(), ACCELERATIONS, known_but("link4"), FREE_BASE)) == []


def test_a_wrench_that_the_ground_takes():
    found = report(autotree(3), ACCELERATIONS, known_but("link3"))
    assert words(found) == ["the external wrench on link3"]
    part = found.unseen[0]
    assert (part.links, part.joints, part.dimension) == (("link3",), (), 6)
    assert set(found.unobservable) >= {"fx:link3.mx", "f:link1.fz", "tau:joint1"}
    assert not any(name.startswith(("qdd", "a:")) for name in found.unobservable)


def test_components_of_a_wrench():
    cells = {"type": "external_wrench", "links": "link3", "components": ["mx", "my", "fx", "fz"]}
    assert words(report(autotree(3), ACCELERATIONS, known_but("link3"), cells)) == [
        "mz, fy of the external wrench on link3"
    ]


def test_two_wrenches_far_apart_are_told_apart():
    found = report(autotree(7, 2.0), ACCELERATIONS, known_but("link6", "link7"))
    assert words(found) == ["the external wrench on link6", "the external wrench on link7"]


def test_any_internal_wrench():
    assert words(report(free_tree(), ACCELERATIONS, known_but("link4", "link7"), FREE_BASE)) == [
        "any internal wrench, link4 against link7"
    ]
    assert words(report(free_tree(), ACCELERATIONS, known_but("link4", "link6", "link7"), FREE_BASE)) == [
        "any external wrenches on link4, link6 and link7 that cancel"
    ]


def test_an_internal_force_between_two_points():
    points = [
        {"type": "external_wrench", "links": name, "components": ["mx", "my", "mz"], "value": 0}
        for name in ("link4", "link7")
    ]
    found = report(free_tree(), ACCELERATIONS, known_but("link4", "link7"), FREE_BASE, *points)
    assert words(found) == ["an internal force along the line through link4 and link7"]


def test_internal_couples():
    forces = [
        {"type": "external_wrench", "links": name, "components": ["fx", "fy", "fz"]} for name in ("link4", "link7")
    ]
    found = report(free_tree(), ACCELERATIONS, known_but("link4", "link7"), FREE_BASE, *forces)
    assert words(found) == ["internal couples about 3 axes, link4 against link7"]


def test_four_points():
    feet = ("link4", "link5", "link6", "link7")
    tip = {"frame": {"xyz": [0.5, 0, 0]}, "components": ["mx", "my", "mz"], "value": 0}
    points = [{"type": "external_wrench", "links": name, **tip} for name in feet]
    found = report(free_tree(), ACCELERATIONS, known_but(*feet), FREE_BASE, *points)
    *most, last = (f"{foot} (sensor's frame)" for foot in feet)
    places = f"{', '.join(most)} and {last}"
    assert words(found) == [f"6 independent combinations of external wrenches on {places} that cancel"]


def test_an_acceleration_with_its_forces():
    wrenches = {"type": "external_wrench", "links": "all", "value": 0}
    found = report(autotree(4), {"type": "joint_acceleration", "joints": {"except": "joint3"}}, wrenches)
    assert words(found) == ["the acceleration of joint3 and of all that it carries, with the forces that go with it"]
    assert "a:link4.wz" in found.unobservable
    assert "a:link2.wz" not in found.unobservable


def test_an_acceleration_on_which_nothing_depends():
    tree = TREES["massless"]
    wrenches = {"type": "external_wrench", "links": "all", "value": 0}
    found = report(tree, {"type": "joint_torque", "joints": "all"}, wrenches)
    assert words(found) == [
        "the acceleration of joint4 and of all that it carries, on which no force depends: there is no inertia beyond"
    ]
    assert set(found.null_space[0].coefficients) >= {"qdd:joint4"}
    assert str(found.null_space[0]).startswith("+1 qdd:joint4")


def test_accelerations_and_wrenches():
    found = report(autotree(3), {"type": "joint_torque", "joints": "all"}, known_but("link3"))
    (told,) = words(found)
    assert told == (
        "6 independent combinations of the accelerations of joint1, joint2 and joint3 and the external wrench on link3"
    )


@pytest.mark.parametrize("n", [3, 8])
def test_what_is_tied_together_is_told_together(n):
    wrenches = {"type": "external_wrench", "links": "all", "value": 0}
    assert len(words(report(autotree(n), wrenches))) == n
    total = {"type": "linear_relation", "name": "sum", "terms": {f"qdd:joint{k + 1}": 1 for k in range(n)}}
    (told,) = words(report(autotree(n), wrenches, total))
    listed = "joint1, joint2 and joint3" if n == 3 else "joint1, joint2, joint3, joint4 and 4 others"
    assert told == f"{n - 1} independent combinations of the accelerations of {listed}, with their forces"
