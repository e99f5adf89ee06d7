"""Derivatives of expressions against complex steps, and inputs replaced."""

import numpy as np
import pytest

from nori_dyn.algebra.derivatives import directional, replaced
from nori_dyn.algebra.expressions import Graph
from tests.oracles import evaluate


def example(x, y, z, sin, cos, sqrt):
    """Functions that use every operation."""
    return [sin(x) * y - cos(x) / (y + z), -(z * z) * sqrt(y * y + z), x + 2.0 - y, 3.0 * z, sqrt(sin(x) + 4.0) / z]


POINT = (0.7, 1.3, 2.1)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_derivatives_are_those_of_complex_steps(mode):
    graph = Graph()
    inputs = [graph.input(name) for name in "xyz"]
    outputs = example(*inputs, lambda x: x.sin(), lambda x: x.cos(), lambda x: x.sqrt())
    directions = [{x.index: graph.one} for x in inputs] + [{inputs[0].index: inputs[1], inputs[2].index: graph.one}]
    found = directional(outputs, directions, mode)
    values = evaluate(graph, dict(zip((x.index for x in inputs), POINT, strict=True)))
    step = 1e-30
    rates = [*np.eye(3), np.array([POINT[1], 0.0, 1.0])]
    for k, rate in enumerate(rates):
        at = [np.complex128(p + 1j * step * r) for p, r in zip(POINT, rate, strict=True)]
        expected = [value.imag / step for value in example(*at, np.sin, np.cos, np.sqrt)]
        for m, value in enumerate(expected):
            ours = values[found[m, k].index] if (m, k) in found else 0.0
            assert float(ours) == pytest.approx(value, rel=1e-14, abs=1e-14)
    assert (3, 0) not in found  # what does not depend has no entry


def test_replaced_inputs_are_functions():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    root = (y * y + 1.0).sqrt()
    outputs = [x * y - 1.0 / x, root + x, y, -x, x - y]
    found = replaced(outputs, {x.index: y + 2.0})
    values = evaluate(graph, {x.index: np.nan, y.index: 0.5})
    expected = [2.5 * 0.5 - 1 / 2.5, 1.25**0.5 + 2.5, 0.5, -2.5, 2.0]
    assert [float(values[f.index]) for f in found] == pytest.approx(expected, rel=1e-15)
    assert (x * x).sqrt().index not in (x.index, (-x).index)  # a root is nothing but itself
    assert x.sqrt().index == (x * 1.0).sqrt().index
    assert graph.expr(4.0).sqrt().value == 2.0
    with pytest.raises(TypeError, match="under sin cannot be replaced"):
        replaced([x.sin()], {x.index: y + 2.0})
