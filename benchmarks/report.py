"""Running suites, and what comes of it: JSON with raw samples, and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import benchmarks.suites.registry as registry
from benchmarks.drawing import write_picture
from benchmarks.machine import machine, versions
from benchmarks.records import Record
from benchmarks.suites.base import Options, Suite
from nori_dyn.errors import FileFormatError, NoriError, UnknownNameError
from nori_dyn.io.files import check_writable, write_bytes
from nori_dyn.tables.progress import Progress

FORMAT = 1

ALL = "all"


class UnknownSuiteError(UnknownNameError):
    """A suite that does not exist."""


class NothingMeasuredError(NoriError):
    """Nothing that was asked for could be measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What was measured.

    Attributes:
        options: what the suites were told.
        records: the records by suite.
    """

    options: Options
    records: Mapping[str, Sequence[Record]]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, raw samples among it, as JSON has it."""
        return {
            "format": FORMAT,
            "machine": machine(),
            "versions": versions(),
            "quick": self.options.quick,
            "seed": self.options.seed,
            "suites": {name: [asdict(record) for record in records] for name, records in self.records.items()},
        }

    @property
    def skipped(self) -> dict[str, str]:
        """Who was left out at least once, and why."""
        found: dict[str, set[str]] = {}
        for records in self.records.values():
            for record in records:
                for name, reason in record.skipped.items():
                    found.setdefault(name, set()).add(reason)
        return {name: "; ".join(sorted(reasons)) for name, reasons in found.items()}

    @property
    def wrong(self) -> list[tuple[str, str, float]]:
        """Each answer that differs from ours: the case, whose it is, and by how much."""
        return [
            (f"{suite}: {record.label}", name, off)
            for suite, records in self.records.items()
            for record in records
            for name, off in record.wrong.items()
        ]


def suites(names: Sequence[str]) -> list[Suite]:
    """Return suites by name, or all of them.

    Raises:
        UnknownSuiteError: there is no such suite.
    """
    known = registry.SUITES
    for name in names:
        if name != ALL and name not in known:
            raise UnknownSuiteError("suite", name, (*known, ALL))
    return [suite for name, suite in known.items() if ALL in names or name in names]


def run(
    names: Sequence[str],
    options: Options,
    progress: Progress,
    finished: Callable[[Suite, Sequence[Record]], None] = lambda suite, records: None,
) -> Report:
    """Run suites by name.

    Args:
        names: their names, or "all".
        options: what they are told.
        progress: shows how far it is.
        finished: is given each suite and its records as soon as they are there.

    Raises:
        UnknownSuiteError: there is no such suite.
        NothingMeasuredError: no robot is there, or none has what is asked for.
        ModelError: there is no such robot.
    """
    records = {}
    for suite in suites(names):
        records[suite.name] = suite.measure(options, progress)
        finished(suite, records[suite.name])
    report = Report(options, records)
    if not any(record.seconds or record.counts for found in records.values() for record in found):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in report.skipped.items())
        raise NothingMeasuredError(f"nothing could be measured. {reasons}")
    return report


def check_folder(folder: Path) -> None:
    """Check, before the work, that a report can be written to a folder, and make it.

    Raises:
        FileFormatError: it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: this folder cannot be made: {error.strerror}.") from None
    check_writable(folder / "bench.json")


def write_report(report: Report, folder: Path, pictures: bool = True) -> list[Path]:
    """Write bench.json and a PNG a suite to a folder; return their paths.

    Raises:
        FileFormatError: a file cannot be written.
    """
    paths = [folder / "bench.json"]
    write_bytes(paths[0], json.dumps(report.to_dict(), indent=1).encode())
    for suite in suites(tuple(report.records)):
        records = report.records[suite.name]
        if pictures and any(record.seconds or record.counts for record in records):
            paths.append(folder / f"{suite.name}.png")
            write_picture(suite.draw, records, paths[-1])
    return paths
