"""The Coriolis matrix: laws of the factorisations of one body, and identities of the robot's."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.coriolis import FACTORISATIONS, christoffel_factorisation, coriolis, times_C
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.rnea import coriolis_force
from tests.oracles import Lagrangian, derivative, hat, newton_euler
from tests.tolerances import DIFFERENCES, EXACT, EXTENDED, RECURSION, ROUNDING, assert_close
from tests.trees import TREES
from tests.unit.recursions.test_rnea import motions

STEP = 2e-3
"""Of differences along a motion, radians of which turn the last body many times as fast as one joint."""

MOVING_AXES = ("two_roots", "mixed_8", "mixed_12")


@pytest.fixture(params=TREES)
def case(request):
    """Return a tree and its motions."""
    return TREES[request.param], motions(request.param)[0]


@pytest.fixture(params=FACTORISATIONS)
def factorisation(request):
    return request.param


def rate(tree, find, q, qd):
    """Return the derivative of find(q) along motions of constant velocity from q (nq, N), by differences."""

    def at(t):
        return find(np.array([tree.integrate(*state, t) for state in zip(q.T, qd.T, strict=True)]).T)

    return derivative(at, STEP)


def transposed(M):
    return np.swapaxes(M, 0, 1)


def motion_cross(v):
    """Return v x (6, 6) from its definition."""
    w, u = hat(v[:3]), hat(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def force_bar(f):
    """Return f x-bar* (6, 6): the matrix that takes v to v x* f."""
    return np.array([-motion_cross(e).T @ f for e in np.eye(6)]).T


def rigid_bodies():
    """Return velocities and inertias of rigid bodies."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(20, 6)), random_tree(20, seed=3).I


def test_every_factorisation_gives_the_force_of_the_body(factorisation):
    for v, I in zip(*rigid_bodies(), strict=True):
        B = FACTORISATIONS[factorisation](v, I)
        assert_close(B @ v, -motion_cross(v).T @ I @ v, ROUNDING)


def test_every_factorisation_is_admissible(factorisation):
    for v, I in zip(*rigid_bodies(), strict=True):
        B = FACTORISATIONS[factorisation](v, I)
        assert_close(B + B.T, -motion_cross(v).T @ I - I @ motion_cross(v), ROUNDING)


def test_the_factorisation_of_christoffel_is_its_formula():
    for v, I in zip(*rigid_bodies(), strict=True):
        X = motion_cross(v)
        assert_close(christoffel_factorisation(v, I), (-X.T @ I + force_bar(I @ v) - I @ X) / 2, ROUNDING)


def test_the_factorisation_of_christoffel_has_no_torsion():
    v, I = rigid_bodies()
    for a, b in zip(v, v[::-1], strict=True):
        difference = christoffel_factorisation(a, I[0]) @ b - christoffel_factorisation(b, I[0]) @ a
        assert_close(difference, -I[0] @ motion_cross(a) @ b, ROUNDING)


def test_factorisations_on_a_batch_are_those_of_each(factorisation):
    v, I = rigid_bodies()
    batch = FACTORISATIONS[factorisation](v.T, np.moveaxis(I, 0, -1))
    for k in range(len(v)):
        assert_close(batch[..., k], FACTORISATIONS[factorisation](v[k], I[k]), ROUNDING)


def test_it_gives_the_force_of_velocities(case, factorisation):
    tree, truth = case
    weightless, no_wrench = tree.replace(gravity=(0.0, 0.0, 0.0)), np.zeros((tree.n_links, 6))
    C = coriolis(tree, truth.q, truth.qd, factorisation).C
    for k in range(10):
        q, qd = truth.q[:, k], truth.qd[:, k]
        assert_close(C[..., k] @ qd, newton_euler(weightless, q, qd, 0 * qd, no_wrench).tau, RECURSION)


def test_its_inertia_matrix_is_that_of_lagrange(case, factorisation):
    tree, truth = case
    M = coriolis(tree, truth.q, truth.qd, factorisation).M
    assert_close(M[..., 0], Lagrangian(tree, truth.q[:, 0]).H(), EXTENDED)
    assert_close(M, crba(tree, truth.q), RECURSION)
    assert_close(M, transposed(M), RECURSION)


def test_the_derivative_of_the_inertia_matrix_is_that_along_the_motion(case, factorisation):
    tree, truth = case
    q, qd = truth.q[:, :10], truth.qd[:, :10]
    Mdot = coriolis(tree, q, qd, factorisation).Mdot
    assert_close(Mdot, rate(tree, lambda x: crba(tree, x), q, qd), DIFFERENCES)


def test_mdot_less_twice_c_is_skew(case, factorisation):
    tree, truth = case
    found = coriolis(tree, truth.q, truth.qd, factorisation)
    assert_close(found.Mdot, found.C + transposed(found.C), RECURSION)
    twist = found.Mdot - 2 * found.C
    assert_close(twist, -transposed(twist), RECURSION)


def test_the_product_without_the_matrix_is_that_with_it(case, factorisation):
    tree, truth = case
    C = coriolis(tree, truth.q, truth.qd, factorisation).C
    expected = np.einsum("ijN,jN->iN", C, truth.qdd)
    assert_close(times_C(tree, truth.q, truth.qd, truth.qdd, factorisation), expected, RECURSION)
    assert_close(times_C(tree, truth.q, truth.qd, truth.qd), coriolis_force(tree, truth.q, truth.qd), RECURSION)


def test_energy_is_kept(case, factorisation):
    tree, truth = case
    found = coriolis(tree, truth.q, truth.qd, factorisation)
    power = np.einsum("iN,ijN,jN->N", truth.qd, found.Mdot - 2 * found.C, truth.qd)
    assert_close(power, 0 * power, RECURSION)


@pytest.mark.parametrize("name", MOVING_AXES)
def test_the_trees_have_axes_that_move_and_joints_of_several_freedoms(name):
    kinds = {joint.kind for joint in TREES[name].joints}
    assert kinds & {"planar", "spherical", "free", "cylindrical"}
    assert "planar" in {joint.kind for other in MOVING_AXES for joint in TREES[other].joints}


def test_one_planar_joint_is_a_body_in_the_plane(factorisation):
    tree = random_tree(1, seed=6, kinds=("planar",))
    rng = np.random.default_rng(6)
    for _ in range(5):
        q, qd = rng.normal(size=(2, 3))
        found = coriolis(tree, q, qd, factorisation)
        Mdot = derivative(lambda t, q=q, qd=qd: Lagrangian(tree, tree.integrate(q, qd, t)).H())
        assert_close(found.Mdot, Mdot, DIFFERENCES)
        weightless = tree.replace(gravity=(0.0, 0.0, 0.0))
        assert_close(found.C @ qd, newton_euler(weightless, q, qd, 0 * qd, np.zeros((1, 6))).tau, RECURSION)


def test_the_factorisations_differ():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    C = [coriolis(tree, truth.q[:, 0], truth.qd[:, 0], name).C for name in ("christoffel", "cross")]
    assert np.abs(C[0] - C[1]).max() > 1e-3
    assert_close(coriolis(tree, truth.q[:, 0], truth.qd[:, 0]).C, C[0], EXACT)


def test_c_is_linear_in_the_velocity(case, factorisation):
    tree, truth = case
    C = coriolis(tree, truth.q, truth.qd, factorisation).C
    assert_close(coriolis(tree, truth.q, -2 * truth.qd, factorisation).C, -2 * C, RECURSION)
    assert_close(coriolis(tree, truth.q, None, factorisation).C, 0 * C, EXACT)


def test_a_batch_is_each_one(case, factorisation):
    tree, truth = case
    batch = coriolis(tree, truth.q, truth.qd, factorisation)
    for k in range(3):
        for whole, one in zip(batch, coriolis(tree, truth.q[:, k], truth.qd[:, k], factorisation), strict=True):
            assert one.shape == (tree.nv, tree.nv)
            assert_close(whole[..., k], one, RECURSION)


def test_two_batch_axes_are_one(case, factorisation):
    tree, truth = case
    expected = coriolis(tree, truth.q, truth.qd, factorisation)
    found = coriolis(tree, truth.q.reshape(-1, 4, 25), truth.qd.reshape(-1, 4, 25), factorisation)
    for ours, flat in zip(found, expected, strict=True):
        assert_close(ours, flat.reshape(tree.nv, tree.nv, 4, 25), RECURSION)


def test_an_unknown_factorisation_is_named():
    with pytest.raises(UnknownNameError, match=r"factorisation 'christofel'.*Did you mean 'christoffel'"):
        coriolis(TREES["one_body"], [0.0], [0.0], "christofel")
    with pytest.raises(UnknownNameError, match=r"Known: christoffel, cross"):
        coriolis(TREES["one_body"], [0.0], [0.0], "xyz")


@pytest.mark.parametrize(
    ("q", "qd", "message"),
    [
        (np.zeros(4), np.zeros(5), r"q has shape \(4,\), expected \(5,\)"),
        (np.zeros(5), np.zeros(6), r"qd has shape \(6,\), expected \(5,\)"),
        (np.zeros(5), np.full(5, np.nan), r"qd\[0\] is nan: values must be finite"),
        (np.zeros((5, 3)), np.zeros((5, 2)), r"batch axes: q \(3,\), qd \(2,\)"),
        (np.zeros(5), "fast", "qd"),
    ],
)
def test_bad_input_is_named(q, qd, message):
    with pytest.raises(InputError, match=message):
        coriolis(TREES["autotree_chain"], q, qd)
