"""Constants of any size: 2^127 was 1 modulo the prime of the fingerprints, so that c and c 2^127 were one node."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from tests.systems import WRENCHES, sensor_set


@pytest.mark.parametrize("exponent", [127, -127, 254, -1016])
def test_powers_of_two_are_told_apart(exponent):
    graph = Graph()
    x = graph.input("x")
    assert graph.expr(2.0**exponent) is not graph.one
    assert graph.expr(2.0**exponent).value == 2.0**exponent
    assert x * 2.0**exponent is not x


@pytest.mark.parametrize("value", [2.0**-127, 2.0**127])
def test_a_known_value_of_any_size_is_kept(value):
    known = {"type": "joint_acceleration", "joints": "all", "value": value}
    system = nd.System(nd.autotree(2), sensor_set(known, WRENCHES))
    estimate = nd.plan(system, cache=False).solver("numpy").solve(np.array([0.3, -0.4]), np.zeros(2), np.zeros(12))
    np.testing.assert_array_equal(estimate.qdd, [value, value])
