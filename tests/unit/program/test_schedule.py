"""The order of statements: each after what it reads, none left out, and few numbers live."""

import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from nori_dyn.program.schedule import schedule
from nori_dyn.program.statements import FORMATS
from nori_dyn.program.tracing import traced


def most_live(graph, order):
    """How many numbers are live at most, by going through an order."""
    last = {s: k for k, i in enumerate(order) for s in (graph.left[i], graph.right[i])}
    live, most = set(), 0
    for k, i in enumerate(order):
        live.add(i)
        live = {s for s in live if last.get(s, -1) > k}
        most = max(most, len(live))
    return most


def scheduled(graph, targets):
    needed = [i for i in graph.reachable(targets) if graph.ops[i] in FORMATS]
    sources = {i: [s for s in (graph.left[i], graph.right[i]) if s in needed] for i in needed}
    return needed, schedule(sources, [target.index for target in targets])


@pytest.mark.parametrize("function", [nd.rnea, nd.aba, nd.minverse], ids=lambda f: f.__name__)
def test_an_order_is_one_and_has_few_numbers_live(function):
    found = traced(function, nd.autotree(12, branching=2.0, skew=1.0))
    targets = [x for array in found.outputs.values() for x in array.flat]
    needed, order = scheduled(found.graph, targets)
    assert sorted(order) == needed
    place = {i: k for k, i in enumerate(order)}
    for i in order:
        for source in (found.graph.left[i], found.graph.right[i]):
            assert place.get(source, -1) < place[i]
    assert most_live(found.graph, order) <= most_live(found.graph, needed)


def test_sums_are_taken_one_after_the_other():
    graph = Graph()
    xs = [graph.input(f"x{k}") for k in range(8)]
    ys = [graph.input(f"y{k}") for k in range(8)]
    products = [x * y for x, y in zip(xs, ys, strict=True)]
    total = sum(products[1:], products[0])
    _, order = scheduled(graph, [total, products[0] * products[0]])
    assert most_live(graph, order) <= 3


def test_nothing_to_do():
    graph = Graph()
    x = graph.input("x")
    assert scheduled(graph, [x, graph.one]) == ([], [])
