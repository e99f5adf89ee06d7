"""A program as C: straight-line statements in chunks that share a workspace, over doubles or vectors of doubles.

The source holds operations, numbers and array indices only: no name from a model gets into it.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.program.c_batch_template import BATCH, BATCH_ENTRY, STATES_ENTRY
from nori_dyn.program.c_templates import PRELUDE, SINGLE_ENTRY, STATE
from nori_dyn.program.c_writer import CHUNK, Writer
from nori_dyn.program.job import Job, Notation
from nori_dyn.program.kernel.base import REFUSED
from nori_dyn.program.pack_text import TYPES
from nori_dyn.program.repeated_writer import LARGE, writer_of
from nori_dyn.program.straight_line import n_statements

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


@dataclass(frozen=True, slots=True)
class CSource:
    """C source of a job, and the sizes of what it works on.

    Attributes:
        single: source with `run` and `solve`.
        make_batch: returns `batch`.
        n_work: length of the workspace of `run`, in doubles; `run_batch` says itself what it needs.
        first_pivot: where `run` leaves the pivots, and after them the steps, in its workspace.
        packed: how many statements of `run` are computed two at a time, four and so on, see `packs`.
    """

    single: str
    make_batch: Callable[[], str]
    n_work: int
    first_pivot: int
    packed: dict[int, int]

    @property
    def batch(self) -> str:
        """Source with `run_batch`."""
        return self.make_batch()


def c_source(job: Job, lanes: int, large: int = LARGE) -> CSource:
    """Return the C of a job, for single states and for batches of `lanes` states at a time.

    Args:
        job: the job.
        lanes: doubles of a vector.
        large: statements that loops over blocks that repeat have to save, see `repeated_writer`.
    """
    inputs = [f"in[{k}]" for k in range(len(job.inputs))]
    outputs = [f"out[{k}]" for k in range(len(job.outputs))]
    notation = Notation(inputs, outputs, straight="STRAIGHT ")
    layout = _Layout.of(job, replace(notation, lanes=lanes) if job.limbs else notation, large)

    def batch() -> str:
        if job.rows and n_statements(job.graph, job.graph.reachable([*job.pivots, *job.outputs])) >= BY_STATE:
            return _unit(layout, lanes, "double", SINGLE_ENTRY + STATES_ENTRY, "{}(in, w, out);", "in, w, out")
        across = _Layout.of(replace(job, rows=None), notation, large) if job.limbs or job.rows else layout
        return _unit(across, lanes, "vec", BATCH_ENTRY, "EACH({});", "x, w, o")

    return CSource(
        _unit(layout, lanes, "double", SINGLE_ENTRY, "{}(in, w, out);", "in, w, out"),
        batch,
        layout.n_work + len(job.inputs) + len(job.outputs),
        layout.always.first_pivot,
        (layout.usual or layout.always).packed,
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a job is laid out.

    Attributes:
        always: what may be computed at any state.
        usual: what is computed at usual ones, where the job tells them from others.
    """

    always: Writer
    usual: Writer | None

    @staticmethod
    def of(job: Job, notation: Notation, large: int) -> _Layout:
        always = writer_of(job, notation, large)
        if not job.first:
            return _Layout(always, None)
        return _Layout(always, writer_of(job.of_usual, replace(notation, prefix="usual_"), large, always.angles))

    @property
    def n_work(self) -> int:
        """Length of the workspace."""
        return max(self.always.n_work, self.usual.n_work if self.usual else 0)


def _unit(layout: _Layout, lanes: int, real: str, entry: str, call: str, place: str) -> str:
    """Return a source: over doubles or vectors, with an entry, and how its functions are called."""
    writer, usual, job, n_work = layout.always, layout.usual, layout.always.job, layout.n_work
    defines = {
        "N_ANGLES": len(writer.angles),
        "N_PIVOTS": len(job.pivots),
        "PIVOTS": writer.first_pivot,
        "N_STEPS": len(job.steps),
        "HAS_FIRST": int(usual is not None),
        "N_WATCHED": len(job.watched),
        "FIRST_WEIGHT": len(job.inputs) - job.n_weights,
        "FIRST_SENSOR": len(job.inputs) - job.n_weights + job.n_noise_weights,
        "WEIGHT_SPREAD": job.weight_spread,
        "N_OUTPUTS": len(job.outputs),
        "N_INPUTS": len(job.inputs),
        "N_ARRAYS": job.n_arrays,
        "N_WORK": n_work,
        "GROUPS": _groups(usual or writer, lanes),
        "N_QUATERNIONS": len(job.quaternions),
        "HAS_RESIDUAL": int(bool(job.equations)),
        "QUATERNION_TOLERANCE": QUATERNION_TOLERANCE,
        "REFUSED": REFUSED,
    }
    text = PRELUDE.format(lanes=lanes, real=real) + TYPES
    text += "".join(f"#define {name} {value}\n" for name, value in defines.items())
    for name, places in (("angles", writer.angles), ("quaternions", job.quaternions)):
        text += f"static const int {name}[] = {{{', '.join(map(str, places)) or '0'}}};\n"
    text += f"#define MAG mag_{real}\n#define MAX max_{real}\n#define ROOT root_{real}\n"
    text += f"#define STRANGE strange_{real}\n#define TAINT taint_{real}\ntypedef flag_{real} flag;\n"
    body = [*writer.chunks(), *(usual.chunks() if usual else ()), writer.rows, writer.constants(), writer.residual()]
    text += "\n".join(body)
    first = [f"usual_chunk{k}" for k in usual.chunk_numbers[0]] if usual else []
    return text + entry.format(
        state=STATE,
        structs=BATCH,
        usual_calls="\n".join(f"        {call}".format(chunk).replace("EACH", "USUAL") for chunk in first),
        calls="\n".join(f"        {call}".format(name) for name in writer.calls),
        more_calls="\n".join(f"            chunk{k}({place});" for k in writer.chunk_numbers[1]),
        residual_calls=f"    check({place}, &worst, &taint);" if job.equations else "",
        transpose=_transpose(lanes),
    )


def _groups(writer: Writer, lanes: int) -> int:
    """Return for how many groups of lanes a batch calls each function of statements before it calls the next."""
    if CHUNK * len(writer.chunk_numbers[0]) >= FAR:
        return GROUPS_FAR
    n_numbers = writer.n_work + len(writer.job.inputs) + len(writer.job.outputs)
    return max(1, min(GROUPS, CACHE // (8 * lanes * n_numbers)))


def _transpose(lanes: int) -> str:
    """Return statements that transpose `t`: a butterfly, exchanging ever larger blocks."""
    lines = []
    for step in (1 << k for k in range(lanes.bit_length() - 1)):
        low = [l if not l & step else lanes + l - step for l in range(lanes)]
        high = [l + step if not l & step else lanes + l for l in range(lanes)]
        for i in (i for i in range(lanes) if not i & step):
            a, b = f"t[{i}]", f"t[{i + step}]"
            lines.append(f"    {{ const vec a = {a}, b = {b}; {a} = SHUFFLE(a, b, {_listed(low)});")
            lines.append(f"      {b} = SHUFFLE(a, b, {_listed(high)}); }}")
    return "\n".join(lines)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
