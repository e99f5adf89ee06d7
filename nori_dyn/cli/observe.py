"""nori-dyn observe: whether sensors suffice, what they do not see, and at which poses."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nori_dyn.cli.common import (
    Base,
    Json,
    Keep,
    Lock,
    Robot,
    Strict,
    console,
    kept,
    print_json,
    sensor_set,
    table,
    tree_json,
)
from nori_dyn.io.logs import read_configurations
from nori_dyn.io.progress import progress
from nori_dyn.io.robots import load_robot
from nori_dyn.observability.null_space import Unseen
from nori_dyn.observability.poses import POSES
from nori_dyn.observability.report import NEARLY_SINGULAR, ObservabilityReport, Where, observability
from nori_dyn.system.builder import System

SHOWN = 6
"""Most poses of a file, and most variables, that are listed."""


def _where(asked: list[str] | None) -> Where:
    """Return the special poses that are asked for, as `NAME:FRAME,FRAME`; "auto" for none."""
    if not asked:
        return "auto"
    where: dict[str, Sequence[str]] = {}
    for text in asked:
        name, _, frames = text.partition(":")
        if name not in POSES:
            raise typer.BadParameter(f"'{name}' is no special pose. Known: {', '.join(POSES)}.", param_hint="--where")
        if name in where:
            raise typer.BadParameter(f"'{name}' is given twice.", param_hint="--where")
        where[name] = tuple(frame.strip() for frame in frames.split(",") if frame.strip())
    return where


def observe(
    robot: Robot,
    sensors: Annotated[str, typer.Option(help="A shipped set of sensors, or a YAML file.")],
    base: Base = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    poses: Annotated[
        Path | None, typer.Option(help="Configurations to look at too: .csv, .csv.gz or .npz, with q as in a log.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POSE:FRAMES",
            help=f"Special poses to look at, such as parallel:l_sole,r_sole; repeatable. {', '.join(POSES)}. "
            "The likely ones when left out.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Tell whether a robot's sensors suffice, what they do not see, and at which poses.

    The exit status is 0 if they do, at almost every configuration and at each one asked for by --poses or --where;
    otherwise 1.

    Example: nori-dyn observe icub.urdf --base floating --sensors load_cells_five --where parallel:l_sole,r_sole
    """
    asked = _where(where)
    tree = load_robot(robot, base=base.value, locked=tuple(lock or ()), kept=kept(keep), strict=strict)
    system = System(tree, sensor_set(sensors, robot, tree))
    configurations = None if poses is None else read_configurations(poses, system)
    with progress("observability"):
        report = observability(system, configurations, asked, seed)
    if as_json:
        print_json({**tree_json(tree), **_json(report)})
    else:
        _show(report)
    if _fails(report, asked):
        raise typer.Exit(1)


def _fails(report: ObservabilityReport, asked: Where) -> bool:
    """Return whether the sensors do not suffice, in general or where it was asked."""
    at_poses = bool((report.rank_at < report.n_variables).any())
    return not report.is_observable or at_poses or (asked != "auto" and bool(report.loses_rank))


def _show(report: ObservabilityReport) -> None:
    """Print a report: the verdict, why, what is not determined, and the poses."""
    n = report.n_variables
    short = bool((report.rank_at < n).any())
    if not report.is_observable:
        verdict = "Not observable"
        rest = f"{len(report.unobservable):,} of {n:,} unknowns are not determined, whatever the pose."
    elif short or report.loses_rank:
        verdict, rest = "Observable, but not at every pose", f"all {n:,} unknowns are determined at almost every one."
    else:
        verdict, rest = "Observable", f"all {n:,} unknowns are determined at almost every pose."
    console.print(f"[bold]{verdict}[/bold]: {rest}")
    size = f"{report.n_rows:,} equations of rank {report.generic_rank:,}, {report.deficiency:,} short"
    console.print(f"{report.sensors} on {report.robot}: {size}.", markup=False)
    if report.numerical_rank < report.generic_rank:
        console.print(
            f"Do not build on it: it is so in exact arithmetic only, in doubles the rank is {report.numerical_rank:,}.",
            style="bold",
        )
    if report.unseen:
        console.print("\nWhat the sensors do not see:")
        _show_unseen(report.unseen)
        _show_names(report.unobservable)
    if report.conditions:
        _show_poses(report)
    if len(report.rank_at):
        _show_configurations(report)
    console.print(
        f"\nThe verdict is exact, but for a chance of {report.error:.0e}; what is said of special poses and of "
        "given ones is numerical.",
        style="dim",
    )


def _show_unseen(parts: Sequence[Unseen]) -> None:
    for part in parts:
        several = f" ({part.dimension} independent)" if part.dimension > 1 else ""
        words = textwrap.fill(part.words + several, console.width, initial_indent="  - ", subsequent_indent="    ")
        console.print(words, markup=False)


def _show_names(names: Sequence[str]) -> None:
    counts = Counter(name.partition(".")[0] for name in names)
    sources_first = sorted(counts, key=lambda name: not name.startswith(("fx:", "qdd:")))
    shown = [f"{name} ({counts[name]})" if counts[name] > 1 else name for name in sources_first]
    more = f" and {len(shown) - SHOWN} more (--json lists all)" if len(shown) > SHOWN else ""
    console.print(f"\nNot determined: {', '.join(shown[:SHOWN])}{more}.", markup=False)


def _show_poses(report: ObservabilityReport) -> None:
    rows = [(c.meaning, int(c.ranks.min()), c.lost, _margin(c.smallest.min())) for c in report.conditions]
    console.print()
    console.print(table("Special poses", ("pose", "rank", "lost", "margin"), rows))
    console.print(
        "lost: ranks fewer than at almost every pose. margin: how near the pose comes to losing another, from 1 (far) "
        f"to 0; below {NEARLY_SINGULAR:.0e} (!) it is nearly singular."
    )
    known = {part.words for part in report.unseen}
    fresh = {part.words: part for c in report.loses_rank for part in c.unseen if part.words not in known}
    if fresh:
        console.print("\nWhat the sensors do not see where ranks are lost:")
        _show_unseen([*fresh.values()])


def _margin(smallest: float) -> str:
    return f"{smallest:.0e}" + (" !" if smallest < NEARLY_SINGULAR else "")


def _show_configurations(report: ObservabilityReport) -> None:
    short = np.flatnonzero(report.rank_at < report.n_variables)
    nearly = int(np.sum(report.smallest_at < NEARLY_SINGULAR))
    console.print(
        f"\nOf {len(report.rank_at):,} poses given, {len(short):,} lack rank and {nearly:,} are nearly singular; the "
        f"smallest margin is {report.smallest_at.min():.0e}."
    )
    if len(short):
        shown = ", ".join(f"{k} (by {report.n_variables - report.rank_at[k]})" for k in short[:SHOWN])
        more = f" and {len(short) - SHOWN:,} more" if len(short) > SHOWN else ""
        console.print(f"Those that lack it, counted from 0: {shown}{more}.")


def _json(report: ObservabilityReport) -> dict[str, Any]:
    """Return a report as JSON."""
    return {
        "sensors": report.sensors,
        "rows": report.n_rows,
        "variables": report.n_variables,
        "is_observable": report.is_observable,
        "generic_rank": report.generic_rank,
        "structural_rank": report.structural_rank,
        "numerical_rank": report.numerical_rank,
        "deficiency": report.deficiency,
        "error": report.error,
        "unobservable": list(report.unobservable),
        "unseen": _unseen_json(report.unseen),
        "conditions": [
            {
                "condition": c.condition,
                "frames": list(c.frames),
                "ranks": c.ranks.tolist(),
                "margins": c.smallest.tolist(),
                "lost": c.lost,
                "unseen": _unseen_json(c.unseen),
                "configurations": c.configurations.tolist(),
            }
            for c in report.conditions
        ],
        "rank_at": report.rank_at.tolist(),
        "margin_at": report.smallest_at.tolist(),
    }


def _unseen_json(parts: Sequence[Unseen]) -> list[dict[str, Any]]:
    return [
        {
            "words": part.words,
            "dimension": part.dimension,
            "links": list(part.links),
            "joints": list(part.joints),
            "vectors": [dict(vector.coefficients) for vector in part.vectors],
        }
        for part in parts
    ]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(observe)
