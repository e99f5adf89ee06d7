"""Counted scalar operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from nori_dyn.algebra.expressions import Expr, Op


@dataclass(frozen=True, slots=True)
class Cost:
    """Counted scalar operations; a sign change that stays in the code counts as an addition."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    square_roots: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(getattr(self, field.name) for field in fields(self))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def expression_cost(outputs: Iterable[Expr]) -> Cost:
    """Count the operations that compute some expressions, each shared one once; sines and cosines are not counted."""
    outputs = tuple(outputs)
    if not outputs:
        return Cost()
    graph = outputs[0].graph
    ops = [graph.ops[i] for i in graph.reachable(outputs)]
    return Cost(
        additions=ops.count(Op.ADD) + ops.count(Op.SUB) + ops.count(Op.NEG),
        multiplications=ops.count(Op.MUL),
        divisions=ops.count(Op.RECIPROCAL),
        square_roots=ops.count(Op.SQRT),
    )
