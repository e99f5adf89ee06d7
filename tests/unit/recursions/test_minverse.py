"""The inverse of the inertia matrix, by its factors and without it, and what is wrong with the printed listing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.model.kinematics import positions
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.minverse import inverse_by_bodies, inverse_by_factors, minverse
from tests.oracles import Lagrangian
from tests.tolerances import EXACT, SOLVED, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_aba import HEAVY
from tests.unit.recursions.test_rnea import motions

every_way = pytest.mark.parametrize("way", [minverse, inverse_by_bodies, inverse_by_factors])


@pytest.fixture(params=HEAVY)
def case(request):
    """Return a tree and random configurations."""
    return TREES[request.param], motions(request.param)[0].q


@every_way
def test_it_is_the_inverse(case, way):
    tree, q = case
    eye = np.broadcast_to(np.eye(tree.nv)[..., None], (tree.nv, tree.nv, q.shape[-1]))
    assert_close(np.einsum("ijN,jkN->ikN", crba(tree, q), way(tree, q)), eye, SOLVED)


@every_way
def test_it_is_the_inverse_of_lagranges_matrix(case, way):
    tree, q = case
    assert_close(way(tree, q[:, 0]), np.linalg.inv(Lagrangian(tree, q[:, 0]).H()), SOLVED)


@every_way
def test_it_is_symmetric(case, way):
    tree, q = case
    M = way(tree, q)
    one_freedom = max(joint.nv for joint in tree.joints) == 1
    assert_close(M, np.swapaxes(M, 0, 1), EXACT if one_freedom else SOLVED)


@every_way
def test_a_batch_is_each_one(case, way):
    tree, q = case
    batch = way(tree, q)
    for k in range(5):
        one = way(tree, q[:, k])
        assert one.shape == (tree.nv, tree.nv)
        assert_close(batch[..., k], one, SOLVED)


def test_two_batch_axes_are_one(case):
    tree, q = case
    expected = minverse(tree, q).reshape(tree.nv, tree.nv, 4, 25)
    assert_close(minverse(tree, q.reshape(-1, 4, 25)), expected, SOLVED)


class Listed(NamedTuple):
    """What algorithm 1 of the report makes: of the backward pass, and in the end.

    Attributes:
        after_backward: the rows of Minv as the backward pass leaves them (n, n).
        F: of each body, when its turn comes (n, 6, n).
        P: of each body, columns from its own joint on (n, 6, n).
        inverse: Minv (n, n).
    """

    after_backward: np.ndarray
    F: np.ndarray
    P: np.ndarray
    inverse: np.ndarray


def listing(tree, q, corrected):
    """Return algorithm 1 of the report, for joints of one freedom, in link coordinates.

    Line 14 as printed hands U_i Minv on to the parent. Corrected, it hands on F_i with that: what came from below, too.
    """
    at, n = positions(tree, q), tree.nv
    X, S, parents = [X_i.motion_matrix() for X_i in at.X_up], at.S, tree.parents
    IA, F, P = [np.array(I) for I in tree.I], np.zeros((n, 6, n)), np.zeros((n, 6, n))
    U, D, M = [None] * n, [0.0] * n, np.zeros((n, n))
    for i in reversed(range(n)):
        U[i] = IA[i] @ S[i]
        D[i] = float((S[i].T @ U[i])[0, 0])
        below = [k for k in tree.subtree(i) if k != i]
        M[i, i] = 1 / D[i]
        M[i, below] -= (S[i].T @ F[i][:, below])[0] / D[i]
        if parents[i] >= 0:
            subtree = list(tree.subtree(i))
            passed = U[i] @ M[i : i + 1, subtree]
            if corrected:
                passed += F[i][:, subtree]
            F[parents[i]][:, subtree] += X[i].T @ passed
            IA[parents[i]] += X[i].T @ (IA[i] - U[i] @ U[i].T / D[i]) @ X[i]
    after_backward = M.copy()
    for i in range(n):
        if parents[i] >= 0:
            M[i, i:] -= (U[i].T @ X[i] @ P[parents[i]][:, i:])[0] / D[i]
        P[i][:, i:] = S[i] @ M[i : i + 1, i:]
        if parents[i] >= 0:
            P[i][:, i:] += X[i] @ P[parents[i]][:, i:]
    return Listed(after_backward, F, P, np.triu(M) + np.triu(M, 1).T)


LISTED = {
    "chain of three": autotree(3, skew=0.3),
    "chain": autotree(5, skew=0.3, taper=0.9),
    "branched": autotree(7, branching=1.5),
    "random": random_tree(9, seed=5, kinds=("revolute", "prismatic", "helical")),
}


@pytest.mark.parametrize("name", LISTED)
def test_the_printed_listing_is_wrong_and_the_corrected_one_is_not(name):
    tree = LISTED[name]
    q = tree.random_configuration(1)
    expected = np.linalg.inv(Lagrangian(tree, q).H())
    assert_close(listing(tree, q, corrected=True).inverse, expected, SOLVED)
    assert_close(inverse_by_bodies(tree, q), expected, SOLVED)
    assert np.abs(listing(tree, q, corrected=False).inverse - expected).max() > 1e-2 * np.abs(expected).max()


@pytest.mark.parametrize("tree", [TREES["one_body"], autotree(2, skew=0.3), autotree(6, branching=5)])
def test_the_printed_listing_is_right_where_no_body_has_a_grandchild(tree):
    q = tree.random_configuration(2)
    assert_close(listing(tree, q, corrected=False).inverse, inverse_by_bodies(tree, q), SOLVED)


class AtRest(NamedTuple):
    """What ABA makes of joint forces, without velocity and gravity: RBDA table 7.1.

    Attributes:
        pA: bias force of each articulated body (n, 6).
        u: tau_i - S_i^T pA_i, divided by D_i (n).
        a: acceleration of each body (n, 6).
    """

    pA: np.ndarray
    u: np.ndarray
    a: np.ndarray


def aba_at_rest(tree, q, tau):
    at, n = positions(tree, q), tree.nv
    bodies = articulated_bodies(at, list(tree.I))
    X = [X_i.motion_matrix() for X_i in at.X_up]
    pA, u, a = np.zeros((n, 6)), np.zeros(n), np.zeros((n, 6))
    for i in reversed(range(n)):
        u[i] = (bodies.D_inverse[i] @ (tau[i : i + 1] - at.S[i].T @ pA[i]))[0]
        if tree.parents[i] >= 0:
            pA[tree.parents[i]] += X[i].T @ (pA[i] + bodies.U[i][:, 0] * u[i])
    for i, parent in enumerate(tree.parents):
        a_parent = X[i] @ a[parent] if parent >= 0 else np.zeros(6)
        qdd = u[i] - (bodies.D_inverse[i] @ bodies.U[i].T @ a_parent)[0]
        a[i] = a_parent + at.S[i][:, 0] * qdd
    return AtRest(pA, u, a)


@pytest.mark.parametrize("name", LISTED)
def test_it_is_aba_at_rest_for_all_joint_forces_at_once(name):
    """The notes in the margin: after the backward pass Minv tau is D^-1 u, F tau is pA, and P tau is a."""
    tree = LISTED[name]
    q, tau = tree.random_configuration(4), np.random.default_rng(4).normal(size=tree.nv)
    listed, at_rest = listing(tree, q, corrected=True), aba_at_rest(tree, q, tau)
    assert_close(listed.after_backward @ tau, at_rest.u, SOLVED)
    assert_close(listed.F @ tau, at_rest.pA, SOLVED)
    for i in range(tree.nv):
        later = np.where(np.arange(tree.nv) >= i, tau, 0)  # P_i holds the columns from i on
        assert_close(listed.P[i] @ later, aba_at_rest(tree, q, later).a[i], SOLVED)


@pytest.mark.parametrize("name", LISTED)
def test_as_printed_F_is_not_the_bias_force(name):
    """Line 14 as printed loses what came from grandchildren."""
    tree = LISTED[name]
    q, tau = tree.random_configuration(4), np.random.default_rng(4).normal(size=tree.nv)
    pA = aba_at_rest(tree, q, tau).pA
    assert np.abs(listing(tree, q, corrected=False).F @ tau - pA).max() > 1e-2 * np.abs(pA).max()


def test_long_chains_go_by_bodies_and_all_else_by_factors():
    for tree in (autotree(15, skew=0.3), autotree(60, branching=3, skew=0.3), TREES["one_free_body"]):
        q = tree.random_configuration(5)
        assert np.array_equal(minverse(tree, q), inverse_by_factors(tree, q))
    chain = autotree(60, skew=0.3)
    q = chain.random_configuration(5)
    assert np.array_equal(minverse(chain, q), inverse_by_bodies(chain, q))


@every_way
def test_a_joint_that_moves_no_inertia_is_named(way):
    tree, q = TREES["massless"], motions("massless")[0].q
    for k in (0, slice(None)):
        with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia") as raised:
            way(tree, q[..., k])
        assert raised.value.undetermined == ("qdd:joint4",)


def test_a_massless_link_that_carries_mass_is_no_obstacle():
    tree = TREES["massless"]
    I = tree.I.copy()
    I[3] = I[2]
    tree = tree.replace(I=I)
    q = tree.random_configuration(3)
    assert_close(minverse(tree, q), np.linalg.inv(Lagrangian(tree, q).H()), SOLVED)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros(4), r"q has shape \(4,\), expected \(5,\)"),
        (np.array([0, 0, np.nan, 0, 0]), r"q\[2\] is nan: values must be finite"),
        ("zero", "q"),
        (["a"] * 5, "q"),
    ],
)
def test_bad_input_is_named(q, message):
    with pytest.raises(InputError, match=message):
        minverse(TREES["autotree_chain"], q)
