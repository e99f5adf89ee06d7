"""The bound of a program: chains counted by hand, packs, and no processor that is faster."""

import numpy as np

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from nori_dyn.bench import dependent, measure
from nori_dyn.program.bound import FUSED, PRODUCT, SUM, Bound, longest_chain, plan_bound
from tests.compilers import needs_compiler
from tests.robots import load


def chain(outputs):
    graph = outputs[0].graph
    return longest_chain(graph, graph.reachable(outputs))


def test_chains_are_those_counted_by_hand():
    graph = Graph()
    a, b, c = (graph.input(name) for name in "abc")
    assert chain([a]) == 0
    assert chain([a * b]) == PRODUCT
    assert chain([a + b + c]) == 2 * SUM
    assert chain([a * b + c]) == FUSED
    assert chain([(a + b) * c - a]) == SUM + FUSED
    assert chain([a * b + c, (a + b) * (b + c) * c]) == SUM + 2 * PRODUCT
    x = a
    for _ in range(7):
        x = x * b + c
    assert chain([x]) == 7 * FUSED


def test_the_bound_is_the_larger_one():
    assert (Bound(10, 41).issue, Bound(10, 41).cycles) == (11, 11)
    assert Bound(30, 41).cycles == 30


def test_of_inverse_dynamics_of_a_chain_each_link_waits_for_the_one_before():
    """Each further link lengthens the chain by as much, and operations do not shrink."""
    bounds = [
        plan_bound(nd.plan(nd.System(nd.autotree(n), "inverse_dynamics"), ["tau"]).states.first) for n in (3, 6, 9, 12)
    ]
    steps = np.diff([bound.chain for bound in bounds])
    assert (steps > 0).all()
    assert steps[1] == steps[2]
    assert (np.diff([bound.operations for bound in bounds]) > 0).all()


def test_packs_count_once():
    plan = nd.plan(nd.System(load("anymal", "floating"), "inverse_dynamics"), ["tau"])
    found = plan_bound(plan.states.first)
    assert found.operations < 0.6 * plan.cost.total
    assert f"{found.cycles:,} cycles per tick or more" in str(plan)


@needs_compiler
def test_cycles_are_measured_by_a_chain_that_computes_what_it_says():
    tick = dependent(10)
    tick.inputs.q[:] = 1.0, 2.0, 3.0
    assert tick.tick() == 0
    assert tick.outputs[0] == 2.0**10 + 3 * (2.0**10 - 1)
    plan = nd.plan(nd.System(nd.autotree(4), "forward_dynamics"), ["qdd"])
    (state,) = measure(plan, batch=8, rounds=3, seconds=0.002).states
    assert state.bound == plan_bound(plan.states.first)
    assert len(state.cycle) == 3
