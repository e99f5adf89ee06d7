"""The elimination on expressions: it solves the system, and its operations are counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
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
from tests.robots import load
from tests.systems import FORWARD, INVERSE, PROBLEMS, Figure2, hybrid, lifted, paper_chain
from tests.trees import TREES


def unsolved(symbolic, d):
    """Return the number of equations D d + b = 0 that d, a list over the field, does not satisfy."""
    left = [b.fingerprint for b in symbolic.b]
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        left[row] += entry.fingerprint * d[column]
    return sum(value % PRIME != 0 for value in left)


@pytest.mark.parametrize("regroup", [False, True])
@pytest.mark.parametrize("kind", ["inverse", "forward", "hybrid"])
@pytest.mark.parametrize("name", ["three_children", "two_roots", "mixed_8"])
def test_unknowns_solve_the_refined_system_in_the_field(name, kind, regroup):
    tree = TREES[name]
    refined, _, order = lifted(System(tree, {**PROBLEMS, "hybrid": hybrid(tree, seed=3)}[kind]), regroup)
    d = Elimination(refined.symbolic, FIELD).run(order.rows, order.columns).solution()
    assert unsolved(refined.symbolic, d) == 0
    solved = static_elimination(refined, order)
    assert [unknown.fingerprint for unknown in solved.unknowns] == [d[k] for k in range(len(solved.unknowns))]


@pytest.mark.parametrize("kind", ["inverse", "forward", "hybrid"])
def test_unknowns_solve_the_system_as_given_exactly_where_its_numbers_are_exact(kind):
    tree = TREES["autotree_branched"]  # no turn but the joints', so no rounded sine
    refined, _, order = lifted(System(tree, {**PROBLEMS, "hybrid": hybrid(tree, seed=3)}[kind]))
    solved = static_elimination(refined, order)
    assert unsolved(refined.original, [unknown.fingerprint for unknown in solved.unknowns]) == 0


def test_an_order_that_costs_too_much_is_given_up():
    system = System(autotree(4, skew=0.4), FORWARD)
    refined = refine(system)
    problem = ordering_problem(system, refined.symbolic, 0, definitions=refined.definitions)
    with pytest.raises(CostlyOrderError):
        greedy(problem, np.zeros(refined.symbolic.shape[1], dtype=np.intp), limit=10)


def test_a_zero_pivot_is_refused():
    refined, _, order = lifted(System(autotree(3, skew=0.4), FORWARD))
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


@pytest.mark.parametrize(("taper", "a_link"), [(1.0, 308), (0.97, 328)])
def test_operations_grow_by_the_same_number_with_every_link(taper, a_link):
    counts = [
        make_plan(System(autotree(n, skew=1.5, taper=taper), sensors("forward_dynamics")), ("qdd",), "recursive").cost
        for n in (10, 14, 40)
    ]
    first, second = (after.total - before.total for before, after in pairwise(counts))
    assert (first, second) == (4 * a_link, 26 * a_link)


SENSORS = {  # and the share of an elimination of the system as given, in its own best order, that is left
    "inverse": (System(autotree(10, skew=1.5, taper=0.9), INVERSE), 0.80),
    "forward": (System(autotree(10, skew=1.5, taper=0.9), FORWARD), 0.51),
    "hybrid": (System(TREES["mixed_8"], hybrid(TREES["mixed_8"], seed=3)), 0.76),
    "load cells": (System(paper_chain(8, 1.0), Figure2()), 0.72),
}


@pytest.mark.parametrize("name", SENSORS)
def test_frames_and_turns_pay_for_any_sensors(name):
    system, share = SENSORS[name]
    plan = make_plan(system, ordering="recursive")
    given = trace(system)
    work = Elimination(given, Expressions(given.graph)).run(plan.row_permutation, plan.column_permutation)
    as_given = expression_cost(work.solution().values()).total
    refined = replace(refine(system, plan.seed, plan.regrouped), turns=())
    order = Ordering(plan.program_rows, plan.program_columns)
    with_frames = static_elimination(refined, order).cost(range(system.shape[1])).total
    assert with_frames < as_given
    assert plan.cost.total <= share * as_given
    if name == "inverse":  # no tensor is turned
        assert plan.cost.total == with_frames
    else:
        assert plan.cost.total < with_frames
