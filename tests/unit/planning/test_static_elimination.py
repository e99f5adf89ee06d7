"""The elimination on expressions: it solves the system, crosses frames in order, and its operations are counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nori_dyn.algebra.expressions import PRIME
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.elimination import ZeroPivotError
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.greedy import CostlyOrderError, greedy
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.orderings.recursive import recursive
from nori_dyn.planning.planner import make_plan
from nori_dyn.planning.static_elimination import static_elimination
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from nori_dyn.system.trace import trace
from tests.robots import load
from tests.systems import FORWARD, INVERSE, Figure2, hybrid
from tests.trees import TREES


def lifted(system, regroup=False):
    """Return the refined system, its classes in the order of the recursions, and its order."""
    refined = refine(system, regroup=regroup)
    problem = ordering_problem(system, refined.symbolic, 0, definitions=refined.definitions)
    classes = lifted_classes(recursive(ordering_problem(system, refined.original, 0)), system, refined)
    return refined, classes, Ordering.of(greedy(problem, classes))


@pytest.mark.parametrize("kind", ["inverse", "forward", "hybrid"])
@pytest.mark.parametrize("name", ["three_children", "two_roots", "mixed_8"])
def test_unknowns_solve_the_refined_system_in_the_field(name, kind):
    tree = TREES[name]
    system = System(tree, {"inverse": INVERSE, "forward": FORWARD}.get(kind) or hybrid(tree, seed=3))
    refined, _, order = lifted(system)
    symbolic = refined.symbolic
    x = [0] * symbolic.shape[1]
    for row, column in zip(order.rows.tolist(), order.columns.tolist(), strict=True):
        assert 0 <= row < len(x) > column
    solved = static_elimination(refined, order)
    first = 12 * tree.n_links + tree.nv  # the rows of the sensors read the unknowns of the original system only
    residual = {row: symbolic.b[row].fingerprint for row in range(first, system.shape[0])}
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        if row in residual:
            residual[row] += entry.fingerprint * solved.unknowns[column].fingerprint
    assert residual
    assert not any(value % PRIME for value in residual.values())


def test_frames_are_crossed_in_step_from_the_leaves_in_forward_dynamics():
    refined, classes, order = lifted(System(autotree(4, skew=0.4, taper=0.9), FORWARD))
    for crossing in refined.crossings[1:]:  # the acceleration of the root is known but for its own joint
        inner = [classes[column[0]] for column in crossing.a]
        assert inner == sorted(inner, reverse=True)  # from the body to its parent
        assert [classes[column[0]] for column in crossing.f[1:]] == inner
        parent = refined.f[crossing.body - 1][0], refined.a[crossing.body - 1][0]
        assert classes[crossing.f[0][0]] < min(classes[column] for column in parent)
        assert min(classes[c] for c in crossing.f[-1]) > classes[refined.f[crossing.body][0]]
    place = {column: k for k, column in enumerate(order.columns.tolist())}
    assert all(
        refined.definitions.get(c, r) == r for r, c in zip(order.rows.tolist(), order.columns.tolist(), strict=True)
    )
    assert len(place) == refined.symbolic.shape[1]


def test_accelerations_come_from_the_root_and_forces_from_the_leaves_in_inverse_dynamics():
    refined, _, order = lifted(System(autotree(5, skew=0.4, taper=0.9), INVERSE))
    place = {column: k for k, column in enumerate(order.columns.tolist())}
    last = [max(place[c] for c in block) for block in refined.a]
    assert last == sorted(last)
    last = [max(place[c] for c in block) for block in refined.f]
    assert last == sorted(last, reverse=True)


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
    ("chain", "inverse_dynamics", "tau"): (3_316, 4_400),
    ("chain", "forward_dynamics", "qdd"): (9_188, 10_100),
    ("talos_reduced", "inverse_dynamics", "tau"): (3_487, 4_750),
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


def test_operations_grow_by_the_same_number_with_every_link():
    counts = [
        make_plan(System(autotree(n, skew=1.5, taper=0.97), sensors("forward_dynamics")), ("qdd",), "recursive").cost
        for n in (10, 14, 18)
    ]
    first, second = (after.total - before.total for before, after in pairwise(counts))
    assert first == second


def figure_2(n):
    return System(autotree(n, 1, 1.5, 1.0).replace(gravity=(0.0, -9.81, 0.0)), Figure2())


@pytest.mark.parametrize("system", [System(autotree(8, skew=1.5, taper=0.9), FORWARD), figure_2(6)], ids=["fd", "fig2"])
def test_the_levers_pay_for_any_sensors(system):
    plan = make_plan(system, ordering="recursive")
    without_turns = replace(plan.refined, turns=())
    order = Ordering(plan.program_rows, plan.program_columns)
    everything = range(system.shape[1])
    refined = static_elimination(refine(system, plan.seed, plan.regrouped), order).cost(everything).total
    assert refined == plan.cost.total
    fresh = refine(system, plan.seed, plan.regrouped)
    assert refined <= static_elimination(replace(fresh, turns=()), order).cost(everything).total
    given = trace(system)
    assembly = len(given.graph.reachable([*given.entries, *given.b])) - len(given.q) - len(given.qd) - len(given.y)
    assert refined < plan.candidates[0].cost.total + assembly
    assert without_turns.original is plan.symbolic
