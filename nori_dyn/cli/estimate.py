"""nori-dyn estimate: run a plan over a log, to a file, to a page to look at, or both; solve is the same command."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import nori_dyn as nd
from nori_dyn.cli.common import ask, how_differentiated, next_command, print_json, refuse_given, show_found, tied
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.cli.options import Json, LogOptions, Missing, Singular
from nori_dyn.errors import InputError
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.many_logs import LogOutcome
    from nori_dyn.estimation.run_options import How

Unseen = Literal["keep", "refuse"]
"""How memory that no reading tells anything of is handled."""

OF_A_PLAN = ("logs", "workers")
"""Parameters that do not go with --robot."""

OF_ONE_PASS = ("logs", "workers", "chunk", "unseen")
"""Parameters that do not go with --view, which has all of one log in memory."""


def estimate(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="LOG [NAME]")] = None,
    *,
    by: EstimatorOptions,
    yes: bool = False,
    out: Path | None = None,
    input: Path | None = None,
    logs: Annotated[str | None, typer.Option(metavar="PATTERN")] = None,
    view: Path | None = None,
    meshes: Annotated[str | None, typer.Option(metavar="ROBOT")] = None,
    smooth: bool = False,
    monitor: bool = False,
    contacts: str | None = None,
    reading: LogOptions,
    unseen: Unseen = "keep",
    chunk: Annotated[int, typer.Option(min=1, metavar="N")] = 512,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    as_json: Json = False,
) -> None:
    """Estimate from a log what a robot does: of any robot, best of one that has a preset, or by a plan.

    With --robot, the estimates and a page are written beside the log, or to --out and --view; what is estimated by
    different sensors, each into files of its own.

    Each sample is estimated from its own readings. Where the sensors of the plan have `memory` (`nori-dyn schema`),
    such as offsets that are learned, it is estimated from all readings up to it, or with --smooth from all readings of
    the log; estimates are then written with their standard deviations, and at the end a summary says whether the
    readings fit their sigmas, what was learned, and how precisely.

    A CSV has one column a number: q[0] or q:joint, qd[0] or qd:joint, and each measurement by name (`nori-dyn info
    PLAN` lists them), accelerations and torques also as qdd[0] and tau[0]. ROS's position, velocity, effort and
    libfranka's dq, tau_J are read as well. An NPZ has arrays q, qd, y. For other names, units and clocks there is
    --mapping. Plausibility warnings name what is unlikely about the log, such as angles that look like degrees; no
    number is changed. The file of estimates appears whole, or not at all. With --logs, many logs are run at once;
    those whose estimates by the same plan are there already are left alone, one that fails is named, the rest finish,
    and the exit status is 1.

    With --view, the page stands alone, in any browser: a verdict in words first, then plots that share their time. The
    recording shows the robot as it moves, contact wrenches as arrows, and the same series. Where the sensors of the
    plan have sigmas, a monitor judges the readings.

    Example: nori-dyn estimate log.csv --robot panda --what contacts

    Example: nori-dyn estimate --plan panda.plan --input log.csv --out tau.csv --differentiate 51 --dt 0.001

    Example: nori-dyn estimate --plan panda.plan --input log.csv --view log.html tau

    Example: nori-dyn estimate --plan panda.plan --logs 'runs/*.mcap' --out estimates

    Args:
        ctx: The call.
        words: The log, where --input and --logs do not name it; then with --view or --robot what to draw: tau,
            fx:l_sole, fx:l_sole.mz. All when left out.
        by: See `EstimatorOptions`.
        yes: With --robot, take the log as it is, whatever is doubtful about it.
        out: The estimates to write, in any of these formats; the ending says which. With --logs the folder for them,
            each under the name of its log.
        input: The log: CSV, NPZ, MATLAB; Parquet, Arrow, HDF5, MCAP, bags of ROS 1 and ROS 2 (nori_dyn[logs]).
        logs: Many logs, in quotes: 'runs/*.mcap', 'runs/**/*.parquet'.
        view: Write a page to look at (.html), or a recording for the Rerun viewer (.rrd, nori_dyn[rerun]): what
            happened when, residuals by sensor, suspects, estimates and readings.
        meshes: The URDF, or the robot's name, whose collision shapes say where links are touched that sensors with
            `touch` recognise, and whose meshes a recording draws; links are capsules without.
        smooth: With memory, estimate each sample from all readings of the log, later ones included: a smoother.
        monitor: Write standard deviations as well, columns sigma:tau:joint and so on, and p_value, small where the
            readings contradict each other. With memory they are written anyway.
        contacts: For a plan set, the contacts that are closed throughout: l_foot,r_foot, or none. Otherwise columns
            contact:l_foot and so on of the log say it at each sample, by 1 and 0. With `recognise`, and with memory,
            contacts are recognised, and such columns are written: the probability that each is closed.
        reading: See `LogOptions`.
        unseen: What to do with memory that no reading tells anything of: keep it at what was known at first, and name
            it, or refuse the log.
        chunk: With memory, samples that are worked on at once.
        workers: With --logs, processes of this machine. All cores when left out.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.descriptions.robot_names import robot_by_name
    from nori_dyn.estimation.log_estimate import estimated, with_peaks
    from nori_dyn.estimation.log_file import estimate_to_file
    from nori_dyn.estimation.log_run import LogRunner
    from nori_dyn.estimation.run_options import options_of
    from nori_dyn.report.shows.logs import log_report_document, report_warnings
    from nori_dyn.report.view import can_be_judged, check_picture

    dt, mapping = reading.dt, reading.mapping
    if dt is not None and not 0 < dt < math.inf:
        raise InputError(f"--dt is {dt:g}: the time between samples must be positive.")
    names = [*(words or ())]
    if input is None and logs is None and names:
        input = Path(names.pop(0))
    by.check(ctx)
    if by.named is not None:
        refuse_given(ctx, OF_A_PLAN, "does not go with --robot.")
        if by.preset is not None and len(runs := by.preset.runs(by.what)) > 1:
            refuse_given(
                ctx, ("out", "view", "as_json"), f"does not go with {len(runs)} runs, each of its own sensors."
            )
            for run in runs:
                out, view = _beside(input, f"{Path(by.named).stem}.{'_'.join(run)}", None, None)
                given: dict[str, Any] = {"yes": yes, "meshes": meshes, "smooth": smooth, "monitor": monitor}
                given |= {"contacts": contacts, "reading": reading, "unseen": unseen, "chunk": chunk}
                estimate(ctx, [str(input), *names], by=replace(by, what=",".join(run)), out=out, view=view, **given)
            return
        out, view = _beside(input, Path(by.named).stem, out, view)
    if view is None:
        if names:
            raise typer.BadParameter("needs --view.", param_hint="NAME")
    else:
        refuse_given(ctx, OF_ONE_PASS, "does not go with --view, which has one log in memory.")
        check_picture(view)
    if out is None and view is None:
        raise typer.BadParameter("name the file to write, or the page.", param_hint="--out or --view")
    if input is None and logs is None:
        raise typer.BadParameter("name a log, or many by --logs.", param_hint="--input")
    shape = None if meshes is None else Path(meshes) if Path(meshes).exists() else robot_by_name(meshes)
    ready = None
    if by.preset is not None and input is not None:
        (ready,) = tied(by.preset, nd.read_log(input, mapping), [by.what], yes, as_json)
    plans = nd.Plan.load(str(by.plan)) if ready is None else ready.plan
    usual: tuple[Missing, Singular] = ("refuse", "refuse") if view is None else ("drop", "nan")
    way = how_differentiated(reading.differentiate), dt
    way = way if ready is None else ready.way(*way)
    how: How = "smooth" if smooth else "auto"
    handling: dict[str, Any] = {
        "missing": reading.missing or usual[0],
        "singular": reading.singular or usual[1],
        "backend": by.backend,
        "monitor": monitor or (view is not None and can_be_judged(plans)),
        "how": how,
        "unseen": unseen,
        "chunk": chunk,
        "alarms": by.watching(),
        "surfaces": by.touched(plans.tree, None if shape is None else str(shape))
        if plans.sensors.has_touches
        else None,
    }
    runner = with_peaks(LogRunner(plans, options_of(*way, by.contacts(contacts), **handling)), by.free_logs(mapping))
    notes: tuple[str, ...] = ()
    if logs is not None and out is not None:
        if input is not None:
            raise InputError("--input is one log, and --logs are many: give one of the two.")
        from nori_dyn.estimation.many_logs import estimate_logs  # which loads what starts processes

        _show_many(estimate_logs(runner, logs, out, mapping, workers), out, as_json)
        return
    if workers is not None:
        raise InputError("--workers are for many logs: --logs.")
    assert input is not None  # as there are no --logs
    log = nd.read_log(input, mapping) if ready is None else ready.log
    if view is not None:
        found = estimated(runner, log)
        if ready is not None and not yes:
            ask(log.path.name, [doubt.message for doubt in found.report.doubts])
        report, notes = found.report, nd.view(found, view, names, shape, log)
        if out is not None:
            found.save(out)
    elif out is not None:
        report = estimate_to_file(runner, log, out)
    if as_json:
        files = {"out": out, "view": view}
        print_json({**report.to_dict(), **{name: str(path) for name, path in files.items() if path is not None}})
        return
    show(log_report_document(report, str(input)))
    for line in (*report_warnings(report), *(f"warning: {note}" for note in notes)):
        typer.echo(line, err=True)
    if out is not None:
        show(f"Estimates written to {unbroken(str(out))}.", next_command("info", out, "--plot", "PICTURE.png"))
    if view is not None:
        name = unbroken(str(view))
        show(f"Drawn: {name}. {f'Look at it: rerun {name}' if view.suffix == '.rrd' else 'Open it in a browser.'}")
    for doubt in report.doubts:
        typer.echo(f"warning: {doubt.message}", err=True)


def _beside(log: Path | None, what: str, out: Path | None, view: Path | None) -> tuple[Path, Path]:
    """The files of estimates and of the page, beside the log where they are not named."""
    if log is None:
        raise typer.BadParameter("name the log.", param_hint="LOG")
    own = log.parent / f"{log.name.split('.')[0]}.{what}"
    out, view = out or own.with_name(f"{own.name}.csv"), view or own.with_name(f"{own.name}.html")
    check_writable(out)
    return out, view


def _show_many(outcomes: Sequence[LogOutcome], out: Path, as_json: bool) -> None:
    """Print what came of many logs.

    Raises:
        Exit: some failed.
    """
    from nori_dyn.report.shows.logs import outcomes_document

    found, failed = outcomes_document(outcomes), [each for each in outcomes if each.error]
    there = sum(each.report is None for each in outcomes) - len(failed)
    already = f", {there} of them by an earlier run" if there else ""
    written = len(outcomes) - len(failed)
    show_found(
        found, as_json, f"Estimates of {written} of {len(outcomes)} logs written to {unbroken(str(out))}{already}."
    )
    for each in failed if not as_json else ():
        typer.echo(f"failed: {each.error}", err=True)
    if failed:
        raise typer.Exit(1)
