"""nori-dyn bench: how fast this is here, beside others, and how many operations it takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nori_dyn.cli.common import Json, print_json
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import Table, number
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.bench.records import Record
    from nori_dyn.bench.report import Report
    from nori_dyn.bench.suites.base import Suite

ROBOT = "A robot instead of those that a suite of real robots has: a URDF or MJCF file, or a name; repeatable."


def bench(
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", metavar="SUITE", help="What to measure, or 'all'; repeatable. --list shows them."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few robots and rounds, for a first look.")] = False,
    robot: Annotated[list[str] | None, typer.Option("--robot", metavar="ROBOT", help=ROBOT)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to write bench.json, with raw samples, and pictures.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measure what a baseline holds: counts must be the same, ratios in a band.",
        ),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", metavar="FILE", help="Write counts and ratios as a baseline.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Number of rounds that runs take turns in.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the states.")] = 0,
    paper_counts: Annotated[
        Path | None,
        typer.Option("--paper-counts", metavar="FOLDER", help="Counts of the paper's scripts, to show beside ours."),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the suites and the peers, and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Measure against other libraries, and count operations.

    Without --suite, 'tick' is measured; with --check, what the baseline holds.

    Example: nori-dyn bench --suite tick --quick --out results
    """
    from nori_dyn.bench import baseline, drawing, report
    from nori_dyn.bench.suites.base import Options

    if list_all:
        _list(as_json)
        return
    expected = baseline.read(check) if check else None
    names = tuple(suite or (expected.suites if expected else ("tick",)))
    report.suites(names)
    if out:
        drawing.check_drawable()
        report.check_folder(out)
    if write_baseline:
        check_writable(write_baseline)
    if expected:
        quick, seed = expected.quick, expected.seed
    options = Options(quick, seed, tuple(robot or ()), rounds, paper_counts)
    with progress_bar("measuring") as stage:
        found = report.run(names, options, stage, (lambda *_: None) if as_json else _show)
    paths = report.write_report(found, out) if out else []
    if write_baseline:
        baseline.write(found, write_baseline)
    if as_json:
        print_json(found.to_dict())
    else:
        _show_left_out(found)
        for path in paths:
            show(f"Written: {path}")
    if expected:
        compared = expected.compare(found, check)
        if not as_json:
            show(f"As in {check}: {compared.counts} counts, and {compared.ratios} ratios in their band.")


def _show(suite: Suite, records: Sequence[Record]) -> None:
    tables = suite.tables(suite.title, records)
    if tables:
        show(*tables, *suite.notes)
        typer.echo()


def _show_left_out(found: Report) -> None:
    for case, name, off in found.wrong:
        show(f"{name} answers otherwise, by {number(off, 2)}, and was not timed: {case}")
    for name, reason in found.skipped.items():
        show(f"Left out: {name}: {reason}")


def _list(as_json: bool) -> None:
    from nori_dyn.bench.peers.registry import PEERS as peers
    from nori_dyn.bench.suites.registry import SUITES as suites

    if as_json:
        shown = {name: {"package": peer.package, "version": peer.version} for name, peer in peers.items()}
        print_json({"suites": {name: suite.title for name, suite in suites.items()}, "peers": shown})
        return
    found = {
        "Suites": [(name, suite.title) for name, suite in suites.items()],
        "Peers": [(name, f"{peer.package} {peer.version or 'is not installed'}") for name, peer in peers.items()],
    }
    show(*(Table(title, ("name", "what it is"), tuple(rows), left=(0, 1)) for title, rows in found.items()))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bench)
