"""nori-dyn filter, nori-dyn smooth: estimates over time, from a plan with memory and a log."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Differentiated, Json, how_differentiated, named_contacts, next_command, print_json
from nori_dyn.cli.log_options import (
    Backend,
    Closed,
    Input,
    Lost,
    Mapped,
    Missing,
    Singular,
    Undetermined,
)
from nori_dyn.errors import InputError
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken


class Unseen(StrEnum):
    """What to do with what persists and no reading tells anything of."""

    KEEP = "keep"
    REFUSE = "refuse"


PlanFile = Annotated[Path, typer.Option(help="The file of a plan, or of a plan set, of sensors with `memory`.")]
Out = Annotated[
    Path,
    typer.Option(
        help="The estimates to write, in any of these formats; the ending says which. Beside each number stands its "
        "standard deviation, sigma:tau:joint and so on; what persists is there as well, and p_value, small where the "
        "readings do not fit together."
    ),
]
Dt = Annotated[
    float | None,
    typer.Option(
        help="Usual time between samples [s]: more than five times as long is a gap, through which motion is not "
        "taken to be known. That of the log's column t or time when left out; needed where there is none."
    ),
]
Kept = Annotated[
    Unseen,
    typer.Option(
        help="What to do with what persists and no reading tells anything of: keep it at what was known at first, and "
        "name it, or refuse the log."
    ),
]
Chunk = Annotated[int, typer.Option(min=1, metavar="N", help="Samples that are worked on at once.")]
CHUNK = 512


def filter(
    plan: PlanFile,
    out: Out,
    input: Input = None,
    mapping: Mapped = None,
    backend: Backend = "auto",
    differentiate: Differentiated = None,
    dt: Dt = None,
    missing: Lost = Missing.REFUSE,
    singular: Undetermined = Singular.REFUSE,
    contacts: Closed = None,
    unseen: Kept = Unseen.KEEP,
    chunk: Chunk = CHUNK,
    as_json: Json = False,
) -> None:
    """Estimate each sample of a log from all readings up to it, as `nd.Filter` does on a robot that runs.

    What persists from sample to sample, such as offsets that are learned, is said by `memory` in the sensors' config
    (`nori-dyn schema`). At the end it is told whether the readings fit what is said of their noise, what was learned,
    and how sure that is.

    Example: nori-dyn filter --plan panda.plan --input log.csv --out estimates.csv
    """
    of_log = (input, mapping, backend, differentiate, dt, missing, singular, contacts)
    _track(plan, out, *of_log, unseen, chunk, as_json, causal=True)


def smooth(
    plan: PlanFile,
    out: Out,
    input: Input = None,
    mapping: Mapped = None,
    backend: Backend = "auto",
    differentiate: Differentiated = None,
    dt: Dt = None,
    missing: Lost = Missing.REFUSE,
    singular: Undetermined = Singular.REFUSE,
    contacts: Closed = None,
    unseen: Kept = Unseen.KEEP,
    chunk: Chunk = CHUNK,
    as_json: Json = False,
) -> None:
    """Estimate each sample of a log from all its readings, those before it and those after; without delay.

    As `nori-dyn filter`, for logs that are over: the smoother of Rauch, Tung and Striebel. However long the log is,
    memory stays flat; what is read forward waits on the disk, beside the estimates, until it is wanted backward.

    Example: nori-dyn smooth --plan panda.plan --input log.csv --out estimates.parquet
    """
    of_log = (input, mapping, backend, differentiate, dt, missing, singular, contacts)
    _track(plan, out, *of_log, unseen, chunk, as_json, causal=False)


def _track(
    plan: Path,
    out: Path,
    input: Path | None,
    mapping: Path | None,
    backend: str,
    differentiate: str | None,
    dt: float | None,
    missing: Missing,
    singular: Singular,
    contacts: str | None,
    unseen: Unseen,
    chunk: int,
    as_json: bool,
    causal: bool,
) -> None:
    from nori_dyn.api.log_run import options_of
    from nori_dyn.api.log_track import LogTracker, track_to_file
    from nori_dyn.api.plan import Plan
    from nori_dyn.logs.log import read_log
    from nori_dyn.report.log_lines import report_json, report_warnings, track_lines

    if dt is not None and not 0 < dt < math.inf:
        raise InputError(f"--dt is {dt:g}: the time between samples must be positive.")
    if input is None:
        raise typer.BadParameter("name a log.", param_hint="--input")
    closed = None if contacts is None else named_contacts(contacts)
    asked = {"missing": missing.value, "singular": singular.value, "backend": backend}
    options = options_of(how_differentiated(differentiate), dt, closed, **asked)
    tracker = LogTracker(Plan.load(plan), options, causal, unseen.value, chunk)
    report, summary = track_to_file(tracker, read_log(input, mapping), out)
    if as_json:
        print_json({**report_json(report), **summary.to_dict(), "out": str(out)})
        return
    show(*track_lines(report, input), summary.shown())
    for line in report_warnings(report):
        typer.echo(line, err=True)
    show(f"Estimates written to {unbroken(str(out))}.", next_command("plot", out, "--out", "PICTURE.png"))
    for doubt in report.doubts:
        typer.echo(f"warning: {doubt.message}", err=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(filter)
    app.command()(smooth)
