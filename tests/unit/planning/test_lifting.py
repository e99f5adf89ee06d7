"""The order of the refined system, where its massless frames come, and the elimination by it in the field."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.elimination import FIELD, Elimination, ZeroPivotError
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.greedy import CostlyOrderError, greedy
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.static_elimination import static_elimination
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from tests.covering import covering
from tests.systems import FORWARD, INVERSE, PROBLEMS, Figure2, hybrid, lifted, paper_chain
from tests.trees import TREES

ARMS = {"chain": autotree(4, skew=0.4, taper=0.9), "branched": autotree(7, branching=1.5, skew=0.4)}


def each(classes, frames):
    """The class of each frame, after a check that the components of a frame share it."""
    assert all(len({classes[c] for c in columns}) == 1 for columns in frames)
    return [int(classes[columns[0]]) for columns in frames]


@pytest.mark.parametrize("name", ARMS)
def test_forward_dynamics_crosses_joints_from_the_leaves_accelerations_and_forces_in_step(name):
    tree = ARMS[name]
    refined, classes, _ = lifted(System(tree, FORWARD))
    assert [crossing.body for crossing in refined.crossings] == [i for i in range(tree.n_links) if not tree.is_root(i)]
    for crossing in refined.crossings:
        body, parent = crossing.body, tree.parents[crossing.body]
        if tree.is_root(parent):  # whose acceleration is known but for its own joint, and comes first
            continue
        a, f = each(classes, crossing.a), each(classes, crossing.f)
        assert a == sorted(a, reverse=True)
        assert len(set(a)) == len(a)
        assert f[1:] == a
        assert f[0] > f[1]  # nothing moves with it: the parent's end of the first frame
        of_body, of_parent = (each(classes, (refined.a[i], refined.f[i])) for i in (body, parent))
        assert min(a) > max(of_body)
        assert max(f) < min(of_parent)


@pytest.mark.parametrize("name", ARMS)
def test_inverse_dynamics_carries_accelerations_from_the_root_and_forces_from_the_leaves(name):
    """As the recursion does, whose order is that of a chain."""
    tree = ARMS[name]
    refined, classes, order = lifted(System(tree, INVERSE))
    for crossing in refined.crossings:
        body, parent = crossing.body, tree.parents[crossing.body]
        along = each(classes, (refined.a[parent], *crossing.a, refined.a[body]))
        assert along == sorted(set(along))
        along = each(classes, (refined.f[parent], *crossing.f, refined.f[body]))
        assert along == sorted(set(along), reverse=True)
    if name == "chain":
        place = np.argsort(order.columns)
        a, f = ([max(place[c] for c in block) for block in blocks] for blocks in (refined.a, refined.f))
        assert (a, f) == (sorted(a), sorted(f, reverse=True))


@pytest.mark.parametrize("name", ["three_children", "two_roots", "mixed_8"])
def test_bodies_keep_the_order_that_they_are_given(name):
    system = System(TREES[name], hybrid(TREES[name], seed=3))
    refined, _, order = lifted(system)
    n = system.shape[1]
    for given in (np.arange(n), np.arange(n)[::-1], np.random.default_rng(0).permutation(n)):
        classes = lifted_classes(Ordering(given, given), system, refined)
        place = np.argsort(given)
        for blocks, kind in ((refined.a, "a"), (refined.f, "f")):
            last = [place[system.column(kind, i)].max() for i in range(system.tree.n_links)]
            np.testing.assert_array_equal(np.argsort(each(classes, blocks)), np.argsort(last))
        own = [v.slice for v in system.variables if v.kind in ("a", "f")]
        assert not any(classes[columns].any() for columns in own)  # those of the system as given come first
    definitions = refined.definitions
    rows, columns = order.rows.tolist(), order.columns.tolist()
    assert all(definitions.get(column, row) == row for row, column in zip(rows, columns, strict=True))


def unsolved(symbolic, d):
    """The number of equations D d + b = 0 that d, a list over the field, does not satisfy."""
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


@pytest.mark.parametrize(("taper", "a_link"), [pytest.param(1.0, 308, marks=pytest.mark.long), (0.97, 328)])
def test_operations_grow_by_the_same_number_with_every_link(taper, a_link):
    counts = [
        nd.plan(System(autotree(n, skew=1.5, taper=taper), sensors("forward_dynamics")), ("qdd",)).cost
        for n in (10, 12, 16)
    ]
    assert [after.total - before.total for before, after in pairwise(counts)] == [2 * a_link, 4 * a_link]


SHARES = {"inverse": 0.80, "forward": 0.51, "hybrid": 0.76, "load cells": 0.72}
"""What is left of an elimination of the system as given, in the order of the recursions."""


@pytest.mark.parametrize("name", SHARES)
def test_frames_and_turns_pay_for_any_sensors(name):
    if name == "load cells":
        system = System(paper_chain(8, 1.0), Figure2())
    else:
        tree = TREES["mixed_8"] if name == "hybrid" else autotree(10, skew=1.5, taper=0.9)
        system = System(tree, PROBLEMS.get(name) or hybrid(tree, seed=3))
    plan, as_given = nd.plan(system), nd.plan(system, ordering="recursive").cost.total
    refined = replace(refine(system, plan.seed, plan.regrouped), turns=())
    order = Ordering(plan.program_rows, plan.program_columns)
    with_frames = static_elimination(refined, order).cost(range(system.shape[1])).total
    assert with_frames < as_given
    assert plan.cost.total <= SHARES[name] * as_given
    if name == "inverse":  # no tensor is turned
        assert plan.cost.total == with_frames
    else:
        assert plan.cost.total < with_frames
