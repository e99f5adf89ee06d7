"""Estimates of a log in a file: written while the log is read, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.errors import NoriError
from nori_dyn.estimation.log_run import LogPart, LogRunner
from nori_dyn.estimation.plan import Plan
from nori_dyn.filtering.history import History
from nori_dyn.io.files import check_writable, drafted
from nori_dyn.logs.ahead import prefetched
from nori_dyn.logs.fields import not_estimated, remembered, schema_of, written
from nori_dyn.logs.formats.registry import open_log, writer_of
from nori_dyn.logs.formats.writer import DIGEST, FileSchema, digest_of
from nori_dyn.logs.log import Log
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.spool import Spool
from nori_dyn.tables.progress import Watched
from nori_dyn.typing import Floats

Rows: TypeAlias = tuple[Floats | None, Mapping[str, Floats]]
"""What is written of samples: times (n,) [s], where they are known, and each field (n, *shape) by name."""

RUN = "nori_dyn.run"
"""Metadata that say which run estimates are of; see `run_of`."""


def estimate_to_file(runner: LogRunner, log: Log, out: str | os.PathLike[str], watched: Watched = None) -> LogReport:
    """Write the estimates of a log to a file; it appears whole, or not at all.

    What a smoother reads forward and writes backward waits on the same disk, in files without a name.

    Args:
        runner: the plan, and how it is run.
        log: the log.
        out: the file of estimates, of any format that is written; its ending says which.
        watched: who watches the progress.

    Raises:
        FileFormatError: the file cannot be written.
        NoriError: as `LogRunner.parts`.
    """
    out, report = Path(out), LogReport()

    def rows(folder: Path) -> Iterator[tuple[FileSchema, Rows]]:
        schema: FileSchema | None = None
        with Spool(folder) as backward:
            for part in runner.parts(log, report, folder, watched):
                schema = schema or schema_for(runner, log, part)
                found = part.t, values_of(runner, schema, part)
                if runner.is_backward:
                    backward.append(found)
                else:
                    yield schema, found
            while backward and schema is not None:
                yield schema, backward.pop()

    _write(out, rows)
    return report


def write_whole(path: Path, schema: FileSchema, t: Floats | None, values: Mapping[str, Floats]) -> None:
    """Write samples to a file of any format that is written, whole or not at all.

    Args:
        path: the file.
        schema: what they are.
        t: their times (n,) [s], where they are known.
        values: each field (n, *shape), by name.

    Raises:
        FileFormatError: the file cannot be written, or its name ends in none that is known.
        MissingExtraError: the library for its format is not installed.
    """
    _write(path, lambda folder: iter([(schema, (t, values))]))


def _write(out: Path, rows: Callable[[Path], Iterator[tuple[FileSchema, Rows]]]) -> None:
    """Write samples to a file as they come; they are made in a thread of their own, with a folder for what waits."""
    made = writer_of(out)
    check_writable(out)
    with drafted(out) as draft, closing(prefetched(rows(draft.parent))) as waiting:
        schema, first = next(waiting)  # logs without a sample are refused
        file = made(draft, schema)
        try:
            for t, values in chain([first], (found for _, found in waiting)):
                file.write(t, values)
        except BaseException:
            with suppress(Exception):  # it is not whole, and nobody will take it for that
                file.close()
            raise
        file.close()


def schema_for(runner: LogRunner, log: Log, part: LogPart) -> FileSchema:
    """Schema of the file of estimates of a log, as a part of them shows.

    Estimates over time are written with their memory, which no output tells.
    """
    return schema_of(
        runner.system,
        runner.outputs,
        has_time=part.t is not None,
        has_residual=not np.isnan(np.asarray(part.estimate.residual)).all(),
        is_monitored=part.judged is not None,
        metadata=metadata_of(runner.plans) | {"nori_dyn.log": log.path.name, RUN: run_of(runner, log)},
        memory=_memory(runner) if isinstance(part.judged, History) else (),
        recognised=part.judged.recorded if isinstance(part.judged, History) else (),
    )


def values_of(runner: LogRunner, schema: FileSchema, part: LogPart) -> dict[str, Floats]:
    """Values of the fields of a part, by name."""
    more = dict[str, Floats]()
    if isinstance(part.judged, History):
        more = remembered(_memory(runner), part.judged) | part.judged.recorded
    return written(schema, part.estimate, part.judged, more)


def _memory(runner: LogRunner) -> tuple[Any, ...]:
    return not_estimated([one.variable for one in runner.system.memory], runner.outputs)


def metadata_of(plans: Plan) -> dict[str, str]:
    """What estimates say of the plan that they are by."""
    return {
        "nori_dyn.version": version("nori_dyn"),
        "nori_dyn.robot": plans.tree.name,
        "nori_dyn.sensors": plans.sensors.name,
        "nori_dyn.fingerprint": fingerprint_of(plans),
    }


def fingerprint_of(plans: Plan) -> str:
    """Fingerprint of a plan: that of its system, or of the systems of all contact states."""
    each = [system.fingerprint for system in plans.systems.values()]
    return _digest(each) if plans.contact_names else each[0]


def run_of(runner: LogRunner, log: Log) -> str:
    """Digest of a run: of its plan, its log by size and time of change, its mapping, its options."""
    files = sorted(each for each in log.path.rglob("*") if each.is_file()) if log.path.is_dir() else [log.path]
    facts = [[each.name, each.stat().st_size, each.stat().st_mtime_ns] for each in files]
    mapping = None if log.mapping is None else log.mapping.model_dump_json()
    outputs = [output.name for output in runner.outputs]
    return _digest(version("nori_dyn"), fingerprint_of(runner.plans), outputs, facts, mapping, repr(runner.options))


def is_of_run(out: Path, run: str) -> bool:
    """Whether a file of estimates is there, and is by its own words of a run; see `run_of`."""
    try:
        with open_log(out) as source:
            metadata = source.metadata
    except NoriError:
        return False
    if metadata.get(RUN) != run:
        return False
    return DIGEST not in metadata or metadata[DIGEST] == digest_of(out)


def _digest(*what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:32]
