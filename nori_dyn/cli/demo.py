"""nori-dyn demo: the main job on a real humanoid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Json, print_json
from nori_dyn.demo import run_demo
from nori_dyn.io.files import check_writable
from nori_dyn.report.json_figures import plan_json
from nori_dyn.report.pictures import draw_plan
from nori_dyn.report.progress import progress
from nori_dyn.report.tables import console, costs_table, table


def demo(
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("nori_demo.png"),
    ticks: Annotated[int, typer.Option(min=2, help="Number of ticks, a millisecond each.")] = 1000,
    as_json: Json = False,
) -> None:
    """Inverse dynamics of the iCub humanoid: planned once, solved at every tick of a smooth motion.

    Example: nori-dyn demo --out icub.png
    """
    check_writable(out)
    with progress("inverse dynamics of iCub"):
        found = run_demo(ticks)
        draw_plan(found.plan, out)
    plan = found.plan
    system = plan.system
    tree, (rows, columns) = system.tree, system.shape
    if as_json:
        print_json(
            {
                **plan_json(plan),
                "planning_seconds": found.planning_seconds,
                "ticks": found.n_ticks,
                "tick_seconds": {timing.name: timing.quartiles for timing in found.timings},
                "largest_difference": found.largest_difference,
                "picture": str(out),
            }
        )
        return
    console.print(
        f"[bold]{tree.name}[/bold], floating base: {tree.n_links} links, {tree.nv} freedoms. "
        f"Inverse dynamics is {rows} equations in {columns} unknowns, {plan.pattern.nnz:,} nonzeros "
        f"({100 * plan.pattern.nnz / (rows * columns):.2f} %). Planned in {found.planning_seconds:.2f} s.\n"
    )
    console.print(costs_table(plan.tried))
    timings = [(timing.name, *(f"{1e6 * seconds:,.1f}" for seconds in timing.quartiles)) for timing in found.timings]
    console.print(table(f"Time a tick [us], {found.n_ticks} ticks", ("backend", "25 %", "median", "75 %"), timings))
    console.print(f"Largest difference from Newton-Euler: {found.largest_difference:.1e} of the largest torque.")
    console.print(f"Picture of D, its permutation and its factors: {out}")
    for line in (*found.warnings, *tree.notes):
        console.print(f"note: {line}", markup=False, style="dim")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)
