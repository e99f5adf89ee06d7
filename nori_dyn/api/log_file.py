"""Estimates of a log, written to a file while it is read: flat memory, and after a kill it goes on where it was."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from nori_dyn.api.log_run import LogRunner, Solved
from nori_dyn.api.plan import Plan
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import check_writable, reason
from nori_dyn.logs.fields import schema_of, written
from nori_dyn.logs.log import Log
from nori_dyn.logs.partial import Partial, identity_of
from nori_dyn.logs.registry import writer_of
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.writer import Schema, Writer
from nori_dyn.tables.progress import Watched
from nori_dyn.typing import Floats

AHEAD = 2
"""Chunks that may wait to be written."""


def estimate_to_file(
    runner: LogRunner,
    log: Log,
    out: str | os.PathLike[str],
    restart: bool = False,
    watched: Watched = None,
    checkpoint: int | None = None,
) -> LogReport:
    """Write what a plan estimates from a log to a file; it appears whole, or not at all.

    A run that is killed leaves a folder `OUT.partial`; the same run goes on from there, unless told otherwise.

    Args:
        runner: the plan, and how it is run.
        log: the log.
        out: the file of estimates, of any format that is written; its ending says which.
        restart: whether to begin anew where there is a part of the same run.
        watched: who watches the progress.
        checkpoint: samples after which a part is finished; that of the format when None.

    Raises:
        FileFormatError: the file cannot be written.
        NoriError: as `LogRunner.solved`.
    """
    out = Path(out)
    writer = writer_of(out)
    check_writable(out)
    partial = Partial.of(out, _identity(runner, log), restart)
    report = LogReport.from_dict(partial.state["report"]) if partial.state else LogReport()
    report.resumed = report.samples
    try:
        schema = _write(runner, log, partial, report, writer, watched, checkpoint)
        partial.finish(writer, schema)
    except OSError as error:
        raise FileFormatError(f"{out}: cannot be written: {reason(error)}.") from None
    finally:
        partial.tidy()
    return report


def write_whole(path: Path, schema: Schema, t: Floats | None, values: Mapping[str, Floats]) -> None:
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
    write_chunks(path, schema, lambda folder: [(t, values)])


def write_chunks(
    path: Path, schema: Schema, chunks: Callable[[Path], Iterable[tuple[Floats | None, Mapping[str, Floats]]]]
) -> None:
    """Write samples to a file as they come, whole or not at all.

    Args:
        path: the file.
        schema: what they are.
        chunks: given a folder for what it needs on the way, yields times (n,) [s], where they are known, and each field
            (n, *shape) by name; what it raises is raised, and then there is no file.

    Raises:
        FileFormatError: the file cannot be written, or its name ends in none that is known.
        MissingExtraError: the library for its format is not installed.
    """
    writer = writer_of(path)
    check_writable(path)
    partial = Partial.of(path, identity_of("saved"), restart=True)
    try:
        part, n = partial.new_part(), 0
        with writer(part, schema) as file:
            for t, values in chunks(partial.folder):
                file.write(t, values)
                n += len(next(iter(values.values())))
        partial.keep(part, n, {})
        partial.finish(writer, schema)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {reason(error)}.") from None
    finally:
        partial.tidy(goes_on=False)


def _write(
    runner: LogRunner,
    log: Log,
    partial: Partial,
    report: LogReport,
    writer: type[Writer],
    watched: Watched,
    checkpoint: int | None,
) -> Schema:
    """Write the parts that are not there yet, and return what they hold."""
    size = checkpoint or writer.checkpoint
    said = partial.state.get("said")
    schema = None if said is None else _schema(runner, said, log)
    if partial.state.get("is_complete"):
        assert schema is not None
        return schema
    with _Parts(partial, writer) as parts:
        chunks = runner.solved(log, report, partial.next, watched)
        for chunk in chunks:
            if schema is None:
                said = _said(chunk)
                schema = _schema(runner, said, log)
            t = chunk.samples.t if schema.has_time else None
            parts.write(schema, t, written(schema, chunk.estimate, chunk.diagnosis), len(chunk.samples))
            if size is not None and parts.waiting >= size:
                parts.close(chunk.following, {"report": report.to_dict(), "said": said})
        assert schema is not None  # `solved` refuses logs without a sample
        parts.close(-1, {"report": report.to_dict(), "said": said, "is_complete": True})
    return schema


class _Parts:
    """Writes parts in a thread of its own, as what is estimated comes.

    Args:
        partial: the parts that there are.
        writer: what writes one.
    """

    def __init__(self, partial: Partial, writer: type[Writer]) -> None:
        self._partial, self._writer = partial, writer
        self._queue: queue.Queue[Any] = queue.Queue(AHEAD)
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.waiting = 0

    def write(self, schema: Schema, t: Floats | None, values: dict[str, Floats], n: int) -> None:
        """Have samples written."""
        self.waiting += n
        self._put((schema, t, values))

    def close(self, following: int, state: dict[str, Any]) -> None:
        """Have the part finished: the next sample of the log is `following`."""
        if self.waiting:
            self._put((following, state))
        self.waiting = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._queue.put(None)
        self._thread.join()
        if kind is None and self._failed is not None:
            raise self._failed

    def _put(self, item: Any) -> None:
        if self._failed is not None:
            raise self._failed
        self._queue.put(item)

    def _run(self) -> None:
        part: Writer | None = None
        while (item := self._queue.get()) is not None:
            if self._failed is not None:
                continue
            try:
                if len(item) == 3:
                    schema, t, values = item
                    part = self._writer(self._partial.new_part(), schema) if part is None else part
                    part.write(t, values)
                elif part is not None:
                    part.close()
                    self._partial.keep(part.path, *item)
                    part = None
            except BaseException as error:
                self._failed = error
        if part is not None:  # it is not whole, and nobody will take it for that
            with suppress(Exception):
                part.close()


def _said(chunk: Solved) -> dict[str, bool]:
    """Return what is known of the estimates of a log, as their first chunk has it."""
    return {
        "has_time": chunk.samples.t is not None,
        "has_residual": not np.isnan(np.asarray(chunk.estimate.residual)).all(),
        "is_monitored": chunk.diagnosis is not None,
    }


def _schema(runner: LogRunner, said: dict[str, Any], log: Log) -> Schema:
    return schema_of(runner.system, runner.outputs, **said, metadata=metadata_of(runner.plans, log), memory=())


def metadata_of(plans: Plan, log: Log) -> dict[str, str]:
    """Return what a file of estimates says of itself."""
    return {
        "nori_dyn.version": version("nori_dyn"),
        "nori_dyn.robot": plans.tree.name,
        "nori_dyn.sensors": plans.sensors.name,
        "nori_dyn.fingerprint": fingerprint_of(plans),
        "nori_dyn.log": log.path.name,
    }


def fingerprint_of(plans: Plan) -> str:
    """Return what tells one plan, or plan set, from others: the fingerprint of its system, or of all of them."""
    each = [one.system.fingerprint for one in plans.states.values()]
    return identity_of(each) if plans.contact_names else each[0]


def _identity(runner: LogRunner, log: Log) -> str:
    """Return what a run is: its plan, its log, its mapping, and how it is run."""
    facts = [[str(path), os.stat(path).st_size, os.stat(path).st_mtime_ns] for path in _files(log.path)]
    mapping = None if log.mapping is None else log.mapping.model_dump_json()
    options = repr(runner.options)
    outputs = [output.name for output in runner.outputs]
    return identity_of(version("nori_dyn"), fingerprint_of(runner.plans), outputs, facts, mapping, options)


def _files(path: Path) -> Iterator[Path]:
    path = path.resolve()
    if path.is_dir():
        yield from sorted(each for each in path.rglob("*") if each.is_file())
    else:
        yield path
