"""Values of expressions at points of the prime field: Python's arithmetic modulo the prime, and equations of turns."""

import random

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.field_points import FieldPoints, random_numbers, random_quaternions
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.scalars import sqrt

N = 5


def points_of(graph, *, inputs=(), tangents=(), seed=0):
    rng = random.Random(seed)
    drawn = {x.index: random_numbers(rng, N) for x in inputs}
    return FieldPoints(graph, N, rng, drawn, {x.index: random_numbers(rng, N) for x in tangents}), drawn


def test_polynomials_and_reciprocals_are_those_of_the_integers_modulo_the_prime():
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    points, drawn = points_of(graph, inputs=(x, y))
    found = points.values([x * y - y + 3.0, -(x * x), 0.5 * x, (x + y) / y, x])
    for k in range(N):
        a, b = int(drawn[x.index][k]), int(drawn[y.index][k])
        half, over_b = pow(2, -1, PRIME), pow(b, -1, PRIME)
        expected = [a * b - b + 3, -a * a, half * a, (a + b) * over_b, a]
        assert found[:, k].tolist() == [value % PRIME for value in expected]


def test_sines_and_quaternions_obey_their_equations():
    graph = Graph(0)
    angle = graph.input("angle")
    sine, cosine = graph.sin_cos(angle)
    points, _ = points_of(graph, inputs=(angle,), tangents=(angle,))
    s, c, angles = points.values([sine, cosine, angle])
    assert ((s * s + c * c) % PRIME == 1).all()
    assert len(set(s.tolist())) == len(set(angles.tolist())) == N
    q = random_quaternions(random.Random(1), N)
    assert (np.sum(q * q, axis=0) % PRIME == 1).all()
    numbers, again = (random_numbers(random.Random(3), 4).tolist() for _ in range(2))
    assert numbers == again
    assert 2 <= min(numbers) < PRIME


def test_a_root_is_any_number_and_stays_it_where_other_inputs_change():
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    root = sqrt(x * x + 1.0)
    points, drawn = points_of(graph, inputs=(x, y))
    before = points.values([root, root * y])
    there = points.elsewhere({y.index: np.array([7] * N, dtype=object)})
    after = there.values([root, root * y, x])
    assert after[0].tolist() == before[0].tolist()
    assert after[1].tolist() == [r * 7 % PRIME for r in before[0].tolist()]
    assert after[2].tolist() == drawn[x.index].tolist()
    assert points.values([root * y]).tolist() == [before[1].tolist()]


def test_inputs_may_be_told_later_and_must_be():
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    points, drawn = points_of(graph, inputs=(x,))
    with pytest.raises(KeyError, match="y has no value"):
        points.values([x + y])
    points.set_inputs({y.index: np.array([1] * N, dtype=object)})
    assert points.values([x + y])[0].tolist() == [(value + 1) % PRIME for value in drawn[x.index].tolist()]
