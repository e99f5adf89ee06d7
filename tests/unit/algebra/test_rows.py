"""Combinations of rows: the same numbers over any scalar, and what a graph remembers of them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.rows import combination, divided, mapped
from tests.oracles import inputs_of
from tests.tolerances import EXACT, ROUNDING, assert_close

N = 5
INITIAL = np.array([0.0, 1.0, 0.0, -2.0, 0.0])
ROWS = np.array([[0.0, 2.0, 0.0, 1.0, 0.0], [3.0, 0.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 4.0]])
FACTORS = np.array([0.5, -2.0, 0.0])


COLUMNS = {"all": slice(None), "first": slice(2), "middle": slice(1, 4), "some": np.array([0, 3])}
PARTS = [*product(COLUMNS.values(), (False, True))]


def expected(columns, sign, initial=INITIAL, factors=FACTORS, rows=ROWS):
    total = initial + sign * np.einsum("k...,kn...->n...", factors, rows)
    kept = np.zeros_like(total)
    kept[columns] = total[columns]
    return kept


def test_floats_and_any_scalar():
    exact = [np.array([Fraction(x) for x in np.ravel(part)], dtype=object) for part in (INITIAL, FACTORS, ROWS)]
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(N, 3, 2)), rng.normal(size=(3, 3, 2)), rng.normal(size=(3, N, 3, 2))
    for columns, subtracted in PARTS:
        sign = -1 if subtracted else 1
        assert_close(combination(INITIAL, FACTORS, ROWS, columns, subtracted), expected(columns, sign), ROUNDING)
        found = combination(exact[0], exact[1], exact[2].reshape(ROWS.shape), columns, subtracted)
        assert_close(found.astype(float), expected(columns, sign), EXACT)
        assert_close(combination(*batch, columns, subtracted), expected(columns, sign, *batch), ROUNDING)


@pytest.mark.parametrize(("columns", "subtracted"), PARTS)
def test_expressions_are_remembered(columns, subtracted):
    graph = Graph()
    inputs = {}

    def symbols(values):
        found = np.empty(values.shape, dtype=object)
        for index, value in np.ndenumerate(values):
            found[index] = graph.input(f"x{len(inputs)}") if value else 0
            if value:
                inputs[found[index].index] = np.array([value])
        return found

    initial, factors, rows = symbols(INITIAL), symbols(FACTORS), symbols(ROWS)
    found = combination(initial, factors, rows, columns, subtracted)
    (made,) = graph.combinations
    values = graph.evaluate([graph.expr(x) for x in found], inputs)[:, 0] if inputs else found
    assert_close(values, expected(columns, -1 if subtracted else 1), ROUNDING)
    assert made.row == tuple(x.index for x in found)
    assert made.columns == sum(1 << k for k in np.arange(N)[columns])
    assert len(made.terms) == 2  # a coefficient of zero makes none
    assert all(minus is subtracted for _, minus, _ in made.terms)
    assert all(x.is_zero for k, x in enumerate(found) if k not in np.arange(N)[columns])


def test_signs_of_coefficients_are_kept_apart():
    graph = Graph()
    x, c = graph.input("x"), graph.input("c")
    combination(np.zeros(2, dtype=object), [-c], [np.array([x, 0])])
    ((coefficient, minus, _),) = graph.combinations[0].terms
    assert (coefficient, minus) == (c.index, True)


def test_division():
    row, graph = np.array([1.0, 0.0, 3.0]), Graph()
    x, d = graph.input("x"), graph.input("d")
    for columns in (slice(None), slice(2)):
        kept = np.zeros(3)
        kept[columns] = row[columns] / 3.0
        assert_close(divided(row, 3.0, columns), kept, EXACT)
        exact = divided(np.array([Fraction(x) for x in row], dtype=object), Fraction(3), columns)
        assert_close(exact.astype(float), kept, ROUNDING)
        found = divided(np.array([x, 0, x * x], dtype=object), d, columns)
        values = graph.evaluate([graph.expr(y) for y in found], {x.index: np.array([2.0]), d.index: np.array([4.0])})
        assert_close(values[:, 0], [0.5, 0.0, 1.0 if columns == slice(None) else 0.0], ROUNDING)


def test_a_map_is_the_function_of_each_column():
    def area(x, y):
        return np.stack([x[0] * y[0], x[1] - y[0]])

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, N, 3)), rng.normal(size=(1, N, 3))
    assert_close(mapped(area, x, y), [x[0] * y[0], x[1] - y[0]], EXACT)
    exact = [np.array([Fraction(v) for v in part[..., 0].flat], dtype=object).reshape(-1, N) for part in (x, y)]
    assert_close(mapped(area, *exact).astype(float), area(x[..., 0], y[..., 0]), ROUNDING)
    graph = Graph()
    symbols, values = inputs_of(graph, x=x[..., 0], y=y[..., 0])
    found = mapped(area, *symbols)
    (record,) = graph.combinations
    assert record.made == tuple(tuple(node.index for node in row) for row in found)
    assert len(record.read) == len(record.inputs) == 3
    assert record.statements == 2 * N
    values = {index: np.array([value]) for index, value in values.items()}
    assert_close(graph.evaluate(list(found.flat), values).reshape(2, N), area(x[..., 0], y[..., 0]), EXACT)
