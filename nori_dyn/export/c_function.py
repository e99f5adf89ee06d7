"""A function of exported code: the unit of a program, which runs here as well, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr
from nori_dyn.export.interface import Interface
from nori_dyn.export.text import rendered
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.emit import Target, emit
from nori_dyn.program.guards import guard_limits, pivot_ensemble
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.program import Program, Refinement
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class CFunction:
    """A function of exported code, and the file that it stands in.

    Attributes:
        file: the file's name.
        name: the function's name.
        text: the file.
        cost: operations of a call, sines and cosines not counted.
        n_sines: sines and cosines of a call.
        n_pivots: number of guarded pivots.
        n_work: length of the workspace in doubles.
    """

    file: str
    name: str
    text: str
    cost: Cost
    n_sines: int
    n_pivots: int
    n_work: int


def c_function(
    program: Program,
    template: str,
    interface: Interface,
    file: str,
    name: str,
    limits: Iterable[float] = (),
    places: Sequence[int] | None = None,
    n_more: int = 0,
    **values: Any,
) -> CFunction:
    """Return a function around the unit of a program, with its figures.

    Args:
        program: the program.
        template: of the file.
        interface: the interface of the code.
        file: the name of the file.
        name: the name of the function.
        limits: the least size of each pivot, then, where the solution is refined, the usual size of each output.
        places: where each input lies among those of the caller; in order when None.
        n_more: doubles of workspace beside those of the program.
        values: for the template.
    """
    unit = emit(program, Target.STAND_ALONE, places=places, without_vectors=f"{interface.NAME}_NO_VECTORS")
    text = rendered(template, it=interface, unit=unit.text, file=file, function=name, limits=limits, **values)
    cost, n_work = expression_cost((*program.outputs, *program.pivots)), max(1, unit.n_work + n_more)
    return CFunction(file, name, text, cost, 2 * unit.n_angles, len(program.pivots), n_work)


def solving_program(plan: EliminationPlan, interface: Interface) -> tuple[Program, Floats]:
    """The program of a plan's outputs for an interface, and the limits of its guards.

    These are the least size of each pivot, then, where the solution is refined, the usual size of each output. Outputs
    and their steps in the coordinates of a frame are turned to it, and have the usual size of the largest of them.
    There is no fast path: what is there would have to be measured by running it.
    """
    parts = [member.part for member in interface.asked if member.part is not None]
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist())
    program, limits = solution.program, guard_limits(plan, solution)
    usual = limits[len(solution.guards) :]
    for part in parts if len(usual) else ():
        if part.matrix is not None:
            usual[part.slice] = usual[part.slice].max()

    def turned(values: Sequence[Expr]) -> Iterator[Expr]:
        for part in parts if values else ():
            own = values[part.slice]
            rows = () if part.matrix is None else part.matrix.tolist()
            yield from (sum(map(mul, row, own), program.graph.zero) for row in rows) if rows else own

    by, made = program.refinement, tuple(turned(program.outputs))
    refinement = Refinement(tuple(turned(by.steps)), tuple(turned(by.twice)), tuple(turned(by.further)))
    return replace(program, outputs=made, refinement=refinement), limits


def working_configuration(plan: EliminationPlan) -> Floats:
    """Return a configuration (nq,) that the guards let pass: the neutral one where they do."""
    neutral = plan.system.tree.neutral_configuration()
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist())
    if not solution.guards and not solution.program.refinement.steps:
        return neutral
    kernel = NumpyKernel(solution.program, guard_limits(plan, solution))
    Q, *others = pivot_ensemble(plan)
    states = [np.vstack([neutral, Q]), *(np.vstack([array[:1], array]) for array in others)]
    outcomes, _ = kernel.batch(states, [np.empty((len(Q) + 1, len(solution.columns)))])
    return neutral if outcomes is None else np.asarray(states[0][int(np.argmax(outcomes == Outcome.OK))])
