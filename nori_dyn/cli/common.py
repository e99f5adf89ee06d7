"""What the commands share: loading what is named on the command line, and printing figures."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from nori_dyn.errors import DoubtfulLogError
from nori_dyn.io.files import read_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Bullets, unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.preset_logs import PresetLog
    from nori_dyn.estimation.presets import Preset
    from nori_dyn.filtering.false_alarms import Alarms
    from nori_dyn.logs.log import Log
    from nori_dyn.logs.motion.differentiation import Differentiate
    from nori_dyn.measurements.sensor_set import SensorSet
    from nori_dyn.model.tree import KinematicTree

Robot = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A URDF or MJCF file, or the name of a robot of an installed package: panda, ur5, anymal, talos, icub; "
        "`nori-dyn robots` lists them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Lock = Annotated[list[str] | None, typer.Option("--lock", metavar="JOINT", help="Freeze a joint; repeatable.")]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="JOINT",
        help="Keep a fixed joint, so that the wrench through it is a variable; repeatable. 'sensors' for all that "
        "carry a force-torque sensor.",
    ),
]
Components = Annotated[
    str | None,
    typer.Option(
        "--components",
        metavar="FILE|own|none",
        help="Motors, friction, couplings, loops: those of a YAML file beside those of the robot's file; 'own' for the "
        "latter alone, 'none' for bare rigid bodies. Without it, those of an MJCF model, and of a URDF friction and "
        "rotors that `identify` found and wrote.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="The same as --inertias refuse.")]


Differentiated = Annotated[
    str | None,
    typer.Option(
        "--differentiate",
        metavar="<way>",
        help="How joint accelerations that the log lacks are made of its velocities: 'smoother', or 'auto', where it "
        "is left out, by a Kalman filter a joint and back over the log; 'kalman', of the samples so far; 51, by a "
        "window of that odd number of samples (Savitzky and Golay); 'none', to refuse such logs. The filters find the "
        "noise of each joint in the log, and say how sure they are: accelerations that have a sigma are weighed by "
        "that. All but 'auto' make velocities that the log lacks of its positions as well.",
    ),
]


POSES = ("parallel", "coplanar", "flat", "double_support", "closed", "at_zero", "at_limits")
"""The special poses of `nori_dyn.observe.poses`."""

SPECIAL_POSES = f"Special poses to look at, such as parallel:l_sole,r_sole; repeatable. {', '.join(POSES)}."

PosesFile = Annotated[
    Path | None, typer.Option("--poses", help="Poses to look at: .csv, .csv.gz or .npz, with q as in a log.")
]

Criterion = Literal["A", "D"]
"""Optimality criterion: trace (A) or determinant (D) of the covariance."""

Singular = Literal["refuse", "nan"]
"""How samples without a unique solution are handled."""

Missing = Literal["refuse", "drop"]
"""How unusable readings are handled."""

Model = Annotated[
    str | None, typer.Option(metavar="ROBOT", help="With --robot, a model of your own: a URDF or MJCF file.")
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--robot",
        metavar="PRESET",
        help="In place of a plan, a robot that has a preset: the command robots lists them. Or the YAML file of one. "
        "A log, or a stream, is tied to it; what is doubtful about a log is asked.",
    ),
]
What = Annotated[
    str | None,
    typer.Option(help="With --robot, what to estimate, with commas: contacts,torques. The preset's first if not."),
]
Mapped = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        help="A YAML file that ties the log's columns, topics and keys to the robot, with units, signs, clocks and "
        "delays; `nori-dyn info LOG --robot ROBOT` drafts it. Without it, columns go by their usual names.",
    ),
]
Step = Annotated[
    float | None,
    typer.Option(
        "--dt",
        help="Time between samples [s], for --differentiate, to compare q with qd, and to find gaps; that of the "
        "log's column t or time when left out. With memory a log without times needs it.",
    ),
]
Unusable = Annotated[
    Missing | None,
    typer.Option(
        "--missing",
        help="What to do with readings that are empty or not numbers, or at an end of their sensor's range: refuse "
        "the log, or drop the sensor in that sample, if it has a sigma. Without it they are refused, with --view "
        "dropped and marked.",
    ),
]
Undetermined = Annotated[
    Singular | None,
    typer.Option(
        "--singular",
        help="What to do with samples at which the sensors do not suffice, such as special poses: refuse the log, "
        "or write nan for them, and say how many there are and where the first is. Without it they are refused, "
        "with --view left out of the plots and marked.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --robot, take the log as it is, whatever is doubtful about it.")]

FalseAlarms = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Watch for collisions, with so many false alarms an hour: by sensors with memory, without contacts.",
    ),
]
Untouched = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Logs in which nothing touches the robot, in quotes: false alarms are as rare as asked in these. Without, "
        "as rare as the sigmas say.",
    ),
]

Base = Literal["fixed", "floating"]
"""Whether the root link is fixed to the world or floats."""

Inertias = Literal["as_given", "nearest", "refuse"]
"""How inertias that no distribution of mass has are handled."""

Mended = Annotated[
    Inertias,
    typer.Option(
        help="Inertias that no distribution of mass has: taken as given, with a warning; or the nearest that some "
        "distribution has; or refused."
    ),
]


def load(
    robot: str,
    base: Base,
    lock: Sequence[str] | None,
    keep: Sequence[str] | None,
    components: str | None,
    strict: bool,
    inertias: Inertias = "as_given",
) -> KinematicTree:
    """Load the robot that the options name.

    Raises:
        NoriError: what `load_robot` refuses.
    """
    from nori_dyn.descriptions.robots import load_robot

    kept = "sensors" if keep == ["sensors"] else tuple(keep or ())
    taken = {"own": True, "none": False}.get(components, components) if components is not None else None
    return load_robot(
        robot,
        base=base,
        locked=tuple(lock or ()),
        kept=kept,
        components=taken,
        inertias=inertias,
        strict=strict,
    )


def how_differentiated(said: str | None) -> Differentiate:
    """Method of differentiation that is named on the command line; whether it exists is checked later."""
    if said is None or said == "none":
        return "auto" if said is None else None
    return int(said) if said.lstrip("+-").isdecimal() else cast("Differentiate", said)


def special_poses(asked: Sequence[str]) -> dict[str, Sequence[str]]:
    """Special poses and the frames that they are on, named on the command line as `NAME:FRAME,FRAME`."""
    where: dict[str, Sequence[str]] = {}
    for text in asked:
        name, _, frames = text.partition(":")
        if name not in POSES:
            raise typer.BadParameter(
                f"'{name}' is not a special pose. Known: {', '.join(POSES)}.", param_hint="--where"
            )
        if name in where:
            raise typer.BadParameter(f"'{name}' is given twice.", param_hint="--where")
        where[name] = tuple(frame.strip() for frame in frames.split(",") if frame.strip())
    return where


def in_contact(known: SensorSet, contacts: str | None) -> SensorSet:
    """Sensors in the contact state that is named on the command line: "l_foot,r_foot", or "none".

    Raises:
        UnknownSensorNameError: there is no such contact.
    """
    return known if contacts is None else known.in_contact(*named_contacts(contacts))


def named_contacts(contacts: str) -> tuple[str, ...]:
    """Contacts that are named on the command line: "l_foot,r_foot", or "none"."""
    return () if contacts.strip() in ("", "none") else tuple(name.strip() for name in contacts.split(","))


def is_planned(what: str) -> bool:
    """Whether a file is one of a plan rather than of a robot."""
    return Path(what).is_file() and read_bytes(what)[:1] == b"{"


def is_given(ctx: typer.Context, name: str) -> bool:
    """Whether a parameter was given on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_given(ctx: typer.Context, names: Collection[str], why: str) -> None:
    """Refuse parameters that were given on the command line.

    Raises:
        BadParameter: one of them was.
    """
    for parameter in ctx.command.params:
        if parameter.name in names and is_given(ctx, parameter.name or ""):
            shown = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
            raise typer.BadParameter(why, param_hint=shown)


def missing_sensors() -> typer.BadParameter:
    """Error of a command that needs sensors."""
    from nori_dyn.descriptions.sensor_configs import shipped_configs

    names = ", ".join(shipped_configs())
    return typer.BadParameter(f"name a YAML file, or one of {names}.", param_hint="--sensors")


def next_command(*words: str | Path) -> str:
    """Line that says what to run next; words in capitals are for the reader to fill in."""
    return unbroken(f"Next: nori-dyn {' '.join(shlex.quote(str(word)) for word in words)}")


def robot_options(
    base: Base,
    lock: Sequence[str] | None,
    keep: Sequence[str] | None,
    components: str | None,
    inertias: Inertias = "as_given",
) -> tuple[str, ...]:
    """Options by which another command loads the same robot."""
    named = () if base == "fixed" else ("--base", base)
    return (
        *named,
        *(w for joint in lock or () for w in ("--lock", joint)),
        *(w for j in keep or () for w in ("--keep", j)),
        *(() if components is None else ("--components", components)),
        *(() if inertias == "as_given" else ("--inertias", inertias)),
    )


def chosen_alarms(per_hour: float | None, known: Alarms | None = None) -> Alarms | None:
    """When collisions count as seen: as asked, over the time that a preset or the file of a tracker says."""
    from nori_dyn.filtering.false_alarms import Alarms as Options

    return known if per_hour is None else replace(known or Options(), per_hour=per_hour)


def print_json(data: Mapping[str, Any]) -> None:
    """Print figures as JSON."""
    typer.echo(json.dumps(data, indent=2))


def tied(preset: Preset, log: Log, names: Sequence[str | None], yes: bool, as_json: bool) -> list[PresetLog]:
    """Tie a log to a robot that has a preset, for estimates by their names; say how, and ask what is doubtful.

    Raises:
        DoubtfulLogError: see `ask`.
    """
    from nori_dyn.estimation.preset_logs import preset_log

    ready = [preset_log(preset, log, name) for name in names]
    if not as_json:
        reasons = dict.fromkeys(reason for each in ready for reason in each.reasons)
        show(Bullets(tuple(reasons), f"The columns of {unbroken(log.path.name)} are taken so"))
    if not yes:
        ask(log.path.name, tuple(dict.fromkeys(question for each in ready for question in each.questions)))
    return ready


def ask(log: str, questions: Sequence[str]) -> None:
    """Ask whether a log is right, where someone is there to answer.

    Raises:
        DoubtfulLogError: it is not, or nobody is.
    """
    for k, question in enumerate(questions):
        if not sys.stdin.isatty() or not typer.confirm(f"{question} Go on all the same?"):
            raise DoubtfulLogError(log, questions[k:])
