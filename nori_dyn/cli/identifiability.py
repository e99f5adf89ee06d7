"""nori-dyn identifiability: which of a robot's parameters some sensors tell."""

from __future__ import annotations

from typing import Annotated

import typer

from nori_dyn.cli.common import Base, Components, Inertias, Json, Keep, Lock, Mended, Strict, load, print_json
from nori_dyn.report.terminal import show


def identifiability(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="A robot as in `plan`.")],
    sensors: Annotated[
        str | None,
        typer.Option(
            help="A shipped set of sensors, or a YAML file; `identification`, or `identification_floating` with a "
            "floating base, when left out."
        ),
    ] = None,
    parameters: Annotated[
        str,
        typer.Option(
            help="With commas: inertias, friction, rotors, springs, offsets, gains, names such as m:forearm, or "
            "patterns such as viscous:l_*."
        ),
    ] = "inertias",
    still: Annotated[
        list[str] | None,
        typer.Option(
            "--still",
            metavar="JOINT",
            help="A joint that does not move, and may stand anywhere; repeatable. --lock freezes it, which makes one "
            "link of two.",
        ),
    ] = None,
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random motions.")] = 0,
    inertias: Mended = Inertias.AS_GIVEN,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Tell which parameters of a robot its sensors tell: alone, in which combinations, or never.

    Exactly, for motions as rich as they can be.

    Example: nori-dyn identifiability panda.urdf --parameters inertias,friction
    """
    from nori_dyn.estimation.system import System
    from nori_dyn.identification.identifiability import identifiability
    from nori_dyn.io.sensor_configs import load_sensors

    tree = load(robot, base, lock, keep, components, strict, inertias)
    chosen = sensors or ("identification" if base is Base.FIXED else "identification_floating")
    wanted = [word.strip() for word in parameters.split(",") if word.strip()]
    found = identifiability(System(tree, load_sensors(chosen, robot, tree)), wanted, still or (), seed)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.shown())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(identifiability)
