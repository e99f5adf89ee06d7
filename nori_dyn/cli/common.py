"""What the commands share: loading what is named on the command line, and printing figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nori_dyn.errors import UnknownConfigError

if TYPE_CHECKING:
    from nori_dyn.measurements.sensor_set import SensorSet
    from nori_dyn.model.tree import KinematicTree

Robot = Annotated[
    str,
    typer.Argument(metavar="ROBOT", help="A URDF or MJCF file, or a name of the robot_descriptions package."),
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
Strict = Annotated[bool, typer.Option("--strict", help="Refuse inertias that no distribution of mass has.")]


class Base(StrEnum):
    """What the root link is: part of the world, or free."""

    FIXED = "fixed"
    FLOATING = "floating"


def kept(keep: Sequence[str] | None) -> Sequence[str]:
    """Return what `load_robot` takes as kept."""
    return "sensors" if keep == ["sensors"] else tuple(keep or ())


def sensor_set(name_or_file: str, robot: str | None = None, tree: KinematicTree | None = None) -> SensorSet:
    """Return a shipped set of sensors by name, or one from a file, which may take those of the robot's own file.

    Raises:
        SensorConfigError: there is none, or it does not follow the schema.
    """
    from nori_dyn.io.sensor_configs import load_sensors, sensors, shipped_configs

    if name_or_file in shipped_configs():
        return sensors(name_or_file)
    if Path(name_or_file).suffix in (".yaml", ".yml") or Path(name_or_file).exists():
        return load_sensors(name_or_file, robot, tree)
    raise UnknownConfigError("set of sensors", name_or_file, shipped_configs())


def in_contact(known: SensorSet, contacts: str | None) -> SensorSet:
    """Return sensors in the contact state that is named on the command line: "l_foot,r_foot", or "none".

    Raises:
        UnknownSensorNameError: there is no such contact.
    """
    if contacts is None:
        return known
    named = () if contacts.strip() in ("", "none") else contacts.split(",")
    return known.in_contact(*(name.strip() for name in named))


def print_json(data: dict[str, Any]) -> None:
    """Print figures as JSON."""
    typer.echo(json.dumps(data, indent=2))
