"""nori-dyn identify: a robot's parameters from its logs, and the motion to record for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Criterion,
    Differentiated,
    Inertias,
    Json,
    Keep,
    Lock,
    Mended,
    Missing,
    Strict,
    how_differentiated,
    load,
    named_contacts,
    next_command,
    print_json,
    refuse_given,
    robot_options,
)
from nori_dyn.cli.excite import EACH, Limit, configuration, find_motion, limits_of, standing_contacts
from nori_dyn.errors import InputError, NoriError
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken

if TYPE_CHECKING:
    from nori_dyn.filtering.history import History
    from nori_dyn.identification.findings import Identification
    from nori_dyn.logs.log import Log
    from nori_dyn.logs.motion.differentiation import Differentiate
    from nori_dyn.model.tree import KinematicTree

WANTED = "inertias,friction,rotors,offsets"
"""Parameters that are identified unless others are named."""

EXCITED = "inertias,friction"
"""Parameters that a motion is to tell unless others are named."""

OF_LOGS = (
    *("recognise", "mapping", "held_out", "loaded", "load_on", "known", "physical", "robust", "moving"),
    *(
        "cutoff",
        "differentiate",
        "dt",
        "missing",
        "components_out",
        "mapping_out",
        "payload_out",
        "payload_frame",
        "html",
        "backend",
    ),
)
OF_MOTION = (
    *("duration", "harmonics", "criterion", "joint", "position", "speed", "acceleration", "torque", "rate"),
    *("at", "shapes", "floor", "apart", "ground_friction", "periodic", "starts", "seed"),
)
"""Parameters of identification from logs, and of --excite."""


def identify(
    ctx: typer.Context,
    robot: Annotated[str, typer.Option(metavar="ROBOT", help="A URDF or MJCF file, or the name of a robot.")],
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG...",
            help="Logs, of any format as in `estimate`; of several robots of one type as ROBOT=LOG: they share "
            "inertias, and have their own friction, offsets and gains, and files FOUND.ROBOT.urdf and so on.",
        ),
    ] = None,
    sensors: Annotated[
        str | None,
        typer.Option(
            help="A shipped set of sensors, or a YAML file. Joint torques, when left out: `identification`, or "
            "`identification_floating` with a floating base."
        ),
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="A YAML file that ties the logs' columns to the robot, as in `estimate`.")
    ] = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="Of sensors with contacts, those that are closed throughout: l_foot,r_foot, or none. Otherwise "
            "columns contact:l_foot and so on of the logs say it at each sample, by 1 and 0. With --excite, links or "
            "frames that stand on the ground: flat, or LF_FOOT:point on a point."
        ),
    ] = None,
    recognise: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN", help="A plan, of sensors with memory and the same contacts, that recognises them."
        ),
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            help="What to look for, with commas: inertias, friction, quadratic_friction, weight_friction, rotors, "
            "springs, offsets, gains, names such as m:forearm, or patterns such as viscous:l_*. `offsets` alone "
            "calibrates sensors. "
            f"{WANTED} when left out; "
            f"with --excite {EXCITED}."
        ),
    ] = None,
    held_out: Annotated[
        str,
        typer.Option(
            metavar="SHARE|LOG",
            help="On what the fit is judged: a share at the end of each log, or another log. 0 for nothing.",
        ),
    ] = "0.33",
    loaded: Annotated[
        list[Path] | None, typer.Option(metavar="LOG", help="A log in which the robot carries a load; repeatable.")
    ] = None,
    load_on: Annotated[str | None, typer.Option(metavar="LINK", help="The link that carries the load.")] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter that is known, such as m:load=2.5; repeatable."),
    ] = None,
    physical: Annotated[
        bool,
        typer.Option(
            "--physical/--no-physical",
            help="Inertias that bodies can have (nori_dyn[identify]), or those of least squares alone.",
        ),
    ] = True,
    robust: Annotated[
        bool, typer.Option("--robust", help="Readings that are far off count less (Huber); reads the logs five times.")
    ] = False,
    moving: Annotated[
        float | None,
        typer.Option(
            metavar="SPEED",
            help="Torques count only while their joint moves faster than that [rad/s or m/s], such as 0.02: at rest, "
            "friction is whatever it takes to stand still.",
        ),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="A low-pass without delay, over readings and motion alike: 5 Hz suits arms."),
    ] = None,
    differentiate: Differentiated = None,
    dt: Annotated[float | None, typer.Option(help="Time between samples [s], where the logs have no times.")] = None,
    missing: Annotated[
        Missing, typer.Option(help="Samples with what is no number: refuse the log, or drop them.")
    ] = "refuse",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the robot's file anew, with what was found: .urdf of a URDF, .xml of an MJCF model. With "
            "--excite, the table of the motion, .csv or .csv.gz: t, q, qd, qdd, tau."
        ),
    ] = None,
    components_out: Annotated[
        Path | None, typer.Option(help="Write friction, rotors and springs as a YAML file for --components.")
    ] = None,
    stiction: Annotated[
        bool,
        typer.Option(
            "--stiction",
            help="With --components-out, write with friction what it leaves open, at rest and in motion, for sensors "
            "with `memory`.",
        ),
    ] = False,
    mapping_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the mapping of the logs with the offsets and gains that were found: a YAML file for --mapping."
        ),
    ] = None,
    payload_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the load, or what a link is beyond its model, as vendors take it: .json for Franka's Desk, "
            ".script for Universal Robots, .yaml for ros2_control."
        ),
    ] = None,
    payload_frame: Annotated[
        str | None,
        typer.Option(
            metavar="FRAME", help="With --payload-out: the flange, such as tool0, in whose coordinates it is."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write what was found as a web page, with curves.")] = None,
    excite: Annotated[
        bool,
        typer.Option(
            "--excite",
            help="Find the motion, within limits, that identifies the parameters best. Limits that are not given "
            "are nine tenths of those in the robot's file. Loops stay closed, and the robot's shapes apart. What else "
            "it could hit is not known: look at the motion in a simulator first.",
        ),
    ] = False,
    duration: Annotated[float, typer.Option(help="With --excite: of the motion [s].")] = 10.0,
    harmonics: Annotated[
        int, typer.Option(help="With --excite: of the Fourier series; 5 in 10 s is up to 0.5 Hz.")
    ] = 5,
    criterion: Annotated[
        Criterion,
        typer.Option(help="With --excite: D for the determinant of the information, A for the sum of variances."),
    ] = "D",
    joint: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT", help="With --excite: a joint that moves; repeatable. All when left out."),
    ] = None,
    position: Annotated[
        Limit,
        typer.Option(metavar="NUMBER|JOINT=NUMBER|JOINT=LOW:HIGH", help="With --excite: how far joints go [rad or m]."),
    ] = None,
    speed: Annotated[
        Limit, typer.Option(metavar=EACH, help="With --excite: largest speeds [rad/s or m/s]; repeatable.")
    ] = None,
    acceleration: Annotated[
        Limit, typer.Option(metavar=EACH, help="With --excite: largest accelerations [rad/s^2 or m/s^2]; repeatable.")
    ] = None,
    torque: Annotated[
        Limit, typer.Option(metavar=EACH, help="With --excite: largest torques [N m or N]; repeatable.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=NUMBER",
            help="With --excite: where a joint stands still, or near which it moves [rad or m]; repeatable.",
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option(help="With --excite: whether collision shapes of the robot's file stay apart.")
    ] = True,
    floor: Annotated[
        float | None,
        typer.Option(metavar="HEIGHT", help="With --excite: of a floor [m]; that of contacts when left out."),
    ] = None,
    apart: Annotated[float, typer.Option(help="With --excite: how far shapes stay apart [m].")] = 0.01,
    ground_friction: Annotated[
        float, typer.Option(min=0.0, help="With --excite: under contacts, which keep balance; 0 leaves that open.")
    ] = 0.5,
    rate: Annotated[
        float, typer.Option(help="With --excite: samples a second of the table, and of the log that is to be.")
    ] = 100.0,
    periodic: Annotated[bool, typer.Option("--periodic", help="With --excite: not at rest at both ends.")] = False,
    starts: Annotated[int, typer.Option(min=1, help="With --excite: random motions that are improved.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="With --excite: seed of everything random.")] = 0,
    base: Base = "fixed",
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    inertias: Mended = "as_given",
    strict: Strict = False,
    backend: Annotated[str, typer.Option(help="As in `estimate`.")] = "auto",
    as_json: Json = False,
) -> None:
    """Identify a robot's own parameters from logs: inertias, friction, rotors, offsets and gains of sensors, a load.

    Which combinations are identifiable from the sensors is exact; these are estimated from the logs, with standard
    deviations, and the rest stays next to the model. Only options that name files write any.

    Example: nori-dyn identify run.csv --robot arm.urdf --differentiate 11 --cutoff 5 --out identified.urdf

    Example: nori-dyn identify free.csv --robot arm.urdf --loaded loaded.csv --load-on wrist --html load.html

    Example: nori-dyn identify --robot arm.urdf --excite --acceleration 5 --out motion.csv
    """
    from nori_dyn.descriptions.component_files import save_components
    from nori_dyn.descriptions.identified import check_robot, save_robot
    from nori_dyn.descriptions.payloads import check_payload, save_payload
    from nori_dyn.descriptions.sensor_configs import load_sensors
    from nori_dyn.estimation.system import System
    from nori_dyn.identification.exciting_motion import check_table
    from nori_dyn.identification.identify import identify as identified
    from nori_dyn.logs.mapping.log_mapping import load_mapping, save_mapping
    from nori_dyn.report.html import save_html

    if excite:
        refuse_given(ctx, ("logs", *OF_LOGS), "does not go with --excite, which needs no log.")
    else:
        refuse_given(ctx, OF_MOTION, "needs --excite.")
        if not logs:
            raise typer.BadParameter("name a log, or find a motion to record by --excite.", param_hint="LOG...")
    wanted = [word.strip() for word in (parameters or (EXCITED if excite else WANTED)).split(",") if word.strip()]
    if excite:
        limits = {"position": position, "speed": speed, "acceleration": acceleration, "torque": torque}
        if out is not None:
            check_table(out)
        tree = load(robot, base, lock, keep, components, strict, inertias)
        standing = standing_contacts(contacts)
        chosen = None if sensors is None else load_sensors(sensors, robot, tree)
        if chosen is not None and chosen.contact_names:
            chosen = chosen.in_contact(*standing)
        find_motion(
            tree if chosen is None else System(tree, chosen),
            wanted,
            limits_of(limits),
            out,
            as_json,
            duration=duration,
            harmonics=harmonics,
            criterion=criterion,
            joints=joint or None,
            at=configuration(tree, at),
            contacts=standing,
            shapes=robot if shapes else None,
            floor=floor,
            apart=apart,
            ground_friction=ground_friction or None,
            at_rest=not periodic,
            rate=rate,
            starts=starts,
            seed=seed,
        )
        return
    given = dict(map(_known, known or ()))
    share = _share(held_out)
    for file in (components_out, mapping_out, html):
        if file is not None:
            check_writable(file)
    if out is not None:
        check_robot(robot, out)
    if (payload_out is None) != (payload_frame is None):
        raise typer.BadParameter("--payload-out and --payload-frame go together.", param_hint="--payload-out")
    if payload_out is not None:
        check_payload(payload_out)
    tree = load(robot, base, lock, keep, components, strict, inertias)
    if payload_frame is not None:
        tree.frame(payload_frame)  # refused before the work
    read = _logs(logs or (), mapping)
    told: History | tuple[str, ...] | None = None if contacts is None else named_contacts(contacts)
    if recognise is not None:
        if told is not None:
            raise typer.BadParameter("contacts are told or recognised.", param_hint="--recognise")
        told = _recognised(next(iter(_each(read))), recognise, how_differentiated(differentiate), dt, missing)
    found = identified(
        read,
        tree,
        wanted,
        sensors=None if sensors is None else load_sensors(sensors, robot, tree),
        contacts=told,
        held_out=_logs([Path(held_out)], mapping) if share is None else share,
        loaded=_logs(loaded or (), mapping),
        load_on=load_on,
        known=given,
        physical=physical,
        robust=robust,
        moving=moving,
        cutoff=cutoff,
        differentiate=how_differentiated(differentiate),
        dt=dt,
        missing=missing,
        curves=html is not None,
        backend=backend,
    )
    notes: list[str] = []
    source = (f"Identified from {', '.join(found.logs)}.",)
    writers: dict[str, tuple[Path | None, Callable[[Path], Any]]] = {"page": (html, partial(save_html, found))}
    for name, own in found.robots.items():
        several = len(found.robots) > 1
        asked = [_of(path, name) if path and several else path for path in (out, components_out, mapping_out)]
        of = f" of {name}" if several else ""

        def save_own(path: Path, own: KinematicTree = own) -> None:
            notes.extend(save_robot(own, robot, path))

        def save_friction(path: Path, name: str = name, own: KinematicTree = own) -> None:
            save_components(found.with_stiction(name) if stiction else own, path, source)

        def save_calibrated(path: Path, name: str = name) -> None:
            save_mapping(found.calibrated(None if mapping is None else load_mapping(mapping), name), path, source)

        writers["robot" + of] = asked[0], save_own
        writers["components" + of] = asked[1], save_friction
        writers["mapping" + of] = asked[2], save_calibrated
    writers["payload"] = payload_out, lambda path: save_payload(found.payload(payload_frame or ""), path)
    written: dict[str, Path] = {}
    problems: list[str] = []
    for what, (path, write) in writers.items():
        if path is not None:
            try:  # what was found is worth more than the file that cannot hold it
                write(path)
                written[what] = path
            except NoriError as error:
                problems.append(str(error))
    loading = _loading(written, base, lock, keep, components, inertias)
    if as_json:
        files = {what: str(path) for what, path in written.items()}
        more = {"written": files, "load": loading, "notes_on_files": notes, "errors": problems}
        print_json({**found.to_dict(), **more})
    else:
        said = [f"note: {note}" for note in notes] + _written(found, written, out is None)
        if loading is not None:
            said.append(f"Load it: {unbroken(loading)}")
        if found.n_identified < len(found.directions):
            options = robot_options(base, lock, keep, components, inertias)
            wish = "--parameters", ",".join(wanted)
            said.append(next_command("identify", "--robot", robot, "--excite", *wish, *options, "--out", "MOTION.csv"))
        show(found.shown(), *said)
    for problem in problems:
        typer.echo(f"failed: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


def _logs(paths: Sequence[Path], mapping: Path | None) -> list[Log] | dict[str, list[Log]]:
    """Logs, or those of each robot by its name where they are named as ROBOT=LOG.

    Raises:
        BadParameter: some are named so, and others are not.
    """
    from nori_dyn.logs.log import read_log

    named = [("", "", str(path)) if path.exists() else str(path).partition("=") for path in paths]
    if not any(sign for _, sign, _ in named):
        return [read_log(path, mapping) for path in paths]
    if not all(sign for _, sign, _ in named):
        raise typer.BadParameter(
            "name the robot of each log, or of none: first=a.csv second=b.csv.", param_hint="LOG..."
        )
    found: dict[str, list[Log]] = {}
    for name, _, path in named:
        found.setdefault(name, []).append(read_log(path, mapping))
    return found


def _each(logs: list[Log] | dict[str, list[Log]]) -> list[Log]:
    return logs if isinstance(logs, list) else [log for own in logs.values() for log in own]


def _of(path: Path, robot: str) -> Path:
    """The file of a robot of several: found.first.urdf."""
    return path.with_name(f"{path.stem}.{robot}{path.suffix}")


def _recognised(log: Log, plan: Path, differentiate: Differentiate, dt: float | None, missing: Missing) -> History:
    """Contacts of a log, as a plan recognises them."""
    from nori_dyn.estimation.log_estimate import LogHistory, estimate
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.estimation.tracker import tracking
    from nori_dyn.filtering.hypotheses import Hypotheses

    tracked = tracking(plan)
    hypotheses = (tracked.hypotheses if tracked else None) or Hypotheses()
    found = estimate(log, Plan.load(plan), differentiate, dt, missing, contacts=hypotheses)
    assert isinstance(found, LogHistory)  # as what recognises has memory
    return found.history


def _written(found: Identification, written: Mapping[str, Path], is_robot_kept: bool) -> list[str]:
    """Lines on the files that were written."""
    said = [f"{what.capitalize()} written to {unbroken(str(path))}." for what, path in written.items()]
    if is_robot_kept and found.has_robot:
        said.append("The robot was not written: --out ROBOT.urdf does that.")
    return said


def _loading(
    written: Mapping[str, Path],
    base: Base,
    lock: list[str] | None,
    keep: list[str] | None,
    components: str | None,
    inertias: Inertias,
) -> str | None:
    """Python call that loads the robot that was written, with all that was found; None where none was.

    Of components of a YAML file the friction is in the robot's file as well now: they are not to be added again.
    """
    if "robot" not in written:
        return None
    options: dict[str, object] = {}
    if base != "fixed":
        options["base"] = base
    if lock:
        options["locked"] = lock
    if keep:
        options["kept"] = "sensors" if keep == ["sensors"] else keep
    if "components" in written:
        options["components"] = str(written["components"])
    elif components == "own":
        options["components"] = True
    if inertias != "as_given":
        options["inertias"] = inertias
    said = [repr(str(written["robot"])), *(f"{name}={value!r}" for name, value in options.items())]
    return f"nd.load_robot({', '.join(said)})"


def _known(given: str) -> tuple[str, float]:
    """Name and value of a known parameter.

    Raises:
        InputError: something else.
    """
    name, sign, value = given.rpartition("=")
    try:
        if sign and name:
            return name.strip(), float(value)
    except ValueError:
        pass
    raise InputError(f"--known {given}: must be a parameter and its value, such as m:load=2.5.")


def _share(given: str) -> float | None:
    """Share that is held out; None where it is a log."""
    try:
        return float(given)
    except ValueError:
        return None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(identify)
