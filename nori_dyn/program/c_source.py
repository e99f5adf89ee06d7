"""A program as C: straight-line statements in chunks that share a workspace, over doubles or vectors of doubles.

The source holds operations, numbers and array indices only: no name from a model gets into it.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.program.c_templates import BATCH_ENTRY, PRELUDE, SINGLE_ENTRY
from nori_dyn.program.c_writer import Job, Notation
from nori_dyn.program.kernel.base import REFUSED
from nori_dyn.program.repeated_writer import LARGE, writer_of


@dataclass(frozen=True, slots=True)
class CSource:
    """C source of a job, and the sizes of what it works on.

    Attributes:
        single: source with `run` and `solve`.
        batch: source with `run_batch`.
        n_work: length of the workspace of `run`, in doubles, and of `run_batch`, in vectors.
        first_pivot: where `run` leaves the pivots, and after them the steps, in its workspace.
    """

    single: str
    batch: str
    n_work: int
    first_pivot: int


def c_source(job: Job, lanes: int, large: int = LARGE) -> CSource:
    """Return the C of a job, for single states and for batches of `lanes` states at a time.

    Args:
        job: the job.
        lanes: doubles of a vector.
        large: statements from which on blocks that repeat become loops, see `repeated_writer`.
    """
    inputs = [f"in[{k}]" for k in range(len(job.inputs))]
    outputs = [f"out[{k}]" for k in range(len(job.outputs))]
    writer = writer_of(job, Notation(inputs, outputs, straight="STRAIGHT "), large)
    n_work = writer.n_work
    defines = {
        "N_ANGLES": len(writer.angles),
        "N_PIVOTS": len(job.pivots),
        "PIVOTS": writer.first_pivot,
        "N_STEPS": len(job.steps),
        "FIRST_WEIGHT": len(job.inputs) - job.n_weights,
        "FIRST_SENSOR": len(job.inputs) - job.n_weights + job.n_noise_weights,
        "WEIGHT_SPREAD": job.weight_spread,
        "N_OUTPUTS": len(job.outputs),
        "N_INPUTS": len(job.inputs),
        "N_ARRAYS": job.n_arrays,
        "N_WORK": n_work,
        "N_QUATERNIONS": len(job.quaternions),
        "HAS_RESIDUAL": int(bool(job.equations)),
        "QUATERNION_TOLERANCE": QUATERNION_TOLERANCE,
        "REFUSED": REFUSED,
    }
    head = "".join(f"#define {name} {value}\n" for name, value in defines.items())
    for name, places in (("angles", writer.angles), ("quaternions", job.quaternions)):
        head += f"static const int {name}[] = {{{', '.join(map(str, places)) or '0'}}};\n"
    body = "\n".join([*writer.chunks(), writer.constants(), writer.residual()])

    def unit(real: str, entry: str, place: str, indent: str) -> str:
        text = PRELUDE.format(lanes=lanes, real=real) + head
        text += f"#define MAG mag_{real}\n#define MAX max_{real}\n#define ROOT root_{real}\n"
        text += f"#define STRANGE strange_{real}\n#define TAINT taint_{real}\ntypedef flag_{real} flag;\n" + body
        calls, more = ("\n".join(f"{indent}chunk{k}({place});" for k in part) for part in writer.chunk_numbers)
        checks = f"{indent}check({place}, &worst, &taint);" if job.equations else ""
        return text + entry.format(calls=calls, more_calls=more, residual_calls=checks, transpose=_transpose(lanes))

    return CSource(
        unit("double", SINGLE_ENTRY, "in, w, out", "    "),
        unit("vec", BATCH_ENTRY, "x, w, o", "        "),
        n_work + len(job.inputs) + len(job.outputs),
        writer.first_pivot,
    )


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
