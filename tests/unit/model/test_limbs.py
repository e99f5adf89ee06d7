"""Limbs that are alike, of real robots, of trees made for it, and whatever the order of their links."""

import numpy as np
import pytest

from nori_dyn.model.limbs import corresponding, isomorphic_limbs, limb_groups
from nori_dyn.model.synthetic import autotree
from tests.robots import load

LIMBS = {  # for each group the first links of its limbs, and how many bodies a limb has
    "talos_reduced": {("arm_left_1_link", "arm_right_1_link"): 8, ("leg_left_1_link", "leg_right_1_link"): 6},
    "g1": {
        ("left_hip_pitch_link", "right_hip_pitch_link"): 6,
        ("left_shoulder_pitch_link", "right_shoulder_pitch_link"): 7,
    },
    "iCubGenova04": {("r_hip_1", "l_hip_1"): 6, ("r_shoulder_1", "l_shoulder_1"): 7},
    "anymal": {("LF_HIP", "RF_HIP", "LH_HIP", "RH_HIP"): 3},
    "hyq": {("lf_hipassembly", "rf_hipassembly", "lh_hipassembly", "rh_hipassembly"): 3},
    "solo12": {("FL_SHOULDER", "FR_SHOULDER", "HL_SHOULDER", "HR_SHOULDER"): 3},
    "go2": {("FL_hip", "FR_hip", "RL_hip", "RR_hip"): 3},
    "allegro": {("link_0.0", "link_8.0"): 4},  # the finger between them is not tilted, the thumb is another limb
    "romeo": {
        ("LShoulderPitchLink", "RShoulderPitchLink"): 19,
        ("LHipYawLink", "RHipYawLink"): 6,
        ("LFinger11Link", "LFinger31Link", "LThumb1Link"): 3,  # of the left hand only: the right one follows
    },
    "ur5": {},
}


def found(tree):
    return {tuple(tree.names[limb[0]] for limb in group.limbs): len(group.limbs[0]) for group in limb_groups(tree)}


LONG = ("hyq", "solo12", "go2")
"""Robots whose limbs are those of others."""


@pytest.mark.parametrize(
    "robot", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in (*LIMBS, "tiago_pro")]
)
def test_limbs_of_real_robots(robot):
    """Bodies that correspond have parents that do, and joints of one kind."""
    tree = load(robot, "floating")
    groups = limb_groups(tree)
    assert robot not in LIMBS or found(tree) == LIMBS[robot]
    if robot not in ("allegro", "romeo", "tiago_pro"):
        assert isomorphic_limbs(tree) == tuple(group.limbs for group in groups)
    for group in groups:
        assert len(group.limbs) > 1
        assert len({body for limb in group.limbs for body in limb}) == sum(map(len, group.limbs))
        assert len({tree.parents[limb[0]] for limb in group.limbs}) == 1
        for bodies in zip(*group.limbs, strict=True):
            assert len({type(tree.joints[i]) for i in bodies}) == 1
        for limb in group.limbs:
            parents = [limb.index(tree.parents[i]) for i in limb[1:]]
            assert parents == [group.limbs[0].index(tree.parents[i]) for i in group.limbs[0][1:]]
            assert all(parent < k for k, parent in enumerate(parents, start=1))


def test_a_chain_has_no_limbs_and_a_binary_tree_has_a_group_at_each_level():
    assert limb_groups(autotree(12)) == ()
    sizes = [len(group.limbs[0]) for group in limb_groups(autotree(15, branching=2.0))]
    assert sizes == [7, 3, 1]


def test_what_is_alike_depends_on_zeros_and_units_and_on_no_other_number():
    tree = load("anymal", "floating")
    moved = [tree.X_tree[i] for i in range(tree.n_links)]
    hip = tree.names.index("LF_THIGH")
    moved[hip] = type(moved[hip])(moved[hip].E, 1.5 * moved[hip].r)
    assert found(tree.replace(X_tree=tuple(moved))) == LIMBS["anymal"]
    moved[hip] = type(moved[hip])(moved[hip].E, np.array([0.1, 0.2, 0.3]))
    assert found(tree.replace(X_tree=tuple(moved))) == {("RF_HIP", "LH_HIP", "RH_HIP"): 3}


def test_limbs_by_their_joints_are_the_outermost():
    assert [len(limb) for limbs in isomorphic_limbs(load("allegro")) for limb in limbs] == [4, 4, 4, 4]
    assert [len(limb) for limbs in isomorphic_limbs(load("romeo")) for limb in limbs] == [6, 6, 19, 19]
    assert isomorphic_limbs(autotree(7, branching=2.0)) == (((1, 3, 4), (2, 5, 6)),)


def test_what_belongs_to_links_corresponds_in_the_order_in_which_it_comes():
    limbs = [[(1, 3), (2, 4)]]
    labelled = [(10, 1, "y"), (11, 2, "y"), (12, 1, "y"), (13, 4, "z"), (14, 2, "y"), (15, 3, "z"), (16, 4, "y")]
    assert corresponding(limbs, labelled) == (((10, 12, 15), (11, 14, 13)),)
