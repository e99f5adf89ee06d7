"""A program as C: one text of statements for all targets, included in the files of `c/`.

The text holds operations, numbers and array indices only: no name from a model gets into it.

Source: docs/design.md, 4.8.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.program.limits import RESIDUAL_LIMIT, SINGLE_RESIDUAL_LIMIT, STEP_LIMIT, WEIGHT_SPREAD
from nori_dyn.program.program import Program
from nori_dyn.program.row_needs import BLOCK
from nori_dyn.program.statements import n_statements
from nori_dyn.program.writer import CHUNK, StatementWriter

GROUPS = 4
"""Groups of lanes, at most, for which a batch calls each function of statements before it calls the next."""

CACHE = 2**18
"""Bytes in which their workspaces must lie: half a second-level cache, or all of an old one."""

FAR = 100_000
"""Statements whose code no second-level cache holds: to fetch it takes longer than to fetch workspaces."""

GROUPS_FAR = 8
"""Groups of lanes for which each function of such a program is called, wherever their workspaces lie."""

BY_STATE = 50_000
"""Statements from which on a program with rows computes the states of a batch one by one, by its rows."""

FOLDER = "nori_dyn"
"""Where the C that does not depend on the robot lies, beside code that stands alone."""

STAND_ALONE_LANES = 4
"""Numbers of a vector in code that stands alone, at most: most processors that have more get it by name only."""


class Target(Enum):
    """The target of the C: one state; one on the fast path; a batch, a state in each lane; one, by any compiler."""

    ONE_STATE = "one_state.h"
    USUAL = "usual"
    BATCH = "batch.h"
    STAND_ALONE = "stand-alone"


@dataclass(frozen=True, slots=True)
class Unit:
    """The C of a program.

    Attributes:
        text: the text, which includes files of `c/`.
        n_work: length of the workspace of a state.
        n_angles: number of angles whose sine and cosine are taken.
        first_pivot: where `run` leaves the pivots in it, and after them the steps.
        packed: how many statements are computed two at a time, four and so on, see `packs`.
    """

    text: str
    n_work: int
    n_angles: int
    first_pivot: int
    packed: dict[int, int]


def emit(
    program: Program,
    target: Target,
    lanes: int = STAND_ALONE_LANES,
    places: Sequence[int] | None = None,
    without_vectors: str = "",
    is_single: bool = False,
) -> Unit:
    """The C of a program: `prepare`, `run` and `solve`, or `run_batch`, see the files that it includes.

    On the fast path the outputs are not refined, see `kernel.usual`; a batch decides it for each state.

    Args:
        program: the program.
        target: the target of the C.
        lanes: doubles of a vector; of floats there are twice as many.
        places: where each input lies among those of the caller; in order when None.
        without_vectors: of code that stands alone, the macro by which its user turns vectors off.
        is_single: whether a batch is of floats.
    """
    if target is Target.STAND_ALONE:
        writer = StatementWriter(program, lanes, places=places)
        chunks = _chunks(writer, without_vectors)
        included = [f"{FOLDER}/scalars.h", f"{FOLDER}/one_state.h"]
        return _unit(program, writer, None, lanes, included, chunks, "#define STAND_ALONE\n", places)
    includes = ["scalars.h", "one_state.h"]
    if target is Target.BATCH:
        if not is_single and program.rows is not None and _n_statements(program) >= BY_STATE:
            includes.append("states.h")
        else:
            program, includes = replace(program, rows=None, limbs=()), ["vectors.h", "batch.h"]
    is_in_lanes, is_usual, usual = "batch.h" in includes, target is Target.USUAL, None
    padding = 1 if is_in_lanes else BLOCK  # a batch has states in its lanes, not angles
    out_places = program.packed_outputs if is_in_lanes else None
    suffix = "f" if is_single else ""
    laid_out = partial(StatementWriter, lanes=lanes, padding=padding, out_places=out_places, suffix=suffix)
    writer = laid_out(program.fast_path if is_usual else program)
    if is_in_lanes and program.refinement.first:
        usual = laid_out(program.fast_path, prefix="usual_", angles=writer.angles)
    chunks = "\n".join([*writer.chunks(), *(usual.chunks() if usual else ()), writer.rows])
    head = "#define USUAL\n" if is_usual else "#define SINGLE\n" if is_single else ""
    return _unit(program, writer, usual, lanes, includes, chunks, head, is_single=is_single)


def _n_statements(program: Program) -> int:
    graph = program.graph
    return n_statements(graph, graph.reachable([*program.pivots, *program.outputs]))


def _unit(
    program: Program,
    writer: StatementWriter,
    usual: StatementWriter | None,
    lanes: int,
    includes: Sequence[str],
    chunks: str,
    head: str = "",
    places: Sequence[int] | None = None,
    is_single: bool = False,
) -> Unit:
    """The text around statements.

    Args:
        program: the program.
        writer: the statements.
        usual: the statements of the fast path, in a batch that has both.
        lanes: doubles of a vector.
        includes: the file that comes before the statements, and those that come after them.
        chunks: the functions of statements.
        head: text before all.
        places: see `emit`.
        is_single: see `emit`.
    """
    n_lanes = 2 * lanes if is_single else lanes
    n_work = max(writer.n_work, usual.n_work if usual else 0)
    n_inputs, padding = len(program.scalars), writer.angles[:1] * (writer.padded - len(writer.angles))
    sizes = {
        "LANES": n_lanes,
        "BYTES": 8 * lanes,
        "N_INPUTS": n_inputs,
        "N_OUTPUTS": writer.n_outputs,
        "N_ARRAYS": len(program.inputs),
        "N_WORK": n_work,
        "GROUPS": _groups(usual or writer, lanes),
        "N_QUATERNIONS": len(program.quaternions),
        "QUATERNION_TOLERANCE": QUATERNION_TOLERANCE,
        "N_ANGLES": len(writer.angles),
        "PADDED": writer.padded,
        "PIVOTS": writer.first_pivot,
        "N_PIVOTS": len(program.pivots),
        "N_STEPS": len(program.refinement.steps),
        "STEP_LIMIT": STEP_LIMIT,
        "N_WATCHED": len(program.refinement.watched),
        "FIRST_WEIGHT": n_inputs - program.n_weights,
        "FIRST_SENSOR": n_inputs - program.n_weights + program.n_noise_weights,
        "LARGEST_SPREAD": WEIGHT_SPREAD,
    }
    if program.equations:
        sizes["RESIDUAL_LIMIT"] = SINGLE_RESIDUAL_LIMIT if is_single else RESIDUAL_LIMIT
    of = range(n_inputs) if places is None else places
    tables = {
        "angles": [of[k] for k in (*writer.angles, *padding)],
        "quaternions": [of[k] for k in program.quaternions],
    }
    if places is not None:
        tables["input_places"] = list(places)
    if "batch.h" in includes:
        places_of_outputs = list(program.packed_outputs)
        constants = [k if x.is_constant else -1 for x, k in zip(program.outputs, places_of_outputs, strict=True)]
        blocks = [constants[k : k + n_lanes] for k in range(len(constants))]
        tables["output_places"] = places_of_outputs
        tables["are_one"] = [int(block[0] >= 0 and len({*block}) == 1) for block in blocks]
    calls = {"CHUNKS": writer.calls, "MORE_CHUNKS": [f"chunk{k}" for k in writer.chunk_numbers[1]]}
    if usual is not None:
        calls["USUAL_CHUNKS"] = usual.calls
    text = head + "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    text += f"#define AT(k) {'k' if places is None else 'input_places[k]'}\n"
    text += "".join(f"static const int {name}[] = {{{_listed(numbers)}}};\n" for name, numbers in tables.items())
    text += f'\n#include "{includes[0]}"\n\n{chunks}\n{writer.constants()}\n{writer.residual()}\n'
    for name, functions in calls.items():
        if functions or name == "CHUNKS":
            text += f"#define {name}(CALL) {' '.join(f'CALL({function})' for function in functions)}\n"
    text += "".join(f'#include "{file}"\n' for file in includes[1:])
    packed = (usual or writer).packed
    return Unit(text, n_work, len(writer.angles), writer.first_pivot, packed)


def _listed(numbers: Iterable[object]) -> str:
    return ", ".join(map(str, numbers)) or "0"


def _chunks(writer: StatementWriter, without_vectors: str) -> str:
    """The statements of code that stands alone: packed where the compiler knows vectors, and once for others."""
    vectors = "\n".join(writer.chunks())
    if not writer.packing.packs:
        return vectors
    plain = "\n".join(writer.without_vectors().chunks())
    return f"#if defined(__GNUC__) && !defined({without_vectors})\n{vectors}\n#else\n{plain}\n#endif"


def _groups(writer: StatementWriter, lanes: int) -> int:
    """The number of groups of lanes for which a batch calls one function of statements before the next."""
    if CHUNK * len(writer.chunk_numbers[0]) >= FAR:
        return GROUPS_FAR
    n_numbers = writer.n_work + len(writer.program.scalars) + writer.n_outputs
    return max(1, min(GROUPS, CACHE // (8 * lanes * int(n_numbers))))
