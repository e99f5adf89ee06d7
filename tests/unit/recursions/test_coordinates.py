"""The equation of motion in other coordinates and speeds, and in those of the centre of mass."""

from itertools import product

import numpy as np
import pytest

from nori_dyn.errors import InputError, ModelError
from nori_dyn.model.joints import Revolute
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.coordinates import com_coordinates, coordinate_change
from nori_dyn.recursions.coriolis import FACTORISATIONS, coriolis
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.rnea import gravity_force
from tests.oracles import derivative, masses, newton_euler, poses
from tests.systems import random_states
from tests.tolerances import DIFFERENCES, RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import FLOATING, SINGLE_KINDS, TREES, on_a_free_base
from tests.unit.recursions.test_coriolis import STEP, gradient, symbols
from tests.unit.recursions.test_joint_terms import ROTORS
from tests.unit.recursions.test_rnea import batch_last, motions


@pytest.mark.parametrize("name", ["mixed_8", "two_roots", "autotree_branched"])
def test_an_admissible_matrix_stays_one(name):
    """With fewer speeds than freedoms too: A need not be square."""
    tree, (truth, _) = TREES[name], motions(name)
    rng = np.random.default_rng(2)
    q, qd = truth.q[:, 0], truth.qd[:, 0]
    for factorisation, n in product(FACTORISATIONS, (3, tree.nv)):
        A, A_rate = rng.normal(size=(2, tree.nv, n))

        def inertia(t, A=A, A_rate=A_rate):
            at = A + t * A_rate
            return at.T @ crba(tree, tree.integrate(q, qd, t)) @ at

        change, old = coordinate_change(A, A_rate), coriolis(tree, q, qd, factorisation)
        M, C = change.inertia(old.M), change.coriolis(old.M, old.C)
        assert_close(M, inertia(0.0), RECURSION)
        assert_close(C + C.T, derivative(inertia, STEP), DIFFERENCES)


@pytest.mark.parametrize("factorisation", FACTORISATIONS)
def test_the_equation_of_motion_holds_in_the_new_speeds(factorisation):
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    rng = np.random.default_rng(3)
    A, A_rate = rng.normal(size=(2, tree.nv, tree.nv))
    A += 4 * np.eye(tree.nv)
    nu, nu_rate = rng.normal(size=(2, tree.nv))
    q, qd, qdd = truth.q[:, 0], A @ nu, A @ nu_rate + A_rate @ nu
    tau = newton_euler(tree, q, qd, qdd, np.zeros((tree.n_links, 6))).tau
    change, old = coordinate_change(A, A_rate), coriolis(tree, q, qd, factorisation)
    C, gravity = change.coriolis(old.M, old.C), change.force(gravity_force(tree, q))
    assert_close(change.inertia(old.M) @ nu_rate + C @ nu + gravity, A.T @ tau, RECURSION)
    assert_close(change.force(tau), A.T @ tau, ROUNDING)


def bend(x):
    """Coordinates of an arm of three joints for new ones x (3, ...)."""
    return np.stack([x[0] + 0.3 * np.sin(x[1]), x[1] + 0.2 * x[0] * x[2], x[2] + 0.1 * np.cos(x[0])])


def bend_gradient(x):
    """The derivatives (3, 3, ...) of `bend`."""
    one, zero = 1 + 0 * x[0], 0 * x[0]
    rows = [one, 0.3 * np.cos(x[1]), zero], [0.2 * x[2], one, 0.2 * x[0]], [-0.1 * np.sin(x[0]), zero, one]
    return np.array(rows)


@pytest.mark.parametrize("seed", range(2))
def test_new_coordinates_keep_the_matrix_of_christoffel(seed):
    tree = random_tree(3, seed=seed, kinds=SINGLE_KINDS)
    x, x_rate = np.random.default_rng(seed).normal(size=(2, 3))
    assert_close(bend_gradient(x), np.stack([derivative(lambda t, e=e: bend(x + t * e)) for e in np.eye(3)], 1), SOLVED)

    def inertia(x):
        A = bend_gradient(x)
        return A.T @ crba(tree, bend(x)) @ A

    A_rate = derivative(lambda t: bend_gradient(x + t * x_rate), STEP)
    change = coordinate_change(bend_gradient(x), A_rate)
    old = coriolis(tree, bend(x), change.A @ x_rate, "christoffel")
    expected = symbols(gradient(inertia, x)) @ x_rate
    assert_close(change.inertia(old.M), inertia(x), RECURSION)
    assert_close(change.coriolis(old.M, old.C), expected, DIFFERENCES)


FLOATING_TOO = FLOATING | {"with rotors": on_a_free_base(autotree(4, skew=0.5)).replace(components=ROTORS[:1])}


@pytest.fixture(params=FLOATING_TOO)
def floating(request):
    """A floating robot, random q (nq, N) and qd (nv, N)."""
    tree = FLOATING_TOO[request.param]
    truth = random_states(tree, 5, seed=7)
    return tree, batch_last(truth.q), batch_last(truth.qd)


def centre(tree, q):
    """The centre of mass in the world (3,)."""
    bodies, (rotations, origins) = masses(tree), poses(tree, q)
    moment = sum(b.mass * (o + R @ b.com) for b, R, o in zip(bodies, rotations, origins, strict=True))
    return moment / sum(b.mass for b in bodies)


def test_speeds_are_those_of_the_centre_of_mass_and_the_rest(floating):
    tree, q, qd = floating
    change = com_coordinates(tree, q, qd)
    assert change.A.shape == change.A_rate.shape == (tree.nv, tree.nv, q.shape[1])
    for k in range(q.shape[1]):

        def at(t, k=k):
            return tree.integrate(q[:, k], qd[:, k], t)

        nu = np.linalg.solve(change.A[..., k], qd[:, k])
        assert_close(nu[:3], derivative(lambda t, at=at: centre(tree, at(t)), STEP), DIFFERENCES)
        assert_close(nu[3:], np.delete(qd[:, k], range(3, 6)), RECURSION)
        found = derivative(lambda t, at=at: com_coordinates(tree, at(t), None).A, STEP)
        assert_close(change.A_rate[..., k], found, DIFFERENCES)


def test_the_centre_of_mass_moves_apart_and_carries_all_weight(floating):
    tree, q, qd = floating
    tree = tree.replace(gravity=(1.0, -2.0, -9.0))
    change, old = com_coordinates(tree, q, qd), coriolis(tree, q, qd, "christoffel")
    M, C = change.inertia(old.M), change.coriolis(old.M, old.C)
    mass = sum(body.mass for body in masses(tree))
    expected = np.concatenate([-mass * np.array(tree.gravity), np.zeros(tree.nv - 3)])
    for k, force in enumerate(change.force(gravity_force(tree, q)).T):
        assert_close(M[:3, :, k], mass * np.eye(3, tree.nv), RECURSION)
        assert_close(C[:3, :, k], np.zeros((3, tree.nv)), RECURSION)
        assert_close(C[3:, :3, k], np.zeros((tree.nv - 3, 3)), RECURSION)
        assert_close(force, expected, RECURSION)
    assert_close(M, np.swapaxes(M, 0, 1), RECURSION)


def test_far_from_the_origin_it_is_the_same():
    tree = FLOATING["arms"]
    q, qd = tree.random_configuration(1), np.random.default_rng(1).normal(size=tree.nv)
    there = q + np.concatenate([[1e6, -1e6, 1e6], np.zeros(tree.nq - 3)])
    for near, far in zip(com_coordinates(tree, q, qd), com_coordinates(tree, there, qd), strict=True):
        assert_close(far, near, ROUNDING)


def test_a_robot_without_a_floating_base_or_without_mass_is_refused():
    for tree in (TREES["autotree_chain"], TREES["two_roots"], TREES["mixed_8"].replace(joints=(Revolute(),) * 8)):
        with pytest.raises(ModelError, match="has no floating base: its one root must be on a free joint"):
            com_coordinates(tree, tree.neutral_configuration(), np.zeros(tree.nv))
    tree = TREES["one_free_body"]
    with pytest.raises(ModelError, match="has no mass"):
        com_coordinates(tree.replace(I=np.zeros((1, 6, 6))), tree.neutral_configuration(), np.zeros(6))


def test_a_constant_configuration_of_unit_length_will_do():
    tree = TREES["one_free_body"]
    assert com_coordinates(tree, np.eye(7)[6], np.zeros((6, 2, 1))).A.shape == (6, 6, 2, 1)
    with pytest.raises(InputError, match=r"quaternion .* of joint 'joint1'"):
        com_coordinates(tree, np.zeros(7), np.zeros(6))


def test_lists_are_numbers_and_bad_changes_are_refused():
    change = coordinate_change([[1, 2], [0, 1]], [[0, 0], [1, 0]])
    assert_close(change.inertia([[2, 0], [0, 1]]), [[2.0, 4.0], [4.0, 9.0]], ROUNDING)
    assert_close(change.coriolis([[2, 0], [0, 1]], [[0, 1], [0, 0]]), [[0.0, 1.0], [1.0, 2.0]], ROUNDING)
    assert_close(change.force([1, 2]), [1.0, 4.0], ROUNDING)
    eye, word = np.eye(2), [["a", "b"]]
    for A, A_rate, message in (
        (np.eye(3), eye, r"A has shape \(3, 3\) and A_rate \(2, 2\)"),
        (np.ones(3), np.ones(3), r"A has shape \(3,\)"),
        (1.0, 1.0, "A has shape"),
        (np.full((2, 2), np.nan), eye, r"A\[0, 0\] is nan: values must be finite"),
        (eye, np.full((2, 2), np.inf), r"A_rate\[0, 0\] is inf"),
        ("A", "B", "A"),
        (word, word, "A"),
    ):
        with pytest.raises(InputError, match=message):
            coordinate_change(A, A_rate)


def test_matrices_that_do_not_fit_a_change_are_refused():
    change = coordinate_change(np.ones((3, 2)), np.zeros((3, 2)))
    for function, given, message in (
        (change.inertia, [np.eye(2)], r"M has shape \(2, 2\), expected \(3, 3\)"),
        (change.coriolis, [np.eye(3), np.ones(3)], r"C has shape \(3,\), expected \(3, 3\)"),
        (change.force, [np.ones(2)], r"tau has shape \(2,\), expected \(3,\)"),
        (change.inertia, [np.diag([1.0, np.nan, 1.0])], r"M\[1, 1\] is nan"),
    ):
        with pytest.raises(InputError, match=message):
            function(*given)
