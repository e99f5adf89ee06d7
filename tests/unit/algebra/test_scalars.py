"""Sine, cosine and square root of whatever a scalar may be."""

import math

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.scalars import cos, is_numeric, sin, sqrt
from tests.peers import casadi as ca
from tests.peers import sympy
from tests.tolerances import EXACT, ROUNDING, assert_close

FUNCTIONS = {"sin": (sin, math.sin), "cos": (cos, math.cos), "sqrt": (sqrt, math.sqrt)}
X = (0.25, 1.5, 2.0)


@pytest.fixture(params=FUNCTIONS)
def function(request):
    """One of ours, and that of the standard library."""
    return FUNCTIONS[request.param]


def objects(parts, shape):
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array.reshape(shape)


def test_of_numbers_and_arrays(function):
    ours, theirs = function
    for x in X:
        for number in (x, np.float64(x), np.array(x)):
            assert_close(ours(number), theirs(x), ROUNDING)
    assert_close(ours(2), theirs(2), ROUNDING)
    array = np.array(X).reshape(3, 1)
    assert_close(ours(array), [[theirs(x)] for x in X], ROUNDING)
    assert ours(array).dtype == float
    array = objects([0.25, 2, np.float64(1.5)], (3,))
    found = ours(array)
    assert found.dtype == object
    assert_close(found, [theirs(x) for x in (0.25, 2, 1.5)], ROUNDING)
    assert_close(array, [0.25, 2, 1.5], EXACT)  # which is not changed
    for dtype in (float, object):
        assert ours(np.zeros((0, 2), dtype=dtype)).shape == (0, 2)


def test_of_casadi(function):
    ours, theirs = function
    symbols = [ca.SX.sym(f"x{k}") for k in range(3)]
    assert_close(float(ca.Function("f", symbols[:1], [ours(symbols[0])])(1.5)), theirs(1.5), ROUNDING)
    found = ours(objects(symbols, (3, 1)))
    assert found.shape == (3, 1)
    f = ca.Function("f", symbols, [ca.vertcat(*found.ravel().tolist())])
    assert_close(np.array(f(*X)).ravel(), [theirs(x) for x in X], ROUNDING)


def test_of_sympy(function):
    ours, theirs = function
    x = sympy.Symbol("x")
    assert ours(x) == getattr(sympy, theirs.__name__)(x)
    found = ours(objects([x, x + 1, sympy.Float(0.5)], (3,)))
    assert_close([float(part.subs(x, 1.5)) for part in found], [theirs(1.5), theirs(2.5), theirs(0.5)], ROUNDING)


def test_of_expressions(function):
    ours, theirs = function
    graph = Graph(seed=1)
    x = graph.input("x")
    assert_close(graph.evaluate([ours(x)], {x.index: np.array(X)})[0], [theirs(value) for value in X], ROUNDING)
    found = ours(objects([x, x, 0.5], (3,)))
    assert found[0] is found[1]
    assert_close(
        graph.evaluate([graph.expr(part) for part in found], {x.index: np.array([1.5])})[:, 0],
        [theirs(1.5), theirs(1.5), theirs(0.5)],
        ROUNDING,
    )


def test_what_is_no_scalar_is_refused(function):
    ours, theirs = function
    for thing in (None, {"x": 1}, object(), [1, "a"]):
        with pytest.raises(TypeError, match=rf"is no scalar that has a {theirs.__name__}"):
            ours(objects([thing], (1,)))


def test_numeric_arrays_are_told_from_symbols():
    assert is_numeric(np.zeros(3))
    assert is_numeric(np.arange(3))
    assert not is_numeric(np.zeros(3, dtype=object))
    assert not is_numeric(objects([ca.SX.sym("x")], (1,)))
