"""Christoffel symbols of the first kind, against derivatives of the inertia matrix and the Coriolis matrix."""

import numpy as np
import pytest

from nori_dyn.errors import ModelError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba
from tests.oracles import derivative
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


def configurations(tree, n=5):
    return np.array([tree.random_configuration(seed) for seed in range(n)]).T


def symbols(dM):
    """Return Gamma_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2 from dM (i, j, k, ...)."""
    return (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0)) / 2


def gradient(find, q, step=STEP):
    """Return the derivatives (i, j, k, ...) of find(q) (i, j, ...) by each coordinate, by differences."""
    units = np.eye(len(q)).reshape(len(q), len(q), *(1,) * (q.ndim - 1))
    return np.stack([derivative(lambda t, e=e: find(q + t * e), step) for e in units], axis=2)


@pytest.mark.parametrize("tree", SINGLE.values(), ids=SINGLE)
def test_they_are_derivatives_of_the_inertia_matrix_and_sum_up_to_the_coriolis_matrix(tree):
    q = configurations(tree)
    gamma = christoffel(tree, q)
    assert_close(gamma, symbols(gradient(lambda x: crba(tree, x), q)), DIFFERENCES)
    assert_close(gamma, np.swapaxes(gamma, 1, 2), EXACT)
    qd = np.random.default_rng(1).normal(size=(tree.nv, q.shape[-1]))
    C = np.einsum("ijkN,kN->ijN", gamma, qd)
    assert_close(coriolis(tree, q, qd, "christoffel").C, C, RECURSION)


def test_they_are_zero_for_freedoms_on_different_branches():
    tree = SINGLE["random_branched"]
    gamma = christoffel(tree, configurations(tree, 3))
    paths = [{k for k in range(tree.n_links) if i in tree.subtree(k)} for i in range(tree.n_links)]
    for i, j, k in np.ndindex(*(tree.nv,) * 3):
        if not any({i, j, k} <= path for path in paths):
            assert (gamma[i, j, k] == 0).all()


def test_joints_of_several_freedoms_are_refused_by_name():
    tree = autotree(3)
    for kind, freedoms in (("cylindrical", 2), ("planar", 3), ("spherical", 3), ("free", 6)):
        joint = random_tree(1, seed=3, kinds=(kind,)).joints[0]
        other = tree.replace(joints=(tree.joints[0], joint, tree.joints[2]))
        with pytest.raises(ModelError, match=f"joint 'joint2' is {kind}, of {freedoms} freedoms"):
            christoffel(other, other.neutral_configuration())
