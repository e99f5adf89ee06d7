"""nori-dyn plan: from a robot and its sensors to a plan file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import in_contact, named, next_command, show_found
from nori_dyn.cli.options import Json, Robot, RobotOptions
from nori_dyn.io.files import check_writable
from nori_dyn.tables import unbroken

ALL = "all"
"""Value of --contacts that plans all contact states."""


def plan(
    robot: Robot,
    sensors: str | None = None,
    out: Path | None = None,
    *,
    model: RobotOptions,
    contacts: str | None = None,
    outputs: str | None = None,
    ordering: str = "auto",
    effort: Annotated[int, typer.Option(min=0)] = 0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    cache: bool = True,
    as_json: Json = False,
) -> None:
    """Plan a robot with its sensors, once.

    Example: nori-dyn plan panda.urdf --sensors inverse_dynamics --out panda.plan

    Args:
        robot: A URDF or MJCF file, or the name of a robot of an installed package: panda, ur5, anymal, talos, icub;
            `nori-dyn robots` lists them.
        sensors: A shipped set of sensors, or a YAML file.
        out: The plan file to write. ROBOT_SENSORS.plan, by their names, when left out.
        model: See `RobotOptions`.
        contacts: The contacts that are closed, where the sensors have contacts: l_foot,r_foot, or none; or 'all' for a
            plan set, of all states in which the sensors suffice.
        outputs: Outputs wanted, with commas: tau,qdd,fx:l_sole. All when left out.
        ordering: auto for the cheapest stable order of the refined system; umfpack, superlu, recursive or markowitz for
            D itself in the P and Q of that ordering.
        effort: How much further to search with auto, in entries that eliminations update: a million takes about half a
            minute.
        seed: Seed of everything random.
        cache: Look the plan up in the cache first.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.estimation.plan import plan_set

    check_writable(out)
    tree, known = model.with_sensors(robot, sensors)
    if out is None:
        out = Path(re.sub(r"[^\w.-]+", "_", f"{tree.name}_{known.name}") + ".plan")
        check_writable(out)
    names = None if outputs is None else named(outputs)
    if contacts == ALL:
        result = plan_set(
            tree, known, names, leave_out_singular=True, ordering=ordering, seed=seed, effort=effort, cache=cache
        )
    else:
        result = nd.plan(nd.System(tree, in_contact(known, contacts)), names, ordering, seed, effort, cache)
    result.save(out)
    then = next_command("estimate", "--plan", out, "--input", "LOG.csv", "--out", "ESTIMATES.csv")
    lines = [f"Plan written to {unbroken(str(out))}.", then]
    if result.contact_names:
        columns = ", ".join(f"contact:{name}" for name in result.contact_names)
        lines.insert(0, f"Columns {columns} of a log say by 1 and 0 which contacts are closed.")
    show_found(result, as_json, *lines, measurements=len(result.measurement_names), plan=str(out))
