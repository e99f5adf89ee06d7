"""Suites run, and what comes of it: JSON with raw samples, and the comparison with a committed baseline.

A baseline has counted operations, which must be the same, and ratios, which may not fall far. Times are the machine's
and not kept; a ratio to a peer that is not installed is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.harness import Result
from benchmarks.machine import machine, versions
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.registry import SUITES
from nori_dyn.errors import FileFormatError, NoriError, UnknownNameError
from nori_dyn.io.files import check_writable, read_text, write_bytes
from nori_dyn.tables.progress import Progress

FORMAT = 1

ALL = "all"

BAND = 2.5
"""Factor by which a ratio may fall before it is a regression: machines differ, and others work on them."""

SHOWN = 20
"""Number of differences that a message lists."""


class UnknownSuiteError(UnknownNameError):
    """A suite that does not exist."""


class NothingMeasuredError(NoriError):
    """Nothing that was asked for could be measured."""


class RegressionError(NoriError):
    """Figures that are not as in a baseline."""

    def __init__(self, differences: Sequence[str], path: Path | None, skipped: Mapping[str, str]) -> None:
        lines = [f"{len(differences)} figures are not as in {path}:", *differences[:SHOWN]]
        if len(differences) > SHOWN:
            lines.append(f"... and {len(differences) - SHOWN} more")
        lines += [f"left out here: {name}: {reason}" for name, reason in skipped.items()]
        lines.append("Where the change is meant, write the baseline anew with --write-baseline, and say why.")
        super().__init__("\n  ".join(lines))


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What suites found, told by these options."""

    options: Options
    results: Mapping[str, Sequence[Result]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "machine": machine(),
            "versions": versions(),
            "quick": self.options.quick,
            "seed": self.options.seed,
            "suites": {name: [asdict(result) for result in results] for name, results in self.results.items()},
        }

    @property
    def skipped(self) -> dict[str, str]:
        """Who was left out at least once, and why."""
        found: dict[str, dict[str, None]] = {}
        for result in (result for results in self.results.values() for result in results):
            for name, reason in result.skipped.items():
                found.setdefault(name, {})[reason] = None
        return {name: "; ".join(reasons) for name, reasons in found.items()}

    @property
    def wrong(self) -> list[tuple[str, str, float]]:
        """Each answer that differs from ours: the case, whose it is, and by how much."""
        return [
            (f"{suite}: {result.label}", name, off)
            for suite, results in self.results.items()
            for result in results
            for name, off in result.wrong.items()
        ]


def suites(names: Sequence[str]) -> list[Suite]:
    """Suites by name, or all of them."""
    for name in names:
        if name != ALL and name not in SUITES:
            raise UnknownSuiteError("suite", name, (*SUITES, ALL))
    return [suite for name, suite in SUITES.items() if ALL in names or name in names]


def run(
    names: Sequence[str], options: Options, progress: Progress, finished: Callable[[Suite, Sequence[Result]], None]
) -> Report:
    """Run suites; `finished` is given each with its results as soon as they are there.

    Raises:
        UnknownSuiteError: there is no such suite.
        NothingMeasuredError: no robot is there, or none has what is asked for.
        ModelError: there is no such robot.
    """
    results = {}
    for suite in suites(names):
        results[suite.name] = suite.measure(options, progress)
        finished(suite, results[suite.name])
    report = Report(options, results)
    if not any(one.seconds or one.counts or one.figures for found in results.values() for one in found):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in report.skipped.items())
        raise NothingMeasuredError(f"nothing could be measured. {reasons}")
    return report


def report_path(folder: Path) -> Path:
    """The file of a report in a folder, which is made, and can be written.

    Raises:
        FileFormatError: it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"{folder}: this folder cannot be made: {error.strerror}.") from None
    check_writable(folder / "bench.json")
    return folder / "bench.json"


class Baseline(BaseModel):
    """Counts and ratios by suite and by name, and how they were measured."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    quick: bool
    seed: Annotated[int, Field(ge=0)]
    counts: dict[str, dict[str, int]]
    ratios: dict[str, dict[str, Annotated[float, Field(gt=0)]]]

    @staticmethod
    def of(report: Report) -> Baseline:
        counts: dict[str, dict[str, int]] = {}
        ratios: dict[str, dict[str, float]] = {}
        for suite, result in ((suite, result) for suite, found in report.results.items() for result in found):
            for name, n in result.counts.items():
                counts.setdefault(suite, {})[f"{result.label}: {name}"] = n
            for name in result.seconds if result.own else ():
                if name != result.own:
                    key = f"{result.label}: {name} over {result.own}"
                    ratios.setdefault(suite, {})[key] = round(result.ratio(name)[1], 3)
        return Baseline(quick=report.options.quick, seed=report.options.seed, counts=counts, ratios=ratios)

    @staticmethod
    def read(path: Path) -> Baseline:
        """Read a file.

        Raises:
            FileFormatError: it cannot be read, or is no baseline.
        """
        try:
            return Baseline.model_validate_json(read_text(path))
        except ValidationError as error:
            first = error.errors()[0]
            where = f" at '{'.'.join(map(str, first['loc']))}'" if first["loc"] else ""
            raise FileFormatError(
                f"{path}: is not a baseline{where}: {first['msg']}. Write one with --write-baseline."
            ) from None

    def write(self, path: Path) -> None:
        write_bytes(path, (json.dumps(self.model_dump(), indent=1) + "\n").encode())

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.counts, *self.ratios)))

    def compare(self, report: Report, path: Path | None = None) -> tuple[int, int]:
        """Numbers of counts and of ratios of a fresh run that are as they should be.

        Raises:
            RegressionError: a count is not the same, or missing; or a ratio fell out of its band.
        """
        fresh, different, n_counts, n_ratios = Baseline.of(report), [], 0, 0
        for suite in report.results:
            now = fresh.counts.get(suite, {})
            for name, count in self.counts.get(suite, {}).items():
                n_counts += 1
                if name not in now:
                    different.append(f"{suite}: {name}: {count:,} before, not counted now")
                elif now[name] != count:
                    different.append(f"{suite}: {name}: {count:,} before, {now[name]:,} now")
            ratios = fresh.ratios.get(suite, {})
            for name, ratio in self.ratios.get(suite, {}).items():
                if name in ratios:
                    n_ratios += 1
                    if ratios[name] < ratio / BAND:
                        different.append(f"{suite}: {name}: {ratio:.3g} times faster before, {ratios[name]:.3g} now")
        if different:
            raise RegressionError(different, path, report.skipped)
        return n_counts, n_ratios
