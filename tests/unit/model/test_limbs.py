"""Isomorphic limbs: which links of real robots correspond, and what else does by them."""

from __future__ import annotations

import pytest

from nori_dyn.model.limbs import corresponding, isomorphic_limbs
from nori_dyn.model.synthetic import autotree
from tests.robots import load
from tests.trees import TREES


def names(tree, limb):
    return [tree.joint_names[link] for link in limb]


@pytest.mark.parametrize("name", ["anymal", "go2", "hyq", "solo12"])
def test_the_legs_of_quadrupeds_are_four_of_a_kind(name):
    tree = load(name, "floating")
    (legs,) = isomorphic_limbs(tree)
    assert [len(leg) for leg in legs] == [3, 3, 3, 3]
    for leg in legs:
        assert [tree.parents[link] for link in leg] == [0, *leg[:2]]


def test_arms_and_legs_of_a_humanoid_are_two_groups():
    tree = load("g1", "floating")
    groups = {len(limbs[0]): [names(tree, limb) for limb in limbs] for limbs in isomorphic_limbs(tree)}
    assert sorted(groups) == [6, 7]
    for left, right in groups.values():
        assert [name.replace("left", "right") for name in left] == right


def test_fingers_of_one_hand_differ_in_their_thumb_only_where_it_does():
    (fingers,) = isomorphic_limbs(load("allegro"))
    assert [len(finger) for finger in fingers] == [4, 4, 4, 4]


def test_a_chain_has_none_and_a_tree_has_its_branches():
    assert isomorphic_limbs(autotree(6)) == ()
    assert isomorphic_limbs(autotree(7, branching=2.0)) == (((1, 3, 4), (2, 5, 6)),)


def test_limbs_of_other_joints_are_no_group():
    tree = TREES["three_children"]
    kinds = {(type(tree.joints[link]).__name__) for link in (1, 2, 3)}
    assert sum(len(limbs) for limbs in isomorphic_limbs(tree)) == (
        2 if len(kinds) == 2 else 3 if len(kinds) == 1 else 0
    )


def test_what_belongs_to_links_corresponds_in_the_order_in_which_it_comes():
    limbs = (((1, 3), (2, 4)),)
    labelled = [(10, 1, "y"), (11, 2, "y"), (12, 1, "y"), (13, 4, "z"), (14, 2, "y"), (15, 3, "z"), (16, 4, "y")]
    assert corresponding(limbs, labelled) == (((10, 12, 15), (11, 14, 13)),)
