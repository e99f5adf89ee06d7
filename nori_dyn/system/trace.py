"""A system over expressions: its worst-case sparsity, exactly, and the values of every entry as a graph.

Source: Nori, end of section IV-D (the worst-case pattern); docs/design.md, 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.ranges import numbers
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.typing import Array, Indices


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicState:
    """A state and readings over expressions.

    Attributes:
        graph: the expressions.
        q, qd, y, weights: the inputs (nq,), (nv,), (ny,), (n_weights,), object arrays.
    """

    graph: Graph
    q: Array
    qd: Array
    y: Array
    weights: Array


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicSystem:
    """D(q) d + b(q, qd, y) = 0 with an expression in each entry that is not zero for all q.

    Where rows are weighed it may also be the optimality conditions of that, see `optimality`.

    Attributes:
        graph: the expressions.
        shape: number of rows and columns.
        rows: row of each structural nonzero of D (nnz), ordered by column, then row.
        columns: column of each (nnz).
        entries: value of each (nnz).
        b: each number of b (rows).
        groups: for each column the number of those that have its natural size, its `Variable.group` (columns).
        bodies: for each column its body (columns).
        q: the inputs that stand for q (nq).
        qd: the inputs that stand for qd (nv).
        y: the inputs that stand for y (ny).
        weights: the inputs that stand for the weights (n_weights).
    """

    graph: Graph
    shape: tuple[int, int]
    rows: Indices
    columns: Indices
    entries: tuple[Expr, ...]
    b: tuple[Expr, ...]
    groups: Indices
    bodies: Indices
    q: tuple[Expr, ...]
    qd: tuple[Expr, ...]
    y: tuple[Expr, ...]
    weights: tuple[Expr, ...]

    @property
    def inputs(self) -> dict[str, tuple[Expr, ...]]:
        """The inputs by name, in the order in which a state is given; weights only where there are any."""
        state = {"q": self.q, "qd": self.qd, "y": self.y}
        return {**state, "weights": self.weights} if self.weights else state

    def with_entries(self, entries: Mapping[tuple[int, int], Expr]) -> SymbolicSystem:
        """A copy with other structural nonzeros, by (row, column)."""
        return replace(self, **_nonzeros(entries))

    @property
    def pattern(self) -> sp.csc_array:
        """The worst-case sparsity: True where D is nonzero for some, and so for almost all, q."""
        ones = np.ones(len(self.rows), dtype=bool)
        return sp.csc_array((ones, (self.rows, self.columns)), shape=self.shape)


def symbolic_state(system: System, seed: int = 0) -> SymbolicState:
    """New inputs q, qd, y, and weights where there are any, for a system.

    Args:
        system: the system.
        seed: seed of the random point of the fingerprints.
    """
    graph = Graph(seed)
    q = configuration_inputs(graph, system.tree)
    qd = [graph.input(f"qd[{k}]") for k in range(system.tree.nv)]
    y = [graph.input(f"y[{k}]") for k in range(system.ny)]
    weights = [graph.input(f"weights[{k}]") for k in range(system.n_weights)]
    return SymbolicState(graph, *(np.array(each, dtype=object) for each in (q, qd, y, weights)))


def trace(system: System, seed: int = 0, state: SymbolicState | None = None) -> SymbolicSystem:
    """A system over expressions, all rows of it, weighed or not.

    Args:
        system: the system.
        seed: seed of the random point of the fingerprints.
        state: the inputs; new ones when None.
    """
    state = symbolic_state(system, seed) if state is None else state
    graph = state.graph
    at = system.at(state.q, state.qd, state.y)
    entries = traced_entries(system, at, graph)
    b = [graph.expr(value) for block in system.bias(at, state.y) for value in block]
    return symbolic_system(state, system.shape, entries, b, variable_groups(system))


def traced_entries(system: System, at: Kinematics, graph: Graph) -> dict[tuple[int, int], Expr]:
    """The entries of D that are not zero for all q, by row and column, over the expressions of a graph."""
    found = system.entries(at)
    places = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    return {place: graph.expr(value) for place, value in zip(places, found.values, strict=True)}


def variable_groups(system: System) -> list[int]:
    """The `Variable.group` of each column of a system."""
    return [v.group for v in system.variables for _ in numbers(v.slice)]


def symbolic_system(
    state: SymbolicState,
    shape: tuple[int, int],
    entries: Mapping[tuple[int, int], Expr],
    b: Sequence[Expr],
    groups: Sequence[int],
    bodies: Sequence[int] | None = None,
) -> SymbolicSystem:
    """The system of some entries by (row, column); those that are zero for all q are left out.

    The bodies are those of the groups, where they are not given.
    """
    return SymbolicSystem(
        graph=state.graph,
        shape=shape,
        **_nonzeros({place: entry for place, entry in entries.items() if not entry.is_zero}),
        b=tuple(b),
        groups=np.array(groups, dtype=np.intp),
        bodies=np.array(groups, dtype=np.intp) // 2 if bodies is None else np.array(bodies, dtype=np.intp),
        q=tuple(state.q),
        qd=tuple(state.qd),
        y=tuple(state.y),
        weights=tuple(state.weights),
    )


def _nonzeros(entries: Mapping[tuple[int, int], Expr]) -> dict[str, Any]:
    """The rows, columns and values of entries by (row, column), ordered by column, then row."""
    places = sorted((column, row) for row, column in entries)
    return {
        "rows": np.array([row for _, row in places], dtype=np.intp),
        "columns": np.array([column for column, _ in places], dtype=np.intp),
        "entries": tuple(entries[row, column] for column, row in places),
    }


def configuration_inputs(graph: Graph, tree: KinematicTree) -> list[Expr]:
    """Inputs (nq) that stand for a configuration: quaternions among them are of unit length."""
    inputs: list[Expr] = []
    for joint, part in zip(tree.joints, tree.q_slices, strict=True):
        labels = [f"q[{k}]" for k in numbers(part)]
        n_free = sum(kind != "quaternion" for kind in joint.coordinates)
        inputs.extend(graph.input(label) for label in labels[:n_free])
        if labels[n_free:]:
            inputs.extend(graph.unit_quaternion(labels[n_free:]))
    return inputs


def freedoms(graph: Graph, tree: KinematicTree, q: Array) -> Iterator[dict[int, Expr]]:
    """Yield for each freedom how the inputs q (nq,) move along it, by their index: at the unit velocity qd."""
    for joint, s in zip(tree.joints, tree.q_slices, strict=True):
        for unit in np.eye(joint.nv):
            rates = [graph.expr(rate) for rate in joint.rates(q[s], unit)]
            yield {x.index: rate for x, rate in zip(q[s], rates, strict=True) if not rate.is_zero}
