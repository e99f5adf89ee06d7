"""The inverse of the inertia matrix, and what is wrong with the printed listing; Jacobians of frames."""

from itertools import product

import numpy as np
import pytest

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import SingularSystemError, UnknownModelNameError
from nori_dyn.model.kinematics import positions, velocities
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import WORLD, Frame
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.jacobian import jacobian, jacobian_rate
from nori_dyn.recursions.minverse import inverse_by_bodies, inverse_by_factors, minverse
from tests.oracles import inertia_matrix, rodrigues
from tests.tolerances import DIFFERENCES, EXACT, RECURSION, SOLVED, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_aba import HEAVY
from tests.unit.recursions.test_coriolis import rate
from tests.unit.recursions.test_rnea import motions

WAYS = (minverse, inverse_by_bodies, inverse_by_factors)


@pytest.mark.parametrize("name", HEAVY)
def test_it_is_the_inverse(name):
    tree, q = TREES[name], motions(name)[0].q
    H, one_freedom = crba(tree, q), max(joint.nv for joint in tree.joints) == 1
    for way in WAYS:
        M = way(tree, q)
        assert_close(np.einsum("ijN,jkN->ikN", H, M), np.eye(tree.nv)[..., None] + 0 * M, SOLVED)
        assert_close(M[..., 0], np.linalg.inv(inertia_matrix(tree, q[:, 0])), SOLVED)
        assert_close(M, np.swapaxes(M, 0, 1), EXACT if one_freedom else SOLVED)


def listing(tree, q, corrected):
    """Algorithm 1 of the report, for joints of one freedom, in link coordinates.

    Line 14 as printed hands U_i Minv on to the parent. Corrected, it hands on F_i with that: what came from below, too.

    That is the rows of Minv as the backward pass leaves them (n, n), F of each body when its turn comes (n, 6, n), P of
    each body, columns from its own joint on (n, 6, n), and Minv (n, n).
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
    return after_backward, F, P, np.triu(M) + np.triu(M, 1).T


LISTED = {
    "chain of three": autotree(3, skew=0.3),
    "chain": autotree(5, skew=0.3, taper=0.9),
    "branched": autotree(7, branching=1.5),
    "random": random_tree(9, seed=5, kinds=("revolute", "prismatic", "helical")),
}


def test_the_printed_listing_is_right_where_no_body_has_a_grandchild():
    for tree in (TREES["one_body"], autotree(2, skew=0.3), autotree(6, branching=5)):
        q = tree.random_configuration(2)
        assert_close(listing(tree, q, corrected=False)[-1], inverse_by_bodies(tree, q), SOLVED)


def aba_at_rest(tree, q, tau):
    """What ABA makes of joint forces, without velocity and gravity: RBDA table 7.1.

    That is the bias force pA of each articulated body (n, 6), tau_i - S_i^T pA_i, divided by D_i (n), and the
    acceleration of each body (n, 6).
    """
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
    return pA, u, a


@pytest.mark.parametrize("name", LISTED)
def test_the_printed_listing_is_wrong_and_the_corrected_one_is_aba_at_rest_for_all_joint_forces_at_once(name):
    """The notes in the margin: after the backward pass Minv tau is D^-1 u, F tau is pA, and P tau is a.

    Line 14 as printed loses in F what came from grandchildren.
    """
    tree = LISTED[name]
    q, tau = tree.random_configuration(4), np.random.default_rng(4).normal(size=tree.nv)
    expected = np.linalg.inv(inertia_matrix(tree, q))
    (after_backward, F, P, inverse), (pA, u, _) = listing(tree, q, corrected=True), aba_at_rest(tree, q, tau)
    assert_close(inverse, expected, SOLVED)
    assert_close(inverse_by_bodies(tree, q), expected, SOLVED)
    assert_close(after_backward @ tau, u, SOLVED)
    assert_close(F @ tau, pA, SOLVED)
    for i in range(tree.nv):
        later = np.where(np.arange(tree.nv) >= i, tau, 0)  # P_i holds the columns from i on
        assert_close(P[i] @ later, aba_at_rest(tree, q, later)[-1][i], SOLVED)
    _, F, _, printed = listing(tree, q, corrected=False)
    assert np.abs(F @ tau - pA).max() > 1e-2 * np.abs(pA).max()
    assert np.abs(printed - expected).max() > 1e-2 * np.abs(expected).max()


def test_long_chains_go_by_bodies_and_all_else_by_factors():
    for tree in (autotree(15, skew=0.3), autotree(60, branching=3, skew=0.3), TREES["one_free_body"]):
        q = tree.random_configuration(5)
        assert np.array_equal(minverse(tree, q), inverse_by_factors(tree, q))
    chain = autotree(60, skew=0.3)
    q = chain.random_configuration(5)
    assert np.array_equal(minverse(chain, q), inverse_by_bodies(chain, q))


def test_a_joint_that_moves_no_inertia_is_named():
    tree, q = TREES["massless"], motions("massless")[0].q
    for way, k in product(WAYS, (0, slice(None))):
        with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia") as raised:
            way(tree, q[..., k])
        assert raised.value.undetermined == ("qdd:joint4",)
    I = tree.I.copy()
    I[3] = I[2]  # a massless link that carries mass is no obstacle
    tree = tree.replace(I=I)
    q = tree.random_configuration(3)
    assert_close(minverse(tree, q), np.linalg.inv(inertia_matrix(tree, q)), SOLVED)


N = 4


@pytest.fixture(params=TREES)
def case(request):
    """A tree with a frame away from its links, and its motions."""
    tree, truth = TREES[request.param], motions(request.param)[0]
    tool = Frame(
        tree.n_links - 1, Transform(rodrigues(np.array([0.6, 0.0, 0.8]), np.array(0.7)), np.array([0.1, 0.2, 0.3]))
    )
    return tree.replace(frames={**tree.frames, "the tool": tool}), truth.q[:, :N], truth.qd[:, :N], truth.qdd[:, :N]


def test_it_maps_joint_velocities_to_those_of_frames_and_its_derivative_is_that_along_the_motion(case):
    tree, q, qd, _ = case
    for name in (*tree.names, "the tool"):
        frame, J = tree.frame(name), jacobian(tree, q, name)
        differences = rate(tree, lambda x, name=name: jacobian(tree, x, name), q, qd)
        assert_close(jacobian_rate(tree, q, qd, name), differences, DIFFERENCES)
        for k in range(N):
            v = frame.X.apply_motion(velocities(tree, q[:, k], qd[:, k]).v[frame.link])
            assert_close(J[..., k] @ qd[:, k], v, RECURSION)


def test_frames_that_do_not_move_have_none_and_an_unknown_one_is_named():
    tree = TREES["mixed_8"].replace(frames={"the floor": Frame(WORLD, Transform.identity())})
    q = tree.neutral_configuration()
    assert_close(jacobian(tree, q, "the floor"), np.zeros((6, tree.nv)), EXACT)
    assert_close(jacobian_rate(tree, q, None, "the floor"), np.zeros((6, tree.nv)), EXACT)
    with pytest.raises(UnknownModelNameError, match=f"'elbow'.*{tree.names[0]}"):
        jacobian(tree, q, "elbow")
