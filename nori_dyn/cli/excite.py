"""nori-dyn excite: the motion from which a robot's parameters are told best, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Inertias,
    Json,
    Keep,
    Lock,
    Mended,
    Strict,
    load,
    print_json,
)
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.identification.exciting_motion import ExcitingMotion


class Judged(StrEnum):
    """What is large for the most exciting motion."""

    D = "D"
    A = "A"


EACH = "NUMBER|JOINT=NUMBER"
"""How a limit is written: for all joints, or for one."""

Limit = list[str] | None


def excite(
    robot: Annotated[str, typer.Option(metavar="ROBOT", help="A URDF or MJCF file, or the name of a robot.")],
    out: Annotated[Path | None, typer.Option(help="The table to write, .csv or .csv.gz: t, q, qd, qdd, tau.")] = None,
    parameters: Annotated[
        str, typer.Option(help="What is to be told, with commas: inertias, friction, rotors, offsets, names, patterns.")
    ] = "inertias,friction",
    duration: Annotated[float, typer.Option(help="Of the motion [s].")] = 10.0,
    harmonics: Annotated[int, typer.Option(help="Of the Fourier series; 5 in 10 s is up to 0.5 Hz.")] = 5,
    criterion: Annotated[
        Judged, typer.Option(help="D for the determinant of the information, A for the sum of variances.")
    ] = Judged.D,
    joint: Annotated[
        list[str] | None, typer.Option(metavar="JOINT", help="A joint that moves; repeatable. All when left out.")
    ] = None,
    position: Annotated[
        Limit, typer.Option(metavar="NUMBER|JOINT=NUMBER|JOINT=LOW:HIGH", help="How far joints go [rad or m].")
    ] = None,
    speed: Annotated[Limit, typer.Option(metavar=EACH, help="Largest speeds [rad/s or m/s]; repeatable.")] = None,
    acceleration: Annotated[
        Limit, typer.Option(metavar=EACH, help="Largest accelerations [rad/s^2 or m/s^2]; repeatable.")
    ] = None,
    torque: Annotated[Limit, typer.Option(metavar=EACH, help="Largest torques [N m or N]; repeatable.")] = None,
    rate: Annotated[float, typer.Option(help="Samples a second of the table, and of the log that is to be.")] = 100.0,
    sensors: Annotated[
        str | None, typer.Option(help="A shipped set of sensors, or a YAML file; joint torques when left out.")
    ] = None,
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    periodic: Annotated[bool, typer.Option("--periodic", help="Not at rest at both ends.")] = False,
    starts: Annotated[int, typer.Option(min=1, help="Random motions that are improved.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    inertias: Mended = Inertias.AS_GIVEN,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Find the motion, within limits, from which a robot's parameters are told best.

    Limits that are not given are nine tenths of those in the robot's file. Nothing is known of what the robot could
    hit: look at the motion in a simulator first.

    Example: nori-dyn excite --robot panda --lock panda_finger_joint1 --lock panda_finger_joint2 --out motion.csv
    """
    from nori_dyn.estimation.system import System
    from nori_dyn.identification.exciting_motion import check_table, exciting_motion
    from nori_dyn.io.sensor_configs import load_sensors

    if out is not None:
        check_table(out)
    limits: dict[str, Any] = {
        "position": _limits("--position", position),
        "speed": _limits("--speed", speed),
        "acceleration": _limits("--acceleration", acceleration),
        "torque": _limits("--torque", torque),
    }
    tree = load(robot, base, lock, keep, components, strict, inertias)
    system = tree if sensors is None else System(tree, load_sensors(sensors, robot, tree))
    wanted = tuple(name.strip() for name in parameters.split(","))
    with progress_bar("excite") as stage:
        motion = exciting_motion(
            system,
            wanted,
            duration,
            harmonics,
            "A" if criterion is Judged.A else "D",
            joints=joint or None,
            at_rest=not periodic,
            rate=rate,
            starts=starts,
            seed=seed,
            progress=stage,
            **limits,
        )
    samples = None if out is None else motion.to_csv(out)
    if as_json:
        print_json(_json(motion, samples))
    elif out is None:
        show(motion.shown(), "To have it as a table: --out MOTION.csv")
    else:
        show(motion.shown(), f"{samples:,} samples written to {unbroken(str(out))}.")


def _limits(option: str, given: Sequence[str] | None) -> Any:
    """Return limits as `exciting_motion` takes them: a number for all joints, or by name."""
    found: dict[str, Any] = {}
    for text in given or ():
        joint, is_of_one, said = text.rpartition("=")
        ends = said.split(":")
        try:
            numbers = [float(end) for end in ends]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= (2 if option == "--position" else 1):
            raise typer.BadParameter(f"'{text}' is no limit: write 1.5, or elbow=1.5.", param_hint=option)
        if not is_of_one and len(given or ()) > 1:
            raise typer.BadParameter(
                f"'{text}' is for all joints, and others are given: name joints.", param_hint=option
            )
        value = numbers[0] if len(numbers) == 1 else tuple(numbers)
        if not is_of_one:
            return value
        found[joint] = value
    return found or None


def _json(motion: ExcitingMotion, samples: int | None) -> dict[str, Any]:
    """Return what was found as JSON."""
    return {
        "robot": motion.trajectory.tree.name,
        "joints": list(motion.limits.joints),
        "duration": motion.duration,
        "criterion": motion.criterion,
        "value": motion.value,
        "best_of_random": float(motion.of_random.max()),
        "gain": motion.gain,
        "condition": motion.condition,
        "condition_of_random": motion.condition_of_random,
        "parameters": [
            {"name": name, "combination": combination, "unit": unit, "model": value, "deviation": deviation}
            for name, combination, unit, value, deviation in zip(
                motion.parameters,
                motion.combinations,
                motion.units,
                motion.prior.tolist(),
                motion.deviations.tolist(),
                strict=True,
            )
        ],
        "badly_told": list(motion.badly_told),
        "untold": list(motion.untold),
        "samples": samples,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(excite)
