"""Christoffel symbols of the first kind, against derivatives of the inertia matrix and the Coriolis matrix."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError, ModelError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba
from tests.oracles import Lagrangian, derivative
from tests.tolerances import DIFFERENCES, EXACT, RECURSION, assert_close
from tests.trees import SINGLE_KINDS, TREES

STEP = 2e-3

SINGLE = {
    "one_body": TREES["one_body"],
    "massless": TREES["massless"],
    "autotree_chain": TREES["autotree_chain"],
    "autotree_branched": TREES["autotree_branched"],
    "random_chain": random_tree(6, seed=21, kinds=SINGLE_KINDS, chain=1.0),
    "random_branched": random_tree(9, seed=22, kinds=SINGLE_KINDS, chain=0.4),
    "helical": random_tree(4, seed=23, kinds=("helical",)),
    "two_robots": autotree(4, skew=0.5).replace(parents=(-1, 0, -1, 2)),
}


@pytest.fixture(params=SINGLE)
def tree(request):
    return SINGLE[request.param]


def configurations(tree, n=100):
    return np.array([tree.random_configuration(seed) for seed in range(n)]).T


def symbols(dM):
    """Return Gamma_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2 from dM (i, j, k, ...)."""
    return (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0)) / 2


def gradient(find, q, step=STEP):
    """Return the derivatives (i, j, k, ...) of find(q) (i, j, ...) by each coordinate, by differences."""
    units = np.eye(len(q)).reshape(len(q), len(q), *(1,) * (q.ndim - 1))
    return np.stack([derivative(lambda t, e=e: find(q + t * e), step) for e in units], axis=2)


def test_the_formula_of_the_test_is_the_definition():
    dM = np.random.default_rng(0).normal(size=(3, 3, 3))
    dM = dM + np.swapaxes(dM, 0, 1)
    found = symbols(dM)
    for i, j, k in np.ndindex(3, 3, 3):
        assert np.isclose(found[i, j, k], (dM[i, j, k] + dM[i, k, j] - dM[j, k, i]) / 2)


def test_they_are_derivatives_of_the_inertia_matrix(tree):
    q = configurations(tree, 5)
    assert_close(christoffel(tree, q), symbols(gradient(lambda x: crba(tree, x), q)), DIFFERENCES)


def test_they_are_derivatives_of_the_inertia_matrix_of_lagrange():
    tree = random_tree(4, seed=24, kinds=SINGLE_KINDS)
    q = tree.random_configuration(1)
    assert_close(christoffel(tree, q), symbols(gradient(lambda x: Lagrangian(tree, x).H(), q, 1e-2)), DIFFERENCES)


def test_they_are_symmetric_in_the_last_two_indices(tree):
    gamma = christoffel(tree, configurations(tree))
    assert_close(gamma, np.swapaxes(gamma, 1, 2), EXACT)


def test_the_coriolis_matrix_is_their_sum(tree):
    q = configurations(tree)
    qd = np.random.default_rng(1).normal(size=(tree.nv, q.shape[-1]))
    C = np.einsum("ijkN,kN->ijN", christoffel(tree, q), qd)
    assert_close(coriolis(tree, q, qd, "christoffel").C, C, RECURSION)


def test_they_are_zero_for_freedoms_on_different_branches():
    tree = SINGLE["random_branched"]
    gamma = christoffel(tree, configurations(tree, 3))
    paths = [{k for k in range(tree.n_links) if i in tree.subtree(k)} for i in range(tree.n_links)]
    for i, j, k in np.ndindex(*(tree.nv,) * 3):
        if not any({i, j, k} <= path for path in paths):
            assert (gamma[i, j, k] == 0).all()


def test_a_batch_is_each_one(tree):
    q = configurations(tree)
    batch = christoffel(tree, q)
    for k in range(3):
        one = christoffel(tree, q[:, k])
        assert one.shape == (tree.nv,) * 3
        assert_close(batch[..., k], one, RECURSION)
    assert_close(christoffel(tree, q.reshape(-1, 4, 25)), batch.reshape(*(tree.nv,) * 3, 4, 25), RECURSION)


@pytest.mark.parametrize(
    ("kind", "freedoms"), [("cylindrical", 2), ("planar", 3), ("spherical", 3), ("free", 6)], ids=str
)
def test_joints_of_several_freedoms_are_refused_by_name(kind, freedoms):
    other = random_tree(1, seed=3, kinds=(kind,))
    tree = autotree(3)
    tree = tree.replace(joints=(tree.joints[0], other.joints[0], tree.joints[2]))
    with pytest.raises(ModelError, match=f"joint 'joint2' is {kind}, of {freedoms} freedoms"):
        christoffel(tree, tree.neutral_configuration())


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(4), r"q has shape \(4,\), expected \(5,\)"),
        (np.array([0, 0, np.nan, 0, 0]), r"q\[2\] is nan: values must be finite"),
        ("zero", "q"),
    ],
)
def test_bad_input_is_named(q, message):
    with pytest.raises(InputError, match=message):
        christoffel(TREES["autotree_chain"], q)
