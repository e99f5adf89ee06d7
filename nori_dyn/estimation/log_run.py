"""One way through a log for every estimator: of single instants, with a monitor or without, a filter, a smoother."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.errors import InputError, NoriError, SingularSystemError
from nori_dyn.estimation.plan import Plan, check_plan
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.estimation.sample_times import SampleTimes
from nori_dyn.filtering.collisions import CollisionChart
from nori_dyn.filtering.free_coordinates import no_memory
from nori_dyn.filtering.history import History
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.hypothesis_passes import HypothesisPasses, RecognisedStretches
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import ContactPrograms
from nori_dyn.filtering.localization import TouchedSurfaces
from nori_dyn.filtering.smoother import ContactPasses, Passes, Stretch, Stretches
from nori_dyn.logs.log import Log
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.reading import SampleReader
from nori_dyn.logs.report import LogReport, look_at
from nori_dyn.logs.samples import Samples, samples_by_state
from nori_dyn.logs.spool import Spool
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.outputs import Output
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import unusable
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Progress, Watched, progress_bar
from nori_dyn.typing import Floats, Indices

TimedSamples: TypeAlias = tuple[int, Samples, Floats]
"""What is worked on at once: how many samples came before, the samples, and the time from the one before to each (n,)
[s]."""


@dataclass(frozen=True, slots=True, eq=False)
class LogPart:
    """Estimates of samples of a log that follow each other.

    Attributes:
        numbers: which samples of the log they are (n,), from 0.
        t: their times (n,) [s], where they are known.
        estimate: the estimates.
        judged: how sure they are: of single instants what a monitor says, where it was asked.
    """

    numbers: Indices
    t: Floats | None
    estimate: Estimate
    judged: Diagnosis | History | None


@dataclass(frozen=True, eq=False)
class LogRunner:
    """An estimator for logs: a plan, or a plan set, and how it is run.

    Plans of sensors with memory run over time: as a filter, or as a smoother if that is asked for.

    Attributes:
        plans: the plan, or the plans of contact states.
        options: how.

    Raises:
        WrongKindError: no plan.
        InputError: contacts or a monitor where there are none.
        UnknownSensorNameError: there is no such contact.
    """

    plans: Plan
    options: RunOptions = field(default_factory=RunOptions)

    def __post_init__(self) -> None:
        check_plan(self.plans, "a run over a log")
        if not self.contacts:
            if self.options.closed is not None or self.options.hypotheses is not None:
                raise InputError("contacts can be chosen for a plan set; this plan is for one contact state.")
        elif self.options.hypotheses is not None and not self.is_over_time:
            raise no_memory(self.plans.sensors.name)
        if self.options.alarms is not None and (self.contacts or self.is_backward or not self.is_over_time):
            raise InputError(
                "collisions are seen by a filter that knows of no contact: of a plan of sensors with `memory` and "
                "without contacts, and not by a smoother."
            )
        if self.contacts and self.options.monitor and not self.is_over_time:
            raise InputError("a monitor is for one contact state: plan that one, with --contacts.")

    @property
    def systems(self) -> Mapping[ContactState, System]:
        """What is solved in each contact state."""
        return self.plans.systems

    @property
    def contacts(self) -> tuple[str, ...]:
        """The names of the contacts, of a plan set."""
        return self.plans.contact_names

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What is estimated."""
        return self.plans.states.first.outputs

    @property
    def system(self) -> System:
        """What is solved; of a plan set in its first state."""
        return next(iter(self.systems.values()))

    @property
    def closed(self) -> ContactState | None:
        """The contacts that are closed throughout, of a plan set; None where the log says which are.

        Where they are recognised those of the first state, whose readings a log must have in any case.
        """
        if self.options.hypotheses is not None:
            return next(iter(self.plans.states))
        if not self.contacts or self.options.closed is None:
            return None
        closed: ContactState = self.plans.sensors.contact_state(self.options.closed)
        return closed

    @property
    def is_over_time(self) -> bool:
        """Whether a sample is estimated from readings of others too."""
        return self.options.how != "auto" or bool(self.system.memory)

    @property
    def is_backward(self) -> bool:
        """Whether the last samples are estimated first, as by a smoother."""
        return self.options.how == "smooth"

    def parts(
        self,
        log: Log,
        report: LogReport,
        folder: Path | None = None,
        watched: Watched = None,
        taken: list[Samples] | None = None,
    ) -> Iterator[LogPart]:
        """Yield the estimates of a log, part by part; see `is_backward` for their order.

        Args:
            log: the log.
            report: takes what is to be reported of it.
            folder: on whose disk that waits which a smoother wants twice; in memory when None.
            watched: who watches the progress.
            taken: takes the samples that are estimated, in their order.

        Raises:
            InputError: the log lacks what is needed, or holds what is no number; over time, times that do not increase,
                or none; and as `Solver.solve_batch`.
            SingularSystemError: something is not determined; no reading observes what is wanted.
            PlanError: a filter or a smoother is asked for, and nothing persists; see `Tracker`.
            UnplannedStateError: a contact state that has no plan.
            FileFormatError, MappingError, BackendError: the log, its mapping, or the backend's name.
        """
        with progress_bar(log.path.name[-24:], watched) as stage:
            run = _LogRun(self, log, report, stage, folder, taken)
            for part in _timed(run.tracked() if self.is_over_time else run.solved(), report, 1):
                report.add(part.numbers, part.estimate)
                if isinstance(part.judged, History):
                    report.add_summary(part.judged.summary)
                yield part
            report.singular.sort()
        unseen = () if report.summary is None else report.summary.unseen
        if unseen and self.options.unseen == "refuse":
            raise SingularSystemError(
                f"no reading observes {listed(unseen, 6)}: the estimate would be what was known at "
                "first. Take it out of the memory, or keep it at that: --unseen keep."
            )

    def compile(self) -> None:
        """Compile the plan, so that other processes find it in the cache.

        Raises:
            PlanError: nothing persists, and something is to; see `Tracker`.
        """
        if self.is_over_time:
            if self.options.hypotheses is not None:
                self.hypothesis_steps(self.options.hypotheses, 1.0)
            if self.options.hypotheses is None or self.is_backward:
                _ = self.ticks
            return
        tree, record = self.system.tree, SampleRecord.of(self.systems, self.contacts)
        q = tree.draw(np.random.default_rng(0))  # stretched out, as it may be at rest, an arm is often singular
        still = q[None], np.zeros((1, tree.nv)), np.zeros((1, len(record.measurement_names)))
        for state in self.plans.states:
            closed = [np.array([[name in state for name in self.contacts]])] if self.contacts else []
            self.prepared((*still, *closed))

    def weights(self, samples: Samples) -> Floats | None:
        """The weights of samples (n, n_weights) whose readings have deviations of their own; None without any.

        A weight that several readings share is that of the least sure of them.
        """
        if samples.sigma is None:
            return None
        return SideBySide(tuple(self.systems.values()), samples.record.tree.name).weights_by(samples.sigma)

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to other processes: nothing that is compiled."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _batches(self) -> Callable[..., Estimate | Diagnosis]:
        """Solver of batches."""
        judge = self.plans.states.first.monitor(self.options.backend) if self.options.monitor else None
        solver = self.plans.solver(self.options.backend) if judge is None else judge.solver
        solver.is_doubting = False  # the log is looked at as a whole
        return solver.solve_batch if judge is None else judge.check_batch

    def prepared(self, states: tuple[Any, ...]) -> Callable[..., Estimate | Diagnosis]:
        """Solver of batches, compiled, as one of some states shows."""
        run = self._batches
        with suppress(NoriError):  # the whole batch meets it again
            run(*states, missing=self.options.missing, singular="nan")
        return run

    def hypothesis_steps(self, hypotheses: Hypotheses, dt: float) -> HypothesisSteps:
        """Steps that recognise contacts, compiled; dt is the usual time between samples [s]."""
        plans, outputs = self.plans, [output.name for output in self.outputs]
        of = plans.tree, plans.sensors, tuple(plans.states), dt, hypotheses, outputs
        steps = HypothesisSteps.of(*of, self.options.backend)
        if steps.touched and self.options.surfaces is not None:
            steps.surfaces = TouchedSurfaces(steps, self.options.surfaces)
        return steps

    @cached_property
    def ticks(self) -> ContactPrograms:
        """The filters, compiled."""
        plans = self.plans
        return ContactPrograms(plans.states.plans, plans.contact_names, self.options.backend, name=plans.sensors.name)


@dataclass(slots=True, eq=False)
class _LogRun:
    """A run over a log; see `LogRunner.parts`.

    Attributes:
        clock: the times of the samples, of estimates over time.
        numbers: which samples of the log each part is of that was read and not yet estimated over time.
    """

    runner: LogRunner
    log: Log
    report: LogReport
    stage: Progress
    folder: Path | None
    taken: list[Samples] | None
    clock: SampleTimes = field(init=False)
    numbers: deque[Indices] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.clock = SampleTimes(self.runner.options.dt)

    def read(self) -> Iterator[Samples]:
        """Yield the samples that can be estimated."""
        runner, options, n, begun = self.runner, self.runner.options, 0, time.perf_counter()
        reading = SampleReader(runner.systems, runner.contacts, runner.closed, options.differentiation, options.missing)
        for samples in _timed(reading.chunks(self.log, self.report.counts), self.report, -1):
            n += len(samples)
            yield samples
            rate = n / max(time.perf_counter() - begun, 1e-9)
            self.stage(f"read, {n / 1e3:,.0f} k, {rate / 1e3:,.3g} k/s", self.report.counts.done)

    def solved(self) -> Iterator[LogPart]:
        """Yield the estimates of single instants."""
        options, run, n = self.runner.options, None, 0
        for samples in self.read():
            if run is None:
                with self.preparing():
                    run = self.runner.prepared(samples.at(slice(0, 1)).states())
            weights = self.runner.weights(samples)
            found = run(*samples.states(), weights=weights, missing=options.missing, singular=options.singular)
            judged = found if isinstance(found, Diagnosis) else None
            estimate = found.estimate if isinstance(found, Diagnosis) else found
            self.look_at(samples, n, estimate)
            n += len(samples)
            yield LogPart(samples.numbers, samples.t, estimate, judged)

    def tracked(self) -> Iterator[LogPart]:
        """Yield the estimates of a filter, or from the last back those of a smoother."""
        runner, options = self.runner, self.runner.options
        read = map(self.clock.timed, self.read())
        first = next(read)  # tells the clock the usual step
        one = first[0].at(slice(0, 1)), first[1][:1]
        imm = passes = None
        with self.preparing():
            if options.hypotheses is not None:
                imm = runner.hypothesis_steps(options.hypotheses, self.clock.usual)
                _rehearse(self.recognising(imm), self.stretch(imm, 0, *one))
            if imm is None or runner.is_backward:
                beginning = runner.ticks.first.beginning()
                passes = ContactPasses(runner.ticks, self.clock.usual, beginning, options.missing, options.singular)
                _rehearse(passes, self.stretch(runner.ticks, 0, *one))
        parts = self.cut(chain([first], read))
        if passes is None:
            assert imm is not None
            histories = self.recognising(imm).filtered(self.stretch(imm, *part) for part in parts)
        else:
            histories = self.smoothed(passes, imm, parts) if runner.is_backward else self.filtered(passes, parts)
        following = self.numbers.pop if runner.is_backward else self.numbers.popleft
        for history in histories:
            yield LogPart(following(), history.t, history.estimate, history)

    def cut(self, read: Iterable[tuple[Samples, Floats]]) -> Iterator[TimedSamples]:
        """Yield what is worked on at once, of samples and the steps of time to each."""
        n, size = 0, self.runner.options.chunk
        for samples, steps in read:
            self.look_at(samples, n)
            for start in range(0, len(samples), size):
                part = slice(start, start + size)
                self.numbers.append(samples.numbers[part])
                yield n + start, samples.at(part), steps[part]
            n += len(samples)

    def filtered(self, passes: ContactPasses, parts: Iterable[TimedSamples]) -> Iterator[History]:
        """Yield the estimates of a filter that is given the contacts, watched for collisions where that is asked."""
        ticks, options = passes.ticks, self.runner.options
        chart = None if options.alarms is None else CollisionChart(ticks.first, self.clock.usual, options.alarms)
        passes.judges = options.monitor or chart is not None
        for found in passes.filtered(self.stretch(ticks, *part) for part in parts):
            yield found if chart is None else replace(found, watched=chart.over(found))

    def smoothed(
        self, passes: ContactPasses, imm: HypothesisSteps | None, parts: Iterable[TimedSamples]
    ) -> Iterator[History]:
        """Yield the estimates of a smoother, from the last back, that is given the contacts or follows a recogniser."""
        passes.judges = self.runner.options.monitor
        waiting: AbstractContextManager[Any] = nullcontext([]) if self.folder is None else Spool(self.folder)
        with waiting as stored:

            def kept() -> Iterator[TimedSamples]:
                for part in parts:
                    stored.append(self.stretch(passes.ticks, *part))
                    yield part

            if imm is None:
                deque(kept(), maxlen=0)
                stretches: Stretches = stored
            else:
                passed = self.recognising(imm).filtered(self.stretch(imm, *part) for part in kept())
                stretches = RecognisedStretches.of(imm.model, list(passed), stored)
            for history in passes.smoothed(stretches):
                self.stage("smoothing", 1 - len(self.numbers) / len(stored))
                yield stretches.beside(history) if isinstance(stretches, RecognisedStretches) else history

    def recognising(self, imm: HypothesisSteps) -> HypothesisPasses:
        """Passes that recognise contacts, from the beginning."""
        runner, options = self.runner, self.runner.options
        missing, singular = options.missing, options.singular
        return HypothesisPasses(imm, runner.contacts, self.clock.usual, imm.tick.beginning(), missing, singular)

    def stretch(self, of: HypothesisSteps | ContactPrograms, first: int, samples: Samples, steps: Floats) -> Stretch:
        """Samples as filters take them.

        Args:
            of: what recognises contacts, or the filters.
            first: how many samples came before them.
            samples: the samples, with times.
            steps: the time from the one before to each (n,) [s].
        """
        assert samples.t is not None  # the clock has seen to it
        states = np.zeros(len(samples), dtype=np.intp)
        readings = of.all if isinstance(of, ContactPrograms) else of.readings
        if samples.contacts is not None and isinstance(of, ContactPrograms):
            states = of.planned.numbers_of(samples.contacts == 1, len(samples))
        names = self.runner.plans.measurement_names
        order = [names.index(name) for name in readings.measurement_names]
        weights = None if samples.sigma is None else readings.weights_by(samples.sigma[:, order])
        return Stretch(first, samples.t, steps, states, samples.q, samples.qd, samples.y[:, order], weights)

    def look_at(self, samples: Samples, before: int, estimate: Estimate | None = None) -> None:
        """Keep samples if they are wanted, count which sensors are dropped in them, and look for what is not likely.

        Args:
            samples: the samples.
            before: how many came before them.
            estimate: what was estimated of them, where that is known by now.
        """
        begun = time.perf_counter()
        if self.taken is not None:
            self.taken.append(samples)
        systems, report, options = self.runner.systems, self.report, self.runner.options
        for state, places in samples_by_state(samples).items() if options.missing == "drop" else ():
            lost = unusable(systems[state], samples.record.own_readings(state, samples.y[places]))
            for name, n in zip(systems[state].weight_names, np.count_nonzero(lost, axis=0).tolist(), strict=True):
                if n:
                    report.dropped[name] = report.dropped.get(name, 0) + n
        is_found, units = options.hypotheses is not None, self.log.units_of_motion
        look_at(report, systems, samples, before, options.dt, estimate, units=units, are_recognised=is_found)
        report.seconds -= time.perf_counter() - begun

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Count the time to compile, or to load what was compiled before, apart [s]."""
        self.stage("compiling")
        begun = time.perf_counter()
        yield
        took = time.perf_counter() - begun
        self.report.preparing += took
        self.report.seconds -= took


def _rehearse(passes: Passes, stretch: Stretch) -> None:
    """Compile what runs over samples, as one shows; the run itself begins anew, and meets its errors again."""
    with suppress(NoriError):
        deque(passes.filtered([stretch]), maxlen=0)


def _timed(items: Iterator[Any], report: LogReport, sign: int) -> Iterator[Any]:
    """Yield items, and add the time that each takes to that of the report, or take it off [s]."""
    begun = time.perf_counter()
    for item in items:
        report.seconds += sign * (time.perf_counter() - begun)
        yield item
        begun = time.perf_counter()
