"""Random mixed trees: all variables by Newton's and Euler's laws."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.model.joints import JOINTS
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.oracles import newton_euler
from tests.systems import ACCELERATIONS, WRENCHES, sensor_set
from tests.tolerances import RECURSION, assert_close
from tests.trees import TREES, random_state

SINGLE = tuple(kind for kind in JOINTS if kind != "fixed")
LARGE = {"30 bodies": 0.0, "chain of 30": 1.0}
FEW = ("one_free_body", "three_children", "massless", "two_roots", "fixed_joints", "mixed_12", "30 bodies")
"""Trees that have every kind of joint together."""


@cache
def tree_of(name: str) -> KinematicTree:
    if name in TREES:
        return TREES[name]
    return random_tree(30, 91, chain=LARGE[name]) if name in LARGE else random_tree(3, seed=60, kinds=(name,))


def test_every_kind_of_joint_is_tried():
    assert {joint.kind for name in FEW for joint in tree_of(name).joints} == set(JOINTS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FEW else pytest.mark.long) for name in (*TREES, *SINGLE, *LARGE)],
)
def test_all_variables_are_those_of_newton_and_euler_in_the_world(name):
    tree = tree_of(name)
    q, qd, qdd, fx = random_state(tree, 2)
    system = System(tree, sensor_set(ACCELERATIONS, WRENCHES))
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, np.r_[qdd, fx.ravel()]))
    assert_close(d, newton_euler(tree, q, qd, qdd, fx).d(system), RECURSION)
