"""Featherstone's autoTree by its definition, and the random trees."""

import math

import numpy as np
import pytest

from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.model.inertia import check_inertia
from nori_dyn.model.joints import JOINTS
from nori_dyn.model.synthetic import autotree, random_tree
from tests.oracles import masses
from tests.tolerances import ROUNDING, assert_close


def test_parents_are_featherstones_formula():
    """spatial_v2: parent(i) = floor((i - 2 + ceil(bf)) / bf), counting from 1 with the world as 0."""
    for branching in (1.0, 1.5, 2.0, 2.5, 3.0):
        tree = autotree(60, branching)
        for i in range(1, 61):
            assert tree.parents[i - 1] + 1 == math.floor((i - 2 + math.ceil(branching)) / branching)
        inner = [len(children) for children in tree.children[:20]]
        assert np.mean(inner) == pytest.approx(branching, abs=0.1)
    assert autotree(11, 1.5).parents == (-1, 0, 1, 1, 2, 3, 3, 4, 5, 5, 6)  # 1, 2, 1, 2, ... children
    assert autotree(5).fingerprint == autotree(5, 1.0, 0.0, 1.0).fingerprint
    assert autotree(1).n_links == 1


def test_links_are_thin_tubes_by_hand_numbers():
    """Length 1 kg 1 m radius 0.05: I_xx = m r^2, and m (6 r^2 + l^2) / 12 across it."""
    tree = autotree(3, taper=0.5)
    for i, (length, mass) in enumerate([(1.0, 1.0), (0.5, 1 / 8), (0.25, 1 / 64)]):
        body = masses(tree)[i]
        radius = length / 20
        across = mass * (6 * radius**2 + length**2) / 12
        assert body.mass == pytest.approx(mass, rel=1e-15)
        assert_close(body.com, [length / 2, 0, 0], ROUNDING)
        assert_close(body.I_com, np.diag([mass * radius**2, across, across]), ROUNDING)
    assert masses(tree)[0].I_com[1, 1] == pytest.approx(0.0845833333333, rel=1e-10)
    assert tree.I[0][2, 2] == pytest.approx(0.0845833333333 + 0.25, rel=1e-10)


def test_joints_sit_at_the_end_of_the_parent():
    skew = 0.4
    tree = autotree(4, branching=2.0, skew=skew, taper=0.5)
    assert_close(tree.X_tree[0].E, np.eye(3), ROUNDING)
    assert_close(tree.X_tree[0].r, np.zeros(3), ROUNDING)
    c, s = math.cos(skew), math.sin(skew)
    for i, length in ((1, 1.0), (2, 1.0), (3, 0.5)):
        assert_close(tree.X_tree[i].r, [length, 0, 0], ROUNDING)
        assert_close(tree.X_tree[i].E, [[1, 0, 0], [0, c, s], [0, -s, c]], ROUNDING)  # rotx of RBDA
    assert all(joint.kind == "revolute" and joint.axis == (0.0, 0.0, 1.0) for joint in tree.joints)
    assert tree.gravity == (0.0, 0.0, -9.81)


def test_autotree_refuses_what_makes_no_tree():
    nan, inf = math.nan, math.inf
    for name, values in {"n": (0, -1), "branching": (0.9, nan, inf), "skew": (nan,), "taper": (0.0, inf, nan)}.items():
        for value in values:
            with pytest.raises(ModelError, match="must be at least 1"):
                autotree(**{"n": 3, name: value})


def test_random_trees_have_every_joint_and_physical_bodies_and_obey_their_arguments():
    tree = random_tree(100, 1)
    assert {joint.kind for joint in tree.joints} == set(JOINTS) - {"fixed"}
    assert max(map(len, tree.children)) >= 3
    for name, body, X in zip(tree.names, masses(tree), tree.X_tree, strict=True):
        assert check_inertia(name, body.mass, body.com, (body.I_com + body.I_com.T) / 2)
        assert_close(X.E @ X.E.T, np.eye(3), ROUNDING)
        assert np.linalg.det(X.E) == pytest.approx(1.0)
    chain = random_tree(10, 2, kinds=("prismatic", "helical"), aligned=1.0, chain=1.0)
    assert chain.parents == tuple(range(-1, 9))
    assert {joint.kind for joint in chain.joints} == {"prismatic", "helical"}
    assert all(sorted(joint.axis) == [0.0, 0.0, 1.0] for joint in chain.joints)
    assert not any(0.0 in joint.axis for joint in random_tree(10, 2, kinds=("revolute",), aligned=0.0).joints)
    with pytest.raises(UnknownModelNameError, match=r"kind of joint 'revolut'.*'revolute'"):
        random_tree(3, 0, kinds=("revolut",))
    with pytest.raises(ModelError):
        random_tree(0, 0)
    assert random_tree(9, 5).fingerprint == random_tree(9, 5).fingerprint
    assert random_tree(9, 5).fingerprint != random_tree(9, 6).fingerprint
