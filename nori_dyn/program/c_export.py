"""A plan as C11 that stands alone: a header, the code, an example and a CMake list, for a controller in C or C++.

The code allocates nothing, writes nothing but what its caller gives it, and needs sin, cos, sqrt and fabs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import STEP_LIMIT, WEIGHT_SPREAD, guard_limits, pivot_ensemble
from nori_dyn.program.c_header import MARK, Field, header, output_fields
from nori_dyn.program.c_names import checked_identifier, default_identifier
from nori_dyn.program.c_source import Job, Notation, Writer
from nori_dyn.program.layout import Part
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.program.straight_line import Program
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class CExport:
    """A plan as C.

    Attributes:
        name: what the code is called, an identifier.
        files: the text of each file, by its name.
        inputs: the length of each input, by its field.
        outputs: the shape of each output, by its field; () for a single number.
        cost: operations of a call, sines and cosines not counted.
        n_sines: sines and cosines of a call.
        n_pivots: number of guarded pivots.
        n_work: length of the workspace in doubles.
    """

    name: str
    files: Mapping[str, str]
    inputs: Mapping[str, int]
    outputs: Mapping[str, tuple[int, ...]]
    cost: Cost
    n_sines: int
    n_pivots: int
    n_work: int


def c_export(plan: EliminationPlan, name: str | None = None, version: str = "") -> CExport:
    """Return a plan as C.

    Args:
        plan: the plan.
        name: what to call the files, functions and types; from the robot's name when left out.
        version: of the program that makes it, for the header.

    Raises:
        IdentifierError: the name is not an identifier of C, or one that is taken.
    """
    name = default_identifier(plan.system.tree.name) if name is None else checked_identifier(name)
    fields = output_fields(plan, name)
    solution = solution_program(plan, output_columns(plan.system, plan.outputs).tolist(), checked=False)
    parts = [field.part for field in fields]
    job, (limits, q) = _job(solution, parts), _limits(plan, solution, parts)
    quaternions = plan.system.tree.quaternions
    inputs = _input_places(plan, [part.start for part in quaternions])
    outputs = [f"out->{place}" for field in fields for place in field.places]
    parameters = f"const {name}_inputs *restrict in, double *restrict w, {name}_outputs *restrict out"
    writer = Writer(job, Notation(inputs, outputs, parameters, "double", "{0}", rarely=""), 4 * len(quaternions))
    cost = expression_cost((*job.outputs, *job.pivots))
    n_sines = 2 * len(writer.angles)
    counted = f"A call is {cost.total:,} additions, multiplications and divisions, and {n_sines} sines and cosines."
    files = {
        f"{name}.h": header(plan, name, fields, writer.n_work, len(job.pivots), counted, version),
        f"{name}.c": _source(plan, name, writer, limits),
        "main.c": _example(plan, name, fields, q),
        "CMakeLists.txt": CMAKE.format(name=name, mark=MARK),
    }
    return CExport(
        name=name,
        files=files,
        inputs={field: n for field, n in plan.system.input_sizes.items() if n},
        outputs={field.name: field.part.shape if field.sizes else () for field in fields},
        cost=cost,
        n_sines=n_sines,
        n_pivots=len(job.pivots),
        n_work=writer.n_work,
    )


def _job(solution: SolutionProgram, parts: Sequence[Part]) -> Job:
    """Return what the C is to compute, outputs and their steps in the coordinates of a frame turned to it."""
    program, (unknowns, pivots, steps, *again, _) = solution.program, solution.parts

    def turned(values: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(x for part in parts if values for x in _turned(program.graph, values[part.slice], part.matrix))

    inputs = tuple(x for scalars in program.inputs.values() for x in scalars)
    more = turned(again[0]), turned(again[1])
    return Job(program.graph, inputs, turned(unknowns), pivots, (), steps=turned(steps), again=more)


def _turned(graph: Graph, values: Sequence[Expr], matrix: Floats | None) -> Iterator[Expr]:
    if matrix is None:
        yield from values
        return
    for row in matrix.tolist():
        total = graph.zero
        for factor, value in zip(row, values, strict=True):
            total = total + factor * value
        yield total


def _limits(plan: EliminationPlan, solution: SolutionProgram, parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """Return what pivots, then steps, are held against, and a configuration (nq,) that keeps the former.

    That is the neutral one where it does. A frame's components have the size of the largest of them.
    """
    neutral, pivots = plan.system.tree.neutral_configuration(), solution.parts[1]
    Q, *others = pivot_ensemble(plan)
    states = (np.vstack([neutral, Q]), *(np.vstack([array[:1], array]) for array in others))
    sizes = np.zeros((0, len(states[0])))
    if pivots:
        sizes = np.abs(PythonProgram(Program.of(solution.program.inputs, pivots)).batch(*states))
    limits = guard_limits(plan, solution, sizes[:, 1:].T)
    least, usual = np.split(limits, [len(pivots)])
    for part in parts:
        if part.matrix is not None and len(usual):
            usual[part.slice] = usual[part.slice].max()
    keeps = np.all(sizes >= least[:, None], axis=0)
    return np.concatenate([least, usual]), states[0][int(np.argmax(keeps))]


def _input_places(plan: EliminationPlan, quaternions: Sequence[int]) -> list[str]:
    """Return how C refers to each input: quaternions are read from the workspace, where they are normalised."""
    places = [f"in->{field}[{k}]" for field, n in plan.system.input_sizes.items() for k in range(n)]
    for number, start in enumerate(quaternions):
        places[start : start + 4] = [f"w[{4 * number + k}]" for k in range(4)]
    return places


def _source(plan: EliminationPlan, name: str, writer: Writer, limits: Floats) -> str:
    NAME, tree = name.upper(), plan.system.tree
    first, n_angles = 4 * len(tree.quaternions), len(writer.angles)
    numbers = list(map(repr, limits.tolist()))
    table = "".join(f"    {', '.join(numbers[k : k + 4])},\n" for k in range(0, len(numbers), 4))
    unit = "".join(
        f"    if (!normalise(in->q + {part.start}, w + {4 * k})) return refused(out, {NAME}_QUATERNION_NOT_UNIT);\n"
        for k, part in enumerate(tree.quaternions)
    )
    sines = "".join(
        f"    w[{first + k}] = sin(in->q[{angle}]);\n    w[{first + n_angles + k}] = cos(in->q[{angle}]);\n"
        for k, angle in enumerate(writer.angles)
    )
    first_calls, more_calls = writer.chunk_numbers
    calls = "".join(f"    chunk{k}(in, w, out);\n" for k in first_calls)
    more = "".join(f"        chunk{k}(in, w, out);\n" for k in more_calls)
    n_pivots, n_steps = len(writer.job.pivots), len(writer.job.steps)
    guards = {"NAME": NAME, "n": n_pivots, "first": writer.first_pivot, "n_steps": n_steps, "more": more}
    return SOURCE.format(
        name=name,
        mark=MARK,
        NAME=NAME,
        limits=LIMITS.format(table=table) if table else "",
        normalise=NORMALISE.format(tolerance=QUATERNION_TOLERANCE) if unit else "",
        chunks="\n\n".join(chunk.replace("\n", "\n    ").replace("\n    }", "\n}") for chunk in writer.chunks()),
        steps="\n".join(step for step in (unit, sines, calls) if step),
        far=FAR if n_steps else "",
        guard=(GUARD.format(**guards) if n_pivots else "")
        + (REFINEMENT.format(**guards, step=writer.first_pivot + n_pivots, limit=STEP_LIMIT) if n_steps else ""),
        weights=WEIGHTS.format(
            NAME=NAME, n=plan.system.n_weights, noise=plan.system.n_noise_weights, spread=WEIGHT_SPREAD
        )
        if n_steps
        else "",
    )


LIMITS = """
/* The smallest size of each pivot that is trusted, in the order of elimination; then, where the solution is refined,
 * the usual size of each output. */
static const double limits[] = {{
{table}}};
"""

NORMALISE = """
/* Write the quaternion q at unit length to w. Returns whether it was that, or nearly. */
static int normalise(const double *q, double *w) {{
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1.0) <= {tolerance!r})) return 0;
    for (int k = 0; k < 4; ++k) w[k] = q[k] / norm;
    return 1;
}}
"""

GUARD = """
    int small = 0;
    for (int k = 0; k < {n}; ++k) small += !(fabs(w[{first} + k]) >= limits[k]);
    if (small) return refused(out, {NAME}_SMALL_PIVOT);
"""

FAR = """
/* How many steps are not small beside the n outputs that they belong to, or beside what these usually are. */
static int far(const double *steps, const double *out, const double *usual, int n, double limit) {
    int count = 0;
    for (int k = 0; k < n; ++k) count += !(fabs(steps[k]) <= limit * (fabs(out[k]) + usual[k]));
    return count;
}
"""

REFINEMENT = """
    const double *const steps = w + {step}, *const usual = limits + {n}, *const numbers = (const double *)out;
    if (far(steps, numbers, usual, {n_steps}, {limit!r})) {{ /* refined once more, rarely */
{more}\
        if (far(steps + {n_steps}, numbers, usual, {n_steps}, {limit!r})) return refused(out, {NAME}_INACCURATE);
    }}
"""

WEIGHTS = """
    double least = DBL_MAX, largest = 0;
    for (int k = 0; k < {n}; ++k) {{
        const double weight = in->weights[k];
        if (!(weight >= 0)) return refused(out, {NAME}_NEGATIVE_WEIGHT);
        if (k >= {noise} && weight > largest) largest = weight;
        if (k >= {noise} && weight > 0 && weight < least) least = weight;
    }}
    if (!(largest <= {spread!r} * least)) return refused(out, {NAME}_INACCURATE);
"""

SOURCE = """\
/* {name}.c: {mark}; do not edit. What it computes, and how to call it, stands in {name}.h. */

#include "{name}.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

_Static_assert(sizeof(double) == sizeof(uint64_t), "a double has 64 bits");
{limits}
/* Whether none of `size` bytes of doubles is infinite or not a number; by their bits, so that no flag undoes it. */
static int all_finite(const void *numbers, size_t size) {{
    const unsigned char *bytes = (const unsigned char *)numbers;
    const uint64_t exponent = UINT64_C(0x7ff) << 52;
    int finite = 1;
    for (size_t k = 0; k < size; k += sizeof(uint64_t)) {{
        uint64_t bits;
        memcpy(&bits, bytes + k, sizeof bits);
        finite &= (bits & exponent) != exponent;
    }}
    return finite;
}}

/* Make every output NaN (a double whose bits are all set), and return the reason. */
static {name}_status refused({name}_outputs *out, {name}_status status) {{
    memset(out, 0xff, sizeof *out);
    return status;
}}
{normalise}{far}
{chunks}

{name}_status {name}_solve(const {name}_inputs *in, {name}_workspace *work, {name}_outputs *out) {{
    double *const w = work->w;
    if (!all_finite(in, sizeof *in)) return refused(out, {NAME}_INPUT_NOT_FINITE);
{weights}{steps}{guard}
    if (!all_finite(out, sizeof *out)) return refused(out, {NAME}_OUTPUT_NOT_FINITE);
    return {NAME}_OK;
}}

const char *{name}_status_text({name}_status status) {{
    switch (status) {{
    case {NAME}_OK: return "solved";
    case {NAME}_INPUT_NOT_FINITE: return "a number of the inputs is infinite or not a number";
    case {NAME}_QUATERNION_NOT_UNIT: return "a quaternion of q is not of unit length";
    case {NAME}_SMALL_PIVOT: return "the system is singular at this configuration, or nearly";
    case {NAME}_OUTPUT_NOT_FINITE: return "the arithmetic overflows";
    case {NAME}_INACCURATE: return "digits are lost: the weights differ too much, or the system is nearly singular";
    case {NAME}_NEGATIVE_WEIGHT: return "a weight is below zero";
    }}
    return "unknown status";
}}
"""

CMAKE = """\
# CMakeLists.txt: {mark}; do not edit. On its own it builds the library and an example:
#
#     cmake -B build && cmake --build build && build/{name}_example
#
# From another project, add_subdirectory() this folder and link {name}, from C or C++. Code that runs on the machine
# that compiles it is faster with -DCMAKE_C_FLAGS=-march=native.
cmake_minimum_required(VERSION 3.10...3.31)
project({name} LANGUAGES C)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  add_executable({name}_example main.c)
  set_target_properties({name}_example PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON)
  target_link_libraries({name}_example PRIVATE {name})
endif()
"""


def _example(plan: EliminationPlan, name: str, fields: Sequence[Field], q: Floats) -> str:
    given = [("q", q.tolist()), ("weights", plan.system.weights.tolist())]
    state = "".join(f"    in.{part}[{k}] = {x!r};\n" for part, values in given for k, x in enumerate(values) if x)
    printed = "".join(_print(field) for field in fields)
    readings = ", all readings zero" if plan.system.ny else ""
    return EXAMPLE.format(name=name, NAME=name.upper(), mark=MARK, state=state, readings=readings, printed=printed)


def _print(field: Field) -> str:
    """Return the lines that print a field."""
    indices = "ij"[: len(field.sizes)]
    lines = [f"for (int {i} = 0; {i} < {size}; ++{i})" for i, size in zip(indices, field.sizes, strict=True)]
    place = field.name + "".join(f"[{i}]" for i in indices)
    arguments = ", ".join([*indices, f"out.{place}"])
    lines.append(f'printf("{field.name}{"[%d]" * len(indices)} = %.9g\\n", {arguments});')
    return "".join(f"{'    ' * depth}{line}\n" for depth, line in enumerate(lines, start=1))


EXAMPLE = """\
/* main.c: an example for {name}.h, {mark}: every export writes it anew. */

#include "{name}.h"

#include <stdio.h>
#include <time.h>

/* Yours, wherever you keep them; here not on the stack. */
static {name}_inputs in;
static {name}_outputs out;
static {name}_workspace work;

int main(void) {{
    /* A robot at rest{readings}: put a state of yours here. */
{state}    const {name}_status status = {name}_solve(&in, &work, &out);
    if (status != {NAME}_OK) {{
        fprintf(stderr, "{name}: %s\\n", {name}_status_text(status));
        return 1;
    }}
{printed}
    const int calls = 10000;
    const clock_t start = clock();
    for (int k = 0; k < calls; ++k) (void){name}_solve(&in, &work, &out);
    printf("%.3g us a call\\n", 1e6 * (double)(clock() - start) / (double)CLOCKS_PER_SEC / calls);
    return 0;
}}
"""
