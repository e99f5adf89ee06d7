"""The planned elimination carried out on expressions: every unknown as an expression of the inputs.

Source: docs/design.md, 4.4 and 4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.derivatives import depends_on
from nori_dyn.algebra.expressions import Expr, Op, accumulate
from nori_dyn.algebra.planar import planar_congruence
from nori_dyn.planning.elimination import Elimination, Expressions
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.massless_frames import Turn
from nori_dyn.system.refined import RefinedSystem
from nori_dyn.system.trace import SymbolicSystem

GROWTH = 1e10
"""What the pivot of a definition, 1 as given, may have grown to: six digits of the 1 are left then."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A quantity that must not be too small where a program is to be trusted.

    Attributes:
        value: its size counts: that of a pivot, or of the reciprocal of one that must not be large.
        column: the unknown that the pivot eliminates.
        least: the least size; None where that is a share of its usual one.
    """

    value: Expr
    column: int
    least: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Improved:
    """A solution after a step of refinement.

    Attributes:
        unknowns: each unknown of the refined system.
        steps: the correction of each.
    """

    unknowns: tuple[Expr, ...]
    steps: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class StaticElimination:
    """The result of an elimination in a fixed order.

    Attributes:
        refined: the system.
        pivots: the pivots that are not constants, in order and up to their sign; of a weighted system, the reciprocals
            of those that are 1 as given.
        first: each unknown before any refinement: of an exact system `unknowns`.
        watched: of a weighted system, the pivots that are not constants, as in `pivots`: where they have their usual
            size, the first solution is good enough; else empty.
        work: of a weighted system, the elimination, for its refinement.
    """

    refined: RefinedSystem
    pivots: tuple[Guard, ...]
    first: tuple[Expr, ...]
    watched: tuple[Expr, ...] = ()
    work: Elimination[Expr] | None = None

    @cached_property
    def improved(self) -> tuple[Improved, ...]:
        """Of a weighted system, the solution after a step of refinement, and after another, should one not do.

        Written when it is asked for: an order is judged by the first solution alone.
        """
        if self.work is None:
            return ()
        improved: list[Improved] = []
        unknowns = self.first
        for rows in (_inexact_rows(self.work, self.refined.symbolic), set(range(self.work.n))):
            found = _refinement(self.work, self.refined, unknowns, rows)
            steps = tuple(found[column] for column in range(len(unknowns)))
            unknowns = tuple(x + step for x, step in zip(unknowns, steps, strict=True))
            improved.append(Improved(unknowns, steps))
        return tuple(improved)

    @property
    def unknowns(self) -> tuple[Expr, ...]:
        """Each unknown of the refined system, refined where there is a step of refinement; those of d come first."""
        return self.improved[0].unknowns if self.improved else self.first

    def guards(self, columns: Sequence[int]) -> tuple[Guard, ...]:
        """The guards of pivots that some unknowns depend on, in order.

        Pivots that depend on weights have no usual size, and digits may be lost long before one: of a weighted system
        the answer is guarded, by its steps of refinement. But these do not detect that a 1 was lost in its sum.
        """
        graph = self.refined.symbolic.graph
        unknowns = self.unknowns
        needed = set(graph.reachable([unknowns[column] for column in columns]))
        return tuple(guard for guard in self.pivots if guard.value.index in needed)

    def watching(self, columns: Sequence[int]) -> tuple[Expr, ...]:
        """The watched pivots that the first solution of some unknowns depends on, in order."""
        needed = set(self.refined.symbolic.graph.reachable([self.first[column] for column in columns]))
        return tuple(value for value in self.watched if value.index in needed)

    def cost(self, columns: Sequence[int]) -> Cost:
        """Count all operations from q, qd and y to the first solution of some unknowns, sines and cosines left out."""
        return expression_cost([self.first[column] for column in columns])


def static_elimination(refined: RefinedSystem, order: Ordering) -> StaticElimination:
    """Carry out an elimination: LU, the forward substitution along with it, the backward one after it.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = eliminated(refined, order)
    d = work.solution()
    first = tuple(d[column] for column in range(len(d)))
    if not refined.weighed and not refined.noisy:
        exact = (Guard(_unsigned(p.value), p.column) for p in work.pivots if not p.value.is_constant)
        return StaticElimination(refined, tuple(exact), first)
    pivots: list[Guard] = []
    watched: list[Expr] = []
    for p in work.pivots:
        if not p.value.is_constant and refined.definitions.get(p.column) == p.row:
            pivots.append(Guard(_unsigned(p.reciprocal), p.column, 1 / GROWTH))
            watched.append(pivots[-1].value)
        elif not p.value.is_constant:
            watched.append(_unsigned(p.value))
    return StaticElimination(refined, tuple(pivots), first, tuple(watched), work)


def eliminated(refined: RefinedSystem, order: Ordering) -> Elimination[Expr]:
    """The elimination of a refined system over expressions, in an order.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = Elimination(refined.symbolic, Expressions(refined.symbolic.graph))
    turns = _Turns(refined)
    _turn_about(work, refined, order)
    for row, column in zip(order.rows.tolist(), order.columns.tolist(), strict=True):
        turns.before(work, column)
        work.pivot(row, column)
    return work


def _turn_about(work: Elimination[Expr], refined: RefinedSystem, order: Ordering) -> None:
    """Give the opposite sign to rows that came with an unknown and are eliminated with it, of which they have -1.

    What is added up in such a row is then the unknown and not its opposite, which would be one operation more where it
    is an output. Optimality conditions are left symmetric.
    """
    if refined.duals:
        return
    for row, column in zip(order.rows.tolist(), order.columns.tolist(), strict=True):
        entry = work.rows[row].get(column)
        if row >= refined.original.shape[0] and entry is not None and entry.is_unit and entry.value < 0:
            work.rows[row] = {j: -x for j, x in work.rows[row].items()}
            work.rhs[row] = -work.rhs[row]


def _refinement(work: Elimination[Expr], refined: RefinedSystem, d: Sequence[Expr], rows: set[int]) -> dict[int, Expr]:
    """One more solution with the same factors, for the residual of the first in some rows.

    Where weights differ by decades the first has lost as many digits; this brings them back, and its size says how many
    they were. What is left of a weighed row is weighed before it is added up, as an unknown of its own would be: a
    heavy row then passes its rounding to no light one.

    Source: Björck, Iterative refinement of linear least squares solutions I (1967); Numerical Methods for Least Squares
    Problems, ch. 2.9.3 (the augmented system).
    """
    symbolic, multipliers = refined.symbolic, refined.duals.keys()
    rough = {column: symbolic.graph.opaque(value) for column, value in enumerate(d)}
    left: dict[int, Expr] = {row: symbolic.b[row] for row in multipliers & rows}
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        if row in rows and (row in multipliers or column in multipliers):
            accumulate(left, row, entry * rough[column])
    for reading in refined.summed:
        force = reading.weight * reading.at(rough)
        for column, entry in reading.entries.items():
            accumulate(left, column, entry * force)
    return work.solution({row: -value for row, value in left.items()})


def _inexact_rows(work: Elimination[Expr], symbolic: SymbolicSystem) -> set[int]:
    """The rows that a first solution fits less than to rounding: those that have weights, or were added to."""
    weighed = depends_on(symbolic.graph, symbolic.entries, [x.index for x in symbolic.weights])
    rows = {row for row, entry in zip(symbolic.rows.tolist(), symbolic.entries, strict=True) if weighed[entry.index]}
    return rows.union(*(pivot.l for pivot in work.pivots))


def _unsigned(x: Expr) -> Expr:
    """The one of x and -x that the graph computes."""
    return -x if x.op is Op.NEG else x


class _Turns:
    """Writes, ahead of the elimination, the congruence of a tensor with the planar rotation before it.

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
