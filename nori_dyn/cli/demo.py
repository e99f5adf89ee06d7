"""nori-dyn demo: the main job on a real humanoid."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import next_command, show_found
from nori_dyn.cli.options import Json
from nori_dyn.io.files import check_writable, read_bytes, write_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Document, Paragraph, Table, number
from nori_dyn.tables.progress import progress_bar


def demo(
    log: Path | None = None,
    out: Path = Path("nori_demo.png"),
    ticks: Annotated[int, typer.Option(min=2)] = 1000,
    as_json: Json = False,
) -> None:
    """Show inverse dynamics of the iCub humanoid, or write a sample log.

    The humanoid is planned once, and solved tick by tick at random states.

    Example: nori-dyn demo --log pendulum.csv

    Example: nori-dyn demo --out icub.png

    Args:
        log: Write a sample log instead, of a real double pendulum, to try `nori-dyn estimate` on (.csv).
        out: The picture to write.
        ticks: Number of ticks.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.demo import run_demo, sample_log
    from nori_dyn.report.pictures import draw_plan

    if log is not None:
        check_writable(log)
        write_bytes(log, gzip.decompress(read_bytes(sample_log())))
        show(
            f"Eight seconds of a real double pendulum written to {log}.",
            next_command("estimate", log, "--robot", "double_pendulum"),
        )
        return
    check_writable(out)
    with progress_bar("inverse dynamics of iCub"):
        found = run_demo(ticks)
        draw_plan(found.plan, out)
    tree, planned = found.plan.system.tree, found.plan.shown()
    timings = tuple((name, *(number(1e6 * each) for each in times)) for name, times in found.timings.items())
    parts = (
        Paragraph(f"with a floating base, inverse dynamics, planned in {found.planning_seconds:.2f} s.", tree.name),
        *planned.parts,
        Table(f"Time a tick [us], {ticks:,} ticks", ("backend", "25 %", "median", "75 %"), timings),
        f"Largest difference from Newton-Euler: {number(found.largest_difference, 2)} of the largest torque.",
        f"Picture of D, its permutation and its factors: {out}",
        *(f"note: {line}" for line in (*found.warnings, *tree.notes)),
    )
    figures = {
        **planned.data(),
        "planning_seconds": found.planning_seconds,
        "ticks": ticks,
        "tick_seconds": found.timings,
        "largest_difference": found.largest_difference,
        "picture": str(out),
    }
    show_found(Document(parts, figures), as_json)
