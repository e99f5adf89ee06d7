"""Frames chosen again and inertia moved across joints: the same robot. See also tests/agreement/test_pinocchio.py."""

from functools import reduce

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.algebra.planar import is_signed_permutation
from nori_dyn.model.internal_frames import internal_links
from nori_dyn.model.joints import Revolute
from nori_dyn.model.synthetic import random_tree
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from tests.oracles import newton_euler
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
