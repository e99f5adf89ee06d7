"""Logs run through a filter, or a smoother: stretch by stretch, with flat memory."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from nori_dyn.api.log_file import metadata_of, write_chunks
from nori_dyn.api.log_run import LogRunner
from nori_dyn.api.track_samples import Clock, Read, Stored
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.history import History
from nori_dyn.filtering.history_summary import Summary
from nori_dyn.filtering.instants import Ticks
from nori_dyn.filtering.smoother import STRETCH, Recorded, Stretch
from nori_dyn.logs.fields import not_estimated, remembered, schema_of, written
from nori_dyn.logs.log import Log
from nori_dyn.logs.reading import Reading
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.spool import Spool
from nori_dyn.logs.writer import Schema
from nori_dyn.system.variables import Variable
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Progress, Watched, progress_bar
from nori_dyn.typing import Floats

Unseen: TypeAlias = Literal["keep", "refuse"]
"""What to do with what persists and no reading tells anything of: keep what was known at first, or refuse the log."""


@dataclass(frozen=True, eq=False)
class LogTracker(LogRunner):
    """Runs logs through a filter or a smoother, which is compiled once.

    Attributes:
        causal: whether each sample is estimated from the readings up to it; otherwise from all.
        unseen: what to do with what persists and no reading tells anything of.
        chunk: samples that are worked on at once.
    """

    causal: bool = False
    unseen: Unseen = "keep"
    chunk: int = STRETCH

    def __post_init__(self) -> None:
        LogRunner.__post_init__(self)
        if self.chunk < 1:
            raise InputError(f"chunk is {self.chunk}: at least one sample is worked on at once.")

    @property
    def memory(self) -> tuple[Variable, ...]:
        """What persists and is no output of the plan."""
        return not_estimated([one.variable for one in self.system.memory], self.outputs)

    def schema(self, log: Log) -> Schema:
        """Return what a file of the estimates holds: outputs, what persists, and how sure they are."""
        said: dict[str, Any] = {"has_time": True, "has_residual": False, "is_monitored": True}
        return schema_of(self.system, self.outputs, **said, metadata=metadata_of(self.plans, log), memory=self.memory)

    def written(self, schema: Schema, history: History) -> dict[str, Floats]:
        """Return what is written of some samples, by the names of the fields."""
        return written(schema, history.estimate, history, remembered(self.memory, history.memory))

    def histories(
        self, log: Log, report: LogReport, folder: Path | None = None, watched: Watched = None
    ) -> Iterator[tuple[Samples, History]]:
        """Yield samples with their estimates: in their order those of a filter, from the last back of a smoother.

        Args:
            log: the log.
            report: takes what is told of it.
            folder: where samples wait on the disk for a smoother; in memory when None.
            watched: who watches the progress.

        Raises:
            InputError: as `LogRunner.solved`; times that do not increase, or none at all.
            SingularSystemError: something is not determined; says what and when.
            PlanError: nothing persists, see `Filter`.
            FileFormatError, MappingError, BackendError, UnplannedStateError: as `LogRunner.solved`.
        """
        with progress_bar(log.path.name[-24:], watched) as stage:
            clock = Clock(self.options.dt)
            read = self._read(log, report, clock, stage)
            first = next(read)
            stage("compiling")
            begun = time.perf_counter()
            ticks = self._ticks()
            report.preparing, begun = time.perf_counter() - begun, time.perf_counter()
            beginning = ticks.first.beginning()
            run = Recorded(ticks, clock.usual, beginning, self.options.missing, self.options.singular)
            whole = chain([first], read)
            parts = self._filtered(run, whole) if self.causal else self._back(run, whole, folder, stage)
            for samples, history in parts:
                report.add(samples.numbers, history.estimate)
                report.seconds = time.perf_counter() - begun
                yield samples, history
            report.singular.sort()

    def check_unseen(self, summary: Summary) -> None:
        """Refuse what persists and no reading tells anything of, if it is to be refused.

        Raises:
            SingularSystemError: there is some; says what.
        """
        if self.unseen == "refuse" and summary.unseen:
            raise SingularSystemError(
                f"no reading tells anything of {listed(summary.unseen, 6)}: what would be said of it is what was known "
                "at first. Take it out of the memory, or keep it at that: --unseen keep."
            )

    def _ticks(self) -> Ticks:
        """Return the filters, compiled."""
        plans = self.plans
        return Ticks(plans.states.plans, plans.contact_names, self.options.backend, name=plans.sensors.name)

    def _read(self, log: Log, report: LogReport, clock: Clock, stage: Progress) -> Iterator[Read]:
        """Yield samples, as many as are worked on at once, with the time from the one before to each."""
        options, n = self.options, 0
        reading = Reading(self.systems, self.contacts, self.closed, options.differentiation, options.missing)
        for chunk in reading.chunks(log, report.counts):
            samples, steps = clock.told(chunk.samples)
            self.look_at(report, log, samples, n, None)
            n += len(samples)
            stage(f"read, {n / 1e3:,.0f} k", chunk.done)
            for start in range(0, len(samples), self.chunk):
                part = slice(start, start + self.chunk)
                yield samples.at(part), steps[part]

    def _stretch(self, ticks: Ticks, samples: Samples, steps: Floats, first: int) -> Stretch:
        """Return samples as filters take them.

        Args:
            ticks: the filters.
            samples: the samples, with times.
            steps: the time from the one before to each (n,) [s].
            first: how many came before them.
        """
        assert samples.t is not None  # the clock has seen to it
        states = np.zeros(len(samples), dtype=np.intp)
        if samples.contacts is not None:
            states = ticks.planned.numbers_of(samples.contacts == 1, len(samples))
        weights = self.weights(samples)
        return Stretch(first, samples.t, steps, states, samples.q, samples.qd, samples.y, weights)

    def _filtered(self, run: Recorded, read: Iterator[Read]) -> Iterator[tuple[Samples, History]]:
        """Yield samples with the estimates of a filter."""
        waiting: deque[Samples] = deque()

        def stretches() -> Iterator[Stretch]:
            first = 0
            for samples, steps in read:
                waiting.append(samples)
                yield self._stretch(run.ticks, samples, steps, first)
                first += len(samples)

        for history in run.filtered(stretches()):
            yield waiting.popleft(), history

    def _back(
        self, run: Recorded, read: Iterator[Read], folder: Path | None, stage: Progress
    ) -> Iterator[tuple[Samples, History]]:
        """Yield samples with the estimates of a smoother, from the last back."""
        stored = Stored(partial(self._stretch, run.ticks), folder)
        for samples, steps in read:
            stored.append(samples, steps)
        for k, history in enumerate(run.smoothed(stored)):
            stage("smoothing", (k + 1) / len(stored))
            yield stored.samples(len(stored) - 1 - k), history


def track_to_file(
    tracker: LogTracker, log: Log, out: str | os.PathLike[str], watched: Watched = None
) -> tuple[LogReport, Summary]:
    """Write what a filter or a smoother estimates from a log to a file; it appears whole, or not at all.

    What a smoother reads forward and writes backward waits on the disk, in a folder beside the file.

    Args:
        tracker: the plan, and how it is run.
        log: the log.
        out: the file of estimates, of any format that is written; its ending says which.
        watched: who watches the progress.

    Raises:
        FileFormatError: the file cannot be written.
        NoriError: as `LogTracker.histories`, and `LogTracker.check_unseen`.
    """
    schema, report, told = tracker.schema(log), LogReport(), _Told()

    def rows(folder: Path) -> Iterator[tuple[Floats, dict[str, Floats]]]:
        spool = None if tracker.causal else Spool(folder / "estimates")
        names = [each.name for each in schema.fields]
        for _, history in tracker.histories(log, report, folder / "samples", watched):
            told.add(history.summary)
            values = tracker.written(schema, history)
            if spool is None:
                yield history.t, values
            else:
                spool.append([history.t, *(values[name] for name in names)])
        tracker.check_unseen(told.summary)
        while spool:
            t, *each = spool.pop()
            yield t, dict(zip(names, each, strict=True))

    write_chunks(Path(out), schema, rows)
    return report, told.summary


class _Told:
    """What is said in the end, as parts come: those of a filter in their order, of a smoother from the last back."""

    def __init__(self) -> None:
        self._whole: Summary | None = None

    @property
    def summary(self) -> Summary:
        assert self._whole is not None  # logs without a sample are refused
        return self._whole

    def add(self, part: Summary) -> None:
        whole = self._whole
        self._whole = part if whole is None else Summary.joined([whole, part] if part.is_causal else [part, whole])
