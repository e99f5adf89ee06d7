"""The bipartite graph of a plan: rows and columns of D, its nonzeros, and the order in which they are eliminated.

Source: Duff, Erisman, Reid, Direct Methods for Sparse Matrices, ch. 5 and 6 (the graph, and the block triangular form).
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from nori_dyn.algebra.ranges import numbers
from nori_dyn.io.extras import needed
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Indices

MULTIPLIER = "multiplier"
"""The kind of unknown that the conditions of optimality add."""


def bipartite_graph(system: System, symbolic: SymbolicSystem, order: Ordering, ordering: str) -> Any:
    """The graph of D as a networkx graph; see `EliminationPlan.graph`.

    Args:
        system: the system.
        symbolic: the same over expressions.
        order: P and Q.
        ordering: the name of the ordering that they are of.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    nx = needed("a graph", "graph", "networkx")
    rows, columns = _row_names(system, symbolic.shape[0]), _column_names(system, symbolic.shape[1])
    component = irreducible_blocks(symbolic.pattern)
    kinds = {variable.name: variable.kind for variable in system.variables}
    graph = nx.Graph(name=f"{system.tree.name} with {system.sensors.name}", ordering=ordering)
    for side, (kind, names, permutation) in enumerate((("row", rows, order.rows), ("column", columns, order.columns))):
        step = np.argsort(permutation)
        for k, (name, block) in enumerate(names):
            about = {"name": name, "block": block, "step": int(step[k]), "component": int(component[side][k])}
            graph.add_node((kind, k), bipartite=side, **about)
    for k, (_, block) in enumerate(columns):
        graph.nodes["column", k]["kind"] = kinds.get(block, MULTIPLIER)
    for i, j, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        graph.add_edge(("row", i), ("column", j), is_unit=entry.is_unit)
    return graph


def irreducible_blocks(pattern: sp.csc_array) -> tuple[Indices, Indices]:
    """For each row and each column of a square pattern the diagonal block of its block triangular form.

    They are numbered in the order in which they can be solved. Which they are does not depend on the matching.

    Args:
        pattern: structurally nonsingular (n, n).
    """
    by_rows = sp.csr_array(pattern)
    of_row = maximum_bipartite_matching(by_rows, perm_type="column")  # the column of each row
    matched = sp.csr_array(by_rows[:, of_row])
    n, labels = connected_components(matched, directed=True, connection="strong")
    of_rows = labels.astype(np.intp)
    of_columns = np.empty_like(of_rows)
    of_columns[of_row] = of_rows
    number = _solvable_first(matched, n, of_rows)
    return number[of_rows], number[of_columns]


def _solvable_first(matched: sp.csr_array, n: int, block: Indices) -> Indices:
    """A number for each strong component, larger than those of all that its rows need."""
    places = matched.tocoo()
    pairs = np.unique(np.stack([block[places.row], block[places.col]]), axis=1).T.tolist()
    sorter = TopologicalSorter[int](dict.fromkeys(range(n), ()))
    for own, other in pairs:
        if own != other:
            sorter.add(own, other)
    number = np.empty(n, dtype=np.intp)
    number[[*sorter.static_order()]] = np.arange(n)
    return number


def _row_names(system: System, n: int) -> list[tuple[str, str]]:
    """The name of each of n rows with that of its equation; of weighed rows the conditions of optimality."""
    if not system.is_weighted:
        return [(name, row.name) for row in system.rows for name in row.component_names]
    columns = [(f"condition of {name}", f"condition of {block}") for name, block in _variable_names(system)]
    return columns + [("constraint", "constraints")] * (n - len(columns))


def _column_names(system: System, n: int) -> list[tuple[str, str]]:
    """The name of each of n columns with that of its variable; of weighed rows multipliers follow."""
    columns = _variable_names(system)
    return columns + [(MULTIPLIER, "multipliers")] * (n - len(columns))


def _variable_names(system: System) -> list[tuple[str, str]]:
    names = system.variable_names
    return [(names[k], variable.name) for variable in system.variables for k in numbers(variable.slice)]
