"""nori-dyn view: a log to look at, as a page or a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Differentiated, Missing, Singular, how_differentiated, named_contacts
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken


def view(
    plan: Annotated[Path, typer.Option(help="The file of a plan, or of a plan set.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="What to draw: tau, fx:l_sole, fx:l_sole.mz. All when left out."),
    ] = None,
    input: Annotated[Path | None, typer.Option(help="The log, as for `nori-dyn estimate`.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page (.html), or the recording of the Rerun viewer (.rrd, nori_dyn[rerun]), to write."),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="A YAML file that ties the log's columns to the robot, as for `nori-dyn estimate`."),
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(
            help="Of a recording: the URDF, or the name of a robot, whose meshes are drawn; links are capsules without."
        ),
    ] = None,
    foxglove: Annotated[
        Path | None,
        typer.Option(
            help="Write a layout of Foxglove for the topics of the plan's estimates as well, or alone: .json."
        ),
    ] = None,
    backend: Annotated[str, typer.Option(help="As for `nori-dyn estimate`.")] = "auto",
    differentiate: Differentiated = None,
    dt: Annotated[float | None, typer.Option(help="As for `nori-dyn estimate`.")] = None,
    missing: Annotated[
        Missing, typer.Option(help="As for `nori-dyn estimate`; dropped, and marked, when left out.")
    ] = Missing.DROP,
    singular: Annotated[
        Singular, typer.Option(help="As for `nori-dyn estimate`; left out of the plots, and marked, when left out.")
    ] = Singular.NAN,
    contacts: Annotated[str | None, typer.Option(help="As for `nori-dyn estimate`.")] = None,
) -> None:
    """Look at a log: what happened when, residuals by sensor, suspects, estimates and readings.

    The page stands alone, in any browser: a verdict in words first, then plots that share their time. The recording
    shows the robot as it moves, contact wrenches as arrows, and the same series. Where the sensors of the plan have
    sigmas, a monitor judges the readings.

    Example: nori-dyn view --plan panda.plan --input log.csv --out log.html --differentiate 51 --dt 0.001
    """
    from nori_dyn.estimation.log_estimate import estimate
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.io.robot_names import robot_by_name
    from nori_dyn.logs.log import read_log
    from nori_dyn.report.view import can_be_judged, check_picture, write_foxglove_layout
    from nori_dyn.report.view import view as draw

    if foxglove is None and (input is None or out is None):
        raise typer.BadParameter("name the log, and the page or recording to write.", param_hint="--input and --out")
    if (input is None) != (out is None):
        raise typer.BadParameter("a picture is of a log, and written to a file.", param_hint="--input and --out")
    if out is not None:
        check_picture(out)
    if foxglove is not None:
        check_writable(foxglove)
    meshes = None if robot is None else Path(robot) if Path(robot).exists() else robot_by_name(robot)
    plans = Plan.load(plan)
    if foxglove is not None:
        write_foxglove_layout(plans, foxglove)
        show(f"Layout for Foxglove written to {unbroken(str(foxglove))}.")
    if input is None or out is None:
        return
    closed = None if contacts is None else named_contacts(contacts)
    log = read_log(input, mapping)
    found = estimate(
        log,
        plans,
        differentiate=how_differentiated(differentiate),
        dt=dt,
        missing=missing.value,
        singular=singular.value,
        monitor=can_be_judged(plans),
        backend=backend,
        contacts=closed,
    )
    for note in draw(found, out, names or (), meshes, log):
        typer.echo(f"warning: {note}", err=True)
    name = unbroken(str(out))
    opened = f"Look at it: rerun {name}" if out.suffix == ".rrd" else "Open it in a browser."
    show(f"{found.report.samples:,} samples drawn: {name}. {opened}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(view)
