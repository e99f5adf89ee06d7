"""The C of a plan: one file with the function that solves one state, its statements in chunks, its guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.errors import named_contacts
from nori_dyn.model.limbs import Limbs
from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import STEP_LIMIT, WEIGHT_SPREAD
from nori_dyn.program.c_writer import Writer
from nori_dyn.program.export.guards import output_limits
from nori_dyn.program.export.interface import Interface, known
from nori_dyn.program.export.names import comment_text
from nori_dyn.program.export.statuses import STATUSES
from nori_dyn.program.export.text import MARK, comment, numbers, rendered
from nori_dyn.program.job import Job, Notation
from nori_dyn.program.layout import Part
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.pack_text import TYPES
from nori_dyn.system.limbs import corresponding_inputs
from nori_dyn.typing import Floats, Indices

LANES = 4
"""Numbers of a vector in exported C, at most: most processors that have more get it by name only."""


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
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist(), checked=False)
    job = solving_job(solution, parts, corresponding_inputs(plan.system))
    outputs = [f"out->{place}" for field in interface.fields for place in field.places]
    packed = replace(notation(interface, number, outputs, "outputs"), lanes=LANES)
    writer = Writer(job, packed, 4 * len(interface.tree.quaternions))
    text = rendered(
        "solve.c.jinja",
        function=function,
        statuses=STATUSES,
        limits=numbers(output_limits(plan, solution, parts).tolist()),
        about=_about(interface, number, file),
        step_limit=STEP_LIMIT,
        **statements(writer, interface, number),
    )
    return routine(writer, file, function, text)


def _about(interface: Interface, number: int, file: str) -> str:
    """Return the comment at the head of a file."""
    lines = [f"{file}: {MARK}; do not edit. What it computes, and how to call it, stands in {interface.name}.h."]
    if interface.contacts:
        lines += ["", f"Closed: {comment_text(named_contacts(interface.states[number]))}."]
        lines += known(interface.systems[number])
    return comment(lines)


def routine(writer: Writer, file: str, function: str, text: str) -> Routine:
    """Return a routine with its figures."""
    job = writer.job
    cost = expression_cost((*job.outputs, *job.pivots))
    return Routine(file, function, text, cost, 2 * len(writer.angles), len(job.pivots), writer.n_work)


def notation(interface: Interface, number: int, outputs: Sequence[str], struct: str) -> Notation:
    """Return how statements refer to the inputs of one of the systems: quaternions where they are normalised."""
    inputs, tree = interface.inputs, interface.tree
    places = [f"in->q[{k}]" for k in range(tree.nq)] + [f"in->qd[{k}]" for k in range(tree.nv)]
    places += [f"in->y[{k}]" for k in inputs.y_places[number]]
    places += [f"in->weights[{k}]" for k in inputs.weight_places[number]]
    for turn, part in enumerate(tree.quaternions):
        places[part] = [f"w[{4 * turn + k}]" for k in range(4)]
    name = interface.name
    parameters = f"const {name}_inputs *restrict in, double *restrict w, {name}_{struct} *restrict out"
    return Notation(places, outputs, parameters, "double", "{0}", rarely="", root="sqrt")


def statements(writer: Writer, interface: Interface, number: int) -> dict[str, Any]:
    """Return what the templates of C need of the statements of a job, and of the system that they read."""
    system, inputs = interface.systems[number], interface.inputs
    first, more = writer.chunk_numbers
    return {
        "it": interface,
        "system": system,
        "y_places": _places(inputs.y_places[number], inputs.ny),
        "weight_places": _places(inputs.weight_places[number], inputs.n_weights),
        "spread": WEIGHT_SPREAD,
        "tolerance": QUATERNION_TOLERANCE,
        "writer": writer,
        "chunks": _chunks(writer, interface),
        "calls": list(first),
        "more_calls": list(more),
    }


def _chunks(writer: Writer, interface: Interface) -> str:
    """Return the statements: where some are packed, once for compilers that know vectors, and once for others."""
    if not writer.packing.packs:
        return _indented(writer.chunks())
    vectors, plain = _indented(writer.chunks()), _indented(writer.without_vectors().chunks())
    condition = f"#if defined(__GNUC__) && !defined({interface.NAME}_NO_VECTORS)"
    about = comment(["Limbs that are alike, in the lanes of vectors, where the compiler has them."])
    return f"{about}\n{condition}\n\n{TYPES}\n{vectors}\n\n#else\n\n{plain}\n\n#endif"


def _indented(chunks: Iterable[str]) -> str:
    return "\n\n".join(chunk.replace("\n", "\n    ").replace("\n    }", "\n}") for chunk in chunks)


def _places(own: Indices, n: int) -> list[int]:
    """Return places among n that are not all of them in order; none where they are."""
    return [] if np.array_equal(own, np.arange(n)) else own.tolist()


def solving_job(solution: SolutionProgram, parts: Sequence[Part], limbs: Limbs = ()) -> Job:
    """Return what the C is to compute, outputs and their steps in the coordinates of a frame turned to it."""
    program, (unknowns, pivots, steps, *again, _) = solution.program, solution.parts

    def turned(values: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(x for part in parts if values for x in _linear_map(program.graph, values[part.slice], part.matrix))

    inputs = tuple(x for scalars in program.inputs.values() for x in scalars)
    more = turned(again[0]), turned(again[1])
    return Job(program.graph, inputs, turned(unknowns), pivots, (), steps=turned(steps), again=more, limbs=limbs)


def _linear_map(graph: Graph, values: Sequence[Expr], matrix: Floats | None) -> Iterator[Expr]:
    if matrix is None:
        yield from values
        return
    for row in matrix.tolist():
        total = graph.zero
        for factor, value in zip(row, values, strict=True):
            total = total + factor * value
        yield total
