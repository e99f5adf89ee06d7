"""Small symbolic matrices, written by hand, as systems for the planner's parts."""

from collections.abc import Sequence

import numpy as np

from nori_dyn.algebra.expressions import Graph
from nori_dyn.system.trace import SymbolicSystem

Entry = int | float | str


def symbolic_matrix(rows: Sequence[Sequence[Entry]], b: Sequence[Sequence[Entry]] = ()) -> SymbolicSystem:
    """A square matrix of constants and of unknown functions, such as "x3", which are inputs q.

    Args:
        rows: its entries; 0 is a structural zero.
        b: the right-hand side, a column; zero when not given.
    """
    graph = Graph(0)
    inputs = {name: graph.input(name) for row in [*rows, *b] for name in row if isinstance(name, str)}
    found = []
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value != 0:
                found.append((j, i, inputs[value] if isinstance(value, str) else graph.expr(value)))
    found.sort(key=lambda item: item[:2])
    column = [row[0] for row in b] or [0] * len(rows)
    return SymbolicSystem(
        graph=graph,
        shape=(len(rows), len(rows)),
        rows=np.array([i for _, i, _ in found], dtype=np.intp),
        columns=np.array([j for j, _, _ in found], dtype=np.intp),
        entries=tuple(entry for _, _, entry in found),
        b=tuple(inputs[v] if isinstance(v, str) else graph.expr(v) for v in column),
        groups=np.zeros(len(rows), dtype=np.intp),
        bodies=np.zeros(len(rows), dtype=np.intp),
        q=tuple(inputs.values()),
        qd=(),
        y=(),
        weights=(),
    )
