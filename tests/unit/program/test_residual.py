"""The tables of the residual's C; what they compute is tested in test_native.py."""

from nori_dyn.algebra.expressions import Graph
from nori_dyn.program.residual import NUMBERS, Tables, residual_source


def in_work(node):
    return (NUMBERS, node.value) if node.is_constant else ("w", node.index)


def test_rows_with_as_many_factors_of_each_kind_are_one_loop():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    row = (graph.zero, ((graph.one, 0), (x, 1), (graph.expr(0.5), 2)))
    like = (graph.zero, ((graph.expr(3.0), 4), (graph.one, 1), (y, 0)))
    other = (x, ((-graph.one, 3),))
    nothing = (graph.zero, ())
    tables = Tables(((row, other), (like, nothing)), in_work)
    assert tables.numbers == {0.5: 0, 3.0: 1}
    assert tables.rows == {
        ("", (1, 0, 1, 1, 0)): [[0, 0, 0, 2, x.index, 1], [1, 1, 1, 4, y.index, 0]],
        ("w", (0, 1, 0, 0, 0)): [[0, x.index, 3]],
    }


def test_without_equations_nothing_is_written():
    assert residual_source((), in_work) == ""


def test_places_that_are_large_have_larger_numbers():
    graph = Graph()
    rows = (((graph.zero, ((graph.one, 1 << 16),)),),)
    assert "typedef int place;" in residual_source(rows, in_work)
    rows = (((graph.zero, ((graph.one, 1),)),),)
    assert "typedef unsigned short place;" in residual_source(rows, in_work)
