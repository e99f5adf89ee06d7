"""The rules that count operations, on matrices small enough to count by hand."""

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Graph
from nori_dyn.planning.cost import RULES, engine_rule, factorisation_cost, substitution_cost
from nori_dyn.planning.elimination import FIELD, Elimination
from tests.matrices import symbolic_matrix


def eliminated(rows, b=()) -> Elimination:
    n = len(rows)
    return Elimination(symbolic_matrix(rows, b), FIELD).run(range(n), range(n))


FULL = [["x0", "x1", "x2"], ["x3", "x4", "x5"], ["x6", "x7", "x8"]]
FULL_B = [["y0"], ["y1"], ["y2"]]


def test_full_matrix_costs_what_the_textbook_says():
    """n = 3: 5 products with reciprocals of 2 pivots, 4 + 1 updates; then n (n - 1) + n in the substitutions."""
    work = eliminated(FULL, FULL_B)
    assert factorisation_cost(work) == Cost(additions=5, multiplications=3 + 5, divisions=2)
    assert substitution_cost(work) == Cost(additions=6, multiplications=6 + 3, divisions=1)
    assert engine_rule(work) == Cost(11, 17, 3)
    assert RULES["textbook"](work) == Cost(5 + 6, 5 + 6, 3 + 3)
    assert RULES["textbook_without_units"](work) == Cost(11, 11, 6)


def test_fill_in_is_a_product_and_no_addition():
    work = eliminated([["x0", "x1"], ["x2", 0]])
    assert work.fill_in == 1
    assert factorisation_cost(work) == Cost(additions=0, multiplications=1 + 1, divisions=1)
    assert RULES["textbook"](work).additions == 1 + 2


def test_ones_cost_nothing():
    """Pivot -1: no division; multiplier x1 by -1: l = -x1 is one product saved; u = 1 saves the update's product."""
    work = eliminated([[-1, 1], ["x1", "x2"]])
    assert factorisation_cost(work) == Cost(additions=1, multiplications=0, divisions=0)
    triangular = eliminated([[1, 0, 0], ["x0", -1, 0], [1, "x1", 1]], [["y0"], ["y1"], [0]])
    assert factorisation_cost(triangular) == Cost()
    # forward: x0 y0, 1 y0 into a zero, x1 times a sum; two additions, and one into what the other made nonzero
    assert substitution_cost(triangular) == Cost(additions=2, multiplications=2, divisions=0)
    assert RULES["textbook_without_units"](triangular).multiplications == 2
    assert RULES["textbook_without_units"](triangular).divisions == 0


def test_zeros_on_the_right_hand_side_and_unknowns_that_are_zero_cost_nothing():
    work = eliminated(FULL)
    assert substitution_cost(work) == Cost()
    assert engine_rule(work) == factorisation_cost(work)
    work = eliminated([["x0", "x1"], [0, "x2"]], [["y0"], [0]])
    assert substitution_cost(work) == Cost(additions=0, multiplications=1, divisions=1)


def test_published_rule_counts_the_elementwise_product():
    """Full 3 x 3: columns of L and rows of U share 2, then 1 places; what is counted as done is less than half."""
    work = eliminated(FULL, FULL_B)
    substitutions = Cost(additions=3 + 6 + 3, multiplications=6 + 2 * 3)
    assert RULES["published_fig2"](work) == Cost(additions=3, multiplications=3 + 3) + substitutions
    # fig. 1 subtracts for both 1 and -1 each entry that is not that: 2 * 2 a shared place when none is a unit
    assert RULES["published_fig1"](work) == Cost(additions=3, multiplications=3 + 3 - 4 * 3) + substitutions


def test_a_diagonal_needs_no_factorisation():
    work = eliminated([["x0", 0], [0, 1]], [["y0"], ["y1"]])
    assert {name: rule(work) for name, rule in RULES.items()} == {
        "engine": Cost(0, 1, 1),
        "textbook": Cost(0, 0, 2),
        "textbook_without_units": Cost(0, 0, 1),
        "published_fig1": Cost(2 + 2, 4, 0),
        "published_fig2": Cost(2 + 2, 4, 0),
    }


def test_expressions_are_counted_once_each_and_costs_add_up():
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert (Cost(1, 2, 3).total, Cost()) == (6, Cost(0, 0, 0))
    graph = Graph(0)
    x, y = graph.input("x"), graph.input("y")
    shared = x * y
    s, c = graph.sin_cos(x)
    outputs = (shared + s, shared - c, -shared, graph.reciprocal(shared), y)
    assert expression_cost(outputs) == Cost(additions=3, multiplications=1, divisions=1)
    assert expression_cost(()) == Cost()
    assert expression_cost((x, graph.expr(2.0))) == Cost()
