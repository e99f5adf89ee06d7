"""What the guards of exported code hold pivots and steps against, and a configuration that they let pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import STEP_LIMIT, guard_limits, pivot_ensemble
from nori_dyn.program.layout import Part
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.program.straight_line import Program
from nori_dyn.typing import Floats


def output_limits(plan: EliminationPlan, solution: SolutionProgram, parts: Sequence[Part]) -> Floats:
    """Return the least size of each pivot, then, where the solution is refined, the usual size of each output.

    A frame's components have the size of the largest of them.
    """
    limits = _limits(plan, solution)
    usual = limits[len(solution.guards) :]
    for part in parts:
        if part.matrix is not None and len(usual):
            usual[part.slice] = usual[part.slice].max()
    return limits


def working_configuration(plan: EliminationPlan) -> Floats:
    """Return a configuration (nq,) that the guards let pass: the neutral one where they do."""
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist(), checked=False)
    Q, *others = pivot_ensemble(plan)
    neutral = plan.system.tree.neutral_configuration()
    unknowns, pivots, steps, *_ = (tuple(part) for part in solution.parts)
    if not pivots and not steps:
        return neutral
    states = [np.vstack([neutral, Q]), *(np.vstack([array[:1], array]) for array in others)]
    sized = (*pivots, *((*unknowns, *steps) if steps else ()))
    with np.errstate(all="ignore"):
        sizes = np.abs(PythonProgram(Program.of(solution.program.inputs, sized)).batch(*states))
    least, usual = np.split(_limits(plan, solution)[:, None], [len(pivots)])
    holds = np.all(sizes[: len(pivots)] >= least, axis=0)
    if steps:
        found, corrections = np.split(sizes[len(pivots) :], 2)
        holds &= np.all(corrections <= STEP_LIMIT * (found + usual), axis=0)
    q: Floats = states[0][int(np.argmax(holds))]
    return q


def _limits(plan: EliminationPlan, solution: SolutionProgram) -> Floats:
    """Return the least size of each pivot, then the usual size of each unknown that has a step."""
    pivots = solution.parts[1]
    sizes = np.zeros((0, 1))
    if pivots:
        sizes = np.abs(PythonProgram(Program.of(solution.program.inputs, pivots)).batch(*pivot_ensemble(plan)))
    return guard_limits(plan, solution, sizes.T)
