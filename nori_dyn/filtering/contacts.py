"""Which contacts are closed, recognised: a filter whose ticks are judged in each contact state, and a chain over these.

At each tick every state h says how well it explains the readings y, by the density

    p(y | h) = integral of p(y | u, h) p(u | h) du

over what the rows leave free that hold in all states, u = [s | m]. The memory m has its density from the ticks before.
The others, s, have a wide one: accelerations and external wrenches are normal about 0 with a standard deviation of
`acceleration`, for wrenches that times the robot's mass, about as large as what shall count as contact. It is taken to
be as high everywhere as in its middle, so that larger forces are no less likely: only its height counts. Along a row r
that only some states have, exact or weighed, it is replaced by what the row says: its height is taken out again,

    log p(y | h) = log likelihood of the filter + sum_r log(sqrt(2 pi) size_r) + what is the same for all states

Without it states could not be compared: one that leaves more free always fits better. A number of s that a state leaves
undetermined tells nothing for or against it: the wide density integrates to one.

Source: own derivation (tests/unit/filtering/test_contacts.py); the memories are mixed as by the interacting multiple
model filter: Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, PlanError, SingularSystemError, UnplannedStateError, named_contacts
from nori_dyn.filtering.contact_rows import CaseReadings, counting, everything, exact_where_counted, of_cases
from nori_dyn.filtering.free import Freed
from nori_dyn.filtering.instants import GAP, checked_time, undetermined
from nori_dyn.filtering.knowledge import MemoryState, memory_state
from nori_dyn.filtering.markov import NO_PART, distances, looked_back, mixed, transitions, weighed
from nori_dyn.filtering.recognised import Recognised, Switch
from nori_dyn.filtering.square_root import Information, Motion, Updated, propagated, updated
from nori_dyn.filtering.tick import Said, Tick
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState, contact_state
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.filter_source import FilterShape
from nori_dyn.program.functions import Watch, unwatched
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.native_filter import NativeSteps
from nori_dyn.system.inputs import Missing, Weights, checked_state
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes
from nori_dyn.typing import Floats, Indices

RATE = 3.0
"""How often a contact switches unless told [1/s]: a walking robot's foot does some times a second."""

ACCELERATION = 1.0
"""How large accelerations are unless told [m/s^2, rad/s^2]: a foot stands from a tenth of the robot's weight on."""

LIKELY = 0.01
"""From which probability on a state counts as likely, where only states near those are judged."""

KEPT_SWITCHES = 1000
"""How many switches a filter remembers."""

AS_GOOD_AS_EXACT = 1e-7
"""Share of the wide density's size that what holds exactly in a case of a contact is off by at most."""

HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


class ContactFilter:
    """Estimates over time of a robot whose contacts are not told; not to be shared between threads.

    Attributes:
        contact_names: all contacts.
        states: the contact states, in the order of `probabilities`.
        measurement_names: the name of each number of y (ny), the readings of all states.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s].
        probabilities: of each state, given all readings so far (n_states,).
        switches: the last changes of the most likely state, the newest last.
    """

    def __init__(
        self,
        tree: KinematicTree,
        sensors: SensorSet,
        states: Sequence[ContactState],
        dt: float,
        outputs: Sequence[str] | None = None,
        rate: float = RATE,
        acceleration: float = ACCELERATION,
        reach: int | None = None,
        lag: int = 0,
        backend: str = "auto",
        watch: Watch = unwatched,
        seed: int = 0,
    ) -> None:
        self.states, self.contact_names, self.dt = tuple(states), sensors.contact_names, checked_time("dt", dt)
        self.rate = _positive("rate", rate, "how often a contact switches in a second")
        acceleration = _positive("acceleration", acceleration, "how large accelerations are")
        self._reach = len(self.contact_names) if reach is None else _count("reach", reach, 1)
        self._lag = _count("lag", lag, 0)
        self._tick = Tick(everything(tree, sensors, outputs, seed), backend, watch)
        self._readings = CaseReadings(self._tick.system)
        self.measurement_names = self._readings.names
        weighed_rows = self._tick.freed.weighed
        self._counting = [np.flatnonzero(counting(weighed_rows, state)) for state in self.states]
        self._exact, self._of_cases = exact_where_counted(weighed_rows), of_cases(weighed_rows)
        self._sizes = WideSizes.of(self._tick.freed, acceleration)
        self._steps: NativeSteps | None = None
        if self._tick.rows.backend == NATIVE:
            freed = self._tick.freed
            shape = FilterShape(*freed.sizes, len(freed.row_names), freed.rows.A, freed.rows.X)
            self._steps = NativeSteps(shape, needed_compiler("the native filter"))
        self._check_exact_rows()
        self._apart = distances(self.states)
        self.reset()

    def _check_exact_rows(self) -> None:
        """Check that no state says the same twice by rows that hold exactly.

        Raises:
            PlanError: one does.
        """
        tree = self._tick.system.tree
        q = tree.random_configurations(1, np.random.default_rng(0))[0]
        A = self._tick.said(q, np.zeros(tree.nv), np.zeros(self._tick.system.ny)).A / self._sizes.rows[:, None]
        for state, rows in zip(self.states, self._counting, strict=True):
            exact = A[rows[self._exact[rows]]] * self._sizes.free
            if len(exact) and np.linalg.matrix_rank(exact, tol=NULL_TOLERANCE * len(exact)) < len(exact):
                raise PlanError(
                    f"sensors '{self._tick.system.sensors.name}': with {named_contacts(state)} rows that hold exactly "
                    "say the same twice, or what other exact rows say. Take one of them out, or give it a `sigma`."
                )

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight (n_weights): those of contacts begin with the contact and its case."""
        return tuple(self._tick.system.weight_names)

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self._tick.memory_names

    @property
    def contacts(self) -> ContactState:
        """The contacts that are closed in the most likely state."""
        return self.states[int(np.argmax(self.probabilities))]

    @property
    def state(self) -> MemoryState:
        """What persists as known after the last tick, in the most likely state; before the first, at the beginning."""
        best = self._after.get(int(np.argmax(self.probabilities)))
        known = self._before if best is None else best.memory(len(self.memory_names))
        return self._state_of(known, self._time)

    def reset(
        self, state: MemoryState | None = None, probabilities: Mapping[ContactState, float] | None = None
    ) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known of what persists, see `Filter.reset`.
            probabilities: of contact states at the next tick, before its readings; all alike when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none; probabilities below zero, or all
                zero.
            UnplannedStateError: a state has no plan.
        """
        before = self._tick.beginning(state)
        self.probabilities = self._beginning(probabilities)
        self._before = before
        self._after: dict[int, Updated] = {}
        self._motion: Callable[[float], Motion] | None = None
        self._time = 0.0 if state is None else state.time
        self._past: deque[tuple[Floats, Floats]] = deque(maxlen=self._lag)
        self.switches: deque[Switch] = deque(maxlen=KEPT_SWITCHES)

    def step(
        self,
        q: Floats,
        qd: Floats,
        y: Floats | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Recognised:
        """Judge all states by the readings of a tick, and estimate.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings of all states (ny,), or by name; those that no judged state has may be left out by name.
            dt: time since the last tick [s]; the usual one when None.
            weights: of all states, see `SwitchingSolver.solve`; those of what is known at first have no part.
            missing: see `Solver.solve`.

        Raises:
            InputError: as `Solver.solve`, and a time that is not positive.
            SingularSystemError: something is not determined in the most likely state by the readings up to now, and
                nothing was known of it at first: names it. What is known goes on with what the readings tell of the
                rest.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        tick = self._tick
        q, qd, y, w = checked_state(tick.system, q, qd, self._readings.of(y), weights, missing)
        T = self._transitions(dt)
        expected = self.probabilities @ T
        judged = self._judged(expected)
        befores = self._mixed(judged, T, expected, dt)
        values = np.asarray(tick.rows(q, qd, y))
        said = tick.formed(values)
        of_rows = w[tick.freed.weight_of_rows]
        of_rows = np.where(self._exact & (of_rows > 0), (AS_GOOD_AS_EXACT * self._sizes.rows) ** -2.0, of_rows)
        afters: dict[int, Updated] = {}
        logs = np.full(len(self.states), -np.inf)
        for h in judged:
            rows = self._counting[h]
            after = afters[h] = self._updated(befores[h], values, said, of_rows, rows)
            replaced = rows[self._of_cases[rows] & (of_rows[rows] > 0)]
            lost = [k for k in after.undetermined if k < tick.sizes[0]]
            logs[h] = after.log_likelihood + self._sizes.log_heights(self._sizes.rows[replaced])
            logs[h] += self._sizes.log_heights(self._sizes.free[lost])
        probabilities, _ = weighed(expected, logs)
        best, last = int(np.argmax(probabilities)), int(np.argmax(self.probabilities))
        time = self._time + (dt if self._after else 0.0)
        switch = None
        if self._after and best != last:
            switch = Switch(time, self.states[last], self.states[best], float(probabilities[best]))
            self.switches.append(switch)
        if self._after:
            self._past.append((self.probabilities, T))
        self.probabilities, self._after, self._time = probabilities, afters, time
        self._motion = partial(tick.motion, said)
        if afters[best].undetermined:
            raise SingularSystemError(undetermined([tick.freed.names[k] for k in afters[best].undetermined]))
        return Recognised(
            dict(zip(self.states, probabilities.tolist(), strict=True)),
            switch,
            lambda state: self._tracked(q, qd, y, afters[self.states.index(state)], time),
        )

    def smoothed(self, ticks: int) -> dict[ContactState, float]:
        """Return the probability of each state so many ticks ago, given all readings since.

        Raises:
            InputError: the filter was not made with as large a `lag`, or has not run as long.
        """
        if not 0 <= ticks <= len(self._past):
            raise InputError(
                f"ticks is {ticks!r}: this filter looks back at most {self._lag} ticks, by `lag`, and "
                f"{len(self._past)} have passed so far."
            )
        found = self.probabilities
        for p, T in list(self._past)[len(self._past) - ticks :][::-1]:
            found = looked_back(p, T, found)
        return dict(zip(self.states, found.tolist(), strict=True))

    def _updated(self, before: Information, values: Floats, said: Said, weights: Floats, rows: Indices) -> Updated:
        """Return what is known after the rows of a state."""
        steps = self._steps
        if steps is None:
            return updated(before, said.A[rows], said.c[rows], weights[rows], self._tick.sizes[0])
        steps.R[:], steps.z[:], steps.values[:] = before.R, before.z, values
        steps.weights[:] = 0.0
        steps.weights[rows] = weights[rows]
        lost = tuple(np.flatnonzero(steps.pivots == 0).tolist()) if steps.update() else ()
        told = steps.nis, steps.degrees, steps.log_likelihood
        return Updated(steps.R_u.copy(), steps.z_u.copy(), *told, lost, steps.u.copy())

    def _tracked(self, q: Floats, qd: Floats, y: Floats, after: Updated, time: float) -> Tracked:
        known = after.memory(len(self.memory_names))
        estimate = self._tick.outputs(q, qd, y, after.u)
        tick = self._tick
        return Tracked(estimate, after, partial(self._state_of, known, time), lambda: tick.deviations(q, after.root()))

    def _state_of(self, known: Information, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._tick.memory_units, known, time)

    def _transitions(self, dt: float) -> Floats:
        if not self._after:
            return np.eye(len(self.states))
        return self._usual if dt == self.dt else transitions(self._apart, len(self.contact_names), self.rate, dt)

    @cached_property
    def _usual(self) -> Floats:
        return transitions(self._apart, len(self.contact_names), self.rate, self.dt)

    def _judged(self, expected: Floats) -> list[int]:
        """Return the states that are judged: those near a likely one."""
        likely = expected >= min(LIKELY, expected.max())
        near = (self._apart[likely] <= self._reach).any(axis=0) & (expected > 0)
        return [int(h) for h in np.flatnonzero(near)]

    def _mixed(self, judged: Sequence[int], T: Floats, expected: Floats, dt: float) -> dict[int, Information]:
        """Return what is known of the memory before the readings, if it has come to each of the states."""
        if self._motion is None:
            return dict.fromkeys(judged, self._before)
        motion = self._motion(dt)
        shares = {h: self.probabilities * T[:, h] / expected[h] for h in judged}
        used = {g for share in shares.values() for g in np.flatnonzero(share >= NO_PART).tolist()}
        carried = {g: self._carried(g, motion, dt) for g in sorted(used)}
        mixtures: dict[tuple[float, ...], Information] = {}
        found = {}
        for h, share in shares.items():
            parts = [g for g in carried if share[g] >= NO_PART]
            key = (*parts, *share[parts]) if len(parts) > 1 else (parts[0],)
            if key not in mixtures:
                mixtures[key] = mixed([(float(share[g]), carried[g]) for g in parts])
            found[h] = mixtures[key]
        return found

    def _carried(self, h: int, motion: Motion, dt: float) -> Information:
        return propagated(self._after[h], motion, dt <= GAP * self.dt)

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


@dataclass(frozen=True, slots=True, eq=False)
class WideSizes:
    """Standard deviations of the wide density, see the module.

    Attributes:
        free: of each number of u (n,).
        rows: of what each weighed row reads (p,).
    """

    free: Floats
    rows: Floats

    @staticmethod
    def of(freed: Freed, acceleration: float) -> WideSizes:
        """Return those of a system, where accelerations are as large as that."""
        sizes = natural_sizes(freed.system, touched=True)
        rows = np.concatenate([sizes.rows[row.slice] for row in freed.weighed])
        return WideSizes(acceleration * sizes.unknowns[freed.columns], acceleration * rows)

    @staticmethod
    def log_heights(sizes: Floats) -> float:
        """Return minus the logarithm of the height of a normal density with these standard deviations."""
        return float(np.log(sizes).sum()) + len(sizes) * HALF_LOG_TWO_PI


def _positive(name: str, value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise InputError(f"{name} is {value!r}: {what} is a positive number.")
    return float(value)


def _count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}: expected a whole number of at least {least}.")
    return int(value)
