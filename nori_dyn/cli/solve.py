"""nori-dyn solve: run a plan over a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from nori_dyn.api.many_logs import LogOutcome


def solve(
    plan: Annotated[Path, typer.Option(help="The file of a plan, or of a plan set.")],
    out: Annotated[
        Path,
        typer.Option(
            help="The estimates to write, in any of these formats; the ending says which. With --logs the folder for "
            "them, each under the name of its log."
        ),
    ],
    input: Input = None,
    logs: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Many logs, in quotes: 'runs/*.mcap', 'runs/**/*.parquet'."),
    ] = None,
    mapping: Mapped = None,
    backend: Backend = "auto",
    differentiate: Differentiated = None,
    dt: Annotated[
        float | None,
        typer.Option(
            help="Time between samples [s], for --differentiate, and to compare q with qd; that of the log's column t "
            "or time when left out."
        ),
    ] = None,
    missing: Lost = Missing.REFUSE,
    singular: Undetermined = Singular.REFUSE,
    monitor: Annotated[
        bool,
        typer.Option(
            "--monitor",
            help="Write what the estimates and the readings are worth as well: columns sigma:tau:joint and so on, and "
            "p_value, small where the readings do not fit together.",
        ),
    ] = False,
    contacts: Closed = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Begin anew, where a run before left a part of the same estimates: OUT.partial."
        ),
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="With --logs, a running Dask scheduler, such as tcp://host:8786, whose workers see the same files "
            "(nori_dyn[cluster])."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --logs, processes of this machine. All cores when left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a plan over a log of states and readings, however long it is.

    A CSV has one column a number: q[0] or q:joint, qd[0] or qd:joint, and each measurement by name (`nori-dyn info
    PLAN` lists them), accelerations and torques also as qdd[0] and tau[0]. ROS's position, velocity, effort and
    libfranka's dq, tau_J are read as well. An NPZ has arrays q, qd, y. For other names, units and clocks there is
    --mapping. A run that was killed goes on where it was when it is started again. What is not likely about the log,
    such as angles that look like degrees, is told as a warning; nothing is changed. With --logs, many logs are run at
    once; one that fails is named, the rest finish, and the exit status is 1.

    Example: nori-dyn solve --plan panda.plan --input log.csv --out tau.csv --differentiate 51 --dt 0.001

    Example: nori-dyn solve --plan panda.plan --logs 'runs/*.mcap' --out estimates --scheduler tcp://host:8786
    """
    from nori_dyn.api.log_file import estimate_to_file
    from nori_dyn.api.log_run import LogRunner, options_of
    from nori_dyn.api.many_logs import estimate_logs
    from nori_dyn.api.plan import Plan
    from nori_dyn.logs.log import read_log
    from nori_dyn.report.log_lines import report_json, report_lines, report_warnings

    if dt is not None and not 0 < dt < math.inf:
        raise InputError(f"--dt is {dt:g}: the time between samples must be positive.")
    closed = None if contacts is None else named_contacts(contacts)
    options = options_of(
        how_differentiated(differentiate),
        dt,
        closed,
        missing=missing.value,
        singular=singular.value,
        monitor=monitor,
        backend=backend,
    )
    runner = LogRunner(Plan.load(plan), options)
    if logs is not None:
        if input is not None:
            raise InputError("--input is one log, and --logs are many: give one of the two.")
        _solve_many(estimate_logs(runner, logs, out, mapping, scheduler, workers, restart), out, as_json)
        return
    if input is None:
        raise typer.BadParameter("name a log, or many by --logs.", param_hint="--input")
    if scheduler is not None or workers is not None:
        raise InputError("--scheduler and --workers are for many logs: --logs.")
    log = read_log(input, mapping)
    report = estimate_to_file(runner, log, out, restart)
    if as_json:
        print_json({**report_json(report), "out": str(out)})
        return
    show(*report_lines(report, input))
    for line in report_warnings(report):
        typer.echo(line, err=True)
    name = unbroken(str(out))
    show(f"Estimates written to {name}.", next_command("plot", out, "--out", "PICTURE.png"))
    for doubt in report.doubts:
        typer.echo(f"warning: {doubt.message}", err=True)


def _solve_many(outcomes: Sequence[LogOutcome], out: Path, as_json: bool) -> None:
    """Print what came of many logs.

    Raises:
        Exit: some failed.
    """
    from nori_dyn.report.log_lines import outcomes_table, report_json

    failed = [each for each in outcomes if each.report is None]
    if as_json:
        told = (
            {"error": each.error} if each.report is None else report_json(each.report) | {"out": str(each.out)}
            for each in outcomes
        )
        print_json({"logs": [{"log": str(each.log), **one} for each, one in zip(outcomes, told, strict=True)]})
    else:
        show(outcomes_table((each.log, each.report) for each in outcomes))
        show(f"Estimates of {len(outcomes) - len(failed)} of {len(outcomes)} logs written to {unbroken(str(out))}.")
        for each in failed:
            typer.echo(f"failed: {each.error}", err=True)
    if failed:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(solve)
