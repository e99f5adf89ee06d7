"""From a plan to programs: the assembly of D and b, and the elimination itself on expressions.

Source: DESIGN 4.4; the elimination is LU with both substitutions in the planned order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.straight_line import Program
from nori_dyn.system.trace import SymbolicSystem


def assembly_program(symbolic: SymbolicSystem) -> Program:
    """Return the program that computes the structural nonzeros of D (nnz), then b (rows)."""
    return Program.of(_inputs(symbolic), (*symbolic.entries, *symbolic.b))


@dataclass(frozen=True, slots=True, eq=False)
class SolutionProgram:
    """The elimination as a program.

    Attributes:
        program: returns the unknowns in `columns`, then the pivots, then, when `checked`, D (nnz) and b (rows).
        columns: the unknowns that it returns.
        pivots: (row, column) of each pivot that is not a constant, in order.
        checked: whether D and b are returned too, for the residual.
    """

    program: Program
    columns: NDArray[np.intp]
    pivots: tuple[tuple[int, int], ...]
    checked: bool


def solution_program(plan: EliminationPlan, columns: Sequence[int], checked: bool) -> SolutionProgram:
    """Return the program that solves D d + b = 0 in the planned order.

    One reciprocal a pivot; the forward substitution runs along with the elimination, the backward one after it;
    what no requested unknown needs is not computed.

    Args:
        plan: the plan.
        columns: the unknowns wanted.
        checked: return D and b as well.
    """
    symbolic = plan.symbolic
    graph = symbolic.graph
    n = symbolic.shape[0]
    rows: list[dict[int, Expr]] = [{} for _ in range(n)]
    in_column: list[set[int]] = [set() for _ in range(n)]
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        rows[row][column] = entry
        in_column[column].add(row)
    right = [-b for b in symbolic.b]
    reciprocals: list[Expr] = []
    pivots: list[tuple[int, int]] = []
    pivot_values: list[Expr] = []

    order = list(zip(plan.row_permutation.tolist(), plan.column_permutation.tolist(), strict=True))
    for row, column in order:
        pivot = rows[row].pop(column)
        reciprocal = graph.reciprocal(pivot)
        reciprocals.append(reciprocal)
        if not pivot.is_constant:
            pivots.append((row, column))
            pivot_values.append(pivot)
        for j in rows[row]:
            in_column[j].discard(row)
        for i in sorted(in_column[column] - {row}):
            target = rows[i]
            l = target.pop(column) * reciprocal
            right[i] = right[i] - l * right[row]
            for j, u in rows[row].items():
                value = target.get(j, graph.zero) - l * u
                if value.is_zero:
                    if target.pop(j, None) is not None:
                        in_column[j].discard(i)
                else:
                    target[j] = value
                    in_column[j].add(i)

    d: list[Expr] = [graph.zero] * n
    for (row, column), reciprocal in zip(reversed(order), reversed(reciprocals), strict=True):
        value = right[row]
        for j, u in rows[row].items():
            value = value - u * d[j]
        d[column] = value * reciprocal

    outputs = [d[column] for column in columns] + pivot_values
    if checked:
        outputs += [*symbolic.entries, *symbolic.b]
    program = Program.of(_inputs(symbolic), outputs)
    return SolutionProgram(program, np.array(columns, dtype=np.intp), tuple(pivots), checked)


def _inputs(symbolic: SymbolicSystem) -> dict[str, tuple[Expr, ...]]:
    return {"q": symbolic.q, "qd": symbolic.qd, "y": symbolic.y}
