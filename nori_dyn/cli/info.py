"""nori-dyn info: what a robot or a plan is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nori_dyn.cli.common import Base, Json, Keep, Lock, Strict, kept, print_json
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import read_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Facts, Part, Table, listed, unbroken

if TYPE_CHECKING:
    from nori_dyn.api.plan import Plan
    from nori_dyn.io.model_sensors import ModelSensor
    from nori_dyn.model.tree import KinematicTree


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
    from nori_dyn.api.plan import Plan
    from nori_dyn.io.robots import load_robot, model_sensors

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
    from nori_dyn.io.model_sensors import counted
    from nori_dyn.report.json_figures import tree_json

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
    parts: list[Part | str] = []
    if sensors:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in counted(sensors).items())
        parts.append(f"Sensors of its file: {counts}{'' if verbose else ' (--verbose lists them)'}.")
    if sensors and verbose:
        rows = tuple(
            (unbroken(s.name), s.type, unbroken(s.on), "" if s.entry else f"no row: {s.note}") for s in sensors
        )
        parts.append(Table("Sensors", ("name", "type", "on", "note"), rows, left=(0, 1, 2, 3)))
    show(tree.shown(), *parts, *((f"note: {problem}",) if problem else ()))


def _show_plan(plan: Plan, as_json: bool) -> None:
    from nori_dyn.report.json_figures import plan_json

    system = plan.system
    if as_json:
        print_json({**plan_json(plan), "measurements": list(system.measurement_names)})
        return
    show(plan.shown(), Facts(((f"y ({system.ny:,})", listed(system.measurement_names)),)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)
