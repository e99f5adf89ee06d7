"""A tracker: estimates at each tick from all readings up to it, or up to some ticks later, exactly, for any sensors.

Given q and qd all is linear, so that there is nothing to linearise. It is a Kalman filter in square-root information
form; with a `lag`, a smoother over a window; with hypotheses, an interacting multiple model filter over contact states.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. V to VII and X.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import batched, checked, counted, numeric, shaped
from nori_dyn.errors import InputError, SingularSystemError, UnplannedStateError
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.delays import Delays, delays
from nori_dyn.filtering.history import History
from nori_dyn.filtering.hypothesis_passes import HypothesisPasses, RecognisedStretches
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import GAP, ContactPrograms, checked_time, undetermined
from nori_dyn.filtering.knowledge import MemoryState, memory_state
from nori_dyn.filtering.markov import NO_PART
from nori_dyn.filtering.recognised_window import RecognisedWindow
from nori_dyn.filtering.smoother import ContactPasses, Cut, Stretch
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation
from nori_dyn.filtering.steps import (
    GOOD,
    NOT_FINITE,
    REFACTORISED,
    UNDETERMINED,
    ContactSteps,
    Steps,
    cause_of,
    referred,
)
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracked import Recognised, Switch, Tracked
from nori_dyn.filtering.window import SlidingWindow
from nori_dyn.measurements.contacts import ContactState, contact_state
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.kernel.meanwhile import Background
from nori_dyn.program.remade import Uncopied
from nori_dyn.program.status import Status
from nori_dyn.solve.contact_numbers import Closed, ClosedInAll
from nori_dyn.solve.over_ticks import joined
from nori_dyn.solve.solver import Inputs, Outputs, Singular, check_singular
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing
from nori_dyn.typing import Floats

Estimated = TypeVar("Estimated", bound=Tracked | None, covariant=True)
"""What `step` returns."""


class TrackerBase(Uncopied, Generic[Estimated]):
    """Estimates over time; not to be shared between threads.

    Attributes:
        contact_names: all contacts.
        states: the contact states that are known, in the order of `probabilities`.
        lag: how many ticks late an estimate is.
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        steps: what it runs on: of contacts that are given, or of hypotheses.

    Args:
        steps: see above.
        contact_names: see above.
        states: see above.
        dt: usual time between ticks [s].
        lag: see above.
        later: a backend that serves from the tick on before which a thread has compiled it; None for that of the steps.

    Raises:
        InputError: a time that is not positive; a lag that is no number of ticks, or below that of the hypotheses.
    """

    def __init__(
        self,
        steps: Steps,
        contact_names: Sequence[str],
        states: Sequence[ContactState],
        dt: float,
        lag: int = 0,
        later: str | None = None,
    ) -> None:
        self.contact_names, self.states = tuple(contact_names), tuple(states)
        self._dt, self.lag, self.steps = checked_time("dt", dt), counted("lag", lag, 0), steps
        self._window = self._window_of(steps) if self.lag else None
        self._behind = None if later is None else Background(steps, partial(steps.on, later))
        tick, layout = steps.tick, steps.tick.layout
        self.inputs = Inputs.of(steps.state, tick.system.tree, len(steps.measurement_names))
        self._values = steps.values if self._window is None else self._window.values
        self.outputs = Outputs(**layout.views(self._values))
        self._run_on(steps)
        self.reset()

    def _window_of(self, steps: Steps) -> SlidingWindow:
        """The window of a tracker with a lag."""
        if isinstance(steps, ContactSteps):
            return SlidingWindow(steps, self.lag)
        assert isinstance(steps, HypothesisSteps)
        of_states = ContactSteps(self._programs_of_states(steps.tick.solver.backend), self.dt, keeps=True)
        return RecognisedWindow(steps, of_states, self.lag)

    def _run_on(self, steps: Steps) -> None:
        """Run ticks by some steps."""
        layout = steps.tick.layout
        self.steps, self.backend = steps, steps.tick.solver.backend
        self._gather = None if steps.is_gathered else steps.gather
        turns = layout.turns and steps.is_native  # NumPy, and a fresh factorisation, turn what they write
        self._turn = partial(layout.turn, vars(self.outputs)) if turns else None

    def _change(self, dt: float) -> None:
        """Run the tick that comes, a time [s] after the last, by what has been compiled meanwhile, if it has."""
        assert self._behind is not None
        before, steps = self.steps, self._behind.serving
        if steps is before:
            return
        self._behind = None
        steps.go_on_from(before, dt)
        self._run_on(steps)
        if self._window is not None:
            assert isinstance(steps, ContactSteps)
            self._window.run_on(steps)

    def reset(
        self, state: MemoryState | None = None, probabilities: Mapping[ContactState, float] | None = None
    ) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known at the next tick, before its readings, see `predicted`; what the sensors' config says
                when None.
            probabilities: of contact states at the next tick, before its readings, where they are recognised; all
                alike when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none; probabilities below zero, or all
                zero, or where contacts are given.
            UnplannedStateError: a state has no plan.
        """
        steps, prior = self.steps, self.steps.tick.beginning(state)
        if isinstance(steps, HypothesisSteps):
            steps.probabilities[:] = self._beginning(probabilities)
        elif probabilities is not None:
            raise InputError("probabilities are of contacts that are recognised; these are given, by `switch`.")
        if steps.reference is not None:
            steps.reference.begin(prior)
        steps.begin(prior, 0.0 if state is None else state.time)
        if self._window is not None:
            self._window.clear()

    @property
    def dt(self) -> float:
        """Usual time between ticks [s]: through more than five times as long motion is not taken to be known."""
        return self._dt

    @dt.setter
    def dt(self, dt: float) -> None:
        self._dt = checked_time("dt", dt)
        self.steps.set_longest(GAP * self._dt)
        if self._window is not None:
            self._window.set_longest(GAP * self._dt)

    @property
    def plans(self) -> Mapping[ContactState, EliminationPlan]:
        """The plan of each contact state.

        Raises:
            InputError: contacts are recognised, not given.
        """
        return self._given_contacts("plans").programs.plans

    @property
    def ticks(self) -> Mapping[ContactState, TickPrograms]:
        """The programs of each contact state; the same for all, where they are recognised."""
        steps = self.steps
        each = steps.programs.each if isinstance(steps, ContactSteps) else [steps.tick] * len(self.states)
        return dict(zip(self.states, each, strict=True))

    @property
    def recognises(self) -> bool:
        """Whether contacts are recognised, not given."""
        return isinstance(self.steps, HypothesisSteps)

    @property
    def n_ticks(self) -> int:
        """How many ticks there were since the beginning."""
        return self.steps.ticks

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y (ny), the readings of all contact states."""
        return self.steps.measurement_names

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight (n_weights)."""
        return self.steps.weight_names

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self.steps.tick.memory_names

    @property
    def free_names(self) -> tuple[str, ...]:
        """The name of each null-space coordinate of the exact rows, those that persist last."""
        return self.steps.tick.coordinates.names

    @property
    def contacts(self) -> ContactState:
        """The contacts that are closed: as given, or in the most likely state."""
        return self.states[self.steps.number]

    def switch(self, closed: Closed) -> None:
        """Go to another contact state, for the ticks to come; what persists goes on.

        Args:
            closed: the contacts that are closed: names in any order, or booleans (n_contacts,).

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: the state has no plan.
            InputError: contacts are recognised, not given.
        """
        self._given_contacts("switch").switch(closed)

    @property
    def probabilities(self) -> Floats:
        """Of each contact state, given all readings so far (n_states,); the array stays, its numbers change.

        Raises:
            InputError: contacts are given, not recognised.
        """
        return self._recognising("probabilities").probabilities

    @property
    def switches(self) -> Sequence[Switch]:
        """The last changes of the most likely contact state, the newest last.

        Raises:
            InputError: contacts are given, not recognised.
        """
        return self._recognising("switches").switches

    def smoothed(self, ticks: int) -> dict[ContactState, float]:
        """The probability of each contact state so many ticks ago, given all readings since.

        Raises:
            InputError: the hypotheses do not have as large a `lag`, or the tracker has not run as long; contacts are
                given, not recognised.
        """
        steps = self._recognising("smoothed")
        if not 0 <= ticks <= steps.passed:
            raise InputError(
                f"ticks is {ticks!r}: this filter looks back at most {steps.lag} ticks, by `lag`, and {steps.passed} "
                "have passed so far."
            )
        return dict(zip(self.states, steps.smoothed(ticks).tolist(), strict=True))

    @property
    def consistency(self) -> Consistency:
        """How well the readings of all ticks so far fit the noise that is declared of them.

        Where contacts are recognised, in the most likely state of each tick.
        """
        nis, degrees, ticks = self.steps.totals.tolist()
        return Consistency(nis, int(degrees), int(ticks))

    @property
    def state(self) -> MemoryState:
        """What is known after the last tick; before the first, at the beginning."""
        steps = self.steps
        if not steps.ticks:
            return self._state_of(steps.beginning, steps.time)
        return self._tracked().memory

    def predicted(self, dt: float | None = None) -> MemoryState:
        """Prior of the memory at the next tick, which `reset` takes to go on from.

        Args:
            dt: time since the last tick [s]; the usual one when None.

        Raises:
            InputError: a time that is not positive.
        """
        steps = self.steps
        if not steps.ticks:
            return self.state
        dt = self.dt if dt is None else checked_time("dt", dt)
        return self._state_of(steps.predicted(dt), steps.time + dt, dt)

    def residuals(self) -> tuple[Floats, Floats]:
        """Residuals (p,) of the weighed rows of the last tick and their expected spreads (p,), see `Diagnosis`.

        Over its spread each is white noise of variance 1 where noise is as declared: the normalised
        innovation of one reading.

        Raises:
            InputError: contacts are recognised, not given; there was no tick yet.
        """
        last = self._given_contacts("residuals").last
        if last is None:
            raise InputError("there was no tick yet: `step` takes one.")
        tick, after, measured = last.tick, last.posterior(), last.measured
        weights = last.state[-tick.system.n_weights :][tick.coordinates.weight_of_rows]
        if not len(measured.c):
            return np.full(len(weights), np.nan), np.full(len(weights), np.nan)
        return tick.residuals(measured, weights, after.u, after.covariance())

    @property
    def row_names(self) -> tuple[str, ...]:
        """The name of each weighed row of the present contact state, in the order of `residuals`."""
        return self.steps.tick.coordinates.row_names

    def tick(self, dt: float | None = None) -> Status:
        """Estimate the tick in `inputs`, write `outputs`, and return a status. It checks nothing of what it is given.

        With a lag the outputs are those of the tick so many ticks before. Where there is no estimate, as for a reading
        that is not a number, what is known goes on without the readings of the tick; where something is not
        determined, or only the outputs cannot be had, with what they tell.

        Args:
            dt: time since the last tick [s], positive; the usual one when None.
        """
        dt = self._dt if dt is None else dt
        if self._behind is not None:
            self._change(dt)
        if self._gather is not None:
            self._gather()
        wrong = self.steps.step(dt)
        if self._window is not None:
            return self._late(self._window, dt, wrong)
        if not wrong:
            if self._turn is not None:
                self._turn()
            return GOOD
        if wrong == REFACTORISED:
            return self.steps.refactorised
        return self._without(wrong, self._cause(wrong))

    def _late(self, window: SlidingWindow, dt: float, wrong: int) -> Status:
        """Take a tick; write the outputs of the first tick of the window, and return its status."""
        window.take(dt, wrong)
        if not window.is_full:
            cause = f"the window has seen {self.n_ticks} ticks, and says of each what {self.lag} later ones tell"
            return self._without(NOT_FINITE, cause)
        u, slot = window.late(), window.slots[0]
        if np.isnan(u).any():
            return self._without(UNDETERMINED, self._unknown(slot.tick, slot.time, u))
        status = slot.conclude(u)
        if not status.ok:
            return self._without(NOT_FINITE, status.cause)
        if self._turn is not None and not status.fell_back:
            self._turn()
        return status

    def _without(self, wrong: int, cause: str) -> Status:
        """The status of a tick without an estimate."""
        self._values[:] = np.nan
        return Status(ok=False, rcond=0.0 if wrong == UNDETERMINED else np.nan, cause=cause)

    def step(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Estimated:
        """Estimate a tick from its readings and all before; with a lag, the tick so many before it.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings (ny,), or by name, see `Solver.solve`; those that no state has may be left out by name.
            dt: time since the last tick [s]; the usual one when None.
            weights: see `Solver.solve`; those of what is known at first have no part.
            missing: see `Solver.solve`.

        Returns:
            The estimate; a `Recognised` where contacts are recognised; None until a window is full.

        Raises:
            InputError: as `Solver.solve`, and a time that is not positive.
            SingularSystemError: something is not determined by the readings up to now, and nothing was known of it at
                first: names it. What is known goes on with what the readings tell of the rest.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        if self._behind is not None:
            self._change(dt)
        steps = self.steps
        steps.read(q, qd, y, weights, missing)
        wrong = steps.step(dt)
        if self._window is not None:
            self._window.take(dt, wrong)
            if wrong == NOT_FINITE:
                raise SingularSystemError(self._cause(wrong))
            late = self._in_window(self._window, 0, self._window.late().copy()) if self._window.is_full else None
            return cast(Estimated, late)
        if wrong and wrong != REFACTORISED:
            raise SingularSystemError(self._cause(wrong))
        found = self._recognised(steps) if isinstance(steps, HypothesisSteps) else self._tracked()
        _ = found.estimate
        return cast(Estimated, found)

    def _tracked(self, after: Posterior | None = None) -> Tracked:
        """What is known of the last tick, by a posterior; by that of the likeliest state when None."""
        steps = self.steps
        after = steps.posterior() if after is None else after
        return Tracked(steps.tick, steps.parts, after.u, after, steps.time, steps.axes, after.covariance)

    def _recognised(self, steps: HypothesisSteps) -> Recognised:
        likely = np.flatnonzero(steps.probabilities >= NO_PART).tolist()
        afters = {self.states[h]: steps.hypothesis_step.posterior(h) for h in {steps.number, *likely}}
        within = {state: self._tracked(after) for state, after in afters.items()}
        p = dict(zip(self.states, steps.probabilities.tolist(), strict=True))
        point = None if steps.surfaces is None else steps.surfaces.point
        return Recognised(p, steps.switch, within.__getitem__, point)

    @property
    def base(self) -> BaseEstimate:
        """The floating base at the last tick, of a tracker whose memory has its state, `memory: {base: {of: base}}`.

        Raises:
            InputError: it has not; there was no tick yet.
            SingularSystemError: something is not determined by then.
        """
        if not self.steps.ticks:
            raise InputError("there was no tick yet: `step` takes one.")
        return self._tracked().base

    @property
    def present(self) -> Tracked:
        """The estimate of the last tick, by the readings up to it, of a tracker with a lag.

        Raises:
            InputError: there was no tick yet, or there is no lag.
            SingularSystemError: something is not determined by then; says what.
        """
        window = self._windowed("present")
        if not self.n_ticks:
            raise InputError("the window has seen no tick yet: `step` takes one.")
        if isinstance(self.steps, HypothesisSteps):
            return self._recognised(self.steps)
        last = len(window.slots) - 1
        return self._in_window(window, last, window.slots[last].u.copy())

    def rest(self) -> list[Tracked]:
        """The estimates of the ticks that `step` has not returned yet, oldest first, by all readings.

        Where contacts are recognised, those of the last ticks are settled by this, so that `reset` has to come next.

        Raises:
            InputError: there is no lag.
            SingularSystemError: something is not determined in one; says what.
        """
        window = self._windowed("rest")
        if isinstance(window, RecognisedWindow):
            window.settle()
        if not window.slots:
            return []
        first = 1 if window.is_full else 0
        return [self._in_window(window, first + k, u) for k, u in enumerate(window.all()[first:])]

    def _in_window(self, window: SlidingWindow, number: int, u: Floats) -> Tracked:
        """Estimate of a tick of the window, by its number there."""
        slot = window.slots[number]
        if np.isnan(u).any():
            raise SingularSystemError(self._unknown(slot.tick, slot.time, u))
        found = window.tracked(number, u)
        _ = found.estimate
        if not isinstance(window, RecognisedWindow):
            return found
        p = dict(zip(self.states, window.probabilities[number].tolist(), strict=True))
        return Recognised(p, window.switch(number), lambda state: found)

    def over(
        self,
        T: ArrayLike | None,
        Q: ArrayLike,
        Qd: ArrayLike,
        Y: ArrayLike,
        contacts: ClosedInAll | Sequence[Closed] | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
        singular: Singular = "refuse",
        causal: bool = True,
        state: MemoryState | None = None,
        monitor: bool = False,
    ) -> History:
        """Estimate N ticks that were recorded: each from the readings up to it, or from all.

        The tracker stays as it is: this begins with what the sensors' config says, or with `state`.

        Args:
            T: times (N,) [s], which increase; the usual time apart when None.
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny), of all contact states.
            contacts: those that are closed, see `SwitchingSolver.solve_batch`; the present ones when None. Where they
                are recognised, None: see `History.contacts`.
            weights: see `Solver.solve_batch`.
            missing: see `Solver.solve_batch`.
            singular: what to do with ticks at which something is not determined: "refuse" them all, or give "nan".
            causal: whether each is estimated from the readings up to it; otherwise from all of them. Where contacts are
                recognised, these are the likeliest at each tick by all readings.
            state: what is known before the first.
            monitor: whether the readings of each are judged by those before it, see `History.diagnosis`.

        Raises:
            InputError: as `step`, wrong shapes, times that do not increase; says of which tick.
            SingularSystemError: something is not determined, and that is refused; says what and when.
            UnplannedStateError: a contact state that has no plan.
        """
        check_singular(singular)
        steps, tree = self.steps, self.steps.tick.system.tree
        Q = batched("Q", Q, tree.nq)
        N = len(Q)
        if not N:
            raise InputError("Q holds no tick.")
        t = self.dt * np.arange(N, dtype=float) if T is None else increasing(checked("T", T, (N,)))
        Qd, Y = shaped("Qd", Qd, (N, tree.nv)), shaped("Y", Y, (N, len(self.measurement_names)))
        weighed = weights if weights is None or isinstance(weights, Mapping) else numeric("weights", weights)
        Q, Qd = cast("tuple[Floats, Floats]", referred(steps, Q, Qd))
        whole = Stretch(0, t, np.diff(t, prepend=t[0]), np.full(N, steps.number), Q, Qd, Y, weighed)
        prior = steps.tick.beginning(state)
        if isinstance(steps, ContactSteps):
            if contacts is not None:
                whole = replace(whole, states=steps.programs.planned.numbers_of(contacts, N))
            run = ContactPasses(steps.programs, self.dt, prior, missing, singular)
            run.judges = monitor
            if causal:
                return joined(list(run.filtered(Cut(whole))))
            return joined(list(run.smoothed(Cut(whole)))[::-1])
        assert isinstance(steps, HypothesisSteps)
        if contacts is not None:
            raise InputError("this tracker recognises contacts: give them to one without hypotheses.")
        recognition = HypothesisPasses(steps.anew(self.dt), self.contact_names, self.dt, prior, missing, singular)
        passed = list(recognition.filtered(Cut(whole)))
        if causal:
            return joined(passed)
        if weighed is not None:
            raise InputError(
                "weights are of the rows of all contact states here, and a smoother takes those of one: recognise "
                "first, then smooth, nd.Tracker(plan, dt).over(..., contacts=found.contacts.closed, causal=False)."
            )
        programs = self._programs_of_states(self.backend)
        y = Y[:, [self.measurement_names.index(name) for name in programs.all.measurement_names]]
        recognised = RecognisedStretches.of(steps.model, passed, Cut(replace(whole, y=y)))
        run = ContactPasses(programs, self.dt, prior, missing, singular)
        return joined([recognised.beside(one) for one in run.smoothed(recognised)][::-1])

    def _programs_of_states(self, backend: str) -> ContactPrograms:
        """The programs of each contact state on a backend, of a tracker that recognises them.

        Raises:
            InputError: it has no plans of contact states.
        """
        raise InputError("this tracker has no plans of single contact states, by which a smoother runs.")

    def delays(self, q: ArrayLike) -> Delays:
        """How late estimates follow what persists, at rest at a configuration, once the filter has settled.

        Args:
            q: configuration (nq,).

        Raises:
            InputError: a wrong shape, or a value that is not finite; contacts are recognised; a base is state.
            SingularSystemError: the readings of a tick do not determine all there, even if what persists were known.
        """
        tick = self._given_contacts("delays").tick
        if self.steps.reference is not None:
            raise InputError("the base is state here, and its reference follows the estimates: no one delay is theirs.")
        return delays(tick, tick.system.tree.checked_configuration(q), self.dt)

    def _given_contacts(self, what: str) -> ContactSteps:
        if not isinstance(self.steps, ContactSteps):
            raise InputError(f"`{what}` is for contacts that are given; this tracker recognises them.")
        return self.steps

    def _recognising(self, what: str) -> HypothesisSteps:
        if not isinstance(self.steps, HypothesisSteps):
            raise InputError(f"`{what}` is for contacts that are recognised: nd.Tracker(plan, dt, hypotheses=...).")
        return self.steps

    def _windowed(self, what: str) -> SlidingWindow:
        if self._window is None:
            raise InputError(f"`{what}` is for a tracker with a lag: nd.Tracker(plan, dt, lag=...).")
        return self._window

    def _state_of(self, known: SquareRootInformation, time: float, dt: float = 0.0) -> MemoryState:
        """State of the memory a time [s] after the last tick."""
        names, units, reference = self.memory_names, self.steps.tick.memory_units, self.steps.reference
        state = memory_state(names, units, known.mean(), known.covariance(), time)
        return state if reference is None else reference.at(dt).state(state)

    def _cause(self, wrong: int) -> str:
        """Why the last tick has no estimate."""
        return cause_of(wrong, [self.free_names[k] for k in self.steps.lost])

    def _unknown(self, tick: TickPrograms, time: float, u: Floats) -> str:
        """The message that something of a tick is not determined."""
        names = [tick.coordinates.names[place] for place in np.flatnonzero(np.isnan(u)).tolist()]
        return f"at {time:.6g} s: {undetermined(names)}"

    def _beginning(self, probabilities: Mapping[ContactState, float] | None) -> Floats:
        n = len(self.states)
        if probabilities is None:
            return np.full(n, 1.0 / n)
        found = np.zeros(n)
        for closed, p in probabilities.items():
            state = contact_state(self.contact_names, closed, "the filter")
            if state not in self.states:
                raise UnplannedStateError(state, self.states)
            found[self.states.index(state)] = p
        if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
            raise InputError(
                f"probabilities are {list(probabilities.values())}: give numbers of at least 0, some above it."
            )
        return np.asarray(found / found.sum())


def increasing(T: Floats) -> Floats:
    """Times (N,).

    Raises:
        InputError: one is not after the one before.
    """
    wrong = np.flatnonzero(np.diff(T) <= 0)
    if len(wrong):
        k = int(wrong[0]) + 1
        raise InputError(
            f"T[{k}] is {T[k]:.9g} s and T[{k - 1}] is {T[k - 1]:.9g} s: a tick comes after the one before. Leave out "
            "what was recorded twice, and sort the rest."
        )
    return T
