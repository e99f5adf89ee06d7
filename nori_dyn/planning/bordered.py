"""The bordered matrix of derivatives: a plan's system, velocities among its unknowns, and how it moves.

Source: docs/design.md, 4.10; own derivation (tests/agreement/test_plan_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.derivatives import Direction, Rates, depends_on, seeds_of
from nori_dyn.algebra.expressions import Expr, Graph, Op, accumulate
from nori_dyn.planning.elimination import Factors, Pivot
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.static_elimination import eliminated
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Indices

Place: TypeAlias = tuple[int, int]
Sum: TypeAlias = Mapping[int, float]
"""A sum of unknowns: their factors by column."""

APART = 2.0
"""What R is multiplied by, and outputs are divided by. Else an entry of L^-1 R may be the same function as one of K on
its way to U, and would be taken to be that number, of which more digits may be lost."""

FIRST = 10**9
"""The body, as a class of the order, of pivots before those of all bodies."""


class Bordered:
    """K and R of a plan, velocities and the weighed residuals among the unknowns.

    Attributes:
        n, n_core: number of the plan's own unknowns, and of all.
        graph: the expressions.
        entries: those of K, by row and column.
        columns: those of R, times `APART`, by row, one mapping a direction.
        bodies: the body of each unknown.
    """

    def __init__(self, plan: EliminationPlan, directions: Sequence[Direction]) -> None:
        self.plan, refined = plan, plan.refined
        symbolic = refined.symbolic
        self.graph, self.n = symbolic.graph, symbolic.shape[1]
        self._d = plan.solved.unknowns
        self._held, biases = _written_rows(plan)
        velocities = _nodes(refined.velocities, self.graph)
        cuts = {node: self.n + k for k, node in enumerate(velocities)}
        forces = [self.n + len(cuts) + k for k in range(len(refined.summed))]
        self.n_core = self.n + len(cuts) + len(forces)
        self.bodies = [*symbolic.bodies.tolist(), *velocities.values(), *(FIRST for _ in forces)]
        self.entries = dict(zip(_places(symbolic.rows, symbolic.columns), symbolic.entries, strict=True))
        weighed = [x for row in refined.summed for x in (*row.entries.values(), row.b, row.weight)]
        wanted = [*(entry for *_, entry in self._held), *biases.values(), *weighed]
        rates = Rates(self.graph, wanted, seeds_of(directions, self.n_core), cuts)
        self._R: dict[Place, Expr] = {}
        for row, column, entry in self._held:
            self._add(row, rates.of(entry), self._d[column])
        for row, b in biases.items():
            self._add(row, rates.of(b), self.graph.one)
        for node, own in cuts.items():
            self.entries[own, own] = -self.graph.one
            self._add(own, rates.inner.get(node, {}), self.graph.one)
        self._forces = list(zip(forces, refined.summed, strict=True))
        self._add_weighed(rates)
        self.columns: list[dict[int, Expr]] = [{} for _ in directions]
        for (row, column), value in self._R.items():
            if column < self.n_core:
                accumulate(self.entries, (row, column), value)
            elif not value.is_zero:
                self.columns[column - self.n_core][row] = value * APART

    def _add(self, row: int, rates: Mapping[int, Expr], factor: Expr) -> None:
        for column, rate in rates.items():
            accumulate(self._R, (row, column), rate * factor)

    def _add_weighed(self, rates: Rates) -> None:
        """Add w_k (Y_k d + b_k) of each weighed row, its term in the optimality conditions, as one more unknown."""
        d = dict(enumerate(self._d))
        for own, reading in self._forces:
            left, weight = reading.at(d), reading.weight
            self.entries[own, own] = -self.graph.one
            self._add(own, rates.of(weight), left)
            self._add(own, rates.of(reading.b), weight)
            for column, entry in reading.entries.items():
                self._add(own, rates.of(entry), weight * d[column])
                self._add(column, rates.of(entry), weight * left)
                self.entries[column, own] = entry

    def bordered(self, outputs: Sequence[Sum]) -> SymbolicSystem:
        """[[K, R], [E, 0]] of some outputs."""
        n, entries = self.n_core, {place: entry for place, entry in self.entries.items() if not entry.is_zero}
        for k, column in enumerate(self.columns):
            entries.update({(row, n + k): value for row, value in column.items()})
        for m, row in enumerate(outputs):
            entries.update({(n + m, column): self.graph.expr(factor) for column, factor in row.items()})
        size = n + max(len(outputs), len(self.columns))
        symbolic = self.plan.refined.symbolic.with_entries(entries)
        return replace(symbolic, shape=(size, size), b=(self.graph.zero,) * size)

    def operations(self, bordered: SymbolicSystem, order: Ordering) -> int:
        """The number of operations for the derivatives of eliminated inputs in an order."""
        size = len(self.graph)
        work = eliminated(replace(self.plan.refined, symbolic=bordered), order)
        left = [x for row in work.rows for x in row.values()] or [step.reciprocal for step in work.pivots]
        found = expression_cost(left).total
        self.graph.forget(size)
        return found

    def refined(
        self, factors: Factors[Expr], outputs: Sequence[Sum], probe: Mapping[int, Expr]
    ) -> tuple[list[Expr], list[Expr]]:
        """The derivative of each output along a direction, and the correction by a step of refinement.

        What is left of a weighed row is weighed before it is added up, as in the refinement of the estimate.

        Args:
            factors: those of K.
            outputs: the outputs.
            probe: the direction, as a sum of the others, by their number.
        """
        right: dict[int, Expr] = {}
        for k, factor in probe.items():
            for row, value in self.columns[k].items():
                accumulate(right, row, factor * value)
        x = factors.solve({row: -value for row, value in right.items()})
        rough = {column: self.graph.opaque(value) for column, value in x.items()}
        rows = self._inexact_rows(factors.pivots)
        left = {row: value for row, value in right.items() if row in rows}
        for row, column, entry in self._held:
            if row in rows and column in rough:
                accumulate(left, row, entry * rough[column])
        for (row, column), value in self._R.items():
            if row in rows and self.n <= column < self.n_core and column in rough:
                accumulate(left, row, value * rough[column])
        for own, reading in self._forces:
            terms = (entry * rough[column] for column, entry in reading.entries.items() if column in rough)
            force = reading.weight * sum(terms, self.graph.zero) + rough.get(own, self.graph.zero)
            for column, entry in reading.entries.items():
                accumulate(left, column, entry * force)
        step = factors.solve({row: -value for row, value in left.items() if not value.is_zero})
        return [total(row, x, self.graph) for row in outputs], [total(row, step, self.graph) for row in outputs]

    def _inexact_rows(self, pivots: Sequence[Pivot[Expr]]) -> set[int]:
        """The rows of the plan's system in which the residual of a solution exceeds rounding.

        Others have no weights in them, and are divided by constants: nothing small is left of anything large.
        """
        symbolic = self.plan.refined.symbolic
        numbers = [x for step in pivots for x in (*step.l.values(), *step.u.values())]
        weighed = depends_on(self.graph, [*symbolic.entries, *numbers], [x.index for x in symbolic.weights])
        places = zip(symbolic.rows.tolist(), symbolic.entries, strict=True)
        rows = {row for row, x in places if weighed[x.index]}
        for step in pivots:
            of_weights = any(weighed[u.index] for j, u in step.u.items() if j < self.n_core)
            rows |= {i for i, l in step.l.items() if of_weights or weighed[l.index] or not step.reciprocal.is_constant}
            rows |= set() if step.reciprocal.is_constant else {step.row}
        return {row for row in rows if row < self.n}


def _written_rows(plan: EliminationPlan) -> tuple[list[tuple[int, int, Expr]], dict[int, Expr]]:
    """The entries of K and its b by row, without those that weighed rows add up to."""
    symbolic, multipliers = plan.refined.symbolic, plan.refined.duals.keys()
    places = _places(symbolic.rows, symbolic.columns)
    entries = [(row, column, x) for (row, column), x in zip(places, symbolic.entries, strict=True)]
    biases = dict(enumerate(symbolic.b))
    if not plan.system.is_weighted:
        return entries, biases
    return (
        [(row, column, x) for row, column, x in entries if row in multipliers or column in multipliers],
        {row: b for row, b in biases.items() if row in multipliers},
    )


def _places(rows: Indices, columns: Indices) -> list[Place]:
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _nodes(velocities: Iterable[Iterable[Expr]], graph: Graph) -> dict[int, int]:
    """The nodes that compute velocities, with the body of each."""
    found: dict[int, int] = {}
    for body, own in enumerate(velocities):
        for x in own:
            node = graph.left[x.index] if x.op is Op.NEG else x.index
            if graph.ops[node] not in (Op.CONSTANT, Op.INPUT):
                found.setdefault(node, body)
    return found


def total(factors: Sum, x: Mapping[int, Expr], graph: Graph) -> Expr:
    """A sum of unknowns; absent ones are zero."""
    return sum((x[column] * factor for column, factor in factors.items() if column in x), graph.zero)
