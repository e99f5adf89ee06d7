"""nori-dyn info: what a robot, a plan or a plan set is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Inertias,
    Json,
    Keep,
    Lock,
    Mended,
    Strict,
    is_planned,
    load,
    next_command,
    planned_json,
    print_json,
    robot_options,
)
from nori_dyn.errors import FileFormatError
from nori_dyn.report.terminal import show
from nori_dyn.tables import Facts, Part, Table, listed, unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.io.model_sensors import ModelSensor
    from nori_dyn.model.tree import KinematicTree


MOST_NAMES = 4
"""Joints that a note names; others are counted."""


def info(
    what: Annotated[
        str, typer.Argument(metavar="ROBOT|PLAN", help="A robot as in `plan`, or the file of a plan or plan set.")
    ],
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    inertias: Mended = Inertias.AS_GIVEN,
    strict: Strict = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="List the sensors of the robot's file by name.")] = False,
    frames: Annotated[
        bool,
        typer.Option("--frames", help="List the links and frames of a robot, by which sensors and outputs are named."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a robot, a plan or a plan set is.

    Example: nori-dyn info panda.urdf
    """
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.io.robots import model_sensors

    if is_planned(what):
        _show_plans(Plan.load(what), as_json)
        return
    tree = load(what, base, lock, keep, components, strict, inertias)
    if frames and not as_json:
        show(_frames(tree))
        return
    try:
        sensors, notes = model_sensors(what), [*_odd(tree)]
    except FileFormatError as error:  # the robot is usable without them
        sensors, notes = (), [*_odd(tree), f"its sensors cannot be read: {error}"]
    _show_tree(tree, sensors, notes, verbose, as_json)
    if not as_json and any(sensor.entry for sensor in sensors):
        walks = any(sensor.type == "accelerometer" for sensor in sensors)  # an arm on a table needs none
        options = robot_options(Base.FLOATING if walks else base, lock, keep or ["sensors"], components, inertias)
        show(next_command("observe", what, "--sensors", "own_sensors", *options))


def _frames(tree: KinematicTree) -> Table:
    """Return the names of all places that sensors and outputs can be at, and the link that each is fixed to."""
    frames = {name: "world" if frame.on_world else tree.names[frame.link] for name, frame in tree.frames.items()}
    links = {name: name for name in tree.names}
    rows = tuple((unbroken(name), unbroken(link)) for name, link in {**links, **frames}.items())
    return Table(f"Links and frames of {tree.name}", ("name", "fixed to"), rows, left=(0, 1))


def _odd(tree: KinematicTree) -> Iterator[str]:
    """Yield notes on joints whose limits the file does not tell, and on those that move nothing that has inertia."""
    import numpy as np

    from nori_dyn.recursions import crba

    limited = {i for i, joint in enumerate(tree.joints) if np.isfinite(joint.room).any()}
    kinds = ("revolute", "prismatic")
    names = [tree.joint_names[i] for i, joint in enumerate(tree.joints) if joint.kind in kinds and i not in limited]
    if names:
        yield f"revolute or prismatic, and without limits: {listed(names, MOST_NAMES)}"
    inertias = crba(tree, tree.random_configuration(0)).diagonal()
    names = [name for name, at in zip(tree.joint_names, tree.v_slices, strict=True) if (inertias[at] <= 0).any()]
    if names:
        yield (
            f"without inertia: all that moves with {listed(names, MOST_NAMES)}. Forward dynamics are singular: give "
            "the links a mass, lock the joints, or add rotors"
        )


def _show_tree(
    tree: KinematicTree, sensors: Sequence[ModelSensor], notes: Sequence[str], verbose: bool, as_json: bool
) -> None:
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
                "frames": {
                    name: None if frame.on_world else tree.names[frame.link] for name, frame in tree.frames.items()
                },
                "sensors": listed,
                "notes": [*tree.notes, *notes],
            }
        )
        return
    parts: list[Part | str] = ["Places for sensors and outputs: --frames lists all links and frames."]
    if sensors:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in counted(sensors).items())
        parts.append(f"Sensors of its file: {counts}{'' if verbose else ' (--verbose lists them)'}.")
    if sensors and verbose:
        rows = tuple(
            (unbroken(s.name), s.type, unbroken(s.on), "" if s.entry else f"no row: {s.note}") for s in sensors
        )
        parts.append(Table("Sensors", ("name", "type", "on", "note"), rows, left=(0, 1, 2, 3)))
    show(tree.shown(), *parts, *(f"note: {note}" for note in notes))


def _show_plans(plans: Plan, as_json: bool) -> None:
    names = plans.measurement_names
    if as_json:
        print_json({**planned_json(plans), "measurements": list(names)})
        return
    show(plans.shown(), Facts(((f"y ({len(names):,})", listed(names)),)))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(info)
