"""Delassus matrices and operational-space inertias, against Pinocchio's Jacobians and forward dynamics."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, SingularSystemError, UnknownModelNameError, UnknownNameError
from nori_dyn.recursions import delassus, operational_space_inertia
from tests.compilers import needs_compiler
from tests.in_pinocchio import FLIP, in_pinocchio
from tests.peers import pin
from tests.tolerances import RECURSION, SOLVED, assert_close
from tests.trees import FLOATING, TREES

ROBOTS = {**{name: TREES[name] for name in ("autotree_branched", "mixed_8", "mixed_12")}, **FLOATING}
POINT = "ax", "ay", "az"


def frames_of(tree):
    """Its last link, and one in the middle."""
    return [tree.names[-1], tree.names[tree.n_links // 2]]


def in_theirs(tree, q, frames):
    """J H^-1 J^T (6 n, 6 n) of frames, of Pinocchio's Jacobians and forward dynamics at rest."""
    model, places, q_order, _ = in_pinocchio(tree)
    model.gravity.linear = np.zeros(3)
    data, theirs = model.createData(), q[q_order]
    rows = []
    for number, place in (places[tree.link(frame)] for frame in frames):
        rows.append(place.toActionMatrixInverse() @ pin.computeJointJacobian(model, data, theirs, number))
    J = np.concatenate([row[FLIP] for row in rows])
    moved = [pin.aba(model, data, theirs, np.zeros(model.nv), row).copy() for row in J]
    return np.array(moved) @ J.T


@pytest.mark.parametrize("name", ROBOTS)
def test_frames_are_accelerated_as_pinocchio_says(name):
    tree = ROBOTS[name]
    frames = list(dict.fromkeys(frames_of(tree)))
    Q = np.stack([tree.random_configuration(seed) for seed in range(3)], axis=-1)
    found = delassus(tree, Q, frames)
    for k in range(3):
        assert_close(found[..., k], in_theirs(tree, Q[:, k], frames), SOLVED)
    linear = [6 * k + axis for k in range(len(frames)) for axis in (3, 4, 5)]
    assert_close(delassus(tree, Q, frames, POINT), found[np.ix_(linear, linear)], RECURSION)


@pytest.mark.parametrize("name", FLOATING)
def test_its_inverse_is_the_operational_space_inertia(name):
    """Of the free base that of the whole robot, whose inverse all joints share."""
    tree = FLOATING[name]
    q, base = tree.random_configuration(0), tree.names[0]
    A, inertia = delassus(tree, q, base), operational_space_inertia(tree, q, base)
    assert_close(inertia @ A, np.eye(6), SOLVED)
    assert_close(operational_space_inertia(tree, q, base, POINT), np.linalg.inv(A[3:, 3:]), SOLVED)


@needs_compiler
def test_it_compiles_and_two_limbs_share_little():
    tree = TREES["autotree_branched"]
    frames = frames_of(tree)
    compiled = nd.compile(lambda tree, q: delassus(tree, q, frames, POINT), tree)
    q = tree.random_configuration(1)
    assert_close(compiled(q), delassus(tree, q, frames, POINT), RECURSION)
    whole = nd.compile(lambda tree, q: nd.jacobian(tree, q, frames[0]) @ nd.minverse(tree, q), tree)
    assert nd.compile(lambda tree, q: delassus(tree, q, frames[0]), tree).cost.total < whole.cost.total


def test_what_cannot_be_is_refused():
    arm = nd.autotree(3)
    q = np.array([0.1, 0.4, -0.3])
    with pytest.raises(SingularSystemError, match="link3: no joint forces accelerate all of"):
        operational_space_inertia(arm, q, "link3")
    assert operational_space_inertia(arm, q, "link3", ["ax", "ay"]).shape == (2, 2)
    with pytest.raises(UnknownModelNameError, match="hand"):
        delassus(arm, q, "hand")
    with pytest.raises(UnknownNameError, match="vx"):
        delassus(arm, q, "link3", ["vx"])
    with pytest.raises(InputError, match="name a frame"):
        delassus(arm, q, [])
