"""Measure against other libraries, and count operations.

python -m benchmarks tick --quick --out results
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.harness import Result
from benchmarks.peers.registry import MANY, PEERS
from benchmarks.report import Baseline, Report
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.registry import SUITES
from nori_dyn.errors import NoriError
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Table, number
from nori_dyn.tables.progress import progress_bar


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for: exit status 1 on an error, such as a count that is not that of the baseline."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("suites", nargs="*", metavar="SUITE", help="what to measure, or 'all'; 'tick' when left out")
    add("--quick", action="store_true", help="few robots and rounds, for a first look")
    add("--robot", action="append", default=[], help="measure on this one: a URDF or MJCF file, or a name; repeatable")
    add("--out", type=Path, metavar="FOLDER", help="where to write bench.json, with raw samples")
    add("--check", type=Path, metavar="FILE", help="measure what a baseline holds: same counts, ratios in a band")
    add("--write-baseline", type=Path, metavar="FILE", help="write counts and ratios as a baseline")
    add("--rounds", type=int, help="number of rounds that runs take turns in")
    add("--seed", type=int, default=0, help="seed of the states")
    add("--paper-counts", type=Path, metavar="FOLDER", help="counts of the paper's scripts, to show beside ours")
    add("--data", type=Path, default=Options().data, metavar="FOLDER", help="where logs of real robots are")
    add("--realtime", action="store_true", help="a live stream's processes before all others, with the right to")
    add("--list", action="store_true", help="list the suites and the peers, and stop")
    add("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args(arguments)
    try:
        if given.list:
            _list()
        else:
            _measure(given)
    except NoriError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _measure(given: argparse.Namespace) -> None:
    expected = Baseline.read(given.check) if given.check else None
    names = tuple(given.suites or (expected.suites if expected else ("tick",)))
    report.suites(names)
    path = report.report_path(given.out) if given.out else None
    if given.write_baseline:
        check_writable(given.write_baseline)
    quick, seed = (expected.quick, expected.seed) if expected else (given.quick, given.seed)
    asked = given.rounds, given.paper_counts, given.data, given.realtime
    options = Options(quick, seed, tuple(given.robot), *asked)
    with progress_bar("measuring") as stage:
        found = report.run(names, options, stage, (lambda *_: None) if given.json else _show)
    if path:
        write_bytes(path, json.dumps(found.to_dict(), indent=1).encode())
    if given.write_baseline:
        Baseline.of(found).write(given.write_baseline)
    if given.json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        _show_left_out(found)
    if expected:
        counts, ratios = expected.compare(found, given.check)
        if not given.json:
            show(f"As in {given.check}: {counts} counts, and {ratios} ratios in their band.")


def _show(suite: Suite, results: Sequence[Result]) -> None:
    tables = suite.tables(suite.title, results)
    if tables:
        show(*tables, *suite.notes, "")


def _show_left_out(found: Report) -> None:
    for case, name, off in found.wrong:
        show(f"{name} answers otherwise, by {number(off, 2)}, and was not timed: {case}")
    for name, reason in found.skipped.items():
        show(f"Left out: {name}: {reason}")


def _list() -> None:
    found = {
        "Suites": [(name, suite.title) for name, suite in SUITES.items()],
        "Peers": [
            (name, f"{peer.package} {peer.version or 'is not installed'}") for name, peer in {**PEERS, **MANY}.items()
        ],
    }
    show(*(Table(title, ("name", "what it is"), tuple(rows), left=(0, 1)) for title, rows in found.items()))


if __name__ == "__main__":
    main()
