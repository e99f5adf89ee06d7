"""The statements of a program: one operation each."""

from collections.abc import Iterable

from nori_dyn.algebra.expressions import Graph, Op

GIVEN = (Op.CONSTANT, Op.INPUT, Op.SIN, Op.COS)
"""What statements read, and none computes: sines and cosines are there before the first."""

FORMATS = {
    Op.ADD: "{0} + {1}",
    Op.SUB: "{0} - {1}",
    Op.MUL: "{0} * {1}",
    Op.NEG: "-{0}",
    Op.RECIPROCAL: "1.0 / {0}",
    Op.SQRT: "ROOT({0})",
    Op.OPAQUE: "{0}",
}
"""The expression of each operation in C, and but for roots in Python."""


def n_statements(graph: Graph, nodes: Iterable[int]) -> int:
    """How many of some nodes are statements."""
    return sum(graph.ops[i] not in GIVEN for i in nodes)
