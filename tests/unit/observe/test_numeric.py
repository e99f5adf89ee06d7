"""Ranks at a configuration, and for almost all; what sensors do not see, in words."""

from typing import Any

import pytest

from nori_dyn.model.joints import Free
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.generic import generic_rank
from nori_dyn.observe.numeric import Reduction
from nori_dyn.observe.report import ObservabilityReport, observability
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, FORWARD, INVERSE, TORQUES, UNLOADED, sensor_set
from tests.trees import TREES


def test_units_do_not_matter():
    """A robot of grams and one of tonnes: the same rank, at nearly the same margin."""
    tree = autotree(5, 1.5, 0.3, 0.9)
    q = tree.random_configuration(1)
    found = [Reduction(System(tree.replace(I=scale * tree.I), FORWARD)).rank_at(q) for scale in (1e-3, 1.0, 1e3)]
    assert len({at.rank for at in found}) == 1
    margins = [at.smallest for at in found]
    assert max(margins) < 10 * min(margins)


def test_no_rows_at_all():
    tree = autotree(2)
    reduction = Reduction(System(tree, sensor_set()))
    assert reduction.rank_at(tree.random_configuration(0)).rank == 12 * 2 + 2
    assert reduction.null_space(tree.random_configuration(0), 14).shape == (40, 14)


def test_without_sensors_wrenches_and_accelerations_are_free():
    for name, tree in TREES.items():
        found = generic_rank(System(tree, sensor_set(name="none") if tree.nv else INVERSE))
        assert found.rank == found.structural_rank == 12 * tree.n_links + tree.nv, name
        assert found.error < 1e-60, name


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


FEET = ("link4", "link5", "link6", "link7")
TIP = {"frame": {"xyz": [0.5, 0, 0]}}
SEEN_AT = [f"{foot} (sensor's frame)" for foot in FEET]


def read(*links: str, components: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "external_wrench", "links": name, "components": components.split(), **more} for name in links]


@pytest.mark.parametrize(
    ("tree", "entries", "said"),
    [
        (free_tree(), [known_but("link4"), FREE_BASE], []),
        (
            autotree(3),
            [known_but("link3"), *read("link3", components="mx my fx fz")],
            ["mz, fy of the external wrench on link3"],
        ),
        (autotree(7, 2.0), [known_but("link6", "link7")], [f"the external wrench on link{k}" for k in (6, 7)]),
        (free_tree(), [known_but("link4", "link7"), FREE_BASE], ["any internal wrench, link4 against link7"]),
        (
            free_tree(),
            [known_but("link4", "link6", "link7"), FREE_BASE],
            ["any external wrenches on link4, link6 and link7 that cancel"],
        ),
        (
            free_tree(),
            [known_but("link4", "link7"), FREE_BASE, *read("link4", "link7", components="mx my mz", value=0)],
            ["an internal force along the line through link4 and link7"],
        ),
        (
            free_tree(),
            [known_but("link4", "link7"), FREE_BASE, *read("link4", "link7", components="fx fy fz")],
            ["internal couples about 3 axes, link4 against link7"],
        ),
        (
            free_tree(),
            [known_but(*FEET), FREE_BASE, *read(*FEET, components="mx my mz", value=0, **TIP)],
            ["6 independent combinations of external wrenches on {}, {}, {} and {} that cancel".format(*SEEN_AT)],
        ),
    ],
    ids=["nothing", "components", "far apart", "internal wrench", "three links", "points", "couples", "four points"],
)
def test_wrenches(tree, entries, said):
    assert words(report(tree, ACCELERATIONS, *entries)) == said


def test_a_wrench_that_the_ground_takes():
    found = report(autotree(3), ACCELERATIONS, known_but("link3"))
    assert words(found) == ["the external wrench on link3"]
    part = found.unseen[0]
    assert (part.links, part.joints, part.dimension) == (("link3",), (), 6)
    assert set(found.unobservable) >= {"fx:link3.mx", "f:link1.fz", "tau:joint1"}
    assert not any(name.startswith(("qdd", "a:")) for name in found.unobservable)


def test_an_acceleration_with_its_forces():
    found = report(autotree(4), {**ACCELERATIONS, "joints": {"except": "joint3"}}, UNLOADED)
    assert words(found) == ["the acceleration of joint3 and of all that it carries, with the corresponding forces"]
    assert "a:link4.wz" in found.unobservable
    assert "a:link2.wz" not in found.unobservable


def test_an_acceleration_on_which_nothing_depends():
    found = report(TREES["massless"], TORQUES, UNLOADED)
    assert words(found) == [
        "the acceleration of joint4 and of all that it carries, which moves no inertia: no force depends on it"
    ]
    assert set(found.null_space[0].coefficients) >= {"qdd:joint4"}
    assert str(found.null_space[0]).startswith("+1 qdd:joint4")


def test_accelerations_and_wrenches():
    (told,) = words(report(autotree(3), TORQUES, known_but("link3")))
    of = "the accelerations of joint1, joint2 and joint3 and the external wrench on link3"
    assert told == f"6 independent combinations of {of}"


@pytest.mark.parametrize("n", [3, 8])
def test_what_is_tied_together_is_told_together(n):
    assert len(words(report(autotree(n), UNLOADED))) == n
    total = {"type": "linear_relation", "name": "sum", "terms": {f"qdd:joint{k + 1}": 1 for k in range(n)}}
    (told,) = words(report(autotree(n), UNLOADED, total))
    listed = "joint1, joint2 and joint3" if n == 3 else "joint1, joint2, joint3, joint4 and 4 others"
    assert told == f"{n - 1} independent combinations of the accelerations of {listed}, with the corresponding forces"
