"""nori-dyn solve: run a plan over a log."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nori_dyn.cli.common import Json, print_json
from nori_dyn.errors import InputError
from nori_dyn.io.files import check_writable
from nori_dyn.report.progress import progress
from nori_dyn.report.terminal import show
from nori_dyn.tables import number

if TYPE_CHECKING:
    from nori_dyn.system.builder import System
    from nori_dyn.typing import Floats


class Singular(StrEnum):
    """What to do with samples without a unique solution."""

    REFUSE = "refuse"
    NAN = "nan"


class Missing(StrEnum):
    """What to do with readings of no use."""

    REFUSE = "refuse"
    DROP = "drop"


def solve(
    plan: Annotated[Path, typer.Option(help="The plan file.")],
    input: Annotated[Path, typer.Option(help="The log: .csv, .csv.gz or .npz.")],
    out: Annotated[Path, typer.Option(help="The estimates to write: .csv, .csv.gz or .npz.")],
    backend: Annotated[str, typer.Option(help="numpy, umfpack, or auto for the fastest that runs here.")] = "auto",
    differentiate: Annotated[
        int | None,
        typer.Option(
            metavar="WINDOW",
            help="Make joint accelerations that the log lacks from its velocities, by a "
            "Savitzky-Golay filter of this odd number of samples.",
        ),
    ] = None,
    dt: Annotated[
        float | None,
        typer.Option(
            help="Time between samples [s], for --differentiate, and to compare q with qd; a log with a column t or "
            "time needs it for the former only."
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="What to do with readings that are empty or not numbers, or at an end of their sensor's range: refuse "
            "the log, or drop the sensor in that sample, if it has a sigma."
        ),
    ] = Missing.REFUSE,
    singular: Annotated[
        Singular,
        typer.Option(
            help="What to do with samples at which the sensors do not suffice, such as special poses: refuse the log, "
            "or write nan for them, and say how many there are and where the first is."
        ),
    ] = Singular.REFUSE,
    monitor: Annotated[
        bool,
        typer.Option(
            "--monitor",
            help="Write what the estimates and the readings are worth as well: columns sigma:tau:joint and so on, and "
            "p_value, small where the readings do not fit together.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a plan over a log of states and readings.

    A CSV has one column a number: q[0] or q:joint, qd[0], dq[0] or qd:joint, and each measurement by name
    (`nori-dyn info PLAN` lists them). An NPZ has arrays q, qd, y. What is not likely about the log, such as angles that
    look like degrees, is told as a warning; nothing is changed.

    Example: nori-dyn solve --plan panda.plan --input log.csv --out tau.csv --differentiate 51 --dt 0.001
    """
    import numpy as np

    from nori_dyn.api.plan import Plan
    from nori_dyn.io.logs import Differentiation, check_log_name, read_log, write_estimate
    from nori_dyn.solve.plausibility.doubts import doubts

    check_log_name(out)
    check_writable(out)
    if differentiate is not None and dt is None:
        raise InputError("--differentiate and --dt go together: a window in samples, and the time between them.")
    if dt is not None and not 0 < dt < math.inf:
        raise InputError(f"--dt is {dt:g}: the time between samples must be positive.")
    differentiation = None if differentiate is None or dt is None else Differentiation(differentiate, dt)
    loaded = Plan.load(plan)
    log = read_log(input, loaded.system, differentiation)
    with progress(f"solving {len(log.q)} samples"):
        judge = loaded.monitor(backend) if monitor else None
        solver = loaded.solver(backend) if judge is None else judge.solver
        states = log.q, log.qd, log.y
        start = time.perf_counter()
        if judge is None:
            diagnosis = None
            estimate = solver.solve_batch(*states, missing=missing.value, singular=singular.value)
        else:
            diagnosis = judge.check_batch(*states, missing=missing.value, singular=singular.value)
            estimate = diagnosis.estimate
        seconds = time.perf_counter() - start
    write_estimate(out, estimate, loaded.system, diagnosis)
    odd = doubts(loaded.system, *states, estimate, dt, log.t)
    worst = float(np.nanmax(estimate.residual)) if not np.isnan(estimate.residual).all() else None
    fell_back = int(np.count_nonzero(estimate.fell_back))
    singular_at = np.flatnonzero(estimate.singular)
    dropped = _dropped(loaded.system, log.y) if missing is Missing.DROP else {}
    if as_json:
        print_json(
            {
                "samples": len(log.q),
                "backend": estimate.backend,
                "seconds": seconds,
                "largest_residual": worst,
                "fell_back": fell_back,
                "singular": singular_at.tolist(),
                "differentiated": list(log.differentiated),
                "dropped": dropped,
                "warnings": [asdict(doubt) for doubt in odd],
                "out": str(out),
            }
        )
        return
    made = f", {len(log.differentiated)} accelerations by differentiating" if log.differentiated else ""
    residual = "not computed for a part of the unknowns" if worst is None else number(worst, 2)
    show(
        f"{len(log.q):,} samples{made}, backend {estimate.backend}: {number(1e6 * seconds / len(log.q))} us a sample. "
        f"Largest relative residual {residual}, {fell_back:,} fell back to fresh pivots."
    )
    if dropped:
        shown = ", ".join(f"'{name}' {n}" for name, n in dropped.items())
        typer.echo(f"dropped, of {len(log.q)} samples: {shown}", err=True)
    if len(singular_at):
        typer.echo(
            f"singular, and so nan: {len(singular_at)} of {len(log.q)} samples, the first is {singular_at[0]}", err=True
        )
    show(f"Estimates written to {out}.")
    for doubt in odd:
        typer.echo(f"warning: {doubt.message}", err=True)


def _dropped(system: System, Y: Floats) -> dict[str, int]:
    """Return in how many of N samples a sensor was dropped, by its name, where it was at all."""
    import numpy as np

    from nori_dyn.system.inputs import unusable

    counts = np.count_nonzero(unusable(system, Y), axis=0).tolist()
    return {name: n for name, n in zip(system.weight_names, counts, strict=True) if n}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(solve)
