"""From a plan to its program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.static_elimination import Guard
from nori_dyn.program.straight_line import Program
from nori_dyn.typing import Indices


@dataclass(frozen=True, slots=True, eq=False)
class SolutionProgram:
    """The elimination as a program.

    Attributes:
        program: returns what `parts` lists; D (nnz) and b (rows) when `checked`.
        columns: the unknowns that it returns.
        guards: the pivots that are guarded.
        refines: whether the program refines its solution: where rows are weighed.
        checked: whether D and b are returned too, for the residual.
        first: the same unknowns before any refinement, which the program itself does not return.
        watched: of a program that refines, what tells whether it has to: see `StaticElimination`.
    """

    program: Program
    columns: Indices
    guards: tuple[Guard, ...]
    refines: bool
    checked: bool
    first: tuple[Expr, ...]
    watched: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[tuple[Expr, ...], ...]:
        """The outputs: unknowns, pivots, steps of the unknowns, unknowns once more refined, their steps, D and b.

        Those of refinement are empty where there is none.
        """
        n = len(self.columns)
        ends = np.cumsum([0, n, len(self.guards), *(3 * [n * self.refines])]).tolist()
        outputs = self.program.outputs
        return *(outputs[a:b] for a, b in pairwise(ends)), outputs[ends[-1] :]


def solution_program(plan: EliminationPlan, columns: Sequence[int], checked: bool) -> SolutionProgram:
    """Return the program that solves D d + b = 0 in the planned order; what no wanted unknown needs is not computed.

    Args:
        plan: the plan.
        columns: the unknowns wanted.
        checked: return D and b as well.
    """
    symbolic, solved = plan.symbolic, plan.solved
    guards = solved.guards(columns)
    outputs = [*(solved.unknowns[column] for column in columns), *(guard.value for guard in guards)]
    if solved.improved:
        once, twice = solved.improved
        for part in (once.steps, twice.unknowns, twice.steps):
            outputs += [part[column] for column in columns]
    if checked:
        outputs += [*symbolic.entries, *symbolic.b]
    program = Program.of(symbolic.inputs, outputs)
    first, watched = tuple(solved.first[column] for column in columns), solved.watching(columns)
    refines = bool(solved.improved)
    return SolutionProgram(program, np.array(columns, dtype=np.intp), guards, refines, checked, first, watched)
