"""nori-dyn plan: from a robot and its sensors to a plan file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Json,
    Keep,
    Lock,
    Mended,
    Robot,
    Strict,
    in_contact,
    load,
    missing_sensors,
    next_command,
    print_json,
)
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken

ALL = "all"
"""Value of --contacts that plans all contact states."""


def plan(
    robot: Robot,
    sensors: Annotated[str | None, typer.Option(help="A shipped set of sensors, or a YAML file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The plan file to write. ROBOT_SENSORS.plan, by their names, when left out.")
    ] = None,
    base: Base = "fixed",
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="The contacts that are closed, where the sensors have contacts: l_foot,r_foot, or none; or 'all' for "
            "a plan set, of all states in which the sensors suffice."
        ),
    ] = None,
    outputs: Annotated[
        str | None, typer.Option(help="Outputs wanted, with commas: tau,qdd,fx:l_sole. All when left out.")
    ] = None,
    ordering: Annotated[
        str,
        typer.Option(
            help="auto for the cheapest stable order of the refined system; umfpack, superlu, recursive or markowitz "
            "for D itself in the P and Q of that ordering."
        ),
    ] = "auto",
    effort: Annotated[
        int,
        typer.Option(
            min=0,
            help="How much further to search with auto, in entries that eliminations update: a million takes about "
            "half a minute.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    cache: Annotated[bool, typer.Option(help="Look the plan up in the cache first.")] = True,
    inertias: Mended = "as_given",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Plan a robot with its sensors, once.

    Example: nori-dyn plan panda.urdf --sensors inverse_dynamics --out panda.plan
    """
    from nori_dyn.descriptions.sensor_configs import load_sensors
    from nori_dyn.estimation.plan import plan as make_plan
    from nori_dyn.estimation.plan import plan_set
    from nori_dyn.estimation.system import System

    if sensors is None:
        raise missing_sensors()
    if out is not None:
        check_writable(out)
    tree = load(robot, base, lock, keep, components, strict, inertias)
    known = load_sensors(sensors, robot, tree)
    if out is None:
        out = Path(re.sub(r"[^\w.-]+", "_", f"{tree.name}_{known.name}") + ".plan")
        check_writable(out)
    names = None if outputs is None else tuple(name.strip() for name in outputs.split(","))
    if contacts == ALL:
        result = plan_set(
            tree, known, names, leave_out_singular=True, ordering=ordering, seed=seed, effort=effort, cache=cache
        )
    else:
        result = make_plan(System(tree, in_contact(known, contacts)), names, ordering, seed, effort, cache)
    result.save(out)
    if as_json:
        print_json({**result.to_dict(), "measurements": len(result.measurement_names), "plan": str(out)})
        return
    then = next_command("estimate", "--plan", out, "--input", "LOG.csv", "--out", "ESTIMATES.csv")
    told: tuple[str, ...] = ()
    if result.contact_names:
        columns = ", ".join(f"contact:{name}" for name in result.contact_names)
        told = (f"Columns {columns} of a log say by 1 and 0 which contacts are closed.",)
    show(result.shown(), *told, f"Plan written to {unbroken(str(out))}.", then)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)
