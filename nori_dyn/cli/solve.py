"""nori-dyn solve: run a plan over a log."""

from __future__ import annotations

import math
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Json, named_contacts, next_command, print_json
from nori_dyn.errors import InputError
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import number, unbroken


class Singular(StrEnum):
    """What to do with samples without a unique solution."""

    REFUSE = "refuse"
    NAN = "nan"


class Missing(StrEnum):
    """What to do with readings of no use."""

    REFUSE = "refuse"
    DROP = "drop"


def solve(
    plan: Annotated[Path, typer.Option(help="The file of a plan, or of a plan set.")],
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
            help="Time between samples [s], for --differentiate, and to compare q with qd; that of the log's column t "
            "or time when left out."
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
    contacts: Annotated[
        str | None,
        typer.Option(
            help="For a plan set, the contacts that are closed throughout: l_foot,r_foot, or none. Otherwise columns "
            "contact:l_foot and so on of the log say it at each sample, by 1 and 0."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a plan over a log of states and readings.

    A CSV has one column a number: q[0] or q:joint, qd[0] or qd:joint, and each measurement by name (`nori-dyn info
    PLAN` lists them), accelerations and torques also as qdd[0] and tau[0]. ROS's position, velocity, effort and
    libfranka's dq, tau_J are read as well. An NPZ has arrays q, qd, y. What is not likely about the log, such as
    angles that look like degrees, is told as a warning; nothing is changed.

    Example: nori-dyn solve --plan panda.plan --input log.csv --out tau.csv --differentiate 51 --dt 0.001
    """
    import numpy as np

    from nori_dyn.api.log_run import run_log
    from nori_dyn.api.plan_set import load_plans
    from nori_dyn.io.columns import check_table_name
    from nori_dyn.io.differentiation import Differentiation
    from nori_dyn.io.estimate_files import write_estimate

    check_table_name(out)
    check_writable(out)
    if dt is not None and not 0 < dt < math.inf:
        raise InputError(f"--dt is {dt:g}: the time between samples must be positive.")
    differentiation = None if differentiate is None else Differentiation(differentiate, dt)
    plans = load_plans(plan)
    closed = None if contacts is None else named_contacts(contacts)
    run = run_log(plans, input, differentiation, dt, missing.value, singular.value, monitor, backend, closed)
    log, estimate = run.log, run.estimate
    n = len(log.q)
    write_estimate(out, estimate, run.system, run.diagnosis, run.times(dt))
    fell_back = int(np.count_nonzero(estimate.fell_back))
    singular_at = np.flatnonzero(estimate.singular)
    if as_json:
        print_json(
            {
                "samples": n,
                "backend": estimate.backend,
                "preparing_seconds": run.preparing,
                "seconds": run.seconds,
                "largest_residual": run.largest_residual,
                "fell_back": fell_back,
                "singular": singular_at.tolist(),
                "differentiated": list(log.differentiated),
                "dropped": run.dropped,
                "unused": list(log.unused),
                "warnings": [asdict(doubt) for doubt in run.doubts],
                "out": str(out),
            }
        )
        return
    made = f", {len(log.differentiated)} accelerations by differentiating" if log.differentiated else ""
    worst = run.largest_residual
    residual = (
        "The residual is not computed, as the plan leaves out a part of the unknowns."
        if worst is None
        else f"Largest relative residual {number(worst, 2)}."
    )
    show(
        f"{n:,} samples{made}, backend {estimate.backend}: {number(1e6 * run.seconds / n)} us a sample, after "
        f"{number(run.preparing, 2)} s to compile or load. {residual} {fell_back:,} fell back to fresh pivots.",
        *((f"Not used of {input}: {', '.join(map(unbroken, log.unused))}.",) if log.unused else ()),
    )
    if run.dropped:
        shown = ", ".join(f"'{name}' {times}" for name, times in run.dropped.items())
        typer.echo(f"dropped, of {n} samples: {shown}", err=True)
    if len(singular_at):
        typer.echo(f"singular, and so nan: {len(singular_at)} of {n} samples, the first is {singular_at[0]}", err=True)
    name = unbroken(str(out))
    show(f"Estimates written to {name}.", next_command("plot", out, "--out", "PICTURE.png"))
    for doubt in run.doubts:
        typer.echo(f"warning: {doubt.message}", err=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(solve)
