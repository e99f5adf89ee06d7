"""Combinations of rows: one text over any scalar, from which compact loops over vectors can be made.

Much of the work on matrices whose columns are freedoms adds up rows: substitutions with triangular factors, products,
sums over paths of a tree. Written as `combination`, it is NumPy's over floats; over expressions each element is an
expression as any other, and the graph remembers which elements are a combination of which rows. Programs may then
compute them row by row (`nori_dyn/program/row_plan.py`), and need not.

Source: own derivation (tests/unit/algebra/test_rows.py); docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph, Nodes, Op, RowMap, RowSum
from nori_dyn.algebra.scalars import is_numeric, is_zero
from nori_dyn.typing import Array, Indices

Columns: TypeAlias = slice | Indices
"""Some columns of a row."""

ALL = slice(None)


def combination(
    initial: Array,
    coefficients: Sequence[Any] | Array,
    rows: Sequence[Array] | Array,
    columns: Columns = ALL,
    subtracted: bool = False,
) -> Array:
    """Initial + sum_k coefficients[k] rows[k], or minus, in some columns; zero in others.

    Rows of one matrix, or of several with the same columns, are given with all of their columns: over expressions it is
    known where they are zero, and nothing is computed there.

    Args:
        initial: a row (n, ...) over any scalar; batch axes last.
        coefficients: scalars (...).
        rows: as many rows (n, ...).
        columns: those that are wanted.
        subtracted: subtract the sum.
    """
    if is_numeric(initial) and all(map(is_numeric, rows)):
        total = np.zeros_like(initial)
        total[columns] = initial[columns]
        for coefficient, row in zip(coefficients, rows, strict=True):
            part = coefficient * row[columns]
            total[columns] = total[columns] - part if subtracted else total[columns] + part
        return total
    return _of_objects(initial, coefficients, rows, _numbers(initial, columns), subtracted)


def divided(row: Array, divisor: Any, columns: Columns = ALL) -> Array:
    """Row / divisor in some columns, zero in others; see `combination`."""
    if is_numeric(row):
        result = np.zeros_like(row)
        result[columns] = row[columns] / divisor
        return result
    if isinstance(divisor, Expr):
        return combination(np.zeros(len(row), dtype=object), [1 / divisor], [row], columns)
    found = np.zeros(len(row), dtype=object)
    for k in _numbers(row, columns):
        found[k] = row[k] / divisor if not is_zero(row[k]) else row[k]
    return found


def mapped(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function to arrays, column by column.

    Args:
        function: takes arrays (k_1, ...), (k_2, ...), ..., returns an array (m, ...), over any scalar and batch axes.
        arrays: (k_1, n, ...), (k_2, n, ...), ...: their columns are a batch axis of the function's.

    Returns:
        An array (m, n, ...).
    """
    graph = next(
        (x.graph for array in arrays if not is_numeric(array) for x in array.flat if isinstance(x, Expr)), None
    )
    if graph is None:
        result: Array = function(*arrays)
        return result
    arrays = tuple(np.vectorize(graph.expr, otypes=[object])(array) for array in arrays)
    first = len(graph)
    columns = [function(*(array[:, k] for array in arrays)) for k in range(arrays[0].shape[1])]
    found: Array = np.vectorize(graph.expr, otypes=[object])(np.stack(columns, axis=1))
    statements = len(graph) - first
    if statements:
        generic = Graph()
        inputs = [_generic(generic, array) for array in arrays]
        outputs = np.vectorize(generic.expr, otypes=[object])(function(*inputs))
        sources = tuple(_nodes(row) for array in arrays for row in array)
        rows = tuple(_nodes(row) for row in found)
        given = tuple(x for array in inputs for x in array)
        graph.combinations.append(RowMap(first, statements, rows, sources, given, tuple(outputs)))
    return found


def _generic(graph: Graph, array: Array) -> Array:
    """Expressions (k,) that stand for any column of an array (k, n): numbers where all columns have the same."""
    found = np.empty(len(array), dtype=object)
    for k, row in enumerate(array):
        alike = row[0].is_constant and all(x.index == row[0].index for x in row)
        found[k] = graph.expr(row[0].value) if alike else graph.input(f"{len(graph)}")
    return found


def _of_objects(
    initial: Array, coefficients: Any, rows: Sequence[Array] | Array, columns: Sequence[int], subtracted: bool
) -> Array:
    """A combination of scalars that are no plain numbers, zeros left out; a graph records its own."""
    graph = _graph(initial, coefficients, rows)
    if graph is not None:
        initial, coefficients = _expressions(graph, initial), _expressions(graph, coefficients)
        rows = [_expressions(graph, row) for row in rows]
        first = len(graph)
    total = np.zeros(len(initial), dtype=object) if graph is None else np.full(len(initial), graph.zero)
    for k in columns:
        total[k] = initial[k]
    for factor, row in zip(coefficients, rows, strict=True):
        for k in () if is_zero(factor) else columns:
            if not is_zero(row[k]):
                part = factor * row[k]
                total[k] = total[k] - part if subtracted else part if is_zero(total[k]) else total[k] + part
    if graph is not None:
        _remember(graph, first, total, columns, initial, coefficients, rows, subtracted)
    return total


def _numbers(row: Array, columns: Columns) -> list[int]:
    """The numbers of some columns of a row."""
    numbers: list[int] = np.arange(len(row))[columns].tolist()
    return numbers


def _graph(initial: Array, coefficients: Sequence[Any] | Array, rows: Sequence[Array] | Array) -> Graph | None:
    """The graph of the first expression among some scalars, or None."""
    for values in (coefficients, initial, *rows):
        for x in values:
            if isinstance(x, Expr):
                return x.graph
    return None


def _expressions(graph: Graph, values: Any) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = [graph.expr(x) for x in values]
    return found


def _remember(
    graph: Graph,
    first: int,
    total: Array,
    columns: Sequence[int],
    initial: Array,
    coefficients: Any,
    rows: Sequence[Array] | Array,
    subtracted: bool,
) -> None:
    terms: list[tuple[int, bool, Nodes]] = []
    for factor, row in zip(coefficients, rows, strict=True):
        if not factor.is_zero:
            i, signed = _unsigned(factor)
            terms.append((i, signed is not subtracted, _nodes(row)))
    made = _nodes(total)
    read = {_nodes(initial), *(row for _, _, row in terms)}
    if terms and any(made) and made not in read:
        wanted = sum(1 << k for k in columns)
        graph.combinations.append(RowSum(first, made, wanted, _nodes(initial), tuple(terms)))


def _nodes(row: Array) -> Nodes:
    return tuple(x.index for x in row)


def _unsigned(factor: Expr) -> tuple[int, bool]:
    """A coefficient without its sign, and whether it had one."""
    graph, i = factor.graph, factor.index
    return (graph.left[i], True) if graph.ops[i] is Op.NEG else (i, False)
