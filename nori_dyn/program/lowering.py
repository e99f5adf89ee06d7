"""From a plan to its program."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.static_elimination import Guard
from nori_dyn.program.program import Program, Refinement, Row
from nori_dyn.system.limbs import corresponding_inputs
from nori_dyn.typing import Indices


@dataclass(frozen=True, slots=True, eq=False)
class SolutionProgram:
    """The elimination as a program.

    Attributes:
        program: returns the unknowns.
        columns: which these are.
        guards: the pivots that are guarded, in the order of `program.pivots`.
    """

    program: Program
    columns: Indices
    guards: tuple[Guard, ...]


def solution_program(plan: EliminationPlan, columns: Sequence[int], checked: bool = False) -> SolutionProgram:
    """The program that solves D d + b = 0 in the planned order, without what no requested unknown needs.

    Args:
        plan: the plan.
        columns: the unknowns wanted.
        checked: compute the residual as well; all unknowns must be wanted then.
    """
    symbolic, solved = plan.symbolic, plan.solved
    guards = solved.guards(columns)
    unknowns = tuple(map(solved.unknowns.__getitem__, columns))
    refinement = Refinement()
    if solved.improved:
        once, twice = solved.improved
        refinement = Refinement(
            steps=tuple(once.steps[k] for k in columns),
            twice=tuple(twice.unknowns[k] for k in columns),
            further=tuple(twice.steps[k] for k in columns),
            first=tuple(solved.first[k] for k in columns),
            watched=solved.watching(columns),
        )
    program = Program(
        inputs=symbolic.inputs,
        outputs=unknowns,
        pivots=tuple(guard.value for guard in guards),
        pivot_names=tuple(_guarded_name(plan, guard) for guard in guards),
        refinement=refinement,
        equations=_equations(plan, columns, unknowns) if checked else (),
        quaternions=tuple(part.start for part in plan.system.tree.quaternions),
        n_weights=len(symbolic.weights),
        n_noise_weights=plan.system.n_noise_weights,
        limbs=corresponding_inputs(plan.system),
    )
    return SolutionProgram(program, np.array(columns, dtype=np.intp), guards)


def _guarded_name(plan: EliminationPlan, guard: Guard) -> str:
    """The name of the unknown that a guarded pivot is of; of one that D does not have, its link's."""
    names, bodies = plan.system.variable_names, plan.refined.symbolic.bodies
    return names[guard.column] if guard.column < len(names) else plan.system.tree.names[bodies[guard.column]]


def _equations(plan: EliminationPlan, columns: Sequence[int], unknowns: Sequence[Expr]) -> tuple[tuple[Row, ...], ...]:
    """The rows of each equation, over the indices of the unknowns."""
    symbolic, place = plan.symbolic, {column: k for k, column in enumerate(columns)}
    terms: list[list[tuple[Expr, int]]] = [[] for _ in range(symbolic.shape[0])]
    for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
        if not unknowns[place[column]].is_zero:
            terms[row].append((entry, place[column]))
    rows = [(b, tuple(row)) for b, row in zip(symbolic.b, terms, strict=True)]
    return tuple(tuple(rows[block.slice]) for block in plan.system.rows)
