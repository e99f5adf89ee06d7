"""Logs run through a plan, or through the plans of all contact states: chunk by chunk, or as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nori_dyn.api.plan import Plan
from nori_dyn.errors import InputError, NoriError, PlanError
from nori_dyn.logs.checks import samples_by_state
from nori_dyn.logs.differentiation import Derivation, Differentiate, derivation
from nori_dyn.logs.log import Log
from nori_dyn.logs.plausible import look_at
from nori_dyn.logs.reading import Reading
from nori_dyn.logs.record import Record
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.outputs import Output
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Singular
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing, unusable
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables.progress import Watched, progress_bar
from nori_dyn.tables.words import listed
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a log is run.

    Attributes:
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        dt: time between samples [s], to compare q with qd; that of the log's times when None.
        missing: as for `Solver.solve_batch`; "drop" also leaves samples out whose q or qd is not a number.
        singular: as for `Solver.solve_batch`.
        monitor: whether estimates and readings are judged as well.
        backend: as for `Plan.solver`.
        closed: for a plan set, the contacts that are closed throughout; None takes them from the log.
    """

    differentiation: Derivation | None = None
    dt: float | None = None
    missing: Missing = "refuse"
    singular: Singular = "refuse"
    monitor: bool = False
    backend: str = "auto"
    closed: ContactState | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What came of a chunk of a log.

    Attributes:
        samples: the samples that were estimated.
        estimate: their estimates.
        diagnosis: what a monitor says of them, where it was asked.
        following: the number of the sample of the log that comes after the chunk.
    """

    samples: Samples
    estimate: Estimate
    diagnosis: Diagnosis | None
    following: int


@dataclass(frozen=True, eq=False)
class LogRunner:
    """Runs logs through a plan, or a plan set, which is compiled once.

    Attributes:
        plans: the plan, or the plans of contact states.
        options: how.
        systems: what is solved in each contact state.
        contacts: the contacts, of a plan set.

    Raises:
        InputError: contacts or a monitor where there are none.
        UnknownSensorNameError: there is no such contact.
    """

    plans: Plan
    options: RunOptions = field(default_factory=RunOptions)

    def __post_init__(self) -> None:
        if not self.contacts:
            if self.options.closed is not None:
                raise InputError("contacts can be chosen for a plan set; this plan is for one contact state.")
        elif self.options.monitor:
            raise InputError("a monitor is for one contact state: plan that one, with --contacts.")

    @property
    def systems(self) -> dict[ContactState, System]:
        """What is solved in each contact state."""
        return {state: one.system for state, one in self.plans.states.items()}

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
        return self.plans.states.first.system

    def check_memory(self) -> None:
        """Refuse sensors with memory: estimates of single instants leave it out.

        Raises:
            PlanError: there is memory; says of what.
        """
        if remembered := [one.variable.name for one in self.system.memory]:
            raise PlanError(
                f"sensors '{self.system.sensors.name}' have `memory` of {listed(remembered, 6)}, which estimates of "
                "single instants would leave out. Run the plan over a log by `nori-dyn filter` or `nori-dyn smooth` "
                "(nd.smooth), tick by tick by nd.Filter; or plan the sensors without `memory`."
            )

    def solved(self, log: Log, report: LogReport, first: int = 0, watched: Watched = None) -> Iterator[Solved]:
        """Yield what comes of a log, chunk by chunk.

        Args:
            log: the log.
            report: takes what is told of it.
            first: how many samples of it to leave out at the beginning.
            watched: who watches the progress.

        Raises:
            InputError: the log lacks what is needed, or holds what is no number; and as `Solver.solve_batch`.
            SingularSystemError: as `Solver.solve_batch`.
            PlanError: the sensors have memory.
            UnplannedStateError: a contact state that has no plan.
            FileFormatError, MappingError, BackendError: the log, its mapping, or the backend's name.
        """
        self.check_memory()
        options = self.options
        reading = Reading(self.systems, self.contacts, self.closed, options.differentiation, options.missing)
        run: Callable[..., Estimate | Diagnosis] | None = None
        with progress_bar(log.path.name[-24:], watched) as stage:
            begun = time.perf_counter()
            for chunk in reading.chunks(log, report.counts, first):
                samples, start = chunk.samples, time.perf_counter()
                if run is None:
                    stage("compiling")
                    run = self._prepared(samples.at(slice(0, 1)).states())
                    report.preparing += time.perf_counter() - start
                    start = time.perf_counter()
                weights = self.weights(samples)
                found = run(*samples.states(), weights=weights, missing=options.missing, singular=options.singular)
                report.seconds += time.perf_counter() - start
                diagnosis = found if isinstance(found, Diagnosis) else None
                estimate = found.estimate if isinstance(found, Diagnosis) else found
                self.look_at(report, log, samples, report.samples, estimate)
                report.add(samples.numbers, estimate)
                rate = (report.samples - report.resumed) / max(time.perf_counter() - begun, 1e-9)
                stage(f"solved, {report.samples / 1e3:,.0f} k, {rate / 1e3:,.3g} k/s", chunk.done)
                yield Solved(samples, estimate, diagnosis, chunk.following)

    def compile(self) -> None:
        """Compile the plan, so that other processes find it in the cache.

        Raises:
            PlanError: the sensors have memory.
        """
        self.check_memory()
        tree, record = self.system.tree, Record.of(self.systems, self.contacts)
        rest = tree.neutral_configuration()[None], np.zeros((1, tree.nv)), np.zeros((1, len(record.measurement_names)))
        for state in self.plans.states:
            closed = [np.array([[name in state for name in self.contacts]])] if self.contacts else []
            self._prepared((*rest, *closed))

    def weights(self, samples: Samples) -> Floats | None:
        """Return the weights of samples (n, n_weights) whose readings have deviations of their own; None without any.

        A weight that several readings share is that of the least sure of them.
        """
        if samples.sigma is None:
            return None
        every = SideBySide(tuple(self.systems.values()), samples.record.tree.name)
        sigma = np.full((len(samples), every.n_weights), np.nan)
        for system, readings, own in zip(self.systems.values(), every.y_places, every.weight_places, strict=True):
            for reading, weight in zip(readings.tolist(), system.weight_of_readings.tolist(), strict=True):
                if weight >= 0:
                    place = int(own[weight])
                    sigma[:, place] = np.fmax(sigma[:, place], samples.sigma[:, reading])
        is_told = np.isfinite(sigma)
        if not is_told.any():
            return None
        return np.where(is_told, np.where(is_told, sigma, 1.0) ** -2.0, every.weights)

    @property
    def closed(self) -> ContactState | None:
        """The contacts that are closed throughout, of a plan set; None where the log says which are."""
        if not self.contacts or self.options.closed is None:
            return None
        closed: ContactState = self.plans.sensors.contact_state(self.options.closed)
        return closed

    def _prepared(self, states: tuple[Any, ...]) -> Callable[..., Estimate | Diagnosis]:
        """Return what solves a batch, compiled, as one of some states shows."""
        judge = self.plans.states.first.monitor(self.options.backend) if self.options.monitor else None
        solver = self.plans.solver(self.options.backend) if judge is None else judge.solver
        solver.is_doubting = False  # the log is looked at as a whole
        run: Callable[..., Estimate | Diagnosis] = solver.solve_batch if judge is None else judge.check_batch
        with suppress(NoriError):  # the whole batch meets it again
            run(*states, missing=self.options.missing, singular="nan")
        return run

    def look_at(self, report: LogReport, log: Log, samples: Samples, before: int, estimate: Estimate | None) -> None:
        """Count which sensors are dropped in samples, and look for what is not likely.

        Args:
            report: takes what is told.
            log: the log.
            samples: the samples.
            before: how many came before them.
            estimate: what was estimated of them, where that is known by now.
        """
        if self.options.missing == "drop":
            self._tell_dropped(report, samples)
        look_at(report, self.systems, samples, before, self.options.dt, estimate, units=log.units_of_motion)

    def _tell_dropped(self, report: LogReport, samples: Samples) -> None:
        """Count in how many samples each sensor was dropped."""
        for each, places in samples_by_state(samples).items():
            system = self.systems[each]
            lost = np.count_nonzero(unusable(system, samples.record.own_readings(each, samples.y[places])), axis=0)
            for name, n in zip(system.weight_names, lost.tolist(), strict=True):
                if n:
                    report.dropped[name] = report.dropped.get(name, 0) + n


def options_of(
    differentiate: Differentiate = "auto", dt: float | None = None, contacts: Any = None, **others: Any
) -> RunOptions:
    """Return how a log is run, from what users say."""
    closed = None if contacts is None else tuple(contacts)
    return RunOptions(differentiation=derivation(differentiate, dt), dt=dt, closed=closed, **others)
