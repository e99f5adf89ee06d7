"""One way through a log for every estimator: of single instants, with a monitor or without, a filter, a smoother."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from nori_dyn.errors import InputError, NoriError, SingularSystemError, UnknownNameError
from nori_dyn.estimation.plan import Plan, check_plan
from nori_dyn.estimation.sample_times import SampleTimes
from nori_dyn.filtering.collisions import CollisionChart
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.free_coordinates import no_memory
from nori_dyn.filtering.history import History
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.hypothesis_passes import HypothesisPasses, RecognisedStretches
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import ContactPrograms
from nori_dyn.filtering.localization import TouchedSurfaces
from nori_dyn.filtering.smoother import STRETCH, ContactPasses, Passes, Stretch, Stretches
from nori_dyn.logs.checks import samples_by_state
from nori_dyn.logs.log import Log
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.differentiation import Differentiate, Differentiator, differentiator
from nori_dyn.logs.reading import SampleReader
from nori_dyn.logs.report import LogReport, look_at
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.spool import Spool
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.surface import Surface
from nori_dyn.planning.outputs import Output
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Singular
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing, unusable
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables.progress import Progress, Watched, progress_bar
from nori_dyn.tables.words import listed
from nori_dyn.typing import Floats, Indices

RECOGNISE = "recognise"
"""In place of the contacts that are closed: which these are is found out."""

How: TypeAlias = Literal["auto", "filter", "smooth"]
"""By which readings a sample is estimated: its own, or where sensors have memory all up to it; all up to it; all."""

Unseen: TypeAlias = Literal["keep", "refuse"]
"""What to do with memory that no reading tells anything of: keep what was known at first, or refuse the log."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a log is run.

    Attributes:
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        dt: time between samples [s], to compare q with qd, and to find gaps; that of the log's times when None.
        missing: as for `Solver.solve_batch`; "drop" also leaves samples out whose q or qd is not a number.
        singular: as for `Solver.solve_batch`.
        monitor: whether readings are judged as well; of estimates over time those of a filter, see `History.diagnosis`.
        backend: as for `Plan.solver`.
        closed: for a plan set, the contacts that are closed throughout; None takes them from the log.
        hypotheses: how contacts are recognised, of sensors with memory; None where they are told.
        how: see `How`.
        unseen: see `Unseen`.
        alarms: when collisions count as seen, by a filter whose contacts are told; None where nothing is watched.
        surfaces: of links that may be touched, see `nd.tools.surfaces`: where on them they are is found out as well.
        chunk: samples that a filter or a smoother works on at once.

    Raises:
        InputError: no sample is worked on at once.
        UnknownNameError: there is no such way to treat what no reading tells.
    """

    differentiation: Differentiator | None = None
    dt: float | None = None
    missing: Missing = "refuse"
    singular: Singular = "refuse"
    monitor: bool = False
    backend: str = "auto"
    closed: ContactState | None = None
    hypotheses: Hypotheses | None = None
    how: How = "auto"
    unseen: Unseen = "keep"
    alarms: Alarms | None = None
    surfaces: Mapping[str, Surface] | None = field(default=None, repr=False)
    chunk: int = STRETCH

    def __post_init__(self) -> None:
        if self.chunk < 1:
            raise InputError(f"chunk is {self.chunk}: at least one sample is worked on at once.")
        if self.unseen not in get_args(Unseen):
            raise UnknownNameError("way to treat what no reading tells", self.unseen, get_args(Unseen))


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
            report: takes what is told of it.
            folder: on whose disk that waits which a smoother wants twice; in memory when None.
            watched: who watches the progress.
            taken: takes the samples that are estimated, in their order.

        Raises:
            InputError: the log lacks what is needed, or holds what is no number; over time, times that do not increase,
                or none; and as `Solver.solve_batch`.
            SingularSystemError: something is not determined; no reading tells of what is to be told.
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
                f"no reading tells anything of {listed(unseen, 6)}: what would be said of it is what was known at "
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
        """Return the weights of samples (n, n_weights) whose readings have deviations of their own; None without any.

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


@dataclass(frozen=True, slots=True, eq=False)
class _LogRun:
    """A run over a log; see `LogRunner.parts`."""

    runner: LogRunner
    log: Log
    report: LogReport
    stage: Progress
    folder: Path | None
    taken: list[Samples] | None

    def read(self) -> Iterator[Samples]:
        """Yield the samples that can be estimated."""
        runner, options, n, begun = self.runner, self.runner.options, 0, time.perf_counter()
        reading = SampleReader(runner.systems, runner.contacts, runner.closed, options.differentiation, options.missing)
        for chunk in _timed(reading.chunks(self.log, self.report.counts), self.report, -1):
            n += len(chunk.samples)
            yield chunk.samples
            rate = n / max(time.perf_counter() - begun, 1e-9)
            self.stage(f"read, {n / 1e3:,.0f} k, {rate / 1e3:,.3g} k/s", chunk.done)

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
        options, clock = self.runner.options, SampleTimes(self.runner.options.dt)
        read = map(clock.told, self.read())
        first = next(read)  # tells the clock the usual step
        hypotheses, is_backward = options.hypotheses, self.runner.is_backward
        with self.preparing():
            imm = None if hypotheses is None else self.runner.hypothesis_steps(hypotheses, clock.usual)
            ticks = self.runner.ticks if imm is None or is_backward else None
            said = clock.usual, options.missing, options.singular
            run = None if ticks is None else ContactPasses(ticks, said[0], ticks.first.beginning(), *said[1:])
            one = first[0].at(slice(0, 1)), first[1][:1]
            if imm is not None:
                _rehearse(self.hypothesis_passes(imm, *said), self.stretch(imm, 0, *one))
            if run is not None:
                _rehearse(run, self.stretch(run.ticks, 0, *one))
        numbers: deque[Indices] = deque()

        def cut() -> Iterator[tuple[int, Samples, Floats]]:
            n = 0
            for samples, steps in chain([first], read):
                self.look_at(samples, n)
                for start in range(0, len(samples), options.chunk):
                    part = slice(start, start + options.chunk)
                    numbers.append(samples.numbers[part])
                    yield n + start, samples.at(part), steps[part]
                n += len(samples)

        if run is None:
            assert imm is not None
            for history in self.hypothesis_passes(imm, *said).filtered(self.stretch(imm, *one) for one in cut()):
                yield LogPart(numbers.popleft(), history.t, history.estimate, history)
            return
        ticks = run.ticks
        chart = None if options.alarms is None else CollisionChart(ticks.first, clock.usual, options.alarms)
        run.judges = options.monitor or chart is not None
        if not is_backward:
            for found in run.filtered(self.stretch(ticks, *one) for one in cut()):
                history = found if chart is None else replace(found, watched=chart.over(found))
                yield LogPart(numbers.popleft(), history.t, history.estimate, history)
            return
        waiting: AbstractContextManager[Any] = nullcontext([]) if self.folder is None else Spool(self.folder)
        with waiting as stored:

            def kept() -> Iterator[tuple[int, Samples, Floats]]:
                for one in cut():
                    stored.append(self.stretch(ticks, *one))
                    yield one

            if imm is None:
                deque(kept(), maxlen=0)
                told: Stretches = stored
            else:
                passed = self.hypothesis_passes(imm, *said).filtered(self.stretch(imm, *one) for one in kept())
                told = RecognisedStretches.of(imm.model, list(passed), stored)
            for history in run.smoothed(told):
                self.stage("smoothing", 1 - len(numbers) / len(stored))
                found = told.beside(history) if isinstance(told, RecognisedStretches) else history
                yield LogPart(numbers.pop(), found.t, found.estimate, found)

    def hypothesis_passes(
        self, imm: HypothesisSteps, usual: float, missing: Missing, singular: Singular
    ) -> HypothesisPasses:
        """Passes that recognise contacts, from the beginning."""
        return HypothesisPasses(imm, self.runner.contacts, usual, imm.tick.beginning(), missing, singular)

    def stretch(self, of: HypothesisSteps | ContactPrograms, first: int, samples: Samples, steps: Floats) -> Stretch:
        """Return samples as filters take them.

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


def options_of(
    differentiate: Differentiate = "auto", dt: float | None = None, contacts: Any = None, **others: Any
) -> RunOptions:
    """Return how a log is run, from what users say."""
    hypotheses = contacts if isinstance(contacts, Hypotheses) else Hypotheses() if contacts == RECOGNISE else None
    closed = None if contacts is None or hypotheses is not None else tuple(contacts)
    made = differentiator(differentiate, dt)
    return RunOptions(differentiation=made, dt=dt, closed=closed, hypotheses=hypotheses, **others)
