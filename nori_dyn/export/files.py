"""All files of an export: of a plan, whose contact states are usually one, or of a filter.

Each function is the unit of a program, which runs here as well, in a file of its own. That of a monitor is the
uncertainty of a plan's outputs, and a test of its readings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from typing import Any

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr
from nori_dyn.errors import PlanError, named_contacts
from nori_dyn.export.interface import CMember, Element, Enumeration, Interface
from nori_dyn.export.names import comment_text
from nori_dyn.export.text import MARK, rendered, table
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import c_file
from nori_dyn.program.emit import FOLDER, Target, emit
from nori_dyn.program.guards import guard_limits, pivot_ensemble
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.monitoring import MonitoredReadings
from nori_dyn.program.program import Program, Refinement
from nori_dyn.typing import Floats

OF_PROGRAMS = ("checks.h", "functions.h", "one_state.h", "program.h", "scalars.h", "sines.h", "statuses.h")
"""What a unit includes."""


@dataclass(frozen=True, slots=True, eq=False)
class CExport:
    """A plan or a filter, as C.

    Attributes:
        name: the name of the code, an identifier.
        files: the text of each file, by its name.
        inputs: the length of each input, by its field.
        outputs: the shape of each output, by its field; () for a single number.
        indices: the value of each enumerator that names a place, or a contact state.
        states: the functions of each contact state, or of the only one.
        n_work: length of the workspace, or of a filter, in doubles.
        monitor: the test of a state; None where it was not requested.
    """

    name: str
    files: Mapping[str, str] = field(repr=False)
    inputs: Mapping[str, int]
    outputs: Mapping[str, tuple[int, ...]]
    indices: Mapping[str, int] = field(repr=False)
    states: tuple[tuple[CFunction, ...], ...] = field(repr=False)
    n_work: int = field(repr=False)
    monitor: CMonitor | None = field(default=None, repr=False)

    @property
    def functions(self) -> tuple[CFunction, ...]:
        """The functions of all contact states."""
        return tuple(function for state in self.states for function in state)

    @property
    def cost(self) -> Cost:
        """Operations of a call, sines and cosines not counted; of contact states, of that which needs the most."""
        return max(map(_cost, self.states), key=lambda cost: cost.total)

    @property
    def n_sines(self) -> int:
        """Sines and cosines of a call; the most of any contact state."""
        return max(sum(function.n_sines for function in state) for state in self.states)

    @property
    def n_pivots(self) -> int:
        """Number of guarded pivots; the most of any function."""
        return max(function.n_pivots for function in self.functions)


def c_export(
    plans: Mapping[ContactState, EliminationPlan],
    name: str | None = None,
    contacts: Sequence[str] = (),
    sensors: str = "",
    monitor: bool = False,
) -> CExport:
    """A plan as C; of several contact states a file for each, and one function that chooses among them.

    Args:
        plans: the plan of each state, for one robot, with the same outputs; one, of no contacts, where there are none.
        name: the name of files, functions and types; from the robot's name when left out.
        contacts: the names of all contacts.
        sensors: the sensors' name in messages.
        monitor: whether to export the test of estimates and readings, too.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
        PlanError: there are more contacts than an enum of C has bits; a monitor is asked for, and there are contacts,
            no row is weighed, or the equations of motion are; one instant does not determine the outputs of the plan,
            see `EliminationPlan.check_at_once`.
    """
    if monitor and contacts:
        raise PlanError(
            "a monitor is of one contact state. Export the plan of one, `states[closed]`, with its monitor."
        )
    it = Interface.of(plans, contacts, sensors, name)
    states = [(_solving(plan, it, number),) for number, plan in enumerate(plans.values())]
    code = {solving.file: solving.text for (solving,) in states}
    if contacts:
        code[f"{it.name}.c"] = rendered("states.c.jinja", it=it, states=states)
    n_work = max(solving.n_work for (solving,) in states)
    return assembled(it, states, code, n_work, monitor=CMonitor.of(it.solving, it) if monitor else None)


def _solving(plan: EliminationPlan, it: Interface, number: int) -> CFunction:
    """The function that solves in one of the contact states."""
    plan.check_at_once()
    program, limits = solving_program(plan, it)
    names = it.file(number), f"{it.name}_solve{it.suffixes[number]}"
    return c_function(program, "unit.c.jinja", it, *names, limits, it.input_indices(number), number=number)


def assembled(
    it: Interface,
    states: Sequence[tuple[CFunction, ...]],
    code: Mapping[str, str],
    n_work: int,
    copies: Sequence[str] = (),
    monitor: CMonitor | None = None,
    **values: object,
) -> CExport:
    """An export with all files.

    Args:
        it: the interface of the code.
        states: see `CExport`.
        code: the files that compute.
        n_work: see `CExport`.
        copies: headers that these include, which do not depend on the robot, beside those of a unit.
        monitor: see `CExport`.
        values: for the templates.
    """
    name, q, neutral = it.name, working_configuration(it.solving), it.tree.neutral_configuration()
    enumerations = [*it.enumerations, *([monitor.readings] if monitor else [])]
    members = [*it.inputs, *it.outputs, *(monitor.members if monitor else [])]
    n_more = monitor.function.n_work if monitor else 0
    values |= {
        "it": it,
        "states": states,
        "monitor": monitor,
        "n_work": n_work,
        "size": 8 * (sum(math.prod(member.shape) for member in members) + n_work + n_more),
        "q": {k: value for k, value in enumerate(q.tolist()) if value != neutral[k]},
        "by_state": "\n".join(
            table(
                (comment_text(named_contacts(state)), f"{system.shape[0]:,}", f"{_cost(functions).total:,}")
                for state, system, functions in zip(it.states, it.systems, states, strict=True)
            )
        ),
    }
    headers = {f"{name}.h": rendered("header.h.jinja", **values)}
    if monitor is not None:
        copies = (*copies, "alone_judge.h", "judge.h")
        headers[f"{name}_monitor.h"] = rendered("monitor.h.jinja", **values)
        code = {**code, monitor.function.file: monitor.function.text}
    headers[f"{name}.hpp"] = rendered("class.hpp.jinja", **values)
    inner = f"{name}_{'parts' if it.memory else 'states'}"
    inside = {f"{inner}.h": rendered("inner.h.jinja", file=inner, **values)} if it.memory or it.contacts else {}
    example = rendered("main.c.jinja", **values)
    copied = {
        f"{FOLDER}/{file}": f"/* {file}: {MARK}; do not edit. */\n\n{c_file(file)}" for file in (*OF_PROGRAMS, *copies)
    }
    build = rendered("CMakeLists.txt.jinja", sources=list(code), headers=list(headers), **values)
    return CExport(
        name=name,
        files={**headers, **inside, **code, **copied, "main.c": example, "CMakeLists.txt": build},
        inputs={member.name: member.shape[0] for member in it.inputs},
        outputs={member.name: member.shape for member in it.outputs},
        indices={place: value for one in enumerations for place, value in one.values.items()},
        states=tuple(states),
        n_work=n_work,
        monitor=monitor,
    )


def _cost(functions: Iterable[CFunction]) -> Cost:
    return sum((function.cost for function in functions), Cost())


UNCHECKED = "0 where nothing else checks the reading."
OF_READINGS = {
    "residuals": "What each weighed reading is off, reading less estimate.",
    "spreads": f"The standard deviation to expect of each residual of sound sensors; {UNCHECKED}",
    "normalised": f"Each residual over its spread, of variance 1 for sound sensors; {UNCHECKED}",
}
OF_ALL = {
    "chi_square": "The sum of the squared residuals, each times its weight.",
    "p_value": "The probability that sound sensors fit together as badly; 1 where nothing is redundant.",
}


@dataclass(frozen=True, slots=True, eq=False)
class CMonitor:
    """The monitor of a plan as C.

    Attributes:
        function: the test of a state.
        members: its outputs.
        readings: the enum of the weighed readings.
        freedom: the degrees of freedom of the chi-square.
    """

    function: CFunction
    members: tuple[CMember, ...]
    readings: Enumeration
    freedom: int

    @staticmethod
    def of(plan: EliminationPlan, interface: Interface) -> CMonitor:
        """The monitor of a plan.

        Raises:
            PlanError: no row is weighed, or the equations of motion are.
        """
        judged = MonitoredReadings.of(plan)
        found, freedom = judged.uncertainty, len(judged.readings) - judged.needed
        variances = [x for member in interface.asked if member.part for x in found.variances[member.part.slice]]
        program = Program(
            inputs=plan.symbolic.inputs,
            outputs=(*variances, *found.innovations, *found.explained),
            quaternions=tuple(part.start for part in plan.system.tree.quaternions),
            n_weights=len(plan.symbolic.weights),
            n_noise_weights=plan.system.n_noise_weights,
        )
        once = c_function(
            program,
            "check.c.jinja",
            interface,
            f"{interface.name}_monitor.c",
            f"{interface.name}_check",
            n_more=len(program.scalars) + len(variances),
            numbers=judged.constants([math.prod(member.shape) for member in interface.asked]),
        )
        members = [
            CMember(f"sigma_{of.name}", f"Posterior standard deviations of {of.name}.", (), of.sizes, of.shape)
            for of in interface.asked
        ]
        readings = [Element(name, (comment_text(name),)) for name in judged.readings]
        of_readings = [
            CMember.array(interface.NAME, name, about, "N_READINGS", readings) for name, about in OF_READINGS.items()
        ]
        members += of_readings[:1] + [replace(member, elements=()) for member in of_readings[1:]]
        members += [CMember(name, about) for name, about in OF_ALL.items()]
        return CMonitor(
            replace(once, cost=once.cost + once.cost),  # at two scales of the weights
            tuple(members),
            interface.enumeration("reading", judged.readings, "Weighed readings."),
            freedom,
        )


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
    """A function around the unit of a program, with its figures.

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
    """A configuration (nq,) that the guards let pass: the neutral one where they do."""
    neutral = plan.system.tree.neutral_configuration()
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist())
    if not solution.guards and not solution.program.refinement.steps:
        return neutral
    kernel = NumpyKernel(solution.program, guard_limits(plan, solution))
    Q, *others = pivot_ensemble(plan)
    states = [np.vstack([neutral, Q]), *(np.vstack([array[:1], array]) for array in others)]
    outcomes, _ = kernel.batch(states, [np.empty((len(Q) + 1, len(solution.columns)))])
    return neutral if outcomes is None else np.asarray(states[0][int(np.argmax(outcomes == Outcome.OK))])
