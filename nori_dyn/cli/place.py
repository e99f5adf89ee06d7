"""nori-dyn place: which sensors to buy, for outputs that are to be determined, or to be known precisely."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Criterion,
    Json,
    Keep,
    Lock,
    Mended,
    Robot,
    Strict,
    load,
    next_command,
    print_json,
    robot_options,
)
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.placement.design import Design
    from nori_dyn.placement.selection import Placement

SECONDS = 60.0
"""Longest search for something cheaper [s]."""


def place_(
    robot: Robot,
    candidates: Annotated[Path, typer.Option(help="A YAML file: what is there, what there is to choose from, costs.")],
    outputs: Annotated[
        str, typer.Option(help="What is to be determined, with commas: tau,qdd:l_knee,fx:l_sole; 'all' for everything.")
    ] = "tau",
    best: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="The best K sensors instead of the cheapest that suffice. Needs sigmas."),
    ] = None,
    criterion: Annotated[
        Criterion, typer.Option(help="Of the best: A for the least sum of variances, D for the least determinant.")
    ] = "A",
    html: Annotated[Path | None, typer.Option(help="Write what was found as a web page that stands alone.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the chosen sensors as a YAML file for --sensors.")] = None,
    base: Base = "fixed",
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    seconds: Annotated[float, typer.Option(help="Time to prove that nothing is cheaper.")] = SECONDS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    inertias: Mended = "as_given",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Choose sensors: the cheapest that suffice, or the best K.

    Example: nori-dyn place icub.urdf --base floating --keep sensors --candidates what_to_buy.yaml --outputs tau
    """
    import yaml

    from nori_dyn.placement.candidates import load_candidates
    from nori_dyn.placement.design import best_sensors
    from nori_dyn.placement.selection import place
    from nori_dyn.report.html import save_html
    from nori_dyn.report.shows.models import tree_figures

    for file in (out, html):
        if file is not None:
            check_writable(file)
    wanted = None if outputs.strip() == "all" else tuple(name.strip() for name in outputs.split(","))
    tree = load(robot, base, lock, keep, components, strict, inertias)
    choose_from = load_candidates(candidates, robot, tree)
    found: Placement | Design
    with progress_bar("placement") as stage:
        if best is None:
            found = place(tree, choose_from, wanted, seconds, seed, stage)
        else:
            kinds = ("a", "f", "tau", "fx", "qdd") if wanted is None else wanted
            found = best_sensors(tree, choose_from, best, kinds, criterion, seed=seed, progress=stage)
    if out is not None:
        write_bytes(out, yaml.safe_dump(_without_empty(found.sensors.to_dict()), sort_keys=False).encode())
    if html is not None:
        save_html(found, html)
    if as_json:
        print_json({**tree_figures(tree), **found.to_dict()})
        return
    if out is None:
        show(found.shown(), "To use them: --out SENSORS.yaml writes them as a file for `nori-dyn plan --sensors`.")
        return
    then = next_command(
        "plan", robot, "--sensors", out, *robot_options(base, lock, keep, components, inertias), "--outputs", outputs
    )
    show(found.shown(), f"Sensors written to {unbroken(str(out))}.", then)


def _without_empty(content: Any) -> Any:
    """Content of a config without its empty fields."""
    if isinstance(content, dict):
        return {key: _without_empty(value) for key, value in content.items() if value not in (None, "")}
    return [_without_empty(value) for value in content] if isinstance(content, list) else content


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("place")(place_)
