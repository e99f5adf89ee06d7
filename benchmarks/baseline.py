"""A committed baseline: counted operations, which must be the same, and ratios, which may not fall far.

Times are not kept: they are the machine's. A ratio to a peer that is not installed is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.records import Record
from benchmarks.report import Report
from nori_dyn.errors import FileFormatError, NoriError
from nori_dyn.io.files import read_text, write_bytes

FORMAT = 1

BAND = 2.5
"""Factor by which a ratio may fall before it is a regression: machines differ, and others work on them."""

SHOWN = 20
"""Number of differences that a message lists."""


class RegressionError(NoriError):
    """A fresh run that is not as the baseline says.

    Attributes:
        differences: what differs, a line each.
    """

    def __init__(self, differences: tuple[str, ...], path: Path | None, skipped: Mapping[str, str]) -> None:
        self.differences = differences
        lines = [f"{len(differences)} figures are not as in {path}:", *differences[:SHOWN]]
        if len(differences) > SHOWN:
            lines.append(f"... and {len(differences) - SHOWN} more")
        lines += [f"left out here: {name}: {reason}" for name, reason in skipped.items()]
        lines.append("Where the change is meant, write the baseline anew with --write-baseline, and say why.")
        super().__init__("\n  ".join(lines))


class Baseline(BaseModel):
    """Counts and ratios by suite and by name, and how they were measured."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    quick: bool
    seed: Annotated[int, Field(ge=0)]
    counts: dict[str, dict[str, int]]
    ratios: dict[str, dict[str, Annotated[float, Field(gt=0)]]]

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that it holds."""
        return tuple(dict.fromkeys((*self.counts, *self.ratios)))

    def compare(self, report: Report, path: Path | None = None) -> Compared:
        """Compare a fresh run with it; only what the run measured.

        Raises:
            RegressionError: a count is not the same, or missing; or a ratio fell out of its band.
        """
        fresh = baseline_of(report)
        different, n_counts, n_ratios = [], 0, 0
        for suite in report.records:
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
            raise RegressionError(tuple(different), path, report.skipped)
        return Compared(n_counts, n_ratios)


@dataclass(frozen=True, slots=True)
class Compared:
    """How many figures were compared, and found as they should be."""

    counts: int
    ratios: int


def baseline_of(report: Report) -> Baseline:
    """Return the counts and ratios of a report."""
    counts = {suite: dict(_counts(records)) for suite, records in report.records.items()}
    ratios = {suite: dict(_ratios(records)) for suite, records in report.records.items()}
    return Baseline(
        quick=report.options.quick,
        seed=report.options.seed,
        counts={suite: found for suite, found in counts.items() if found},
        ratios={suite: found for suite, found in ratios.items() if found},
    )


def read(path: Path) -> Baseline:
    """Return the baseline in a file.

    Raises:
        FileFormatError: it cannot be read, or is no baseline.
    """
    try:
        return Baseline.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        where = f" at '{place}'" if place else ""
        raise FileFormatError(
            f"{path}: is not a baseline{where}: {first['msg']}. Write one with --write-baseline."
        ) from None


def write(report: Report, path: Path) -> None:
    """Write the baseline of a report to a file.

    Raises:
        FileFormatError: it cannot be written.
    """
    data = baseline_of(report).model_dump()
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode())


def _counts(records: Sequence[Record]) -> Iterator[tuple[str, int]]:
    for record in records:
        for name, count in record.counts.items():
            yield f"{record.label}: {name}", count


def _ratios(records: Sequence[Record]) -> Iterator[tuple[str, float]]:
    for record in records:
        for name in record.seconds if record.own else ():
            if name != record.own:
                yield f"{record.label}: {name} over {record.own}", round(record.ratio(name)[1], 3)
