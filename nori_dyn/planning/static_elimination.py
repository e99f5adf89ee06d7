"""The planned elimination carried out on expressions: every unknown as an expression of the inputs.

Source: DESIGN 4.3, 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Op
from nori_dyn.algebra.planar import planar_congruence
from nori_dyn.planning.elimination import Elimination, Expressions
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.refined import RefinedSystem, Turn


@dataclass(frozen=True, slots=True, eq=False)
class StaticElimination:
    """What an elimination in a fixed order computes.

    Attributes:
        refined: the system.
        unknowns: each unknown of the original system, in order.
        pivots: the pivots that are not constants, in order and up to their sign.
    """

    refined: RefinedSystem
    unknowns: tuple[Expr, ...]
    pivots: tuple[Expr, ...]

    def guarded(self, columns: Sequence[int]) -> tuple[Expr, ...]:
        """Return the pivots that some unknowns depend on, in order."""
        graph = self.refined.symbolic.graph
        needed = set(graph.reachable([self.unknowns[column] for column in columns]))
        return tuple(pivot for pivot in self.pivots if pivot.index in needed)

    def cost(self, columns: Sequence[int]) -> Cost:
        """Count all operations from q, qd and y to some unknowns; sines and cosines are not counted."""
        return expression_cost([self.unknowns[column] for column in columns])


def static_elimination(refined: RefinedSystem, order: Ordering) -> StaticElimination:
    """Carry out an elimination: LU, the forward substitution along with it, the backward one after it.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = Elimination(refined.symbolic, Expressions(refined.symbolic.graph))
    turns = _Turns(refined)
    for row, column in zip(order.rows.tolist(), order.columns.tolist(), strict=True):
        turns.before(work, column)
        work.pivot(row, column)
    d = work.solution()
    return StaticElimination(
        refined=refined,
        unknowns=tuple(d[column] for column in range(refined.original.shape[1])),
        pivots=tuple(_unsigned(step.value) for step in work.pivots if not step.value.is_constant),
    )


def _unsigned(x: Expr) -> Expr:
    """Return x, or -x where that is what the graph computes."""
    return -x if x.op is Op.NEG else x


class _Turns:
    """Writes down, ahead of the elimination, what a turn in a plane does to the tensor behind it.

    When f = M a (+ ...) is left of a massless frame, eliminating f and a makes E^T M E of M, entry by entry. The planar
    identities give the same entries with fewer operations; written first, they are the ones that the elimination finds
    under its fingerprints. What they do not give is left to it.
    """

    def __init__(self, refined: RefinedSystem) -> None:
        self._definitions = refined.definitions
        self._turns = {column: turn for turn in refined.turns for column in (*turn.a, *turn.f)}
        self._done: set[Turn] = set()

    def before(self, work: Elimination[Expr], column: int) -> None:
        """Prepare for a pivot in a column."""
        turn = self._turns.get(column)
        if turn is None or turn in self._done:
            return
        for block in self._blocks(work, turn):
            if not all(entry.is_zero for entry in block):
                planar_congruence(turn.c, -turn.s, block)
                self._done.add(turn)

    def _blocks(self, work: Elimination[Expr], turn: Turn) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
        """Yield M on the plane: couples and forces against angular and linear accelerations."""
        i, j = turn.plane
        zero = work.scalars.zero
        for of_f in (0, 3):
            first, second = (work.rows[self._definitions[turn.f[of_f + k]]] for k in (i, j))
            for of_a in (0, 3):
                a, b = turn.a[of_a + i], turn.a[of_a + j]
                yield first.get(a, zero), first.get(b, zero), second.get(a, zero), second.get(b, zero)
