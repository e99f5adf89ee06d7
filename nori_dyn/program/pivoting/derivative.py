"""The derivatives of an estimate at one state, with pivoting: its own pivots, in extended precision.

The equations are those of `solver`, derived: of A x + b = 0 the derivative is dx = -A^-1 (dA x + db). Where rows are
weighed, r = Y d + b_Y being the residual of a reading, sqrt(w) dr + r dw / sqrt(w) stands in the place of t, so that no
force is added that others take off again. Of a weight of 0 it is sqrt(w) dr.

Readings of a weight w that is light beside others determine some of d alone and do not pull there: their r / sqrt(w)
cancel, and d moves by far less than d / w. So they are extended. As an extended x has no more digits than d / w times
its rounding leaves, an entry that refinement does not settle is judged by the size of d / w.

Source: docs/design.md, 4.10 and 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nori_dyn.algebra.derivatives import Direction, Rates, seeds_of
from nori_dyn.algebra.expressions import Expr, accumulate
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.sensitivity import directions_of
from nori_dyn.program.layout import as_rows
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.program.pivoting.solver import PivotingSolver
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Floats

LEFT = ("left", "loose")
"""Names of the values of each weighed row; see `_derived`."""


class PivotingDerivative:
    """Solves for the derivatives of a plan's estimate, whatever the planned order.

    Args:
        plan: the plan.
        wrt: names of inputs.
        sums: the outputs, as sums of unknowns.
    """

    def __init__(self, plan: EliminationPlan, wrt: Sequence[str], sums: Sequence[Mapping[int, float]]) -> None:
        plan = plan.retraced()
        directions, places = directions_of(plan, wrt)
        self._solver, symbolic, self._n = PivotingSolver(plan), plan.symbolic, plan.system.shape[1]
        self._outputs = as_rows(sums, self._n)
        graph, n_multipliers = symbolic.graph, len(self._solver.exact) * plan.system.is_weighted
        d = [graph.input(f"d[{k}]") for k in range(self._n)]
        multipliers = [graph.input(f"multiplier[{k}]") for k in range(n_multipliers)]
        n_soft = len(self._solver.soft)
        left, loose = ([graph.input(f"{name}[{k}]") for k in range(n_soft)] for name in LEFT)
        found = _derived(symbolic, self._solver, directions, d, multipliers, list(zip(left, loose, strict=True)))
        self._places = tuple(np.array(list(found), dtype=np.intp).reshape(-1, 2).T)
        self._n_held, self._n_directions, self._by_weights = n_multipliers, len(directions), places.get("weights")
        inputs = {**symbolic.inputs, "x": (*d, *multipliers), "left": (*left, *loose)}
        self._program = PythonProgram(inputs, (graph.zero, *found.values()))

    def at(self, *state: Floats) -> tuple[Floats | None, float]:
        """The derivatives (n_sums, n_directions) at a checked state, or None without convergence; and its rcond.

        Args:
            state: q (nq,), qd (nv,), y (ny,), and the weights (n_weights,) where there are any.
        """
        system, n, natural = self._solver.factorised(*state), self._n, self._solver.natural
        if system is None or system.rcond < RCOND_LIMIT:
            return None, 0.0 if system is None else system.rcond
        x, left, which = system.x[: n + self._n_held].astype(float), system.left, self._solver.weight_of
        weights = np.append(np.zeros(0), state[3:])
        root = np.sqrt(weights[which])
        rows = np.append(left, np.where(root > 0, 0.0, left)).astype(float)
        right, sizes = np.zeros((len(system.b), self._n_directions), np.longdouble), np.zeros(self._n_directions)
        right[self._places] = self._program.single(*state, x, rows)[1:]
        if self._by_weights:
            own = np.arange(len(right) - len(left), len(right))
            pulls = np.divide(left, root, out=np.zeros_like(left), where=root > 0)
            right[own, self._by_weights.start + np.array(which)] = pulls
            with np.errstate(divide="ignore", over="ignore"):
                of_d = np.max(np.abs(x[:n]) / natural, initial=0.0) / weights
            sizes[self._by_weights] = np.where(weights > 0, of_d, 0.0)
        found = np.zeros((n, self._n_directions))
        for k in np.flatnonzero(right.any(axis=0)).tolist():
            moved, is_converged = system.factors.solve(-right[:, k], natural, float(sizes[k]))
            if not is_converged:
                return None, system.rcond
            found[:, k] = moved[:n].astype(float)
        return self._outputs @ found, system.rcond


def _derived(
    symbolic: SymbolicSystem,
    solver: PivotingSolver,
    directions: Sequence[Direction],
    d: Sequence[Expr],
    multipliers: Sequence[Expr],
    left: Sequence[tuple[Expr, Expr]],
) -> dict[tuple[int, int], Expr]:
    """The terms dA x + db by row and direction but for r dw / sqrt(w), unknowns, multipliers and residuals constant.

    Args:
        symbolic: the system.
        solver: the solver, for its rows.
        directions: how inputs move.
        d: the unknowns.
        multipliers: those of the exact rows.
        left: of each weighed row r, then 0, or of a weight of 0 r.
    """
    graph, n = symbolic.graph, len(d)
    place = {row: k for k, row in enumerate(solver.exact.tolist())}
    places = zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True)
    entries = [(place[row], column, x) for row, column, x in places if row in place]
    seeds = seeds_of(directions)
    wanted = [*(x for *_, x in entries), *(symbolic.b[row] for row in place)]
    wanted += [x for row in solver.soft for x in (*row.entries.values(), row.b)]
    rates = Rates(graph, wanted, seeds, {})
    found: dict[tuple[int, int], Expr] = {}

    def add(row: int, moves: Mapping[int, Expr], factor: Expr) -> None:
        for k, rate in moves.items():
            accumulate(found, (row, k), rate * factor)

    first = n if multipliers else 0
    for row, column, x in entries:
        add(first + row, rates.of(x), d[column])
        if multipliers:
            add(column, rates.of(x), multipliers[row])
    for row, k in place.items():
        add(first + k, rates.of(symbolic.b[row]), graph.one)
    for k, (reading, which, (r, loose)) in enumerate(zip(solver.soft, solver.weight_of, left, strict=True)):
        weight, own = symbolic.weights[which], n + len(place) + k
        root, by_weight = graph.sqrt(weight), seeds.get(weight.index, {})
        for column, x in reading.entries.items():
            add(own, rates.of(x), root * d[column])
            add(column, rates.of(x), weight * r)
            add(column, by_weight, x * loose)
        add(own, rates.of(reading.b), root)
    return {at: x for at, x in found.items() if not x.is_zero}
