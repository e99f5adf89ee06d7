"""The bipartite graph of a plan: names and blocks, the order of P and Q, the block triangular form."""

import importlib.util

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import MissingExtraError
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.system.builder import System
from tests.covering import covering
from tests.peers import Peer
from tests.systems import ACCELERATIONS, PROBLEMS, TORQUES, WRENCHES, hybrid, sensor_set
from tests.trees import TREES

nx = Peer("networkx")

ORDERINGS = ["auto", "recursive", "markowitz", "superlu", *(["umfpack"] if has_umfpack() else [])]


def plan_of(tree, problem, ordering="auto"):
    sensors = hybrid(TREES[tree], seed=3) if problem == "hybrid" else PROBLEMS[problem]
    return nd.plan(System(TREES[tree], sensors), ordering=ordering)


@covering(
    strength=1, tree=("mixed_8", "three_children", "two_roots"), problem=("inverse", "forward", "hybrid"), by=ORDERINGS
)
def test_nodes_are_rows_and_columns_with_their_steps_and_edges_are_the_nonzeros(tree, problem, by):
    plan = plan_of(tree, problem, by)
    graph, system = plan.graph(), plan.system
    n = system.shape[0]
    assert nx.is_bipartite(graph)
    assert graph.number_of_nodes() == 2 * n
    assert {(i, j) for (_, i), (_, j) in graph.edges} == set(
        zip(*map(np.ndarray.tolist, plan.pattern.nonzero()), strict=True)
    )
    units = plan.symbolic
    assert sum(is_unit for *_, is_unit in graph.edges(data="is_unit")) == sum(x.is_unit for x in units.entries)
    assert [graph.nodes["column", j]["name"] for j in range(n)] == list(system.variable_names)
    for row in system.rows:
        for i, name in zip(range(row.slice.start, row.slice.stop), row.component_names, strict=True):
            assert (graph.nodes["row", i]["name"], graph.nodes["row", i]["block"]) == (name, row.name)
    for variable in system.variables:
        assert {graph.nodes["column", j]["block"] for j in range(variable.slice.start, variable.slice.stop)} == {
            variable.name
        }
        assert {graph.nodes["column", j]["kind"] for j in range(variable.slice.start, variable.slice.stop)} == {
            variable.kind
        }
    for k, (i, j) in enumerate(zip(plan.row_permutation, plan.column_permutation, strict=True)):
        assert graph.nodes["row", i]["step"] == graph.nodes["column", j]["step"] == k
    assert graph.graph["ordering"] == plan.tried[0].ordering


@covering(strength=1, tree=("mixed_8", "three_children", "two_roots"), problem=("inverse", "forward", "hybrid"))
def test_components_are_the_strong_ones_and_can_be_solved_in_turn(tree, problem):
    graph = plan_of(tree, problem).graph()
    rows = [node for node in graph if node[0] == "row"]
    matched = nx.bipartite.hopcroft_karp_matching(graph, rows)
    directed = nx.DiGraph((row, matched[column]) for row in rows for column in graph[row])
    expected = {frozenset(part) for part in nx.strongly_connected_components(directed)}
    found: dict[int, set] = {}
    for row in rows:
        found.setdefault(graph.nodes[row]["component"], set()).add(row)
        assert graph.nodes[matched[row]]["component"] == graph.nodes[row]["component"]
    assert {frozenset(part) for part in found.values()} == expected
    assert sorted(found) == list(range(len(found)))
    assert all(graph.nodes[column]["component"] <= graph.nodes[row]["component"] for row, column in graph.edges)
    assert (len(found) == len(rows)) == (problem == "inverse")  # a triangle


def test_weighed_rows_are_conditions_of_optimality_with_multipliers():
    system = System(
        TREES["three_children"], sensor_set({**TORQUES, "sigma": 0.1}, {**ACCELERATIONS, "sigma": 0.2}, WRENCHES)
    )
    plan = nd.plan(system)
    graph, n = plan.graph(), system.shape[1]
    assert graph.number_of_nodes() == 2 * plan.symbolic.shape[0] > 2 * n
    name = system.variable_names[3]
    assert graph.nodes["row", 3]["name"] == f"condition of {name}"
    assert graph.nodes["column", 3]["name"] == name
    assert {graph.nodes[side, n]["name"] for side in ("row", "column")} == {"constraint", "multiplier"}
    kinds = [variable.kind for variable in system.variables for _ in range(variable.slice.stop - variable.slice.start)]
    kinds += ["multiplier"] * (plan.symbolic.shape[0] - n)
    assert [graph.nodes["column", j]["kind"] for j in range(len(kinds))] == kinds


def test_without_networkx_the_extra_is_named(monkeypatch):
    plan, real = plan_of("three_children", "inverse"), importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "networkx" else real(name, *rest)
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'nori_dyn\[graph\]'"):
        plan.graph()
