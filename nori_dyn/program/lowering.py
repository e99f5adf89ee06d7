"""From a plan to programs: the assembly of D and b, and the elimination itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.static_elimination import Guard
from nori_dyn.program.straight_line import Program
from nori_dyn.system.trace import SymbolicSystem


def assembly_program(symbolic: SymbolicSystem) -> Program:
    """Return the program that computes the structural nonzeros of D (nnz), then b (rows)."""
    return Program.of(symbolic.inputs, (*symbolic.entries, *symbolic.b))


@dataclass(frozen=True, slots=True, eq=False)
class SolutionProgram:
    """The elimination as a program.

    Attributes:
        program: returns the unknowns in `columns`, then what is guarded, then, when `checked`, D (nnz) and b (rows).
        columns: the unknowns that it returns.
        guards: what is guarded: of pivots that are not constant and that the unknowns depend on.
        checked: whether D and b are returned too, for the residual.
    """

    program: Program
    columns: NDArray[np.intp]
    guards: tuple[Guard, ...]
    checked: bool


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
    if checked:
        outputs += [*symbolic.entries, *symbolic.b]
    program = Program.of(symbolic.inputs, outputs)
    return SolutionProgram(program, np.array(columns, dtype=np.intp), guards, checked)
