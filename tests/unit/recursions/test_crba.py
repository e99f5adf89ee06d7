"""The inertia matrix: by composites, by columns, by Lagrange, and as twice the kinetic energy."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.recursions.crba import crba, inertia_by_columns, inertia_forward_dynamics
from tests.oracles import Lagrangian
from tests.tolerances import EXACT, EXTENDED, RECURSION, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_rnea import motions


@pytest.fixture(params=TREES)
def case(request):
    """Return a tree, its motions, and their kinetic energy."""
    return TREES[request.param], *motions(request.param)


def test_composites_and_columns_agree(case):
    tree, truth, _ = case
    assert_close(crba(tree, truth.q), inertia_by_columns(tree, truth.q), RECURSION)


@pytest.mark.parametrize("algorithm", [crba, inertia_by_columns])
def test_it_is_lagranges(case, algorithm):
    tree, truth, _ = case
    for k in range(2):
        q = truth.q[:, k]
        assert_close(algorithm(tree, q), Lagrangian(tree, q).H(), EXTENDED)


def test_it_is_twice_the_kinetic_energy(case):
    tree, truth, kinetic = case
    H = crba(tree, truth.q)
    assert_close(np.einsum("iN,ijN,jN->N", truth.qd, H, truth.qd), 2 * kinetic, RECURSION)


def test_it_is_symmetric_and_positive(case):
    tree, truth, _ = case
    H = crba(tree, truth.q)
    assert_close(H, np.swapaxes(H, 0, 1), EXACT if max(j.nv for j in tree.joints) == 1 else RECURSION)
    smallest = np.linalg.eigvalsh(np.moveaxis(H, -1, 0)).min(axis=1)
    if tree.name == "massless":
        assert_close(smallest, 0 * smallest, RECURSION)
    else:
        assert (smallest > 0).all()


def test_a_batch_is_each_one(case):
    tree, truth, _ = case
    batch = crba(tree, truth.q)
    for k in range(5):
        one = crba(tree, truth.q[:, k])
        assert one.shape == (tree.nv, tree.nv)
        assert_close(batch[..., k], one, RECURSION)


@pytest.mark.parametrize("algorithm", [crba, inertia_by_columns])
def test_two_batch_axes_are_one(case, algorithm):
    tree, truth, _ = case
    expected = crba(tree, truth.q).reshape(tree.nv, tree.nv, 4, 25)
    assert_close(algorithm(tree, truth.q.reshape(-1, 4, 25)), expected, RECURSION)


def test_lists_are_numbers():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    assert_close(crba(tree, truth.q[:, 0].tolist()), crba(tree, truth.q[:, 0]), EXACT)


def test_gravity_and_wrenches_do_not_matter():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    assert_close(crba(tree.replace(gravity=(5.0, 4.0, 3.0)), truth.q), crba(tree, truth.q), EXACT)


def test_forward_dynamics_by_a_matrix_that_is_singular_is_refused():
    tree, (truth, _) = TREES["massless"], motions("massless")
    with pytest.raises(SingularSystemError, match=f"joint '{tree.joint_names[3]}' moves no inertia"):
        inertia_forward_dynamics(tree, truth.q[:, 0], truth.qd[:, 0], truth.tau[:, 0])


@pytest.mark.parametrize("algorithm", [crba, inertia_by_columns])
@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(4), r"q has shape \(4,\), expected \(5,\)"),
        (np.zeros((2, 5)), r"q has shape \(2, 5\), expected \(5,\)"),
        (np.array([0, 0, np.nan, 0, 0]), r"q\[2\] is nan: values must be finite"),
        ("zero", "q"),
        (["a"] * 5, "q"),
    ],
)
def test_bad_input_is_named(algorithm, q, message):
    with pytest.raises(InputError, match=message):
        algorithm(TREES["autotree_chain"], q)


def test_a_quaternion_of_another_length_is_named():
    with pytest.raises(InputError, match=r"quaternion .* of joint 'joint1'"):
        crba(TREES["one_free_body"], np.zeros(7))
