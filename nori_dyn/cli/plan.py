"""nori-dyn plan: from a robot and its sensors to a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Base, Json, Keep, Lock, Robot, Strict, in_contact, kept, print_json
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken


def plan(
    robot: Robot,
    sensors: Annotated[str, typer.Option(help="A shipped set of sensors, or a YAML file.")],
    out: Annotated[Path, typer.Option(help="The plan file to write.")],
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    contacts: Annotated[
        str | None,
        typer.Option(help="The contacts that are closed, where the sensors have contacts: l_foot,r_foot, or none."),
    ] = None,
    outputs: Annotated[
        str | None, typer.Option(help="Outputs wanted, with commas: tau,qdd,fx:l_sole. All when left out.")
    ] = None,
    ordering: Annotated[
        str, typer.Option(help="umfpack, superlu, recursive, markowitz, or auto for the cheapest stable one.")
    ] = "auto",
    effort: Annotated[float, typer.Option(min=0, help="Time [s] to search for a cheaper order.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    cache: Annotated[bool, typer.Option(help="Look the plan up in the cache first.")] = True,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Plan a robot with its sensors, once.

    Example: nori-dyn plan panda.urdf --sensors inverse_dynamics --out panda.plan
    """
    from nori_dyn.api.plan import plan as make_plan
    from nori_dyn.api.system import System
    from nori_dyn.io.robots import load_robot
    from nori_dyn.io.sensor_configs import load_sensors
    from nori_dyn.report.json_figures import plan_json

    check_writable(out)
    tree = load_robot(robot, base=base.value, locked=tuple(lock or ()), kept=kept(keep), strict=strict)
    system = System(tree, in_contact(load_sensors(sensors, robot, tree), contacts))
    names = None if outputs is None else tuple(name.strip() for name in outputs.split(","))
    result = make_plan(system, names, ordering, seed, effort, cache)
    result.save(out)
    if as_json:
        print_json({**plan_json(result), "measurements": system.ny, "plan": str(out)})
        return
    show(result.shown(), *_next(out))


def _next(out: Path) -> tuple[str, str]:
    name = unbroken(str(out))
    return f"Plan written to {name}.", f"Next: nori-dyn solve --plan {name} --input LOG --out ESTIMATE"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)
