"""Variances of an estimate and of its residuals, as derivatives of a determinant.

Of the optimality conditions K x + k = 0, the variance of an unknown d_c is entry (c, c) of K^-1, and that is the
derivative of log |det K| by entry (c, c) of K (Jacobi's formula); the variance that the estimate has along a row Y_k is
the derivative by its weight. The determinant is the product of the pivots, so one sweep backwards through the
elimination gives all of them: the cost of a few eliminations, whatever their number.

Source: own derivation (tests/agreement/test_uncertainty.py); Bjoerck, Numerical Methods for Least Squares Problems,
ch. 2.8.3 for other ways to compute parts of an inverse from its factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from nori_dyn.algebra.derivatives import gradient, replaced
from nori_dyn.algebra.expressions import Expr, accumulate
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.static_elimination import eliminated


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The uncertainty of an estimate, over the expressions of its plan.

    Attributes:
        variances: of the estimate along each direction asked for.
        explained: the same along each weighed row, Y_k P Y_k^T.
        innovations: of each weighed row, -(Y_k d + b_k): its reading less the reading predicted by the estimate.
    """

    variances: tuple[Expr, ...]
    explained: tuple[Expr, ...]
    innovations: tuple[Expr, ...]


def uncertainty(plan: EliminationPlan, directions: Sequence[Mapping[int, float]]) -> Uncertainty:
    """The variances of an estimate, and the expected spread of its residuals.

    Args:
        plan: the plan of a system with weighed rows.
        directions: sums of unknowns, as factors by column.
    """
    refined, d = plan.refined, dict(enumerate(plan.solved.unknowns))  # before equal expressions with probes are known
    symbolic, weighed = refined.symbolic, refined.weighed
    graph = symbolic.graph
    rows = [{column: graph.expr(x) for column, x in direction.items()} for direction in directions]
    rows += [dict(row.entries) for row in weighed]
    probes = [graph.input(f"probe {k}") for k in range(len(rows))]
    places = zip(symbolic.rows.tolist(), symbolic.columns.tolist(), strict=True)
    entries = dict(zip(places, symbolic.entries, strict=True))
    for probe, row in zip(probes, rows, strict=True):
        for (i, x), (j, y) in product(row.items(), repeat=2):
            accumulate(entries, (i, j), probe * (x * y))
    probed = replace(refined, symbolic=symbolic.with_entries(entries))
    work = eliminated(probed, plan.program_order)
    pivots = [(step.value, step.reciprocal) for step in work.pivots if not step.value.is_constant]
    slopes = gradient([value for value, _ in pivots], [reciprocal for _, reciprocal in pivots], probes)
    found = replaced(slopes, {probe.index: graph.zero for probe in probes})
    return Uncertainty(
        variances=tuple(found[: len(directions)]),
        explained=tuple(found[len(directions) :]),
        innovations=tuple(-row.at(d) for row in weighed),
    )
