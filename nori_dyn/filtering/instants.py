"""A tick with its readings: what it tells, how what is known goes on to the next, and how it comes back from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import is_positive
from nori_dyn.errors import InputError, NoriError, PlanError, SingularSystemError, naming
from nori_dyn.filtering.base_reference import AxesTurn, Bridge
from nori_dyn.filtering.free_coordinates import FreeCoordinates, free_columns, free_coordinates, persisting
from nori_dyn.filtering.square_root import MotionModel, Posterior, SquareRootInformation, predict, smooth_step, update
from nori_dyn.filtering.tick_programs import MeasurementRows, TickPrograms
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.plans_as_needed import PlansAsNeeded
from nori_dyn.program.compiled import Watch, on_all_cores, unwatched
from nori_dyn.program.track_source import LARGEST_SQUARE
from nori_dyn.solve.contact_numbers import PlannedStates
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing, checked_state, checked_states, weights_at
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import listed
from nori_dyn.typing import Floats, Indices

GAP = 5.0
"""Usual times between ticks from which on the motion in between is not known: JUMP of logs."""


@dataclass(frozen=True, slots=True, eq=False)
class Instant:
    """A tick with its readings.

    Attributes:
        tick: its programs.
        q: configuration (nq,).
        weights: those of the weighed rows (p,).
        measured: its measurement rows.
    """

    tick: TickPrograms
    q: Floats
    weights: Floats
    measured: MeasurementRows

    def update(self, before: SquareRootInformation) -> Posterior:
        """Posterior after its readings."""
        return update(before, self.measured.A, self.measured.c, self.weights, self.tick.sizes[0])

    def motion(self, dt: float, is_gap: bool) -> MotionModel:
        """How the memory moves on, over a time [s].

        Through a gap what has a rate does not go on: the motion is that of the rest alone, and what has a rate counts
        as an unknown of this tick.
        """
        motion = self.tick.motion(self.measured, dt, not is_gap)
        if not is_gap:
            return motion
        n_s, n_v, n_f = self.tick.sizes
        nothing = np.zeros((0, n_s + n_v)), np.zeros((0, 0)), np.zeros((0, n_f)), np.zeros(0)
        return MotionModel(dt, *nothing, motion.decay[n_v:], motion.Q[n_v:])

    def predict(self, after: Posterior, dt: float, is_gap: bool) -> SquareRootInformation:
        """Prior of the memory at the next tick.

        Args:
            after: what is known after those of this tick.
            dt: time to the next [s].
            is_gap: whether the motion in between is not known.
        """
        return predict(after, self.tick.motion(self.measured, dt, not is_gap))

    def smooth_step(
        self, after: Posterior, dt: float, is_gap: bool, mean: Floats, covariance: Floats
    ) -> tuple[Floats, Floats]:
        """The mean (n,) and the covariance (n, n) of what is free, given all readings; see `smooth_step`.

        Args:
            after: what is known after the readings up to this tick.
            dt: time to the next [s].
            is_gap: whether the motion in between is not known.
            mean: that of the memory at the next (k,), given all readings.
            covariance: that of the memory there (k, k).
        """
        _, n_v, n_f = self.tick.sizes
        if is_gap and not n_f:
            return after.u, after.covariance()
        forgotten = n_v if is_gap else 0
        return smooth_step(after, self.motion(dt, is_gap), mean[forgotten:], covariance[forgotten:, forgotten:])


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Ticks in one contact state, with their readings.

    Attributes:
        tick: their programs.
        places: which they are among all (m,).
        q, qd, y: configurations (m, nq), velocities (m, nv) and readings (m, ny).
        weights: see `Instant` (m, p).
        values: what they say of what is free, see `TickPrograms.measured_each` (m, n_values).
    """

    tick: TickPrograms
    places: Indices
    q: Floats
    qd: Floats
    y: Floats
    weights: Floats
    values: Floats

    def __getitem__(self, k: int) -> Instant:
        return Instant(self.tick, self.q[k], self.weights[k], self.tick.measured_of(self.values[k]))


@dataclass(frozen=True, slots=True, eq=False)
class Instants:
    """Ticks that follow each other, of any contact states.

    Attributes:
        numbers: the numbers of their contact states (N,).
        alike: those of each state, by its number.
        places: which each is among those of its state (N,).
        changes: what the reference of a floating base did to the prior of a tick, by its number, where it did.
    """

    numbers: Indices
    alike: Mapping[int, Alike]
    places: Indices
    changes: Mapping[int, AxesTurn | Bridge] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, k: int) -> Instant:
        return self.alike[int(self.numbers[k])][int(self.places[k])]

    def changed(self, k: int, before: SquareRootInformation) -> SquareRootInformation:
        """Prior of one of them along the axes that it has."""
        change = self.changes.get(k)
        return before if change is None else change.prior(before)


class ContactPrograms:
    """The ticks of all contact states, of one robot.

    Attributes:
        plans: the plan of each contact state, made when it is asked for, which no tick does.
        planned: the contact states that have a plan.
        all: the readings and the weights of all of them.

    Args:
        plans: the plan of each contact state.
        contact_names: all contacts.
        backend: as for `Solver`.
        watch: shows how far compiling is.
        name: what to call the sensors, for messages.

    Raises:
        PlanError: see `free_coordinates`; what persists is not the same in all contact states.
        BackendError: there is no such backend.
    """

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        backend: str = "auto",
        watch: Watch = unwatched,
        name: str = "contacts",
    ) -> None:
        self.plans = PlansAsNeeded.of(plans)
        self.planned, self._asked = PlannedStates(contact_names, plans), [self.plans.asked(state) for state in plans]
        self._backend, self._watch, self._name = backend, watch, name
        self._made: dict[int, TickPrograms] = {}
        self.all = SideBySide([one.system for one in self._asked], name)
        kept = [persisting(one.system) for one in self._asked]
        of_each = {tuple((one.variable.component_names, one.rate is None) for one in own) for own in kept}
        if len(of_each) > 1:
            raise PlanError(f"sensors '{name}': what persists is not the same in all contact states.")
        _ = self.first
        for one in self._asked[1:]:  # refused before any occurs
            free_columns(one.system)

    def of(self, number: int) -> TickPrograms:
        """The ticks of a contact state, by its number, compiled when first asked for."""
        if number not in self._made:
            self._made[number] = TickPrograms(self._coordinates(number), self._backend, self._watch)
        return self._made[number]

    def _coordinates(self, number: int) -> FreeCoordinates:
        """Null-space coordinates of a contact state: those of the one like which it is planned, limb for limb."""
        like = self.plans.like(self.planned.states[number])
        first = None if like is None else self._coordinates(self.planned.states.index(like))
        return free_coordinates(self._asked[number], first)

    @property
    def each(self) -> tuple[TickPrograms, ...]:
        """The ticks of all contact states, compiled on all cores."""
        numbers = range(len(self._asked))
        if missing := [number for number in numbers if number not in self._made]:
            coordinates = [*map(self._coordinates, missing)]  # one after the other: some are planned like others
            progress = f"preparing {self._name}", self._watch, len(self._made), len(numbers)
            made = on_all_cores(lambda of: TickPrograms(of, self._backend), coordinates, *progress)
            self._made.update(zip(missing, made, strict=True))
        return tuple(map(self.of, numbers))

    def on(self, backend: str) -> ContactPrograms:
        """The same on another backend."""
        return ContactPrograms(self.plans, self.planned.contact_names, backend, unwatched, self._name)

    @property
    def first(self) -> TickPrograms:
        """That of the first contact state: what persists is the same in all."""
        return self.of(0)

    def instants(
        self,
        numbers: Indices,
        Q: Floats,
        Qd: Floats,
        Y: Floats,
        weights: Weights = None,
        missing: Missing = "refuse",
        first: int = 0,
    ) -> Instants:
        """N ticks, each in the contact state of its number (N,).

        Args:
            numbers: those of their contact states (N,).
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings of all contact states (N, ny).
            weights: those of all ticks, or (N, n_weights); see `Solver.solve_batch`.
            missing: see `Solver.solve_batch`.
            first: the number of the first tick, for messages.

        Raises:
            InputError: as `Solver.solve`; says of which tick.
        """
        found, among = {}, np.zeros(len(Q), dtype=np.intp)
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            among[places] = np.arange(len(places))
            tick = self.of(number)
            try:
                weighting = weights_at(self.all.weighting(number, weights, (len(Q),)), places)
                own: Any = self.all.reading(number, Y, (len(Q),))
                q, qd, y, w = checked_states(tick.system, Q[places], Qd[places], own[places], weighting, missing)
            except NoriError:
                self._refuse(number, places, Q, Qd, Y, weights, missing, first)
                raise
            of_rows = w[:, tick.coordinates.weight_of_rows]
            try:
                found[number] = Alike(tick, places, q, qd, y, of_rows, tick.measured_each(q, qd, y))
            except SingularSystemError:
                _refuse_pose(tick, places + first, q, qd, y)
                raise
            _refuse_large(found[number], first)
        return Instants(numbers, found, among)

    def _refuse(
        self, number: int, places: Indices, Q: Floats, Qd: Floats, Y: Floats, weights: Any, missing: Missing, first: int
    ) -> None:
        """Raise the error of one of many ticks, with its number; none where each alone has none."""
        for k in places.tolist():
            with naming(f"tick {first + k}"):
                weighting = self.all.weighting(number, weights_at(weights, k))
                own = self.all.reading(number, Y[k])
                checked_state(self.of(number).system, Q[k], Qd[k], own, weighting, missing)


def _refuse_pose(tick: TickPrograms, numbers: Indices, q: Floats, qd: Floats, y: Floats) -> None:
    """Raise the error of the first of many ticks at whose pose the exact rows tell nothing, with its number."""
    for k, number in enumerate(numbers.tolist()):
        try:
            tick.measured(q[k], qd[k], y[k])
        except SingularSystemError:
            raise SingularSystemError(
                f"tick {number}: the exact rows nearly have no unique solution at this pose, so that its readings tell "
                "nothing. Leave it out."
            ) from None


def _refuse_large(alike: Alike, first: int) -> None:
    """Refuse ticks whose readings are too large to go on from.

    Raises:
        InputError: there is one; says which reading it is.
    """
    size = np.where(alike.weights > 0, np.sqrt(alike.weights) * np.abs(alike.tick.constants(alike.values)), 0.0)
    is_large = (size >= np.sqrt(LARGEST_SQUARE / size.shape[1])).any(axis=1)
    if is_large.any():
        k = int(np.argmax(is_large))
        name = alike.tick.coordinates.row_names[int(np.argmax(size[k]))]
        raise InputError(
            f"tick {first + int(alike.places[k])}: the reading of '{name}' is off by {size[k].max():.0e} of its "
            "standard deviations, which is no number to go on from. Leave it out, as nan and with missing='drop'."
        )


def undetermined(names: Sequence[str]) -> str:
    """The message that no reading up to now tells some numbers."""
    return (
        f"{listed(names, 4)} not determined: no reading up to now tells {'it' if len(names) == 1 else 'them'}, and "
        "nothing is known at first. Say what is, by the `sigma` of its entry in `memory`, or begin where the "
        "sensors see it."
    )


def checked_time(name: str, dt: float) -> float:
    """A time between ticks.

    Raises:
        InputError: it is no positive number.
    """
    if not is_positive(dt):
        raise InputError(f"{name} is {dt!r}: the time from one tick to the next is a positive number of seconds.")
    return float(dt)
