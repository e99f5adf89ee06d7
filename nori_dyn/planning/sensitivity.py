"""Derivatives of an estimate by its inputs, through the planned elimination.

Of K(p) x + k(p) = 0 the derivative is dx/dp = -K^-1 R with R = dK/dp x + dk/dp, by the L and U that give x itself. R is
sparse if velocities count as unknowns: that of a link depends on its parent's and on its own joint, and an equation on
the velocity of its link. The requested E dx/dp is the rest of

    [K  R]
    [E  0]

when K is eliminated, its Schur complement. Done from the leaves to the root, this leads the rows of E and the columns
of R no further than to where they meet: inertias of whole subtrees come out of K, and for two joints of which one
carries the other it takes a product of six numbers. Outputs of which there are many are found by substitution instead.

Source: own derivation (tests/agreement/test_plan_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate as running
from itertools import pairwise

import numpy as np

from nori_dyn.algebra.derivatives import Direction, Sparse
from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.bordered import APART, Bordered, Sum, total
from nori_dyn.planning.elimination import FIELD, Elimination, Factors
from nori_dyn.planning.orderings.greedy import Heap, Key
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.sensitivity_check import squared_error
from nori_dyn.planning.static_elimination import eliminated
from nori_dyn.system.trace import SymbolicSystem, freedoms

MOST_ROWS = 4
"""Outputs, as a multiple of the directions, that are eliminated along at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivities:
    """The derivatives of an estimate.

    Attributes:
        derivatives: those that are not zero for all states, by the number of the output and of the direction.
        squared_error: of a weighed system, the square of how much is off in a sum of them, input by input of about the
            size 1; see `sensitivity_check`.
    """

    derivatives: Sparse
    squared_error: Expr | None


def directions_of(plan: EliminationPlan, wrt: Iterable[str]) -> tuple[list[Direction], dict[str, slice]]:
    """How inputs of a plan's system can move, q along the freedoms, and which directions are of which input."""
    symbolic = plan.symbolic
    found: list[Direction] = []
    places: dict[str, slice] = {}
    for name in wrt:
        own = symbolic.inputs[name]
        first = len(found)
        if name == "q":
            found += freedoms(symbolic.graph, plan.system.tree, np.array(own, dtype=object))
        else:
            found += [{x.index: symbolic.graph.one} for x in own]
        places[name] = slice(first, len(found))
    return found, places


def sensitivities(
    plan: EliminationPlan,
    outputs: Sequence[Sequence[Sum]],
    directions: Sequence[Direction],
    places: Mapping[str, slice],
) -> Sensitivities:
    """The derivatives of sums of unknowns.

    Args:
        plan: the plan.
        outputs: the sums, those together that are wanted for the same reason.
        directions: how the inputs of the plan's system move.
        places: which directions are of which input.
    """
    problem = Bordered(plan, directions)
    outputs = [[{column: factor / APART for column, factor in row.items()} for row in group] for group in outputs]
    flat = [row for group in outputs for row in group]
    chosen, order = _cheapest(problem, outputs)
    bordered = problem.bordered([flat[m] for m in chosen])
    work = eliminated(replace(plan.refined, symbolic=bordered), order)
    n, found = problem.n_core, {}
    for m, row in zip(chosen, work.rows[n:], strict=False):
        found.update({(m, column - n): value for column, value in row.items()})
    factors = Factors(work, n)
    others = sorted(set(range(len(flat))) - set(chosen))
    if others:
        for k in range(len(directions)):
            x, _ = factors.along(k)
            found.update({(m, k): total(flat[m], x, problem.graph) for m in others})
    derivatives = {place: value for place, value in sorted(found.items()) if not value.is_zero}
    is_weighted = plan.system.is_weighted
    return Sensitivities(
        derivatives, squared_error(problem, factors, flat, derivatives, places) if is_weighted else None
    )


def _cheapest(problem: Bordered, outputs: Sequence[Sequence[Sum]]) -> tuple[list[int], Ordering]:
    """Which outputs are eliminated along, by number, and the order; the others are substituted for.

    Which are follows from updates over the field; of two orders the one with fewer operations is taken.
    """
    flat = [row for group in outputs for row in group]
    ends = [0, *running(map(len, outputs))]
    n = len(problem.columns)
    small = [m for a, b in pairwise(ends) if b - a <= n for m in range(a, b)]
    choices: list[tuple[int, ...]] = [(), tuple(small), tuple(range(len(flat)))]
    candidates = dict.fromkeys(chosen for chosen in choices if len(chosen) <= MOST_ROWS * n)
    updates: dict[tuple[int, ...], int] = {}
    for chosen in candidates:
        work = _ordered(problem, problem.bordered([flat[m] for m in chosen]))
        updates[chosen] = work.updates
        if len(chosen) < len(flat):
            factors = Factors(work, problem.n_core)
            updates[chosen] += sum(factors.along(k)[1] for k in range(n))
    rows = min(updates, key=lambda chosen: updates[chosen])
    bordered = problem.bordered([flat[m] for m in rows])
    orders = [Ordering.of(_ordered(problem, bordered, by_body)) for by_body in (True, False)]
    return list(rows), min(orders, key=lambda order: problem.operations(bordered, order))


def _ordered(problem: Bordered, bordered: SymbolicSystem, by_body: bool = True) -> Elimination[int]:
    """Eliminate K with the planned pivots, each time the one that fills in least; return the elimination.

    A pivot is taken when its value is the planned one: so it is the one by which the plan was judged, and is guarded.

    Args:
        problem: K and R.
        bordered: the same with some outputs.
        by_body: whether bodies go from the leaves to the root, as far as their pivots can.
    """
    plan, work = problem.plan, Elimination(bordered, FIELD)
    planned = Elimination(plan.refined.symbolic, FIELD).run(plan.program_rows, plan.program_columns)
    added = [(k, k) for k in range(problem.n, problem.n_core)]
    values = {place: FIELD.of(-problem.graph.one) for place in added}
    values |= {(step.row, step.column): step.value for step in planned.pivots}
    rank = {place: k for k, place in enumerate(values)}
    columns = dict(values.keys())
    rows = {column: row for row, column in values}

    def key(row: int, column: int) -> Key:
        entries, below = work.rows[row], work.columns[column]
        came = sum(j not in work.rows[i] for i in below if i != row for j in entries if j != column)
        body = -problem.bodies[column] if by_body else 0
        return body, came - len(entries) - len(below), False, False, rank[row, column], row, column

    heap = Heap(key, list(values))
    while (place := heap.pop(work.rows)) is not None:
        row, column = place
        if work.rows[row][column] != values[place]:
            continue  # it comes again when something has been done to it
        step = work.pivot(row, column)
        touched = {columns[i] for i in step.l if i in columns}.union(step.u, *(work.rows[i] for i in step.l))
        places = [(rows[j], j) for j in touched & rows.keys()]
        heap.put([(i, j) for i, j in places if work.rows[i].get(j) == values[i, j]])
    if len(work.pivots) < len(values):
        return Elimination(bordered, FIELD).run(*zip(*values, strict=True))
    return work
