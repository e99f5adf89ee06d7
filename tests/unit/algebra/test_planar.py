"""Turns in a plane, against plain products of matrices."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.planar import is_signed_permutation, planar_congruence, planar_factors, turn_about, turns_onto_z

AXES = np.vstack([np.eye(3), -np.eye(3)])


def product(factors):
    """Return the product of rotations, the first applied first."""
    return reduce(lambda done, E: E @ done, factors, np.eye(3))


@pytest.mark.parametrize("shape", [(), (7,)])
def test_a_congruence_is_the_product_of_three_matrices(shape):
    rng = np.random.default_rng(0)
    angle, M = rng.uniform(-4, 4, shape), rng.normal(size=(2, 2, *shape))
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, s], [-s, c]])
    expected = np.einsum("ij...,jk...,lk...->il...", R, M, R)
    turned = planar_congruence(c, s, (M[0, 0], M[0, 1], M[1, 0], M[1, 1]))
    np.testing.assert_allclose(np.array(turned).reshape(2, 2, *shape), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("symmetric", "operations", "plain"), [(False, 11, 24), (True, 10, 19)])
def test_a_congruence_has_the_functions_of_the_products_with_fewer_operations(symmetric, operations, plain):
    graph = Graph()
    names = ("a", "b", "b" if symmetric else "c", "d")
    inputs = {name: graph.input(name) for name in dict.fromkeys(names)}
    a, b, e, d = (inputs[name] for name in names)
    c, s = graph.sin_cos(graph.input("angle"))[::-1]
    size = len(graph)
    rows = [[c * a + s * e, c * b + s * d], [c * e - s * a, c * d - s * b]]
    entries = [f(row) for row in rows for f in (lambda r: c * r[0] + s * r[1], lambda r: c * r[1] - s * r[0])]
    fingerprints = [entry.fingerprint for entry in entries]
    assert expression_cost(entries).total == plain
    graph.forget(size)
    turned = planar_congruence(c, s, (a, b, e, d))
    assert [entry.fingerprint for entry in turned] == fingerprints
    assert expression_cost(turned).total == operations


def check_turns(factors, found, expected, most, atol):
    """Check that a few factors each relabel the axes or turn about one of them exactly, and give what is expected."""
    np.testing.assert_allclose(found, expected, atol=atol)
    assert len(factors) <= most
    for factor in factors:
        assert is_signed_permutation(factor) or np.sum(factor == 0) == 4


def test_a_rotation_is_the_product_of_few_turns_in_a_plane():
    rng = np.random.default_rng(1)
    turns = [turn_about(axis, angle) for angle in rng.uniform(-4, 4, 20) for axis in range(3)]
    for E in [*Rotation.random(50, rng).as_matrix(), *turns, *(E @ np.roll(np.eye(3), 1, axis=0) for E in turns)]:
        factors = planar_factors(E)
        check_turns(factors, product(factors), E, 3, 1e-14)
    assert planar_factors(np.eye(3)) == ()
    for E in Rotation.create_group("O").as_matrix():  # what only relabels the axes takes no turn
        assert all(is_signed_permutation(factor) for factor in planar_factors(E))
        np.testing.assert_array_equal(product(planar_factors(E)), np.round(E))


quaternions = st.tuples(*[st.floats(-1, 1) | st.floats(-1e-7, 1e-7) | st.just(0.0)] * 4)


@given(quaternions)
@example((5e-9, 5e-9, 0.0, 1.0))  # each cosine rounds to 1
@example((1e-9, 0.0, 1.0, 1e-9))
def test_factors_of_any_rotation_turn_about_one_axis_exactly(quaternion):
    if np.linalg.norm(quaternion) < 1e-3:
        return
    E = Rotation.from_quat(quaternion).as_matrix()
    factors = planar_factors(E)
    check_turns(factors, product(factors), E, 3, 4e-14)


@given(st.tuples(*[st.floats(-1, 1) | st.floats(-1e-7, 1e-7) | st.just(0.0)] * 3))
def test_turns_onto_z_of_any_direction_turn_about_one_axis_exactly(direction):
    length = np.linalg.norm(direction)
    if length < 1e-3:
        return
    unit = np.array(direction) / length
    factors = turns_onto_z(unit)
    check_turns(factors, product(factors) @ unit, [0, 0, 1], 2, 4e-14)


def test_any_direction_is_turned_onto_z_by_two_turns():
    directions = np.random.default_rng(2).normal(size=(60, 3))
    directions[np.arange(20), np.arange(20) % 3] = 0.0
    for u in [*AXES, *directions]:
        unit = u / np.linalg.norm(u)
        factors = turns_onto_z(unit)
        check_turns(factors, product(factors) @ unit, [0, 0, 1], 2, 1e-14)
    assert all(is_signed_permutation(factor) for u in AXES for factor in turns_onto_z(u))
