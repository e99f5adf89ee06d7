"""The planned elimination carried out on expressions: every unknown as an expression of the inputs.

Source: DESIGN 4.3, 4.4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.derivatives import depends_on
from nori_dyn.algebra.expressions import Expr, Op, accumulate
from nori_dyn.algebra.planar import planar_congruence
from nori_dyn.planning.elimination import Elimination, Expressions
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.refined import RefinedSystem, Turn

CANCELLATION = 1e-10
"""What may be left of a number after all that is subtracted from it, in a pivot that depends on weights: so many
digits are lost then."""

NOTHING = 1e-20
"""The square of what counts as nothing, in any unit."""

CORRECTION = 1e-5
"""What the correction may be of a solution: its own error is that squared, or less."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What must not be too small where a program is to be trusted.

    Attributes:
        value: its size counts.
        least: the least size; None where that is a share of its usual size.
    """

    value: Expr
    least: float | None


def _guard(pivot: Expr) -> Guard:
    graph, whole = pivot.graph, pivot
    while whole.op is Op.SUB:
        whole = Expr(graph, graph.left[whole.index])
    if whole.index == pivot.index:
        return Guard(pivot, sys.float_info.min)
    return Guard(pivot / whole, CANCELLATION)


@dataclass(frozen=True, slots=True, eq=False)
class StaticElimination:
    """What an elimination in a fixed order computes.

    Attributes:
        refined: the system.
        unknowns: each unknown of the refined system; those of d come first.
        pivots: the pivots that are not constants, in order and up to their sign.
        steps: what the correction added to each unknown; empty where there is none.
    """

    refined: RefinedSystem
    unknowns: tuple[Expr, ...]
    pivots: tuple[Expr, ...]
    steps: tuple[Expr, ...]

    def guards(self, columns: Sequence[int]) -> tuple[Guard, ...]:
        """Return what tells whether the pivots that some unknowns depend on are too small, in order.

        A pivot that depends on weights has no usual size: of it, what is left of the number that it is a difference of
        is guarded. One that is not a difference can only be zero where a weight is. Last comes the size of these
        unknowns relative to their correction.
        """
        symbolic = self.refined.symbolic
        graph = symbolic.graph
        needed = set(graph.reachable([self.unknowns[column] for column in columns]))
        pivots = [pivot for pivot in self.pivots if pivot.index in needed]
        weighed = depends_on(graph, pivots, [x.index for x in symbolic.weights])
        found = [_guard(pivot) if weighed[pivot.index] else Guard(pivot, None) for pivot in pivots]
        if self.steps:
            size, change = graph.expr(NOTHING), graph.expr(NOTHING**2)  # so that a robot at rest is not suspicious
            for column in columns:
                unknown, step = self.unknowns[column], self.steps[column]
                size, change = size + unknown * unknown, change + step * step
            found.append(Guard(size / change, CORRECTION**-2))
        return tuple(found)

    def cost(self, columns: Sequence[int]) -> Cost:
        """Count all operations from q, qd and y to some unknowns; sines and cosines are not counted."""
        return expression_cost([self.unknowns[column] for column in columns])


def static_elimination(refined: RefinedSystem, order: Ordering) -> StaticElimination:
    """Carry out an elimination: LU, the forward substitution along with it, the backward one after it.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = eliminated(refined, order)
    d = work.solution()
    steps = _correction(work, refined, d) if refined.weighed or refined.noisy else {}
    return StaticElimination(
        refined=refined,
        unknowns=tuple(d[column] + steps[column] if steps else d[column] for column in range(len(d))),
        pivots=tuple(_unsigned(step.value) for step in work.pivots if not step.value.is_constant),
        steps=tuple(steps[column] for column in range(len(steps))),
    )


def eliminated(refined: RefinedSystem, order: Ordering) -> Elimination[Expr]:
    """Return the elimination of a refined system over expressions, in an order.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = Elimination(refined.symbolic, Expressions(refined.symbolic.graph))
    turns = _Turns(refined)
    for row, column in zip(order.rows.tolist(), order.columns.tolist(), strict=True):
        turns.before(work, column)
        work.pivot(row, column)
    return work


def _correction(work: Elimination[Expr], refined: RefinedSystem, d: dict[int, Expr]) -> dict[int, Expr]:
    """Return one more solution, with what the rows that are not exact are off in the first as right-hand side.

    Where weights differ by decades the first has lost as many digits; this brings them back, with the same factors.

    Source: Bjoerck, Stability analysis of the method of seminormal equations (1987).
    """
    graph = refined.symbolic.graph
    gradient: dict[int, Expr] = {}
    for row in refined.weighed:
        off = graph.opaque(row.at(d))
        for column, entry in row.entries.items():
            accumulate(gradient, column, entry * (row.weight * off))
    for noisy in refined.noisy:
        gradient[noisy.multiplier] = graph.opaque(noisy.at(d))
    return work.solution_of({row: -value for row, value in gradient.items()})


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
        turned = ((turn, columns) for turn in refined.turns for columns in (*turn.motions, *turn.forces))
        self._turns = {column: turn for turn, columns in turned for column in columns}
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
        """Yield M on the plane: couples and forces against angular and linear accelerations, and their duals."""
        i, j = turn.plane
        zero = work.scalars.zero
        for forces, motions in product(turn.forces, turn.motions):
            for of_f in (0, 3):
                first, second = (work.rows[self._definitions[forces[of_f + k]]] for k in (i, j))
                for of_a in (0, 3):
                    a, b = motions[of_a + i], motions[of_a + j]
                    yield first.get(a, zero), first.get(b, zero), second.get(a, zero), second.get(b, zero)
