"""A system over expressions: its worst-case sparsity, exactly, and the values of every entry as a graph.

Source: Nori, end of section IV-D (the worst-case pattern); DESIGN 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicSystem:
    """D(q) d + b(q, qd, y) = 0 with an expression in each entry that is not zero for all q.

    Attributes:
        graph: the expressions.
        shape: number of rows and columns.
        rows: row of each structural nonzero of D (nnz), ordered by column, then row.
        columns: column of each (nnz).
        entries: value of each (nnz).
        b: each number of b (rows).
        q: the inputs that stand for q (nq).
        qd: the inputs that stand for qd (nv).
        y: the inputs that stand for y (ny).
    """

    graph: Graph
    shape: tuple[int, int]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    entries: tuple[Expr, ...]
    b: tuple[Expr, ...]
    q: tuple[Expr, ...]
    qd: tuple[Expr, ...]
    y: tuple[Expr, ...]

    @property
    def pattern(self) -> sp.csc_array:
        """The worst-case sparsity: True where D is nonzero for some, and so for almost all, q."""
        ones = np.ones(len(self.rows), dtype=bool)
        return sp.csc_array((ones, (self.rows, self.columns)), shape=self.shape)


def trace(system: System, seed: int = 0) -> SymbolicSystem:
    """Return a system over expressions.

    Args:
        system: the system.
        seed: seed of the random point of the fingerprints.
    """
    graph = Graph(seed)
    q = _configuration(graph, system.tree)
    qd = tuple(graph.input(f"qd[{k}]") for k in range(system.tree.nv))
    y = tuple(graph.input(f"y[{k}]") for k in range(system.ny))
    at = velocities(system.tree, _array(q), _array(qd))
    found = []
    for row, column, block in system.blocks(at):
        for (r, c), value in np.ndenumerate(block):
            entry = graph.expr(value)
            if not entry.is_zero:
                found.append((column.start + c, row.start + r, entry))
    found.sort(key=lambda item: item[:2])
    return SymbolicSystem(
        graph=graph,
        shape=system.shape,
        rows=np.array([row for _, row, _ in found], dtype=np.intp),
        columns=np.array([column for column, _, _ in found], dtype=np.intp),
        entries=tuple(entry for _, _, entry in found),
        b=tuple(graph.expr(value) for block in system.bias(at, _array(y)) for value in block),
        q=q,
        qd=qd,
        y=y,
    )


def _configuration(graph: Graph, tree: KinematicTree) -> tuple[Expr, ...]:
    inputs: list[Expr] = []
    for joint, part in zip(tree.joints, tree.q_slices, strict=True):
        labels = [f"q[{k}]" for k in range(part.start, part.stop)]
        n_free = sum(kind != "quaternion" for kind in joint.coordinates)
        inputs.extend(graph.input(label) for label in labels[:n_free])
        if labels[n_free:]:
            inputs.extend(graph.unit_quaternion(labels[n_free:]))
    return tuple(inputs)


def _array(inputs: tuple[Expr, ...]) -> NDArray[np.object_]:
    array = np.empty(len(inputs), dtype=object)
    array[:] = inputs
    return array
