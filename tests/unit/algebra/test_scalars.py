"""Sine, cosine and square root of whatever a scalar may be."""

import math

import numpy as np
import pytest

from nori_dyn.algebra.scalars import cos, is_numeric, sin, sqrt
from tests.peers import casadi as ca
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
