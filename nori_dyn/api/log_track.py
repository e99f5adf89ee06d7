"""Logs run through a filter, or a smoother: stretch by stretch, with flat memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from nori_dyn.api.log_file import metadata_of
from nori_dyn.api.log_run import LogRunner
from nori_dyn.api.plan import Plan
from nori_dyn.errors import InputError
from nori_dyn.filtering.history import History
from nori_dyn.filtering.instants import Ticks
from nori_dyn.filtering.smoother import STRETCH, Recorded, Stretch
from nori_dyn.logs.fields import not_estimated, schema_of, written
from nori_dyn.logs.log import Log
from nori_dyn.logs.reading import Reading
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.writer import SIGMA, Schema
from nori_dyn.system.variables import Variable
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
        said = {"has_time": True, "has_residual": False, "is_monitored": True}
        return schema_of(self.system, self.outputs, **said, metadata=metadata_of(self.plans, log), memory=self.memory)

    def written(self, schema: Schema, history: History) -> dict[str, Floats]:
        """Return what is written of some samples, by the names of the fields."""
        of = history.memory
        places = {v.name: of.places(v.name) for v in self.memory}
        more = {name: of.mean[:, own] for name, own in places.items()}
        more |= {f"{SIGMA}{name}": of.deviations[:, own] for name, own in places.items()}
        return written(schema, history.estimate, history, more)

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
            clock, begun = _Clock(self.options.dt), time.perf_counter()
            read = self._read(log, report, clock, stage)
            first = next(read)
            stage("compiling")
            ticks = self._ticks(begun, report)
            run = Recorded(ticks, clock.usual, ticks.first.beginning(), self.options.missing, self.options.singular)
            begun = time.perf_counter()
            parts = self._run(run, ticks, chain([first], read), folder, stage)
            for samples, history in parts:
                report.add(samples.numbers, history.estimate)
                report.seconds = time.perf_counter() - begun
                yield samples, history
            report.singular.sort()

    def _ticks(self, begun: float, report: LogReport) -> Ticks:
        """Return the filters, compiled."""
        plans, start = self.plans, time.perf_counter()
        if isinstance(plans, Plan):
            ticks = Ticks({(): plans}, (), self.options.backend, name=plans.system.sensors.name)
        else:
            ticks = Ticks(plans.plans, plans.contact_names, self.options.backend, name=plans.sensors.name)
        report.preparing += time.perf_counter() - start
        return ticks

    def _read(self, log: Log, report: LogReport, clock: _Clock, stage: Progress) -> Iterator[tuple[Samples, Floats]]:
        """Yield samples, as many as are worked on at once, with the time from the one before to each."""
        options, n = self.options, 0
        reading = Reading(self.systems, self.contacts, self.closed, options.differentiation, options.missing)
        for chunk in reading.chunks(log, report.counts):
            samples, steps = clock.told(chunk.samples)
            self.look_at(report, samples, n, None)
            n += len(samples)
            stage(f"read, {n / 1e3:,.0f} k", chunk.done)
            for start in range(0, len(samples), self.chunk):
                part = slice(start, start + self.chunk)
                yield samples.at(part), steps[part]

    def _run(
        self,
        run: Recorded,
        ticks: Ticks,
        read: Iterator[tuple[Samples, Floats]],
        folder: Path | None,
        stage: Progress,
    ) -> Iterator[tuple[Samples, History]]:
        n = 0

        def stretch_of(samples: Samples, steps: Floats, first: int) -> Stretch:
            assert samples.t is not None
            closed = None if samples.contacts is None else samples.contacts == 1
            N = len(samples)
            states = np.zeros(N, dtype=np.intp) if closed is None else ticks.planned.numbers_of(closed, N)
            return Stretch(first, samples.t, steps, states, samples.q, samples.qd, samples.y)

        if self.causal:
            waiting: deque[Samples] = deque()

            def as_read() -> Iterator[Stretch]:
                first = 0
                for samples, steps in read:
                    waiting.append(samples)
                    yield stretch_of(samples, steps, first)
                    first += len(samples)

            for history in run.filtered(as_read()):
                yield waiting.popleft(), history
            return
        stored = _Stored(folder)
        for samples, steps in read:
            stored.append(samples, stretch_of(samples, steps, n))
            n += len(samples)
        for k, history in enumerate(run.smoothed(stored)):
            stage(f"smoothed, {(k + 1) * self.chunk / 1e3:,.0f} k", (k + 1) / len(stored))
            yield stored.samples(len(stored) - 1 - k), history
