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
        additions=sum(op in (Op.ADD, Op.SUB, Op.NEG) for op in ops),
        multiplications=sum(op is Op.MUL for op in ops),
        divisions=sum(op is Op.RECIPROCAL for op in ops),
        square_roots=sum(op is Op.SQRT for op in ops),
    )
