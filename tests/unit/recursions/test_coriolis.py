"""The Coriolis matrix and Christoffel's symbols: laws of a body's factorisations, identities of the robot's."""

import numpy as np
import pytest

from nori_dyn.errors import ModelError, UnknownNameError
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.christoffel import christoffel
from nori_dyn.recursions.coriolis import FACTORISATIONS, christoffel_factorisation, coriolis, times_C
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.rnea import coriolis_force
from tests.oracles import derivative, hat, inertia_matrix, newton_euler
from tests.tolerances import DIFFERENCES, EXACT, RECURSION, ROUNDING, assert_close
from tests.trees import SINGLE_KINDS, TREES
from tests.unit.recursions.test_rnea import motions

STEP = 2e-3
"""Of differences along a motion, radians of which turn the last body many times as fast as one joint."""


def rate(tree, find, q, qd):
    """The derivative of find(q) along motions of constant velocity from q (nq, N), by differences."""

    def at(t):
        return find(np.array([tree.integrate(*state, t) for state in zip(q.T, qd.T, strict=True)]).T)

    return derivative(at, STEP)


def motion_cross(v):
    """v x (6, 6) from its definition."""
    w, u = hat(v[:3]), hat(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def force_bar(f):
    """f x-bar* (6, 6): the matrix that takes v to v x* f."""
    return np.array([-motion_cross(e).T @ f for e in np.eye(6)]).T


def rigid_bodies():
    """Velocities and inertias of rigid bodies."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(20, 6)), random_tree(20, seed=3).I


@pytest.mark.parametrize("factors", FACTORISATIONS.values(), ids=FACTORISATIONS)
def test_every_factorisation_gives_the_force_of_the_body_and_is_admissible(factors):
    V, inertias = rigid_bodies()
    batch = factors(V.T, np.moveaxis(inertias, 0, -1))
    for k, (v, I) in enumerate(zip(V, inertias, strict=True)):
        B = factors(v, I)
        assert_close(B @ v, -motion_cross(v).T @ I @ v, ROUNDING)
        assert_close(B + B.T, -motion_cross(v).T @ I - I @ motion_cross(v), ROUNDING)
        assert_close(batch[..., k], B, ROUNDING)


def test_the_factorisation_of_christoffel_is_its_formula_and_has_no_torsion():
    V, inertias = rigid_bodies()
    for v, w, I in zip(V, V[::-1], inertias, strict=True):
        B, X = christoffel_factorisation(v, I), motion_cross(v)
        assert_close(B, (-X.T @ I + force_bar(I @ v) - I @ X) / 2, ROUNDING)
        assert_close(B @ w - christoffel_factorisation(w, I) @ v, -I @ X @ w, ROUNDING)


@pytest.mark.parametrize("name", TREES)
def test_laws_of_the_matrices(name):
    tree, (truth, _) = TREES[name], motions(name)
    q, qd, qdd = truth.q[:, :10], truth.qd[:, :10], truth.qdd[:, :10]
    weightless, no_wrench = tree.replace(gravity=(0.0, 0.0, 0.0)), np.zeros((tree.n_links, 6))
    force = [newton_euler(weightless, *motion, 0 * motion[1], no_wrench).tau for motion in zip(q.T, qd.T, strict=True)]
    H, change = inertia_matrix(tree, q[:, 0]), rate(tree, lambda x: crba(tree, x), q, qd)
    for factorisation in FACTORISATIONS:
        M, Mdot, C = coriolis(tree, q, qd, factorisation)
        assert_close(M[..., 0], H, RECURSION)
        assert_close(M, crba(tree, q), RECURSION)
        assert_close(M, np.swapaxes(M, 0, 1), RECURSION)
        assert_close(Mdot, change, DIFFERENCES)
        assert_close(Mdot, C + np.swapaxes(C, 0, 1), RECURSION)  # Mdot - 2 C is skew: energy is kept
        assert_close(times_C(tree, q, qd, qdd, factorisation), np.einsum("ijN,jN->iN", C, qdd), RECURSION)
        assert_close(times_C(tree, q, qd, qd, factorisation), coriolis_force(tree, q, qd), RECURSION)
        assert_close(coriolis(tree, q, -2 * qd, factorisation).C, -2 * C, RECURSION)
        assert_close(coriolis(tree, q, None, factorisation).C, 0 * C, EXACT)
        assert_close(np.einsum("ijN,jN->Ni", C, qd), force, RECURSION)


def test_the_factorisations_differ():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    C = [coriolis(tree, truth.q[:, 0], truth.qd[:, 0], name).C for name in ("christoffel", "cross")]
    assert np.abs(C[0] - C[1]).max() > 1e-3
    assert_close(coriolis(tree, truth.q[:, 0], truth.qd[:, 0]).C, C[0], EXACT)


def test_an_unknown_factorisation_is_named():
    with pytest.raises(UnknownNameError, match=r"factorisation 'christofel'.*Did you mean 'christoffel'"):
        coriolis(TREES["one_body"], [0.0], [0.0], "christofel")
    with pytest.raises(UnknownNameError, match=r"Known: christoffel, cross"):
        coriolis(TREES["one_body"], [0.0], [0.0], "xyz")


CHRISTOFFEL_STEP = 2e-3

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
    """Gamma_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2 from dM (i, j, k, ...)."""
    return (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0)) / 2


def gradient(find, q, step=CHRISTOFFEL_STEP):
    """The derivatives (i, j, k, ...) of find(q) (i, j, ...) by each coordinate, by differences."""
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
