"""A straight-line program: the operations that a set of expressions needs, in order, on numbered registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Graph, Op

GIVEN = (Op.CONSTANT, Op.INPUT, Op.SIN, Op.COS)
"""What statements read, and none computes: sines and cosines are there before the first."""


def n_statements(graph: Graph, nodes: Iterable[int]) -> int:
    """Return how many of some nodes are statements."""
    return sum(graph.ops[i] not in GIVEN for i in nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What to compute, and nothing else.

    Attributes:
        graph: the expressions.
        inputs: for each named input array its scalars.
        outputs: the expressions computed, in the order in which they are returned.
        nodes: indices of the nodes to compute, in topological order; no dead code.
    """

    graph: Graph
    inputs: Mapping[str, tuple[Expr, ...]]
    outputs: tuple[Expr, ...]
    nodes: tuple[int, ...]

    @staticmethod
    def of(inputs: Mapping[str, tuple[Expr, ...]], outputs: Sequence[Expr]) -> Program:
        """Return the program that computes some expressions of named inputs."""
        if not outputs:
            raise ValueError("a program without outputs computes nothing")
        graph = outputs[0].graph
        return Program(graph, dict(inputs), tuple(outputs), tuple(graph.reachable(outputs)))

    @property
    def cost(self) -> Cost:
        """Counted operations, sines and cosines not counted."""
        return expression_cost(self.outputs)

    def last_uses(self) -> dict[int, int]:
        """Return for each node the place in `nodes` of the last node that reads it; outputs are kept to the end."""
        last: dict[int, int] = {}
        for place, i in enumerate(self.nodes):
            if self.graph.ops[i] in (Op.CONSTANT, Op.INPUT):
                continue
            last[self.graph.left[i]] = place
            if self.graph.right[i] >= 0:
                last[self.graph.right[i]] = place
        return last
