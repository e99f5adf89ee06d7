"""Every ordering permutes, pivots on what is not zero, repeats itself, and is the one in which a plan by its name
eliminates D; `auto` takes the cheapest stable one of the refined system.
"""

from functools import cache

import numpy as np
import pytest

from nori_dyn.errors import PlanError
from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.cost import engine_rule
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem, ordering_problem
from nori_dyn.planning.orderings.registry import AUTO, ORDERINGS, orderings_named
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.planner import make_plan
from nori_dyn.system.builder import System
from nori_dyn.system.trace import trace
from tests.covering import covering
from tests.noted import noted
from tests.systems import ACCELERATIONS, FORWARD, PROBLEMS, TORQUES, WRENCHES, hybrid, sensor_set
from tests.trees import TREES

# One row an ordering. An ordering of the registry that is not here fails a test below.
ROWS = ("recursive", "markowitz", "umfpack", "superlu")
AVAILABLE = [name for name in ROWS if name != "umfpack" or has_umfpack()]

KINDS = ("inverse", "forward", "hybrid")


@cache
def system_of(tree: str, kind: str) -> System:
    return System(TREES[tree], PROBLEMS[kind] if kind in PROBLEMS else hybrid(TREES[tree], seed=5))


@cache
def problem_of(tree: str, kind: str) -> OrderingProblem:
    return ordering_problem(system_of(tree, kind), trace(system_of(tree, kind)), seed=3)


def test_every_ordering_is_tested():
    assert set(ROWS) == set(ORDERINGS)


@pytest.mark.parametrize("tree", TREES)
def test_permutations_with_pivots_that_are_not_zero_and_factors_that_multiply_to_the_matrix(tree):
    for kind in KINDS[:1] if tree == "massless" else KINDS:
        problem = problem_of(tree, kind)
        for name in AVAILABLE:
            with noted(kind, name):
                check_order(problem, ORDERINGS[name](problem))


def check_order(problem: OrderingProblem, order: Ordering) -> None:
    n = problem.symbolic.shape[0]
    for permutation in (order.rows, order.columns):
        assert sorted(permutation.tolist()) == list(range(n))
        assert np.issubdtype(permutation.dtype, np.integer)
    steps = Elimination(problem.symbolic, FIELD).run(order.rows, order.columns).pivots  # a zero pivot raises
    assert [step.row for step in steps] == order.rows.tolist()
    assert all(step.value for step in steps)
    L, U = numeric_factors(problem, order, state=1)
    D = problem.matrix(1).toarray()[np.ix_(order.rows, order.columns)]
    scale = np.abs(L) @ np.abs(U)
    assert (np.abs(L @ U - D) <= 1e-12 * scale.max()).all()


def numeric_factors(problem: OrderingProblem, order: Ordering, state: int) -> tuple[np.ndarray, np.ndarray]:
    """L and U of a state without pivoting, dense."""
    U = problem.matrix(state).toarray()[np.ix_(order.rows, order.columns)]
    L = np.eye(len(U))
    for k in range(len(U)):
        L[k + 1 :, k] = U[k + 1 :, k] / U[k, k]
        U[k + 1 :] -= np.outer(L[k + 1 :, k], U[k])
    return L, np.triu(U)


@pytest.mark.parametrize("name", [*AVAILABLE, AUTO])
def test_plans_are_deterministic(name):
    system = System(TREES["autotree_chain"], FORWARD)
    first, second = (make_plan(system, ordering=name, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.row_permutation, second.row_permutation)
    np.testing.assert_array_equal(first.column_permutation, second.column_permutation)
    assert first.cost == second.cost


@covering(strength=1, tree=("mixed_8", "three_children", "two_roots"), kind=KINDS)
def test_auto_takes_the_cheapest_that_is_stable(tree, kind):
    system = system_of(tree, kind)
    plan = make_plan(system, seed=3)
    chosen, *others = plan.tried
    assert plan.ordering == chosen.program_ordering
    assert {candidate.ordering for candidate in plan.tried} == set(orderings_named(AUTO))
    for other in others:
        assert chosen.burden <= other.burden
        assert chosen.stability.is_stable or not other.stability.is_stable
    for candidate in plan.tried:
        assert candidate.program_ordering in (candidate.ordering, "recursive")
        (alone,) = make_plan(system, ordering=candidate.ordering, seed=3).tried
        assert (alone.cost, alone.published, alone.fill_in) == (candidate.cost, candidate.published, candidate.fill_in)
    assert engine_rule(plan.elimination()) == chosen.cost


@covering(strength=1, tree=("mixed_8", "three_children", "two_roots", "massless"), kind=KINDS, name=AVAILABLE)
def test_a_name_is_for_the_order_in_which_D_itself_is_eliminated(tree, kind, name):
    """P and Q are those that the ordering finds, the program has them too, and counts what it does."""
    if tree == "massless" and kind != "inverse":
        return
    system = system_of(tree, kind)
    plan, order = make_plan(system, ordering=name, seed=3), ORDERINGS[name](problem_of(tree, kind))
    for rows in (plan.row_permutation, plan.program_rows):
        np.testing.assert_array_equal(rows, order.rows)
    for columns in (plan.column_permutation, plan.program_columns):
        np.testing.assert_array_equal(columns, order.columns)
    assert (plan.ordering, [one.ordering for one in plan.tried]) == (name, [name])
    assert plan.refined.symbolic is plan.symbolic
    assert plan.symbolic.shape == system.shape
    guarded = [guard.column for guard in plan.solved.pivots]
    assert [column for column in order.columns if column in guarded] == guarded
    pivots = [np.abs(np.diag(numeric_factors(problem_of(tree, kind), order, state)[1])) for state in (1, 2)]
    varies = np.abs(pivots[0] - pivots[1]) > 1e-9 * pivots[0]
    assert set(order.columns[varies]) <= set(guarded)
    assert varies.any() == bool(guarded)


def test_weighed_rows_leave_the_program_to_the_recursions_and_P_and_Q_to_the_name():
    """P and Q are of the conditions of optimality, which UMFPACK factorises."""
    weighed = sensor_set({**TORQUES, "sigma": 0.1}, {**ACCELERATIONS, "sigma": 0.2}, WRENCHES)
    system = System(autotree(2, skew=0.5), weighed)
    plans = [make_plan(system, ordering=name, seed=3) for name in AVAILABLE]
    for name, plan in zip(AVAILABLE, plans, strict=True):
        assert (plan.ordering, plan.tried[0].ordering) == ("recursive", name)
        np.testing.assert_array_equal(plan.program_rows, plans[0].program_rows)
        assert plan.cost == plans[0].cost
        assert f"P and Q of the conditions of optimality: {name}" in " ".join(str(plan).split()) or name == "recursive"
    assert len({plan.row_permutation.tobytes() for plan in plans}) == len(plans)


@pytest.mark.parametrize("ordering", AVAILABLE)
def test_a_name_leaves_nothing_to_search(ordering):
    with pytest.raises(PlanError, match=f"'{ordering}' leaves nothing to search.*'auto'"):
        make_plan(system_of("mixed_8", "forward"), ordering=ordering, effort=1000)


@pytest.mark.parametrize("name", ["recursive", "markowitz"])
def test_inverse_dynamics_has_unit_pivots_only(name):
    problem = problem_of("mixed_12", "inverse")
    order = ORDERINGS[name](problem)
    assert all(step.is_unit for step in Elimination(problem.symbolic, FIELD).run(order.rows, order.columns).pivots)


def test_unknown_ordering_is_refused_with_a_suggestion():
    with pytest.raises(PlanError, match=r"unknown ordering 'markovitz'.*Did you mean 'markowitz'"):
        orderings_named("markovitz")
