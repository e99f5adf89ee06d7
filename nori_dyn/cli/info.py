"""nori-dyn info: what a robot or a plan is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import (
    Base,
    Json,
    Lock,
    Strict,
    console,
    costs_table,
    plan_json,
    print_json,
    table,
    tree_json,
)
from nori_dyn.io.files import read_bytes
from nori_dyn.io.plans import Plan
from nori_dyn.io.robots import load_robot
from nori_dyn.model.tree import KinematicTree


def info(
    what: Annotated[str, typer.Argument(metavar="ROBOT|PLAN", help="A robot as in `plan`, or a plan file.")],
    base: Base = Base.FIXED,
    lock: Lock = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Show what a robot or a plan is: links, joints, measurements, operations.

    Example: nori-dyn info panda.urdf
    """
    if Path(what).is_file() and read_bytes(what)[:1] == b"{":
        _show_plan(Plan.load(what), as_json)
    else:
        _show_tree(load_robot(what, base=base.value, locked=tuple(lock or ()), strict=strict), as_json)


def _show_tree(tree: KinematicTree, as_json: bool) -> None:
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
        print_json({**tree_json(tree), "mass": sum(masses), "links": links, "frames": sorted(tree.frames)})
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
    for note in tree.notes:
        console.print(f"note: {note}", markup=False)


def _show_plan(plan: Plan, as_json: bool) -> None:
    system = plan.system
    if as_json:
        print_json({**plan_json(plan), "measurements": list(system.measurement_names)})
        return
    console.print(
        f"Plan for {system.tree.name} with {system.sensors.name}: {system.shape[0]} equations in {system.shape[1]} "
        f"unknowns, {plan.pattern.nnz} nonzeros; outputs {', '.join(output.name for output in plan.outputs)}."
    )
    console.print(costs_table(plan.candidates))
    names = ", ".join(system.measurement_names)
    console.print(f"y has {system.ny} numbers: {names}", markup=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)
