"""nori-dyn plan: from a robot and its sensors to a plan file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.api.plan import plan as make_plan
from nori_dyn.cli.common import Base, Json, Keep, Lock, Robot, Strict, in_contact, kept, print_json, sensor_set
from nori_dyn.io.files import check_writable
from nori_dyn.io.robots import load_robot
from nori_dyn.report.json_figures import plan_json
from nori_dyn.report.tables import console, costs_table
from nori_dyn.system.builder import System


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
    check_writable(out)
    tree = load_robot(robot, base=base.value, locked=tuple(lock or ()), kept=kept(keep), strict=strict)
    system = System(tree, in_contact(sensor_set(sensors, robot, tree), contacts))
    names = None if outputs is None else tuple(name.strip() for name in outputs.split(","))
    result = make_plan(system, names, ordering, seed, effort, cache)
    result.save(out)
    rows, columns = system.shape
    if as_json:
        print_json({**plan_json(result), "measurements": system.ny, "plan": str(out)})
        return
    console.print(
        f"{tree.name} with {system.sensors.name}: {tree.n_links} links, {tree.nv} freedoms; "
        f"{rows} equations in {columns} unknowns, {result.pattern.nnz} nonzeros, {system.ny} readings a tick."
    )
    console.print(costs_table(result.tried))
    console.print(f"Plan written to {out}. Next: nori-dyn solve --plan {out} --input LOG --out ESTIMATE")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)
