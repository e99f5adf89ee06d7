"""nori-dyn info: what a robot, a plan, a log or a table of estimates holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import in_contact, is_planned, next_command, refuse_given, show_found
from nori_dyn.cli.options import Json, RobotOptions
from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Facts, Part, Table, listed, unbroken

if TYPE_CHECKING:
    from nori_dyn.descriptions.model_sensors import ModelSensor
    from nori_dyn.estimation.preset_data import VendorLog
    from nori_dyn.estimation.presets import Preset
    from nori_dyn.logs.drafts.draft import Draft
    from nori_dyn.logs.mapping.record import SampleRecord


OF_A_LOG = {"robot", "sensors", "contacts", "draft", "base", "lock", "keep", "components"}
OF_A_ROBOT = {"base", "lock", "keep", "components", "inertias", "verbose", "frames", "as_json"}
"""Parameters of a log, and of a robot or a plan."""

MOST_NAMES = 4
"""Joints that a note names; others are counted."""


USUAL = {
    "name": "joints",
    "measurements": [
        {"type": "joint_acceleration", "joints": "actuated"},
        {"type": "joint_torque", "joints": "actuated", "sigma": 1.0},
    ],
}
"""Readings that a log is searched for where no sensors are named."""


def info(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="ROBOT|PLAN|LOG")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...")] = None,
    robot: Annotated[str | None, typer.Option(metavar="ROBOT")] = None,
    sensors: str | None = None,
    contacts: str | None = None,
    draft: Path | None = None,
    plot: Path | None = None,
    *,
    model: RobotOptions,
    verbose: bool = False,
    frames: bool = False,
    as_json: Json = False,
) -> None:
    """Show what a robot or a plan is, tie a log to a robot, or draw estimates.

    Example: nori-dyn info panda.urdf

    Example: nori-dyn info run.mcap --robot panda --sensors inverse_dynamics --draft panda_log.yaml

    Example: nori-dyn info wrench.csv fx:panda_hand --plot wrench.png

    Args:
        ctx: The call.
        what: A robot as in `plan`, or the file of a plan; a log with --robot; estimates with --plot.
        names: With --plot, what to draw: tau, fx:l_sole, fx:l_sole.mz. All when left out.
        robot: Of a log: the robot, its preset or the plan that columns, topics and keys are tied to by a draft of a
            mapping. The draft is to be looked through: it says what each guess rests on, what the sensors need and was
            not found, and which columns are left over.
        sensors: Of a log: the sensors that the mapping is for; joint accelerations and torques when left out.
        contacts: Of a log, where the sensors have contacts: those that are closed throughout, l_foot,r_foot or none; or
            'recognise' where they are to be recognised. Columns of the log tell them when left out.
        draft: Of a log: the YAML file of the mapping; printed when left out.
        plot: Of what `estimate` wrote: the picture to draw, .png, .svg or .pdf, with two standard deviations to each
            side where there are some.
        model: See `RobotOptions`.
        verbose: List the sensors of the robot's file by name.
        frames: List the links and frames of a robot, by which sensors and outputs are named.
        as_json: Print the figures as JSON.
    """
    if plot is not None:
        refuse_given(ctx, OF_A_ROBOT | OF_A_LOG, "does not go with --plot.")
        _draw(Path(what), plot, names or ())
        return
    refuse_given(ctx, {"names"}, "needs --plot.")
    if robot is not None:
        refuse_given(ctx, OF_A_ROBOT - OF_A_LOG, "does not go with --robot, which is for a log.")
        _draft(Path(what), robot, sensors, contacts, model, draft)
        return
    refuse_given(ctx, {"sensors", "contacts", "draft"}, "needs a log and its --robot.")
    from nori_dyn.descriptions.model_sensors import OF_BASE
    from nori_dyn.descriptions.robots import model_sensors
    from nori_dyn.logs.formats.registry import endings

    if is_planned(what):
        plans = nd.Plan.load(what)
        y = plans.measurement_names
        show_found(plans, as_json, Facts(((f"y ({len(y):,})", listed(y)),)), measurements=list(y))
        return
    if what.lower().endswith(endings()):
        raise InputError(f"{what} is a log: --robot ROBOT ties it to a robot, --plot PICTURE.png draws estimates.")
    tree = model.load(what)
    if frames and not as_json:
        show(_frames(tree))
        return
    try:
        own_sensors, notes = model_sensors(what), [*_odd(tree)]
    except FileFormatError as error:  # the robot is usable without them
        own_sensors, notes = (), [*_odd(tree), f"its sensors cannot be read: {error}"]
    _show_tree(tree, own_sensors, notes, verbose, as_json)
    if not as_json and any(sensor.entry and sensor.note != OF_BASE for sensor in own_sensors):
        walks = any(sensor.type == "accelerometer" for sensor in own_sensors)  # an arm on a table needs none
        taken = replace(model, base="floating" if walks else model.base, keep=model.keep or ["sensors"])
        show(next_command("observe", what, "--sensors", "own_sensors", *taken.words()))


def _draw(estimates: Path, picture: Path, names: Sequence[str]) -> None:
    from nori_dyn.report.pictures import check_picture_name, draw_estimates

    check_picture_name(picture)
    check_writable(picture)
    drawn = draw_estimates(estimates, picture, names)
    show(f"{len(drawn)} estimates drawn: {unbroken(str(picture))}.")


def _draft(
    log: Path, robot: str, sensors: str | None, contacts: str | None, options: RobotOptions, out: Path | None
) -> None:
    """Draft the mapping that ties a log to a robot, or to a plan."""
    from nori_dyn.estimation.log_run import LogRunner
    from nori_dyn.estimation.preset_logs import vendor_log
    from nori_dyn.estimation.presets import is_preset
    from nori_dyn.estimation.run_options import RECOGNISE
    from nori_dyn.logs.drafts.draft import draft
    from nori_dyn.logs.formats.registry import open_log
    from nori_dyn.logs.mapping.record import SampleRecord
    from nori_dyn.report.mapping_text import mapping_text

    check_writable(out)
    as_preset = sensors is None and not (options.lock or options.keep or options.components)
    ready = nd.preset(robot) if is_preset(robot) else None
    if ready is None and as_preset and options.base == "fixed" and not is_planned(robot):
        ready = walking if (walking := nd.preset(robot)).walks else None
    are_told = contacts != RECOGNISE
    if ready is not None and as_preset:
        if contacts is not None:
            raise typer.BadParameter("needs --sensors: a preset knows how contacts are found.", param_hint="--contacts")
        record = ready.record()
    elif is_planned(robot):
        planned = LogRunner(nd.Plan.load(Path(robot)))
        record = SampleRecord.of(planned.systems, planned.contacts if are_told else ())
    else:
        tree = options.load(robot)
        known = nd.SensorSet.from_dict(USUAL) if sensors is None else nd.load_sensors(sensors, robot, tree)
        if not are_told and not known.contacts:
            raise InputError(f"sensors '{known.name}' have no contacts to recognise.")
        record = SampleRecord.of_sensors(tree, in_contact(known, contacts) if are_told else known, are_told)
    with open_log(log) as source:
        vendor = vendor_log(ready.data, source, record) if ready is not None and as_preset else None
        made = draft(source, record, ready.data.order, ready.data.called) if ready else draft(source, record)
    text = mapping_text(made, log) if vendor is None else vendor[1].text(log.name, made.robot)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_bytes(out, text.encode())
    if ready is not None and vendor is not None:
        show(*_commands_of_vendor(log, out, robot, ready, *vendor))
        return
    show(
        f"{len(made.guesses)} guesses for '{made.robot}', written to {out}: look through them. Nothing was found for "
        f"{len(made.lacking)} quantit{'y' if len(made.lacking) == 1 else 'ies'}, and {len(made.left_over)} columns are "
        "left over; the file lists both.",
        *(
            [next_command("estimate", log, "--robot", robot, "--mapping", out)]
            if ready is not None and as_preset
            else _fitting_commands(
                log, out, robot, sensors, contacts, options, None if is_planned(robot) else record, made
            )
        ),
    )


def _commands_of_vendor(
    log: Path, mapping: Path, robot: str, preset: Preset, name: str, kind: VendorLog
) -> Iterator[str]:
    """Yield what mapping a preset has of a log, and the commands that take it."""
    yield f"The mapping '{name}' of preset '{preset.name}', written to {mapping}: {kind.about}."
    if kind.doubt:
        yield f"It leaves open: {kind.doubt}"
    given = "--mapping", mapping, *(() if kind.differentiate is None else ("--differentiate", str(kind.differentiate)))
    yield next_command("estimate", log, "--robot", robot, *given)
    yield next_command("identify", log, "--robot", robot, *given)


def _fitting_commands(
    log: Path,
    mapping: Path,
    robot: str,
    sensors: str | None,
    contacts: str | None,
    options: RobotOptions,
    record: SampleRecord | None,
    made: Draft,
) -> Iterator[str]:
    """Yield the commands for which the sensors are: to identify, to estimate by a plan, or to see what they lack."""
    from nori_dyn.estimation.run_options import RECOGNISE

    way = ("--differentiate", "smoother") if made.lacks_velocities else ()
    plan = robot if record is None else "PLAN"
    recognised = ("--contacts", contacts) if contacts == RECOGNISE else ()
    run = "estimate", "--plan", plan, "--input", log, "--mapping", mapping, *recognised, *way, "--out", "OUT"
    if record is None:
        yield next_command(*run)
        return
    own = (*options.words(), *(word for joint in made.still for word in ("--lock", joint)))
    named = () if sensors is None else ("--sensors", sensors)
    given = ("--contacts", contacts) if contacts and not recognised else ()
    states = ("--contacts", "all") if record.contacts or recognised else given
    system = next(iter(record.systems.values()))
    rows, unknowns = system.shape
    has_sigmas = any(row.equation.sigma for row in system.rows)
    has_forces = any(str(guess.entry["of"]).startswith("tau:") for guess in made.guesses)
    if (rows > unknowns and not has_sigmas) if sensors is not None else has_forces:
        yield next_command("identify", log, "--robot", robot, *named, *given, "--mapping", mapping, *way, *own)
    elif sensors is not None and rows < unknowns and not system.memory:
        yield next_command("observe", robot, *named, *given, *own)
    else:
        yield next_command("plan", robot, *(named or ("--sensors", "inverse_dynamics")), *states, *own, "--out", "PLAN")
        yield next_command(*run).replace("Next", "Then", 1)


def _frames(tree: nd.KinematicTree) -> Table:
    """Names of all places for sensors and outputs, and the link that each is fixed to."""
    frames = {name: "world" if frame.on_world else tree.names[frame.link] for name, frame in tree.frames.items()}
    links = {name: name for name in tree.names}
    rows = tuple((unbroken(name), unbroken(link)) for name, link in {**links, **frames}.items())
    return Table(f"Links and frames of {tree.name}", ("name", "fixed to"), rows, left=(0, 1))


def _odd(tree: nd.KinematicTree) -> Iterator[str]:
    """Notes on joints without limits in the file, and on those that move no inertia."""
    import numpy as np

    limited = {i for i, joint in enumerate(tree.joints) if np.isfinite(joint.room).any()}
    kinds = ("revolute", "prismatic")
    names = [tree.joint_names[i] for i, joint in enumerate(tree.joints) if joint.kind in kinds and i not in limited]
    if names:
        yield f"revolute or prismatic, and without limits: {listed(names, MOST_NAMES)}"
    rotors = tuple(each for each in tree.components if each.type == "rotor")  # of loops the recursions know nothing
    inertias = nd.crba(tree.replace(components=rotors), tree.random_configuration(0)).diagonal()
    names = [name for name, at in zip(tree.joint_names, tree.v_slices, strict=True) if (inertias[at] <= 0).any()]
    if names:
        yield (
            f"without inertia: all that moves with {listed(names, MOST_NAMES)}. Forward dynamics are singular: give "
            "the links a mass, lock the joints, or add rotors"
        )


def _show_tree(
    tree: nd.KinematicTree, sensors: Sequence[ModelSensor], notes: Sequence[str], verbose: bool, as_json: bool
) -> None:
    from nori_dyn.descriptions.model_sensors import counted

    figures = [{"name": s.name, "type": s.type, "on": s.on, "measurement": s.entry, "note": s.note} for s in sensors]
    parts: list[Part | str] = ["Places for sensors and outputs: --frames lists all links and frames."]
    if sensors:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in counted(sensors).items())
        parts.append(f"Sensors of its file: {counts}{'' if verbose else ' (--verbose lists them)'}.")
    if sensors and verbose:
        rows = tuple(
            (unbroken(s.name), s.type, unbroken(s.on), s.note if s.entry else f"no row: {s.note}") for s in sensors
        )
        parts.append(Table("Sensors", ("name", "type", "on", "note"), rows, left=(0, 1, 2, 3)))
    lines = (f"note: {note}" for note in notes)
    show_found(tree, as_json, *parts, *lines, sensors=figures, notes=[*tree.notes, *notes])
