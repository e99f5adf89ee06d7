"""nori-dyn info: what a robot or a plan is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from nori_dyn.api.plan import Plan
from nori_dyn.cli.common import Base, Json, Keep, Lock, Strict, kept, print_json
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import read_bytes
from nori_dyn.io.model_sensors import ModelSensor, counted
from nori_dyn.io.robots import load_robot, model_sensors
from nori_dyn.model.tree import KinematicTree
from nori_dyn.report.json_figures import plan_json, tree_json
from nori_dyn.report.tables import console, costs_table, table


def info(
    what: Annotated[str, typer.Argument(metavar="ROBOT|PLAN", help="A robot as in `plan`, or a plan file.")],
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    strict: Strict = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="List the sensors of the robot's file by name.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a robot or a plan is: links, joints, sensors, measurements, operations.

    Example: nori-dyn info panda.urdf
    """
    if Path(what).is_file() and read_bytes(what)[:1] == b"{":
        _show_plan(Plan.load(what), as_json)
    else:
        tree = load_robot(what, base=base.value, locked=tuple(lock or ()), kept=kept(keep), strict=strict)
        try:
            sensors, problem = model_sensors(what), ""
        except FileFormatError as error:  # the robot is usable without them
            sensors, problem = (), f"its sensors cannot be read: {error}"
        _show_tree(tree, sensors, problem, verbose, as_json)


def _show_tree(tree: KinematicTree, sensors: Sequence[ModelSensor], problem: str, verbose: bool, as_json: bool) -> None:
    masses = [float(I[5, 5]) for I in tree.I]
    if as_json:
        links = [
            {
                "name": tree.names[i],
                "joint": tree.joint_names[i],
                "kind": tree.joints[i].kind,
                "parent": None if tree.is_root(i) else tree.names[tree.parents[i]],
                "mass": masses[i],
            }
            for i in range(tree.n_links)
        ]
        listed = [{"name": s.name, "type": s.type, "on": s.on, "measurement": s.entry, "note": s.note} for s in sensors]
        print_json(
            {
                **tree_json(tree),
                "mass": sum(masses),
                "links": links,
                "frames": sorted(tree.frames),
                "sensors": listed,
                "notes": [*tree.notes, *([problem] if problem else [])],
            }
        )
        return
    console.print(
        f"{tree.name}: {tree.n_links} moving links, nq = {tree.nq}, nv = {tree.nv}, "
        f"moving mass {sum(masses):.3f} kg, {len(tree.frames)} further frames, depth {max(tree.depths())}."
    )
    rows = [
        (
            str(i),
            tree.names[i],
            tree.joint_names[i],
            tree.joints[i].kind,
            "world" if tree.is_root(i) else tree.names[tree.parents[i]],
            f"{masses[i]:.3f}",
        )
        for i in range(tree.n_links)
    ]
    view = table("Links", ("#", "link", "joint", "kind", "parent", "mass [kg]"), rows)
    for column in view.columns[1:5]:
        column.justify = "left"
    console.print(view)
    if sensors:
        counts = ", ".join(f"{n} {kind}" for kind, n in counted(sensors).items())
        hint = "" if verbose else " (--verbose lists them)"
        console.print(f"Sensors of its file: {counts}{hint}.", markup=False)
    if sensors and verbose:
        console.print(_sensors_table(sensors))
    for note in (*tree.notes, *([problem] if problem else [])):
        console.print(f"note: {note}", markup=False)


def _sensors_table(sensors: Sequence[ModelSensor]) -> Table:
    rows = [(s.name, s.type, s.on, "" if s.entry else f"no row: {s.note}") for s in sensors]
    view = table("Sensors", ("name", "type", "on", "note"), rows)
    for column in view.columns[1:]:
        column.justify = "left"
    return view


def _show_plan(plan: Plan, as_json: bool) -> None:
    system = plan.system
    if as_json:
        print_json({**plan_json(plan), "measurements": list(system.measurement_names)})
        return
    console.print(
        f"Plan for {system.tree.name} with {system.sensors.name}: {system.shape[0]} equations in {system.shape[1]} "
        f"unknowns, {plan.pattern.nnz} nonzeros; outputs {', '.join(output.name for output in plan.outputs)}."
    )
    console.print(costs_table(plan.tried))
    names = ", ".join(system.measurement_names)
    console.print(f"y has {system.ny} numbers: {names}", markup=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)
