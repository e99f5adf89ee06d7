"""The steps of a tracker: predict, update, outputs; native in one foreign call, or by NumPy, which is the oracle.

They work on arrays that stay where they are. The prior is in arrays that the steps of all contact states share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import shaped
from nori_dyn.filtering.base_estimate import ReferenceAxes
from nori_dyn.filtering.base_reference import AxesTurn, BaseReference, Bridge
from nori_dyn.filtering.instants import GAP, ContactPrograms, undetermined
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation, estimate, forgotten, predict, update
from nori_dyn.filtering.tick_programs import MeasurementRows, TickPrograms
from nori_dyn.program.compiled import on_all_cores
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.native_track import NOTHING, NativeTick
from nori_dyn.program.status import Status
from nori_dyn.solve.contact_numbers import Closed
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing, checked_state
from nori_dyn.typing import Floats

NOT_FINITE, UNDETERMINED, NO_SOLUTION = 1, 2, 3
"""Why a tick has no estimate."""

REFACTORISED = 4
"""A tick has an estimate, whose outputs are from a freshly pivoted factorisation."""

GOOD = Status()
"""The status of a tick that went as planned."""


def cause_of(wrong: int, lost: Sequence[str]) -> str:
    """Why a tick has no estimate, in words.

    Args:
        wrong: what `step` returned.
        lost: the names of what is not determined.
    """
    if wrong == NOT_FINITE:
        return "a number of the state is not finite, or the exact rows nearly have no unique solution at this pose"
    if wrong == NO_SOLUTION:
        return "the exact rows have no unique solution at this pose"
    return undetermined(lost)


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What the steps of all contact states share.

    Attributes:
        R, z: the prior R m = z + noise of the memory (k, k), (k,), at the tick that runs.
        totals: sums of chi-squares, of their degrees of freedom, and of ticks (3,).
        values: the outputs, one after the other.
    """

    R: Floats
    z: Floats
    totals: Floats
    values: Floats

    @property
    def prior(self) -> SquareRootInformation:
        """The prior, in arrays of its own."""
        return SquareRootInformation(self.R.copy(), self.z.copy())

    def put(self, prior: SquareRootInformation) -> None:
        """Take a prior."""
        self.R[:], self.z[:] = prior.R, prior.z


class Step(ABC):
    """The step of one contact state.

    Attributes:
        tick: its programs.
        state: what it reads: q, qd, y, weights, one after the other.
        at: what a native step has to know of the one before.
        longest: the longest time over which rates are known [s].
        refactorised: how a fresh factorisation went, after `REFACTORISED`.
    """

    tick: TickPrograms
    at: Any = None
    state: Floats
    longest: float
    refactorised: Status

    @property
    @abstractmethod
    def measured(self) -> MeasurementRows:
        """What the last step's readings determined: nothing where a number was not finite."""

    @abstractmethod
    def step(self, last: Step | None, dt: float, change: AxesTurn | Bridge | None) -> int:
        """Estimate the state that there is, a time [s] after the last tick, if there was one.

        Args:
            last: the step of the last tick; None before the first.
            dt: see above.
            change: what is done to its prior; None where nothing is.

        Returns:
            0 or `REFACTORISED`, or why there is no estimate. Where a number is not finite the prior goes on as without
            the readings; else these tell what they can.
        """

    @abstractmethod
    def posterior(self) -> Posterior:
        """The posterior of u after the last step."""

    def predicted(self, dt: float) -> SquareRootInformation:
        """The prior of the memory a time [s] after the last step."""
        return predict(self.posterior(), self.tick.motion(self.measured, dt, dt <= self.longest))

    @abstractmethod
    def go_on(self, dt: float) -> None:
        """Predict the prior that is shared, a time [s] after the last step, and keep what a step back needs."""

    @abstractmethod
    def conclude(self, state: Floats, u: Floats) -> Status:
        """Write the outputs of a state, given the null-space coordinates (n,)."""


class NumpyTick:
    """A tick through NumPy: what its readings say, and its outputs.

    Attributes:
        tick: its programs.
        state: what it reads: q, qd, y, weights, one after the other.
        refactorised: how a fresh factorisation went, after `REFACTORISED`.

    Args:
        tick: see above.
        values: where the outputs go.
    """

    def __init__(self, tick: TickPrograms, values: Floats) -> None:
        self.tick, self.state = tick, np.zeros(tick.system.n_inputs)
        self._outputs = tick.solver.ticker(tick.solver_state, values)
        self.refactorised = GOOD

    def read(self) -> tuple[MeasurementRows, Floats] | None:
        """What the readings say, and the weights of the system; None where a number is not finite."""
        *inputs, weights = self.tick.system.split(self.state)
        rows = self.tick.rows
        for place, values in zip(vars(rows.inputs).values(), inputs, strict=True):
            place[:] = values
        return None if rows.tick() else (self.tick.measured_of(np.array(rows.outputs)), weights)

    def conclude(self, state: Floats, u: Floats) -> Status:
        """Write the outputs of a state, given the null-space coordinates (n,)."""
        tick = self.tick
        q, qd, y, _ = tick.system.split(state)
        tick.solver_state[:] = np.concatenate([q, qd, y[tick.coordinates.exact_readings], u])
        return self._outputs()

    def concluded(self, u: Floats) -> int:
        """Write the outputs of the state that there is: 0, `REFACTORISED` or `NO_SOLUTION`."""
        self.refactorised = status = self.conclude(self.state, u)
        return NO_SOLUTION if not status.ok else REFACTORISED if status.fell_back else 0


class NativeCall:
    """A tick in one foreign call.

    Attributes:
        tick: its programs.
        each: what C runs: the tick, or that of each state.
        refactorised: how a fresh factorisation went, after `REFACTORISED`.
    """

    tick: TickPrograms
    each: Sequence[NativeTick]
    refactorised = GOOD
    _factorise: Callable[[], Status]

    @property
    def longest(self) -> float:
        """The longest time over which rates are known [s]."""
        found: float = self.each[0].at.longest
        return found

    @longest.setter
    def longest(self, time: float) -> None:
        for one in self.each:
            one.at.longest = time

    def concluded(self, wrong: int) -> int:
        """What a call returned; where its outputs have no solution, as a fresh factorisation has it."""
        if wrong != NO_SOLUTION:
            return wrong
        self.refactorised = self._factorise()
        return REFACTORISED if self.refactorised.ok else NO_SOLUTION


def native_posterior(native: NativeTick, is_solved: bool) -> Posterior:
    """The posterior of a tick that ran in C, which may have solved for u already."""
    R, z = native.R_u.copy(), native.z_u.copy()
    u = native.u.copy() if is_solved else estimate(R, z)
    return Posterior(R, z, native.nis, native.degrees, native.log_likelihood, u)


def without_readings(tick: TickPrograms, before: SquareRootInformation) -> Posterior:
    """The posterior of a tick without readings, and so without rates: what is known of v is not any more.

    Args:
        tick: its programs.
        before: the prior of the memory.
    """
    n_s, n_v, n_f = tick.sizes
    known = forgotten(before, n_v)
    n = n_s + n_v + n_f
    R, z = np.zeros((n, n)), np.zeros(n)
    R[n_s:, n_s:], z[n_s:] = known.R, known.z
    return Posterior(R, z, 0.0, 0, 0.0, estimate(R, z))


class NumpyStep(NumpyTick, Step):
    """A step through NumPy."""

    def __init__(self, tick: TickPrograms, shared: Shared, longest: float) -> None:
        super().__init__(tick, shared.values)
        self._shared, self.longest = shared, longest
        self._after: Posterior | None = None
        self._measured = tick.nothing

    @property
    def measured(self) -> MeasurementRows:
        return self._measured

    def step(self, last: Step | None, dt: float, change: AxesTurn | Bridge | None) -> int:
        shared, tick, wrong = self._shared, self.tick, NOT_FINITE
        if last is not None:
            last.go_on(dt)
        if change is not None:
            shared.put(change.prior(shared.prior))
        if (read := self.read()) is not None:
            self._measured, weights = read
            of_rows = weights[tick.coordinates.weight_of_rows]
            self._after = after = update(shared.prior, self._measured.A, self._measured.c, of_rows, tick.sizes[0])
            if np.isfinite(after.nis):
                wrong = UNDETERMINED if after.undetermined else self.concluded(after.u)
        if wrong == NOT_FINITE:
            self._after, self._measured = without_readings(tick, shared.prior), tick.nothing
        else:
            shared.totals[:] += after.nis, after.degrees, 1
        return wrong

    def posterior(self) -> Posterior:
        assert self._after is not None
        return self._after

    def go_on(self, dt: float) -> None:
        self._shared.put(self.predicted(dt))


class NativeStep(NativeCall, Step):
    """A step in one foreign call.

    Attributes:
        native: the call.

    Args:
        tick: its programs.
        shared: what it shares with others.
        longest: the longest time over which rates are known [s].
        keeps: whether steps back lead to it.
        state: what it reads; an array of its own when None.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self, tick: TickPrograms, shared: Shared, longest: float, keeps: bool, state: Floats | None = None
    ) -> None:
        self.tick = tick
        self.state = np.zeros(tick.system.n_inputs) if state is None else state
        programs = needed_compiler("the native filter"), *tick.native_kernels
        prior, totals = (shared.R, shared.z), shared.totals
        self.native = NativeTick(
            tick.shape, *programs, self.state, shared.values, prior, totals, longest, smooths=keeps
        )
        self.each, self.at, self._step = (self.native,), self.native.at, self.native.step
        self._factorise = tick.solver.ticker(self.native.free, shared.values)

    def step(self, last: Step | None, dt: float, change: AxesTurn | Bridge | None) -> int:
        if change is not None:
            self.at.change = self._taken = change.native
        return self.concluded(self._step(self.at, NOTHING if last is None else last.at, dt))

    @property
    def measured(self) -> MeasurementRows:
        return self.tick.measured_of(self.native.values) if self.native.has_rates else self.tick.nothing

    def posterior(self) -> Posterior:
        return native_posterior(self.native, self.native.has_rates)

    def go_on(self, dt: float) -> None:
        self.at.go_on(self.at, dt)

    def conclude(self, state: Floats, u: Floats) -> Status:
        return GOOD if self.native.conclude(state, u) else self._factorise()


class Steps(ABC):
    """What a tracker runs on: the steps of all contact states.

    Attributes:
        tick: the programs of the state that is estimated.
        state: what is read: q, qd, the readings of all contact states and weights, one after the other.
        values: the outputs, one after the other.
        totals: sums of chi-squares, of their degrees of freedom, and of ticks (3,).
        measurement_names: the name of each reading (ny).
        weight_names: the name of each weight (n_weights).
        is_native: whether it runs in one foreign call.
        is_gathered: whether what is in `state` is what steps read, where it lies.
        number: the number of the contact state that is estimated.
        ticks: how many there were.
        time: that of the last tick; before the first, of that one [s].
        beginning: the prior of the first tick.
        reference: that of a floating base whose state is in the memory; None where there is none.
    """

    tick: TickPrograms
    state: Floats
    values: Floats
    totals: Floats
    measurement_names: tuple[str, ...]
    weight_names: tuple[str, ...]
    is_native: bool
    is_gathered: bool
    number = 0
    ticks = 0
    time = 0.0
    beginning: SquareRootInformation
    reference: BaseReference | None = None

    @property
    @abstractmethod
    def longest(self) -> float:
        """The longest time over which rates are known [s]."""

    @property
    @abstractmethod
    def refactorised(self) -> Status:
        """How a fresh factorisation went, after `REFACTORISED`."""

    @property
    def axes(self) -> ReferenceAxes | None:
        """The axes of the reference at the last tick; None where there is none."""
        return None if self.reference is None else self.reference.at()

    @abstractmethod
    def set_longest(self, time: float) -> None:
        """Take the longest time over which rates are known [s]."""

    def begin(self, prior: SquareRootInformation, time: float) -> None:
        """Go back to before the first tick, with its prior and its time [s]."""
        self.beginning, self.time, self.ticks = prior, time, 0

    def _refer(self, state: Floats, dt: float) -> AxesTurn | Bridge | None:
        """Write the reference of the base into the state of a tick, a time [s] after the last.

        Returns:
            What is done to its prior; None where nothing is.
        """
        reference, tree, weight = self.reference, self.tick.system.tree, self.tick.gravity_weight
        assert reference is not None
        reference.change_axes(dt, is_gap=bool(self.ticks) and (reference.missed or dt > self.longest))
        if self.ticks:
            reference.advance(dt)
        reference.write(state[: tree.nq], state[tree.nq : tree.nq + tree.nv])
        if weight is not None:
            state[len(state) - self.tick.system.n_weights + weight] = reference.weigh_size()
        return reference.change

    def _take_base(self, wrong: int) -> None:
        """Let the reference follow the estimate of the last tick."""
        assert self.reference is not None
        if wrong == NOT_FINITE:
            self.reference.missed = True
        elif wrong != UNDETERMINED:
            self.reference.take(self.posterior())

    @abstractmethod
    def on(self, backend: str) -> Self:
        """The same on another backend, on the same arrays of inputs and outputs; it has seen nothing."""

    @abstractmethod
    def go_on_from(self, other: Self, dt: float) -> None:
        """Go on from the last tick of the same on another backend; the next comes a time [s] after it."""

    def read(
        self, q: ArrayLike, qd: ArrayLike, y: ArrayLike | Mapping[str, Any], weights: Weights, missing: Missing
    ) -> None:
        """Take the state of a tick.

        Raises:
            InputError: as `Solver.solve`.
        """
        own, weighting = self._own(y, weights)
        q, qd = referred(self, q, qd)
        self.running[:] = np.concatenate(checked_state(self.tick.system, q, qd, own, weighting, missing))

    @abstractmethod
    def _own(self, y: ArrayLike | Mapping[str, Any], weights: Weights) -> tuple[Any, Any]:
        """What the present contact state has of the readings and of the weights."""

    @property
    @abstractmethod
    def running(self) -> Floats:
        """What the step of the present contact state reads: q, qd, y and weights, one after the other."""

    @property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """Copies of the q, qd and y of the last tick."""
        q, qd, y, _ = self.tick.system.split(self.running.copy())
        return q, qd, y

    @abstractmethod
    def gather(self) -> None:
        """Take the state in `state`."""

    @abstractmethod
    def step(self, dt: float) -> int:
        """Estimate the state that was taken, a time [s] after the last; see `Step.step`."""

    @abstractmethod
    def posterior(self) -> Posterior:
        """The posterior of u after the last step."""

    @abstractmethod
    def predicted(self, dt: float) -> SquareRootInformation:
        """The prior of the memory a time [s] after the last step."""

    @property
    def lost(self) -> tuple[int, ...]:
        """The places in u of what the last step did not determine."""
        return self.posterior().undetermined


def referred(steps: Steps, q: Any, qd: Any) -> tuple[Any, Any]:
    """Configuration and velocity with the reference of the base in place of what is given of the root."""
    if steps.reference is None:
        return q, qd
    tree, leading = steps.tick.system.tree, np.shape(q)[:-1]
    q, qd = np.array(shaped("q", q, (*leading, tree.nq))), np.array(shaped("qd", qd, (*leading, tree.nv)))
    steps.reference.write(q, qd)
    return q, qd


class ContactSteps(Steps):
    """The steps of all contact states, of which one is given at a time.

    Attributes:
        programs: those of all contact states.
        each: the steps.
        now: that of the contacts that are closed.
        last: that of the last tick; None before the first.

    Args:
        programs: see above.
        dt: usual time between ticks [s].
        keeps: whether steps back lead to ticks.
        like: steps whose arrays of inputs and outputs are taken.
    """

    def __init__(self, programs: ContactPrograms, dt: float, keeps: bool, like: ContactSteps | None = None) -> None:
        self.programs, first, every = programs, programs.first, programs.all
        self._dt, self._keeps = dt, keeps
        k, tree, is_one = len(first.memory_names), first.system.tree, len(programs.each) == 1
        self.values = np.full(first.layout.size, np.nan) if like is None else like.values
        own = like.state if like is not None and is_one else None
        self._shared = shared = Shared(np.zeros((k, k)), np.zeros(k), np.zeros(3), self.values)
        self.is_native, longest = first.solver.native is not None, GAP * dt

        def step_of(tick: TickPrograms) -> Step:
            return NativeStep(tick, shared, longest, keeps, own) if self.is_native else NumpyStep(tick, shared, longest)

        of_first, *others = programs.each
        self.each = [step_of(of_first), *on_all_cores(step_of, others)]  # what all share is made once
        self.now: Step = self.each[0]
        self.tick, self.totals = self.now.tick, shared.totals
        self.measurement_names, self.weight_names = every.measurement_names, every.weight_names
        self.last: Step | None = None
        zeros = np.zeros(tree.nv + every.ny)
        self.is_gathered = is_one
        self._places = None if is_one else [every.input_indices(number) for number in range(len(self.each))]
        self.reference = BaseReference.of(tree, first.memory_names) if like is None else like.reference
        if like is not None:
            self.state = like.state
            return
        self.state = self.now.state if is_one else np.zeros(tree.nq + len(zeros) + every.n_weights)
        self.state[:] = np.concatenate([tree.neutral_configuration(), zeros, every.weights])

    def on(self, backend: str) -> ContactSteps:
        return ContactSteps(self.programs.on(backend), self._dt, self._keeps, self)

    def go_to(self, number: int) -> None:
        """Go to the contact state of a number, for the ticks to come."""
        self.number, self.now = number, self.each[number]
        self.tick = self.now.tick

    def go_on_from(self, other: ContactSteps, dt: float) -> None:
        self.go_to(other.number)
        self.begin(other.predicted(dt) if other.ticks else other.beginning, other.time)
        self.beginning, self.ticks, self.totals[:] = other.beginning, other.ticks, other.totals
        self.set_longest(other.longest)

    @property
    def longest(self) -> float:
        return self.now.longest

    @property
    def refactorised(self) -> Status:
        return self.now.refactorised

    def set_longest(self, time: float) -> None:
        for step in self.each:
            step.longest = time

    @property
    def prior(self) -> SquareRootInformation:
        """The prior at the last tick, before its readings; before the first, that with which it begins."""
        return self._shared.prior

    def switch(self, closed: Closed) -> None:
        """Go to another contact state, for the ticks to come.

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: the state has no plan.
        """
        self.go_to(self.programs.planned.number_of(closed))

    def begin(self, prior: SquareRootInformation, time: float) -> None:
        super().begin(prior, time)
        self._shared.put(prior)
        self._shared.totals[:] = 0.0
        self.last = None

    def _own(self, y: ArrayLike | Mapping[str, Any], weights: Weights) -> tuple[Any, Any]:
        every, number = self.programs.all, self.number
        return every.reading(number, y), every.weighting(number, weights)

    @property
    def running(self) -> Floats:
        return self.now.state

    def gather(self) -> None:
        if self._places is not None:
            self.running[:] = self.state[self._places[self.number]]

    def step(self, dt: float) -> int:
        now = self.now
        change = None if self.reference is None else self._refer(now.state, dt)
        last, self.last = self.last, now
        if self.ticks:
            self.time += dt
        self.ticks += 1
        wrong = now.step(last, dt, change)
        if self.reference is not None:
            self._take_base(wrong)
        return wrong

    def posterior(self) -> Posterior:
        assert self.last is not None
        return self.last.posterior()

    def predicted(self, dt: float) -> SquareRootInformation:
        if self.last is None:  # the prior of the tick that comes has been put
            return self.prior
        return self.last.predicted(dt)
