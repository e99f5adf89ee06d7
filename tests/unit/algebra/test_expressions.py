"""Expressions: equal functions are one node, zeros are known exactly, and values are those of plain arithmetic."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.algebra.prime_field import HALF, PRIME, field_value
from nori_dyn.algebra.spatial import matmul
from nori_dyn.model.joints import axis_rotation, quaternion_rotation
from tests.oracles import evaluate
from tests.peers import sympy

ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)


@pytest.fixture
def graph() -> Graph:
    return Graph(seed=1)


def objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_sine_and_cosine_of_one_angle_lie_on_the_circle(graph):
    x, y = graph.input("x"), graph.input("y")
    assert x.sin() * x.sin() + x.cos() * x.cos() is graph.one
    assert x.sin() * x.sin() + y.cos() * y.cos() is not graph.one
    assert x.sin() is x.sin()
    assert x.sin() is not y.sin()


def test_addition_and_multiplication_commute_associate_and_distribute(graph):
    x, y, z = (graph.input(name) for name in "xyz")
    assert x + y is y + x
    assert x * y is y * x
    assert (x + y) + z is x + (y + z)
    assert (x * y) * z is x * (y * z)
    assert x * (y + z) is x * y + x * z
    assert (x + y) * (x - y) is x * x - y * y
    assert x / y is x * (1 / y)
    assert 1 / (1 / x) is x
    assert (x + y) / (x + y) is graph.one


def test_a_fixed_turn_lies_on_the_circle_exactly(graph):
    for angle in (0.3, 1.5, 3.0, -2.2, math.pi / 2, 1e-9, math.pi - 1e-9, 0.0):
        c, s = graph.fixed_turn(math.cos(angle), math.sin(angle))
        assert c * c + s * s is graph.one
        assert (c.value, s.value) == pytest.approx((math.cos(angle), math.sin(angle)), abs=1e-16)


def test_only_outputs_compute_signs(graph):
    x, y, z = (graph.input(name) for name in "xyz")
    expressions = [-x - y, -x * -y, -x * y + z, z - (-(x - y) * z) / -y, 1 / (y - x) - 1 / (x - y)]
    for expression in expressions:
        nodes = graph.reachable([expression])
        assert all(graph.ops[i] is not Op.NEG for i in nodes if i != expression.index)


def test_what_is_forgotten_can_be_made_again(graph):
    x, y = graph.input("x"), graph.input("y")
    known, size = x * y, len(graph)
    forgotten = (x + y) * (x - y)
    assert len(graph) > size
    fingerprint = forgotten.fingerprint
    graph.forget(size)
    assert len(graph) == size
    assert x * y is known
    assert (x * x - y * y).fingerprint == fingerprint
    size = len(graph)
    first = graph.expr(0.25)
    graph.forget(size)
    z, again = graph.input("z"), graph.expr(0.25)
    assert (first.index, z.index, again.index) == (size, size, size + 1)
    assert graph.expr(0.25) is again
    assert (again.op, again.value) == (Op.CONSTANT, 0.25)


def test_nothing_refers_to_what_is_forgotten(graph):
    """Sines and labels of forgotten nodes stayed, and stood for whatever took their places."""
    x, size = graph.input("x"), len(graph)
    x.sin()
    graph.input("y")
    graph.forget(size)
    others = [x + k for k in range(1, 8)]
    assert {x.sin().op, x.cos().op} == {Op.SIN, Op.COS}
    assert x.sin() not in others
    assert [*graph.labels.values()] == ["x"]
    assert [graph.labels[node.index] for node in (x, graph.input("z"))] == ["x", "z"]


def test_values_are_those_of_plain_arithmetic(graph):
    x, y = graph.input("x"), graph.input("y")
    a, b = np.random.default_rng(0).normal(size=(2, 7))
    values = graph.evaluate([x.sin() * y - 2.0, -(x / y), graph.expr(3.0)], {x.index: a, y.index: b})
    np.testing.assert_allclose(values, [np.sin(a) * b - 2.0, -a / b, np.full(7, 3.0)], rtol=1e-15)


def test_cancellation_is_the_zero_node(graph):
    x, y = graph.input("x"), graph.input("y")
    for zero in (x - x, 0 * x, x * 0.0, x + -x, x * y - y * x, (x + y) * (x + y) - x * x - 2 * x * y - y * y):
        assert zero is graph.zero
        assert zero.is_zero
    assert not (x - y).is_zero
    assert not (graph.opaque(x - x + x) - x).is_zero  # an opaque value hides what it is, but for constants
    assert graph.opaque(graph.zero).is_zero
    assert graph.opaque(graph.expr(2.5)).value == 2.5


def test_turns_of_exact_length_are_orthogonal_as_nodes(graph):
    q = graph.unit_quaternion("xyzw")
    x, y, z, w = q
    assert x * x + y * y + z * z + w * w is graph.one
    E = quaternion_rotation(objects(*q))
    assert E[0, 0] * E[1, 1] - E[0, 1] * E[1, 0] is E[2, 2]
    turns = [axis_rotation(axis, graph.input(str(axis))) for axis in ((0.0, 0.0, 1.0), (-1.0, 0.0, 0.0))]
    for product in [matmul(E.T, E), *(matmul(R, R.T) for R in (E, *turns))]:
        for (i, j), entry in np.ndenumerate(product):
            assert graph.expr(entry) is (graph.one if i == j else graph.zero)


def test_field_value_of_a_double_is_its_exact_rational():
    doubles = (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 1e300, 5e-324, 2.0**-1074, 2.0**1000, math.pi, 123456789.123)
    for value, exact in zip(doubles, map(Fraction, doubles), strict=True):
        assert field_value(value) * exact.denominator % PRIME == exact.numerator % PRIME, value
        assert 0 <= field_value(value) < PRIME, value


def test_no_two_doubles_are_the_same_in_the_field():
    """m 2^k = n mod p for no |m|, |n| < 2^53, but where it holds as it stands.

    Up to k = 73 both sides are smaller than p / 2. Beyond, such (m, n) are vectors of the lattice of (1, 2^k) and
    (0, p), of which the shortest, by the reduction of Lagrange and Gauss, is longer.
    """
    exponents = range(-1074, 972)
    assert sympy.isprime(PRIME)
    assert 2 * HALF % PRIME == 1
    for k in range(74, exponents.stop - exponents.start):
        assert _shortest(PRIME, pow(2, k, PRIME)) > 2 * 2**106


def _shortest(p: int, a: int) -> int:
    """The square of the length of the shortest vector of the lattice of (1, a) and (0, p)."""
    u, v = (0, p), (1, a)
    while v[0] ** 2 + v[1] ** 2 < u[0] ** 2 + u[1] ** 2:
        square = v[0] ** 2 + v[1] ** 2
        times = (2 * (u[0] * v[0] + u[1] * v[1]) + square) // (2 * square)
        u, v = v, (u[0] - times * v[0], u[1] - times * v[1])
    return u[0] ** 2 + u[1] ** 2


def test_constants_are_exact_not_rounded(graph):
    rest = graph.expr(0.1) + 0.2 - 0.3
    exact = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert exact != 0
    assert not rest.is_zero
    assert rest.is_constant
    assert rest.fingerprint * exact.denominator % PRIME == exact.numerator % PRIME
    assert (graph.expr(0.1) + 0.1 - 0.2).is_zero
    assert graph.expr(0.5) + 0.25 is graph.expr(0.75)
    assert graph.expr(3.0) * (1.0 / 3.0) is not graph.one
    assert graph.expr(3.0) * (1 / graph.expr(3.0)) is graph.one


def test_folding_constants_keeps_the_exact_field_value(graph):
    pairs = np.random.default_rng(2).normal(size=(50, 2)).tolist()
    for operation, (a, b) in itertools.product(ARITHMETIC, pairs):
        node = operation(graph.expr(a), graph.expr(b))
        exact = operation(Fraction(a), Fraction(b))
        assert node.op is Op.CONSTANT
        assert node.fingerprint * exact.denominator % PRIME == exact.numerator % PRIME
        assert node.value == pytest.approx(operation(a, b), rel=1e-15)


def test_a_number_has_its_own_value_whatever_was_folded_before(graph):
    # 1e16 + 0.75 + 0.75 - 1e16 is 1.5 in the field and 0 or 2 in doubles.
    folded = graph.expr(1e16) + 0.75 + 0.75 - 1e16
    assert graph.expr(1.5) is folded
    assert graph.expr(1.5).value == 1.5
    # An expression that turns out to be a number becomes the constant.
    x = graph.input("x")
    sum_of_squares = 1.75 * x.sin() * (2 * x.sin()) + 1.75 * x.cos() * (2 * x.cos())
    assert graph.expr(3.5) is sum_of_squares
    assert sum_of_squares.is_constant
    assert sum_of_squares.value == 3.5


def test_signs_cost_nothing_where_they_can_move(graph):
    x, y = graph.input("x"), graph.input("y")
    assert -1 * (-x) is x
    assert -(x - y) is y - x
    assert x + -y is x - y
    assert (x + -y).op is Op.SUB
    assert x - (-y) is x + y
    assert -x - y is -(x + y)
    assert (x - (y - x) * -y).op in (Op.ADD, Op.SUB)
    assert 1 / -x is -(1 / x)
    assert -x * -y is x * y
    assert (-x * y).op is Op.NEG
    assert -1 * x is -x
    assert x * -1.0 is -x
    assert 0 - x is -x
    assert -graph.expr(2.0) is graph.expr(-2.0)
    assert -graph.zero is graph.zero
    for unit in (graph.one, -graph.one, x / -x):
        assert unit.is_unit
    assert not graph.expr(2.0).is_unit


def test_what_has_no_value_is_refused(graph):
    x, other = graph.input("x"), Graph(seed=1).input("x")
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises((ValueError, OverflowError)):
            graph.expr(value)
    zero = x.sin() * x.sin() + x.cos() * x.cos() - 1
    for divide in (lambda: 1 / zero, lambda: x / zero, lambda: x / 0, lambda: graph.reciprocal(graph.zero)):
        with pytest.raises(ZeroDivisionError, match="zero for every value"):
            divide()
    for mix in (*(lambda f=f: f(x, other) for f in ARITHMETIC), lambda: graph.expr(other)):
        with pytest.raises(ValueError, match="two graphs"):
            mix()
    with pytest.raises(TypeError, match="inputs only"):
        (x + 1).sin()
    with pytest.raises(TypeError, match=r"math\.sin"):
        graph.one.cos()
    with pytest.raises(TypeError, match="not a constant"):
        _ = x.value


def test_numpy_functions_and_scalars_work_on_expressions(graph):
    x = graph.input("x")
    assert np.sin(objects(x))[0] is x.sin()
    assert np.cos(x) is x.cos()
    for two in (2, 2.0, np.float64(2.0), np.int64(2)):
        assert two * x is x + x
        assert x * two is x + x
        assert (two - x) + x is graph.expr(2.0)
        assert (two / x) * x is graph.expr(2.0)
    assert (np.eye(2) * x)[0, 0] is x


def test_people_can_read_nodes_and_graphs_and_fingerprints_depend_on_the_seed(graph):
    x = graph.input("q[0]")
    assert repr(x) == "Expr(q[0])"
    assert repr(graph.expr(2.5)) == "Expr(2.5)"
    assert repr(x.sin()).startswith("Expr(sin #")
    assert "1 inputs" in repr(graph)
    prints = [(g.input("x").sin() * g.input("y") + 3).fingerprint for g in map(Graph, (7, 7, 8))]
    assert prints[0] == prints[1] != prints[2]


# Random trees of operations: ("op", left, right), leaves are inputs, their sines and cosines, or numbers.
NUMBERS = st.integers(-8, 8).map(lambda k: k / 2)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["input", "sin", "cos"]), st.integers(0, 2)), st.tuples(st.just("number"), NUMBERS)
)
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul"]), children, children),
        st.tuples(st.just("neg"), children),
        st.tuples(st.just("div"), children, st.integers(0, 2)),
    ),
    max_leaves=12,
)
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def compute(tree, inputs, sines, cosines, number):
    """Compute a tree over any scalar; a divisor is 1 + an input squared."""

    def of(part):
        return compute(part, inputs, sines, cosines, number)

    match tree:
        case ("input" | "sin" | "cos" as leaf, k):
            return {"input": inputs, "sin": sines, "cos": cosines}[leaf][k]
        case ("number", value):
            return number(value)
        case ("neg", x):
            return -of(x)
        case ("div", x, k):
            return of(x) / (1 + inputs[k] * inputs[k])
        case (name, x, y):
            return OPERATORS[name](of(x), of(y))
    raise AssertionError(tree)


def as_expressions(trees):
    graph = Graph(seed=3)
    inputs = [graph.input(name) for name in "xyz"]
    sines, cosines = [x.sin() for x in inputs], [x.cos() for x in inputs]
    nodes = [graph.expr(compute(tree, inputs, sines, cosines, graph.expr)) for tree in trees]
    return graph, inputs, nodes


@settings(max_examples=150)
@given(st.lists(TREES, min_size=1, max_size=4))
def test_random_expressions_equal_exact_arithmetic(trees):
    """Over rationals nothing is rounded: equal nodes must be equal numbers at every point, bit by bit."""
    graph, inputs, nodes = as_expressions(trees)
    assert len(set(graph.fingerprints)) == len(graph)
    assert all(max(left, right) < i for i, (left, right) in enumerate(zip(graph.left, graph.right, strict=True)))
    x = [Fraction(3, 7), Fraction(-5, 3), Fraction(11, 13)]
    t = [Fraction(1, 3), Fraction(-4, 5), Fraction(7, 2)]
    sines, cosines = [2 * u / (1 + u * u) for u in t], [(1 - u * u) / (1 + u * u) for u in t]
    expected = [compute(tree, x, sines, cosines, Fraction) for tree in trees]
    pairs = dict(zip(x, zip(sines, cosines, strict=True), strict=True))
    graph.values = [Fraction(value) for value in graph.values]
    at = {node.index: value for node, value in zip(inputs, x, strict=True)}
    values = evaluate(graph, at, sin=lambda angle: pairs[angle][0], cos=lambda angle: pairs[angle][1])
    for node, value in zip(nodes, expected, strict=True):
        assert values[node.index] == value
    for (node, value), (other, number) in itertools.combinations(zip(nodes, expected, strict=True), 2):
        if node is other:
            assert value == number
