"""From the numbers of a sample to an estimate, or to the reason why there is none."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nori_dyn.errors import InputError, NoriError, SaturatedReadingError, SingularSystemError, UnplannedStateError
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.plan import Plan, check_plan
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.estimation.tracker import Tracker
from nori_dyn.filtering.collisions import CollisionChart
from nori_dyn.filtering.free_coordinates import no_memory
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.localization import ContactLocalizer
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.live.account import Account
from nori_dyn.live.differentiation import live_derivative
from nori_dyn.live.state import State
from nori_dyn.logs.mapping.binding import Binding
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.derived import DeflectedJoints
from nori_dyn.logs.motion.differentiation import Differentiate
from nori_dyn.measurements.contacts import COLLISION, CONTACT, TOUCH_POINT, ContactState
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.switching import SwitchingSolver
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import unusable
from nori_dyn.typing import Booleans, Floats

USUAL = 1.0
"""The time between samples as long as it is not known [s]."""


SHORT = 1e-3
"""A time between samples at which false alarms may be frequent [s]."""

DIGITS = 2
"""Of the time between samples, by which thresholds of collisions go: each costs some milliseconds."""


class LiveEstimate(NamedTuple):
    """An estimate of one sample.

    Attributes:
        t: the time of the sample [s].
        estimate: the estimate.
        judged: how sure it is, by a monitor or a tracker, where there is one.
    """

    t: float
    estimate: Estimate
    judged: Diagnosis | Tracked | None = None


Estimator: TypeAlias = Callable[[float, Floats, Floats, Floats, Booleans | None], LiveEstimate | None]
"""Estimates with a sample: its time t [s], q (nq,), qd (nv,), the readings y of all contact states (ny,), nan where
there is none, and which contacts are closed (n_contacts,), None where nobody tells.

None where the estimate would be of an earlier sample, and there is none yet. A sample that is refused raises
`InputError`, one without a unique solution `SingularSystemError`.
"""


def by_itself(solve: Callable[..., Estimate | Diagnosis], has_contacts: bool) -> Estimator:
    """What estimates each sample by itself.

    Args:
        solve: a solver's `solve`, a monitor's `check`, or that of a solver of contact states.
        has_contacts: whether it takes contacts.
    """

    def estimate(t: float, q: Floats, qd: Floats, y: Floats, contacts: Booleans | None) -> LiveEstimate:
        found = solve(q, qd, y, *((contacts,) if has_contacts else ()), missing="drop")
        return LiveEstimate(t, found.estimate, found) if isinstance(found, Diagnosis) else LiveEstimate(t, found)

    return estimate


class TrackerEstimator:
    """Estimates each sample from all up to it, or some samples late.

    Attributes:
        tracker: the tracker.
        recognises: whether it recognises contacts.

    Args:
        tracker: see above.
        names: the names of the readings that it is given (ny).
        chart: what watches for collisions; None where nothing does.
    """

    def __init__(self, tracker: Tracker[Any], names: Sequence[str], chart: CollisionChart | None = None) -> None:
        self.tracker, self._chart = tracker, chart
        self.recognises = tracker.recognises
        self._places = np.array([names.index(name) for name in tracker.measurement_names], dtype=np.intp)
        self.begin()

    def begin(self) -> None:
        """Go back to before the first sample."""
        self.tracker.reset()
        if self._chart is not None:
            self._chart.reset()
        self._last, self._times = -np.inf, deque[float](maxlen=self.tracker.lag + 1)

    def __call__(self, t: float, q: Floats, qd: Floats, y: Floats, contacts: Booleans | None) -> LiveEstimate | None:
        tracker, dt = self.tracker, t - self._last
        if dt <= 0:  # time has begun anew
            self.begin()
        if contacts is not None:
            tracker.switch(contacts)
        n = tracker.n_ticks
        try:
            tracked = tracker.step(q, qd, y[self._places], dt if 0 < dt < np.inf else None, missing="drop")
        finally:
            if tracker.n_ticks != n:  # it was not refused
                self._last = t
                self._times.append(t)
        if self._chart is not None:
            self._chart.dt = float(f"{tracker.dt:.{DIGITS}g}")
            tracked = self._chart.watched(tracked, *tracker.residuals(), dt if 0 < dt < np.inf else tracker.dt)
        return None if tracked is None else LiveEstimate(self._times[0], tracked.estimate, tracked)


class Solving(NamedTuple):
    """A plan, compiled for one sample at a time.

    Attributes:
        systems: what is solved in each contact state.
        contacts: the contacts that are given.
        closed: those that are closed throughout; None where the stream tells.
        estimate: what estimates.
        recognised: the names of probabilities that it tells, see `Tracked.recognised`.
        touched: the links that may be touched, where that is recognised.
    """

    systems: Mapping[ContactState, System]
    contacts: tuple[str, ...]
    closed: ContactState | None
    estimate: Estimator
    recognised: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()


def prepared(plans: Plan, options: RunOptions, lag: int = 0) -> Solving:
    """A plan compiled for one sample at a time: one with memory runs as a tracker.

    Args:
        plans: the plan.
        options: how samples are estimated, as those of a log.
        lag: how many samples late estimates are, of a plan with memory: a smoother with a fixed lag.

    Raises:
        WrongKindError: no plan.
        InputError: contacts, a monitor, a lag or hypotheses where there are none.
        UnknownSensorNameError: there is no such contact.
        BackendError: there is no such backend.
    """
    check_plan(plans, "a live stream")
    runner = LogRunner(plans, options)  # which refuses what does not go together
    systems, has_memory = runner.systems, bool(runner.system.memory)
    if options.alarms is not None and lag:
        raise InputError("collisions are seen without a lag.")
    if options.monitor and has_memory:
        raise InputError("a monitor is for single instants; this plan has memory, and judges its readings by itself.")
    closed = None if options.closed is None else runner.closed
    if not has_memory:
        if lag:
            raise no_memory(plans.sensors.name)
        if plans.contact_names:
            solver = plans.solver(options.backend)
            assert isinstance(solver, SwitchingSolver)
            solver.prepare(None if closed is None else [closed])  # no message waits for a compiler
            return Solving(systems, plans.contact_names, closed, by_itself(solver.solve, True))
        one = plans.states.first
        judge = one.monitor(options.backend) if options.monitor else None
        only = one.solver(options.backend) if judge is None else judge.solver
        only.prepare()
        return Solving(systems, (), None, by_itself(only.solve if judge is None else judge.check, False))
    tracker: Tracker[Any] = Tracker(plans, USUAL, lag, options.hypotheses, options.backend)
    given, recognised = (plans.contact_names, ()) if options.hypotheses is None else ((), plans.contact_names)
    names = [f"{CONTACT}{name}" for name in recognised]
    if options.surfaces is not None:
        ContactLocalizer(tracker, options.surfaces)
        names += TOUCH_POINT
    touched = tracker.steps.touched if isinstance(tracker.steps, HypothesisSteps) else ()
    chart = None if options.alarms is None else CollisionChart(tracker.steps.tick, SHORT, options.alarms)
    if chart is not None:
        _ = chart.threshold  # the first time takes longer
        names += [f"{COLLISION}{name}" for name in chart.readings]
    return Solving(
        systems, given, closed, TrackerEstimator(tracker, plans.measurement_names, chart), tuple(names), touched
    )


def warm_up(solving: Solving, record: SampleRecord) -> None:
    """Estimate once, whatever comes of it: the first time takes longer."""
    zeros, closed = np.zeros(len(record.names)), np.zeros(len(record.contacts), dtype=bool)
    with suppress(NoriError):
        solving.estimate(
            0.0, record.tree.neutral_configuration(), zeros[record.qd], zeros[record.y], closed if len(closed) else None
        )
    if isinstance(solving.estimate, TrackerEstimator):
        solving.estimate.begin()


class LeftOut(Exception):
    """A sample that cannot be estimated: the reason, and more about it."""


class Engine:
    """Estimates samples, one by one; what cannot be estimated is counted, never raised.

    A reading that is missing is left out with its sensor where that has a sigma; without any other the sample is left
    out.

    Attributes:
        binding: where each number comes from.
        account: takes samples without an estimate, sensors that were left out, and estimates that were re-factorised.
        made: readings that are made by differentiating velocities.
        derivative: what makes them; None where nothing does.
        why: what was last reported of a sample that was left out.

    Args:
        solving: the plans, compiled.
        binding: where each number comes from.
        differentiate: how accelerations that nothing tells are made of velocities, see `live_derivative`; None refuses
            such streams.
        heard: the columns of the streams, for an error to name.

    Raises:
        InputError: q, qd, or a reading comes from nowhere.
    """

    def __init__(self, solving: Solving, binding: Binding, differentiate: Differentiate, heard: Iterable[str]) -> None:
        self.binding, self._record, self._closed = binding, binding.record, solving.closed
        self.made = () if differentiate is None else binding.derivable
        _check(binding, solving.closed, self.made, heard)
        record = binding.record
        self.derivative = live_derivative(differentiate, record.tree.nv) if self.made else None
        self._deflected = DeflectedJoints(record, binding.deflections) if binding.deflections else None
        self._derived = np.array([record.places[name] for name in self.made], dtype=np.intp)
        self._factors = np.zeros((len(self.made), record.tree.nv))
        for row, name in zip(self._factors, self.made, strict=True):
            row[list(record.freedoms[name].places)] = record.freedoms[name].factors
        self._estimate = solving.estimate
        self._recognises = isinstance(self._estimate, TrackerEstimator) and self._estimate.recognises
        self.account = Account()
        self.why = ""

    def tick(self, state: State, t: float) -> LiveEstimate | None:
        """The estimate of the sample at a time; None where there can be none, which is counted."""
        try:
            with np.errstate(all="ignore"):  # numbers from the ends of what doubles are: what is not finite is left out
                return self._ticked(t, state.sample(t), state.period)
        except LeftOut as left:
            reason, why = left.args
        except SingularSystemError as error:
            reason, why = "the sensors do not suffice at this pose", error.args[0]
        except SaturatedReadingError as error:
            reason, why = "a reading is saturated", error
        except UnplannedStateError as error:
            reason, why = "the contact state has no plan", error
        except InputError as error:
            reason, why = "the numbers are refused", error
        self.account.skipped[reason] += 1
        self.why = f"{reason}: {why}" if why else reason
        return None

    def _ticked(self, t: float, values: Floats, period: float) -> LiveEstimate:
        """The estimate of a sample.

        Raises:
            LeftOut: a number that is needed is not known.
            InputError: the solver refuses it.
            SingularSystemError: it has no unique solution.
        """
        record = self._record
        motion = values[: record.y.start]
        q, qd, y = values[record.q], values[record.qd], values[record.y]
        if not np.isfinite(motion).all():
            raise LeftOut("q or qd is not known", _at(record.names, ~np.isfinite(motion)))
        if self.derivative is not None:
            made = self.derivative.add(t, qd, period)
            if made is None:
                raise LeftOut("velocities are collected to differentiate them", "")
            values[self._derived] = self._factors @ made
        if self._deflected is not None:
            values[self._deflected.places] = self._deflected.follow(np.array([t]), q[None])[0]
        contacts = None
        if record.contacts:
            closed = values[record.closed]
            if self._closed is not None:
                closed = np.array([float(name in self._closed) for name in record.contacts])
            contacts = closed == 1.0
            if not (contacts | (closed == 0.0)).all():
                raise LeftOut("a contact is neither open nor closed", _at(record.contacts, ~contacts & (closed != 0.0)))
        if contacts is not None or not self._recognises:
            self._check_readings(y, contacts)
        if isinstance(self._estimate, TrackerEstimator) and np.isfinite(period):
            self._estimate.tracker.dt = period
        found = self._estimate(t, q, qd, y, contacts)
        if found is None:
            raise LeftOut("later samples are collected, of which an estimate is made as well", "")
        if not all(np.isfinite(value).all() for value in found.estimate.values.values()):
            raise LeftOut("the estimate is not finite", "")
        self.account.fell_back += bool(found.estimate.fell_back)
        return found

    def _check_readings(self, y: Floats, contacts: Booleans | None) -> None:
        """Count the sensors whose readings (ny,) are of no use, and which the solver therefore leaves out.

        Raises:
            LeftOut: one that is not known holds exactly.
        """
        closed = () if contacts is None else tuple(n for n, c in zip(self._record.contacts, contacts, strict=True) if c)
        system = self._record.systems.get(closed)
        if system is None:
            return  # the solver says so
        own = self._record.own_readings(closed, y)
        is_known = np.isfinite(own)
        if is_known.all() and system.ranges is None:
            return
        lacking = ~is_known & (system.weight_of_readings < 0)
        if lacking.any():
            raise LeftOut("a reading is missing", _at(system.measurement_names, lacking))
        if system.is_weighted:
            for weight in np.flatnonzero(unusable(system, own)).tolist():
                self.account.sensors[system.weight_names[weight]] += 1


def _at(names: Sequence[str], which: Booleans) -> str:
    """The names of those that are true."""
    return ", ".join(names[k] for k in np.flatnonzero(which).tolist())


def _check(binding: Binding, closed: ContactState | None, made: tuple[str, ...], heard: Iterable[str]) -> None:
    """Check that streams tell all that is needed in some contact state.

    Raises:
        InputError: they do not; says what lacks.
    """
    record = binding.record
    states = record.systems if closed is None or len(record.systems) == 1 else [closed]
    needed = {name: None for state in states for name in binding.lacking_in(state, made)}
    always = [*record.names[: record.y.start], *(() if closed is not None else record.names[record.closed])]
    missing = [name for name in always if name in binding.lacking] + list(needed)
    if not missing:
        return
    raise binding.lacks(missing, heard, "numbers that are needed")
