"""Many logs through one plan, on the cores of this machine or on a cluster: each to a file of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.estimation.log_file import estimate_to_file, is_of_run, run_of
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.logs.formats.registry import writer_of
from nori_dyn.logs.log import Log, logs_called, read_log
from nori_dyn.logs.mapping.log_mapping import LogMapping, load_mapping
from nori_dyn.logs.report import LogReport
from nori_dyn.observe.sweep import Workers, spread
from nori_dyn.tables.progress import Watched, progress_bar

OTHERWISE = ".parquet"
"""The format of estimates of logs whose own is not written."""


@dataclass(frozen=True, slots=True)
class LogOutcome:
    """What came of one log of many.

    Attributes:
        log: the log.
        out: its file of estimates.
        report: what is reported of it; None where it was not run, or failed.
        error: why it failed; "" where it did not. Without a report its estimates were there before.
    """

    log: Path
    out: Path
    report: LogReport | None = None
    error: str = ""


WriteEstimates: TypeAlias = Callable[[LogRunner, Log, Path, Watched], LogReport]


def _estimate_log(
    runner: LogRunner, mapping: LogMapping | None, write: WriteEstimates, part: tuple[Path, Path]
) -> LogOutcome:
    """Run one log to its file: what workers do."""
    log, out = part
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        opened = read_log(log, mapping)
        if is_of_run(out, run_of(runner, opened)):
            return LogOutcome(log, out)
        report = write(runner, opened, out, False)
    except Exception as error:  # the rest is to finish, whatever is wrong with this one
        kind = "" if type(error).__module__.startswith("nori_dyn.") else f"{type(error).__name__}: "
        return LogOutcome(log, out, error=f"{kind}{error}")
    return LogOutcome(log, out, report)


def estimate_logs(
    runner: LogRunner,
    pattern: str,
    folder: str | os.PathLike[str],
    mapping: LogMapping | str | os.PathLike[str] | None = None,
    workers: Workers = None,
    watched: Watched = None,
    write: WriteEstimates = estimate_to_file,
) -> list[LogOutcome]:
    """Write what a plan estimates from each of many logs; one that fails does not keep the others from it.

    A log is not run whose file of estimates is there and says that it is of the same plan, log, mapping and options. A
    log whose worker dies is run again by another.

    Args:
        runner: the plan, and how it is run; it is compiled before any worker starts.
        pattern: which logs, "runs/*.mcap" or "runs/**/*.parquet".
        folder: where the estimates go, under the names of the logs.
        mapping: a mapping, or its YAML file, the same for all.
        workers: number of processes on this machine, all cores when None; or an executor of `concurrent.futures`, such
            as that of a cluster, which sees the same files.
        watched: who watches the progress.
        write: what writes the estimates of each.

    Raises:
        InputError: there is no such log, or the estimates would take its place.
        MappingError: the mapping does not follow its schema.
        SweepError: workers fail.
        NoriError: what compiling the plan refuses.
    """
    parts = _parts(pattern, Path(folder))
    known = load_mapping(os.fspath(mapping)) if isinstance(mapping, str | os.PathLike) else mapping
    task = partial(_estimate_log, runner, known, write)
    sizes = [_size(log) for log, _ in parts]
    with progress_bar(f"estimating {len(parts)} logs", watched) as stage:
        stage("compiling")
        runner.compile()
        begun = time.perf_counter()

        def tell(found: Mapping[int, LogOutcome]) -> None:
            reports = [each.report for each in found.values() if each.report is not None]
            rate = sum(report.samples for report in reports) / max(time.perf_counter() - begun, 1e-9)
            done = sum(sizes[k] for k in found) / max(sum(sizes), 1)
            stage(f"running, {len(found)} done, {rate:,.0f} samples a second", done)

        return spread(task, parts, workers, tell, lost=_lost)


def _lost(part: tuple[Path, Path]) -> LogOutcome:
    why = "the processes that ran it died, one after the other. Is there enough memory?"
    return LogOutcome(*part, error=f"{part[0]}: {why}")


def _parts(pattern: str, folder: Path) -> list[tuple[Path, Path]]:
    """The logs that a pattern names, and where the estimates of each go.

    Raises:
        InputError: there is none, or the estimates would take its place.
    """
    logs = logs_called(pattern)
    above = Path(os.path.commonpath([log.parent for log in logs]))
    parts = [(log, folder / _written_as(log.relative_to(above))) for log in logs]
    for log, out in parts:
        if out.resolve() == log.resolve():
            raise InputError(f"{log}: the estimates would take its place. Name another folder by --out.")
    return parts


def _written_as(log: Path) -> Path:
    """The name of the file of estimates of a log: its own, where its format is written."""
    try:
        writer_of(log)
    except FileFormatError:
        return log.with_name(log.name + OTHERWISE)
    return log


def _size(log: Path) -> int:
    return sum(each.stat().st_size for each in log.rglob("*")) if log.is_dir() else log.stat().st_size
