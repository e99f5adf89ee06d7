"""The elimination on expressions: it solves the system, and its operations are counted."""

from dataclasses import replace
from itertools import pairwise

import pytest

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.elimination import FIELD, Elimination, Expressions, ZeroPivotError
from nori_dyn.planning.orderings.greedy import CostlyOrderError, greedy
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.planner import make_plan
from nori_dyn.planning.static_elimination import static_elimination
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from nori_dyn.system.trace import trace
from tests.covering import covering
from tests.robots import load
from tests.systems import FORWARD, PROBLEMS, Figure2, hybrid, lifted, paper_chain
from tests.trees import TREES


def unsolved(symbolic, d):
    """Return the number of equations D d + b = 0 that d, a list over the field, does not satisfy."""
    left = [b.fingerprint for b in symbolic.b]
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        left[row] += entry.fingerprint * d[column]
    return sum(value % PRIME != 0 for value in left)


@covering(name=["three_children", "two_roots", "mixed_8"], kind=["inverse", "forward", "hybrid"], regroup=[False, True])
def test_unknowns_solve_the_refined_system_in_the_field(name, kind, regroup):
    tree = TREES[name]
    refined, _, order = lifted(System(tree, PROBLEMS.get(kind) or hybrid(tree, seed=3)), regroup)
    d = Elimination(refined.symbolic, FIELD).run(order.rows, order.columns).solution()
    assert unsolved(refined.symbolic, d) == 0
    solved = static_elimination(refined, order)
    assert [unknown.fingerprint for unknown in solved.unknowns] == [d[k] for k in range(len(solved.unknowns))]


def test_unknowns_solve_the_system_as_given_exactly_where_its_numbers_are_exact():
    tree = TREES["autotree_branched"]  # no turn but the joints', so no rounded sine
    for sensor_set in (*PROBLEMS.values(), hybrid(tree, seed=3)):
        refined, _, order = lifted(System(tree, sensor_set))
        solved = static_elimination(refined, order)
        assert unsolved(refined.original, [unknown.fingerprint for unknown in solved.unknowns]) == 0


def test_an_order_that_costs_too_much_is_given_up_and_a_zero_pivot_refused():
    system = System(autotree(3, skew=0.4), FORWARD)
    refined, classes, order = lifted(system)
    problem = ordering_problem(system, refined.symbolic, 0, definitions=refined.definitions)
    with pytest.raises(CostlyOrderError):
        greedy(problem, 0 * classes, limit=10)
    with pytest.raises(ZeroPivotError):
        static_elimination(refined, Ordering(order.rows[::-1], order.columns))


OPERATIONS = {  # (what is reached, what was asked for)
    ("chain", "inverse_dynamics", "tau"): (3_288, 4_400),
    ("chain", "forward_dynamics", "qdd"): (9_188, 10_100),
    ("talos_reduced", "inverse_dynamics", "tau"): (3_459, 4_750),
    ("talos_reduced", "forward_dynamics", "qdd"): (6_850, 7_900),
}


@pytest.mark.parametrize(("robot", "problem", "output"), OPERATIONS)
def test_operations_of_a_tick_are_those_counted_and_fewer_than_published(robot, problem, output):
    tree = autotree(30, skew=1.5, taper=0.9) if robot == "chain" else load(robot, "fixed")
    plan = make_plan(System(tree, sensors(problem)), (output,), ordering="recursive")
    reached, asked = OPERATIONS[robot, problem, output]
    assert plan.cost.total == reached < asked
    assert plan.cost.total < 429 * tree.nv - 507  # Featherstone's count of the articulated-body algorithm
    assert plan.stability.growth <= 1.0001


@pytest.mark.parametrize(("taper", "a_link"), [pytest.param(1.0, 308, marks=pytest.mark.long), (0.97, 328)])
def test_operations_grow_by_the_same_number_with_every_link(taper, a_link):
    counts = [
        make_plan(System(autotree(n, skew=1.5, taper=taper), sensors("forward_dynamics")), ("qdd",), "recursive").cost
        for n in (10, 14, 24)
    ]
    assert [after.total - before.total for before, after in pairwise(counts)] == [4 * a_link, 10 * a_link]


SHARES = {"inverse": 0.80, "forward": 0.51, "hybrid": 0.76, "load cells": 0.72}
"""What is left of an elimination of the system as given, in its own best order."""


@pytest.mark.parametrize("name", SHARES)
def test_frames_and_turns_pay_for_any_sensors(name):
    if name == "load cells":
        system = System(paper_chain(8, 1.0), Figure2())
    else:
        tree = TREES["mixed_8"] if name == "hybrid" else autotree(10, skew=1.5, taper=0.9)
        system = System(tree, PROBLEMS.get(name) or hybrid(tree, seed=3))
    plan = make_plan(system, ordering="recursive")
    given = trace(system)
    work = Elimination(given, Expressions(given.graph)).run(plan.row_permutation, plan.column_permutation)
    as_given = expression_cost(work.solution().values()).total
    refined = replace(refine(system, plan.seed, plan.regrouped), turns=())
    order = Ordering(plan.program_rows, plan.program_columns)
    with_frames = static_elimination(refined, order).cost(range(system.shape[1])).total
    assert with_frames < as_given
    assert plan.cost.total <= SHARES[name] * as_given
    if name == "inverse":  # no tensor is turned
        assert plan.cost.total == with_frames
    else:
        assert plan.cost.total < with_frames
