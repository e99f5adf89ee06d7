"""nori-dyn place: which sensors to buy, for outputs that are to be determined, or to be known precisely."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import nori_dyn as nd
from nori_dyn.cli.common import named, named_contacts, next_command, refuse_given, show_found, special_poses
from nori_dyn.cli.options import Criterion, Json, Robot, RobotOptions
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.tables import unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.placement.design import Design, ParetoFront
    from nori_dyn.placement.selection import Placement

EFFORT = 200
"""Integer programs in search of something cheaper, at most."""


def place(
    ctx: typer.Context,
    robot: Robot,
    candidates: Path,
    outputs: str = "tau",
    best: Annotated[int | None, typer.Option(min=1, metavar="K")] = None,
    pareto: bool = False,
    deviation: Annotated[float | None, typer.Option(metavar="X")] = None,
    criterion: Criterion = "A",
    survive: Annotated[int, typer.Option(min=0, metavar="N")] = 0,
    where: Annotated[list[str] | None, typer.Option(metavar="POSE:FRAMES")] = None,
    poses: Path | None = None,
    contacts: Annotated[list[str] | None, typer.Option(metavar="STATE")] = None,
    html: Path | None = None,
    out: Path | None = None,
    *,
    model: RobotOptions,
    effort: Annotated[int, typer.Option(min=1)] = EFFORT,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Choose sensors: the cheapest that suffice, the best K, or what precision costs.

    Example: nori-dyn place icub.urdf --base floating --keep sensors --candidates what_to_buy.yaml --outputs tau

    Example: nori-dyn place panda.urdf --candidates what_to_buy.yaml --survive 1 --pareto --html front.html

    Args:
        ctx: The call.
        robot: A URDF or MJCF file, or the name of a robot of an installed package: panda, ur5, anymal, talos, icub;
            `nori-dyn robots` lists them.
        candidates: A YAML file: what is there, what there is to choose from, costs.
        outputs: What is to be determined, with commas: tau,qdd:l_knee,fx:l_sole; 'all' for everything.
        best: The best K sensors instead of the cheapest that suffice. Needs sigmas.
        pareto: All sets of which no other is both cheaper and more precise, instead of the cheapest. Needs sigmas.
        deviation: The cheapest from which outputs have a deviation of at most so much.
        criterion: What is least or limited: A, the sum of variances or root mean square; D, the determinant of the
            covariance or geometric mean.
        survive: How many of the chosen sensors, any of them, may fail.
        where: Special poses to look at, such as parallel:l_sole,r_sole; repeatable. parallel, coplanar, flat,
            double_support, closed, at_zero, at_limits. The choice has to suffice there too.
        poses: Poses to look at: .csv, .csv.gz or .npz, with q as in a log.
        contacts: A contact state in which the choice has to suffice: l_foot,r_foot, or none; repeatable. All when left
            out.
        html: Write what was found as a web page that stands alone.
        out: Write the chosen sensors as a YAML file for --sensors.
        model: See `RobotOptions`.
        effort: Integer programs to prove that nothing is cheaper.
        seed: Seed of everything random.
        as_json: Print the figures as JSON.
    """
    import yaml

    from nori_dyn.logs.reading import configurations_in
    from nori_dyn.placement.design import ParetoFront
    from nori_dyn.report.shows.models import tree_figures

    if pareto:
        refuse_given(ctx, ("best", "deviation", "out"), "does not go with --pareto.")
    elif best is not None:
        refuse_given(ctx, ("deviation",), "does not go with --best.")
    check_writable(out, html)
    wanted = None if outputs.strip() == "all" else named(outputs)
    kinds = ("a", "f", "tau", "fx", "qdd") if wanted is None else wanted
    tree = model.load(robot)
    choose_from = nd.placement.load_candidates(candidates, robot, tree)
    at: dict[str, Any] = {**special_poses(where or ())}
    if poses is not None:
        at[poses.name] = configurations_in(poses, nd.System(tree, choose_from.present.in_contact()))
    states = None if contacts is None else [named_contacts(state) for state in contacts]
    demand: dict[str, Any] = {"survive": survive, "where": at or None, "states": states, "seed": seed}
    found: Placement | Design | ParetoFront
    with progress_bar("placement") as stage:
        if pareto:
            found = nd.placement.pareto_front(
                tree, choose_from, kinds, criterion, effort=effort, progress=stage, **demand
            )
        elif best is None:
            found = nd.place(
                tree, choose_from, wanted, effort, progress=stage, deviation=deviation, criterion=criterion, **demand
            )
        else:
            found = nd.placement.best_sensors(tree, choose_from, best, kinds, criterion, progress=stage, **demand)
    if out is not None and not isinstance(found, ParetoFront):
        write_bytes(out, yaml.safe_dump(_without_empty(found.sensors.to_dict()), sort_keys=False).encode())
    if html is not None:
        nd.tools.save_html(found, html)
    lines = ["To use them: --out SENSORS.yaml writes them as a file for `nori-dyn plan --sensors`."]
    if isinstance(found, ParetoFront):
        lines = ["To buy one of them: --deviation X instead of --pareto takes the cheapest so precise."]
    elif out is not None:
        options = *model.words(), "--outputs", outputs, *(("--contacts", "all") if found.sensors.contacts else ())
        then = next_command("plan", robot, "--sensors", out, *options)
        lines = [f"Sensors written to {unbroken(str(out))}.", then]
    if html is not None:
        lines.insert(0, f"Page written to {unbroken(str(html))}.")
    show_found(found, as_json, *lines, **tree_figures(tree))


def _without_empty(content: Any) -> Any:
    """Content of a config without its empty fields."""
    if isinstance(content, dict):
        return {key: _without_empty(value) for key, value in content.items() if value not in (None, "")}
    return [_without_empty(value) for value in content] if isinstance(content, list) else content
