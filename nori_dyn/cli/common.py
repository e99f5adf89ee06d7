"""What the commands share: loading what is named on the command line, and printing tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nori_dyn.algebra.counting import Cost
from nori_dyn.io.sensor_configs import UnknownConfigError, load_sensors, sensors, shipped_configs
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.planner import Candidate, EliminationPlan

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


console = Console(highlight=False)


def kept(keep: Sequence[str] | None) -> Sequence[str]:
    """Return what `load_robot` takes as kept."""
    return "sensors" if keep == ["sensors"] else tuple(keep or ())


def sensor_set(name_or_file: str, robot: str | None = None, tree: KinematicTree | None = None) -> SensorSet:
    """Return a shipped set of sensors by name, or one from a file, which may take those of the robot's own file.

    Raises:
        SensorConfigError: there is none, or it does not follow the schema.
    """
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


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table whose first column is text and whose others are figures."""
    result = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        result.add_column(escape(column), justify="left" if k == 0 else "right", overflow="fold")
    for row in rows:
        result.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    return result


def costs_table(candidates: Sequence[Candidate]) -> Table:
    """Return the table of orderings and what each costs a tick."""
    rows = [
        (
            f"{'*' if k == 0 else ' '} {c.ordering}",
            c.fill_in,
            c.published.total,
            c.cost.total,
            c.program.additions,
            c.program.multiplications + c.program.divisions,
            c.program.total,
            f"{c.stability.smallest_pivot:.0e}" if c.stability.smallest_pivot < 1 else "1",
        )
        for k, c in enumerate(candidates)
    ]
    columns = ("  ordering", "fill-in", "paper", "LU", "+ -", "x /", "program", "pivot")
    result = table("Operations a tick", columns, rows)
    caption = (
        "* is the one chosen. program: all that a tick computes, sines and cosines left out. "
        "LU: factors of D and both substitutions in this order, without structure finer than D's; "
        "paper: the same by the paper's own rule. pivot: the program's smallest one over random configurations, "
        "relative to its usual size."
    )
    if not has_umfpack():
        caption += " UMFPACK is not installed: its ordering comes with the extra 'umfpack'."
    result.caption = caption
    result.caption_justify = "left"
    return result


def cost_json(cost: Cost) -> dict[str, int]:
    """Return a cost as JSON."""
    return {
        "additions": cost.additions,
        "multiplications": cost.multiplications,
        "divisions": cost.divisions,
        "total": cost.total,
    }


def plan_json(plan: EliminationPlan) -> dict[str, Any]:
    """Return the sizes of a plan, its orderings and their costs as JSON, the chosen one first."""
    system = plan.system
    return {
        **tree_json(system.tree),
        "sensors": system.sensors.name,
        "rows": system.shape[0],
        "variables": system.shape[1],
        "nonzeros": int(plan.pattern.nnz),
        "outputs": [output.name for output in plan.outputs],
        "ordering": plan.ordering,
        "cost": cost_json(plan.cost),
        "stability": asdict(plan.stability),
        "orderings": [
            {
                "ordering": c.ordering,
                "fill_in": c.fill_in,
                "nonzeros": c.nonzeros,
                "lu": cost_json(c.cost),
                "program": cost_json(c.program),
                "stability": asdict(c.stability),
                "published_rule": cost_json(c.published),
            }
            for c in plan.candidates
        ],
    }


def tree_json(tree: KinematicTree) -> dict[str, Any]:
    """Return the sizes of a robot as JSON."""
    return {"robot": tree.name, "n_links": tree.n_links, "nq": tree.nq, "nv": tree.nv}
