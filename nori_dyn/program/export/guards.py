"""What the guards of exported code hold pivots and steps against, and a configuration that they let pass."""

from collections.abc import Sequence

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.guards import guard_limits, pivot_ensemble
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.layout import Part
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.typing import Floats


def output_limits(plan: EliminationPlan, solution: SolutionProgram, parts: Sequence[Part] = ()) -> Floats:
    """Return the least size of each pivot, then, where the solution is refined, the usual size of each output.

    A frame's components have the size of the largest of them.
    """
    pivots = solution.program.pivots
    sizes = np.zeros((0, 1))
    if pivots:
        sizes = PythonProgram(solution.program.inputs, pivots).batch(*pivot_ensemble(plan))
    limits = guard_limits(plan, solution, sizes.T)
    usual = limits[len(pivots) :]
    for part in parts:
        if part.matrix is not None and len(usual):
            usual[part.slice] = usual[part.slice].max()
    return limits


def working_configuration(plan: EliminationPlan) -> Floats:
    """Return a configuration (nq,) that the guards let pass: the neutral one where they do."""
    neutral = plan.system.tree.neutral_configuration()
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist())
    if not solution.guards and not solution.program.refinement.steps:
        return neutral
    kernel = NumpyKernel(solution.program)
    kernel.limits[:] = output_limits(plan, solution)
    Q, *others = pivot_ensemble(plan)
    states = [np.vstack([neutral, Q]), *(np.vstack([array[:1], array]) for array in others)]
    outcomes, _ = kernel.batch(states, [np.empty((len(Q) + 1, len(solution.columns)))])
    return neutral if outcomes is None else np.asarray(states[0][int(np.argmax(outcomes == Outcome.OK))])
