"""Frames chosen again and inertia moved across joints: the same robot. Limbs that are isomorphic."""

from functools import reduce

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.algebra.planar import is_signed_permutation
from nori_dyn.model.internal_frames import internal_links
from nori_dyn.model.joints import Revolute
from nori_dyn.model.limbs import corresponding, isomorphic_limbs, limb_groups
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from tests.oracles import newton_euler
from tests.robots import load
from tests.systems import INVERSE, PROBLEMS, Truth, random_states, readings, values_at
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES, random_state


def product(factors):
    return reduce(lambda done, E: E @ done, factors, np.eye(3))


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_axes_are_coordinate_axes_and_rotations_are_few(tree):
    links = internal_links(tree, regroup=False)
    for i, link in enumerate(links):
        C_parent = np.eye(3) if tree.is_root(i) else links[tree.parents[i]].C
        np.testing.assert_allclose(link.C @ link.C.T, np.eye(3), atol=1e-14)
        np.testing.assert_allclose(product(link.rotations), link.C @ tree.X_tree[i].E @ C_parent.T, atol=1e-14)
        np.testing.assert_allclose(link.r, C_parent @ tree.X_tree[i].r, atol=1e-14)
        X = np.kron(np.eye(2), link.C)
        np.testing.assert_allclose(link.I, X @ tree.I[i] @ X.T, atol=1e-14)
        assert not link.J.any()
        if hasattr(link.joint, "axis"):
            assert np.count_nonzero(link.joint.axis) == 1
            np.testing.assert_allclose(link.C @ tree.joints[i].axis, link.joint.axis, atol=1e-14)
            assert sum(not is_signed_permutation(E) for E in link.rotations) <= 2


def test_what_is_moved_is_not_felt_by_its_joint():
    tree = random_tree(12, 0, kinds=("revolute", "continuous"), chain=0.6)
    for i, link in enumerate(internal_links(tree, regroup=True)):
        if tree.is_root(i):
            assert not link.J.any()
            continue
        for angle in (0.3, -2.0):
            X = link.joint.transform(np.array([angle])).motion_matrix()
            np.testing.assert_allclose(X.T @ link.J @ X, link.J, atol=1e-14)  # the same in any position
        np.testing.assert_allclose(link.J @ link.joint.S(np.zeros(1)), 0, atol=1e-15)
        assert link.I[3, 3] == 0  # its mass is moved whole
    tree = TREES["fixed_joints"]  # and all that is on a fixed joint
    on_fixed = [i for i, joint in enumerate(tree.joints) if joint.kind == "fixed" and not tree.is_root(i)]
    assert on_fixed
    assert not any(internal_links(tree, regroup=True)[i].I.any() for i in on_fixed)


@pytest.mark.parametrize("seed", range(2))
def test_torques_are_those_of_the_robot_with_its_inertia_moved(seed):
    tree = random_tree(7, seed, kinds=("revolute", "prismatic", "spherical"), aligned=1.0, chain=0.6)
    links = internal_links(tree, regroup=True)
    turns = [np.kron(np.eye(2), link.C) for link in links]
    moved = tree.replace(I=np.array([T.T @ link.I @ T for T, link in zip(turns, links, strict=True)]))
    assert any(isinstance(joint, Revolute) for joint in tree.joints[1:])
    states = random_states(tree, 3, seed)
    for k in range(3):
        tau = []
        for robot in (tree, moved):
            system = System(robot, INVERSE)
            y = readings(system, states)[k]
            d = np.linalg.solve(system.D(states.q[k]).toarray(), -system.b(states.q[k], states.qd[k], y))
            tau.append(np.concatenate([d[system.column("tau", i)] for i in range(tree.n_links)]))
        assert_close(tau[1], tau[0], SOLVED)


@pytest.mark.parametrize(("seed", "problem"), [*enumerate(PROBLEMS)])
def test_newtons_laws_hold_with_inertia_moved(seed, problem):
    tree = random_tree(7, seed, kinds=("revolute", "continuous", "prismatic", "spherical"), chain=0.6)
    assert sum(link.J.any() for link in internal_links(tree, regroup=True)) >= 2
    q, qd, qdd, fx = random_state(tree, seed)
    truth = newton_euler(tree, q, qd, qdd, fx)
    system = System(tree, PROBLEMS[problem])
    y = readings(system, Truth(*(x[None] for x in (q, qd, qdd, truth.tau, fx))))[0]
    D, b = values_at(refine(system, regroup=True).symbolic, q, qd, y)
    assert_close(spla.splu(D).solve(-b)[: system.shape[1]], truth.d(system), SOLVED)


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
