"""The C of a plan that stands alone: the unit that runs here, too, and around it the function that callers see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.errors import named_contacts
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import c_file
from nori_dyn.program.emit import FOLDER, Target, emit
from nori_dyn.program.export.guards import output_limits
from nori_dyn.program.export.interface import Interface, known
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.statuses import STATUSES
from nori_dyn.program.export.text import MARK, comment, numbers, rendered
from nori_dyn.program.layout import Part
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.program import Program, Refinement
from nori_dyn.typing import Floats

OF_PROGRAMS = ("checks.h", "functions.h", "one_state.h", "program.h", "scalars.h", "sines.h", "statuses.h")
"""What a unit includes."""

OF_FILTERS = ("filter.h", "recall.h", "square_root.h", "tick.h")
"""What the steps of a filter include besides."""


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A function of exported code, and the file that it stands in.

    Attributes:
        file: the file's name.
        function: the function's name.
        text: the file.
        cost: operations of a call, sines and cosines not counted.
        n_sines: sines and cosines of a call.
        n_pivots: number of guarded pivots.
        n_work: length of the workspace in doubles.
    """

    file: str
    function: str
    text: str
    cost: Cost
    n_sines: int
    n_pivots: int
    n_work: int

    @property
    def counted(self) -> str:
        """What a call costs, for people."""
        return (
            f"A call is {self.cost.total:,} additions, multiplications and divisions, and {self.n_sines} sines and "
            "cosines."
        )


def copied(names: Iterable[str]) -> dict[str, str]:
    """Return C that does not depend on the robot, by its place in an export."""
    return {f"{FOLDER}/{name}": f"/* {name}: {MARK}; do not edit. */\n\n{c_file(name)}" for name in names}


def solving_routine(plan: EliminationPlan, interface: Interface, number: int, file: str, function: str) -> Routine:
    """Return what solves one of the systems of an interface.

    Args:
        plan: the plan of the system.
        interface: what callers see.
        number: of the system among those of the interface.
        file: what to call the file.
        function: what to call the function.

    Raises:
        PlanError: one instant does not determine what the plan is for, see `EliminationPlan.check_at_once`.
    """
    plan.check_at_once()
    parts = [field.part for field in interface.fields]
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist())
    program, about = solving_program(solution, parts), _about(interface, number, file)
    limits = output_limits(plan, solution, parts)
    places = interface.places(number)
    return routine(
        program, "solve.c.jinja", interface, (file, function), limits, places, about=about, statuses=STATUSES
    )


def routine(
    program: Program,
    template: str,
    interface: Interface,
    names: tuple[str, str],
    limits: Floats | Sequence[float] = (),
    places: Sequence[int] | None = None,
    n_more: int = 0,
    **values: Any,
) -> Routine:
    """Return a function around the unit of a program, with its figures.

    Args:
        program: the program.
        template: of the file.
        interface: what callers see.
        names: what to call the file and the function.
        limits: the least size of each pivot, then, where the solution is refined, the usual size of each output.
        places: where each input lies among those of the caller; in order when None.
        n_more: doubles of workspace beside those of the program.
        values: for the template.
    """
    file, function = names
    unit = emit(program, Target.STAND_ALONE, places=places, without_vectors=f"{interface.NAME}_NO_VECTORS")
    text = rendered(
        template,
        it=interface,
        unit=unit.text,
        file=file,
        function=function,
        limits=numbers(np.asarray(limits, dtype=float).tolist()),
        **values,
    )
    cost = expression_cost((*program.outputs, *program.pivots))
    n_work = max(1, unit.n_work + n_more)
    return Routine(file, function, text, cost, 2 * unit.n_angles, len(program.pivots), n_work)


def _about(interface: Interface, number: int, file: str) -> str:
    """Return the comment at the head of a file."""
    lines = [f"{file}: {MARK}; do not edit. What it computes, and how to call it, stands in {interface.name}.h."]
    if interface.contacts:
        lines += ["", f"Closed: {comment_text(named_contacts(interface.states[number]))}."]
        lines += known(interface.systems[number])
    return comment(lines)


def solving_program(solution: SolutionProgram, parts: Sequence[Part]) -> Program:
    """Return what the C is to compute: outputs and their steps in the coordinates of a frame are turned to it.

    No state counts as usual: what is there would have to be measured by running it.
    """
    program = solution.program

    def turned(values: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(x for part in parts if values for x in _linear_map(program.graph, values[part.slice], part.matrix))

    by = program.refinement
    refinement = Refinement(turned(by.steps), turned(by.twice), turned(by.further))
    return replace(program, outputs=turned(program.outputs), refinement=refinement)


def _linear_map(graph: Graph, values: Sequence[Expr], matrix: Floats | None) -> Iterator[Expr]:
    if matrix is None:
        yield from values
        return
    for row in matrix.tolist():
        total = graph.zero
        for factor, value in zip(row, values, strict=True):
            total = total + factor * value
        yield total
