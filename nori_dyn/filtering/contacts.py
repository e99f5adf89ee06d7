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
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError, UnplannedStateError
from nori_dyn.filtering.contact_rows import CaseReadings, everything
from nori_dyn.filtering.free import no_memory
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.filtering.instants import checked_time
from nori_dyn.filtering.judging import Judging, NativeJudging, NumpyJudging
from nori_dyn.filtering.knowledge import MemoryState, memory_state
from nori_dyn.filtering.markov import NO_PART, looked_back
from nori_dyn.filtering.recognised import Recognised, Switch
from nori_dyn.filtering.running import GOOD, UNDETERMINED, cause_of
from nori_dyn.filtering.square_root import Information, Updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState, contact_state
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.remade import Uncopied
from nori_dyn.program.status import Status
from nori_dyn.solve.estimate import Layout
from nori_dyn.solve.solver import Inputs, Outputs
from nori_dyn.system.inputs import Missing, Weights, checked_state
from nori_dyn.typing import Floats

RATE = 3.0
"""How often a contact switches unless told [1/s]: a walking robot's foot does some times a second."""

ACCELERATION = 1.0
"""How large accelerations are unless told [m/s^2, rad/s^2]: a foot stands from a tenth of the robot's weight on."""

KEPT_SWITCHES = 1000
"""How many switches a filter remembers."""


class ContactFilter(Uncopied):
    """Estimates over time of a robot whose contacts are not told; not to be shared between threads.

    Attributes:
        contact_names: all contacts.
        states: the contact states, in the order of `probabilities`.
        measurement_names: the name of each number of y (ny), the readings of all states.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s].
        inputs: the arrays that `tick` reads: q, qd, y and weights of all states.
        outputs: the arrays that `tick` writes, by the names of the outputs: those of the most likely state.
        probabilities: of each state, given all readings so far (n_states,); the array stays, its numbers change.
        backend: name of the backend.
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
        if not sensors.memory:  # said before anything is compiled
            raise no_memory(sensors.name)
        self.states, self.contact_names, self.dt = tuple(states), sensors.contact_names, checked_time("dt", dt)
        self.rate = _positive("rate", rate, "how often a contact switches in a second")
        acceleration = _positive("acceleration", acceleration, "how large accelerations are")
        reach = len(self.contact_names) if reach is None else _count("reach", reach, 1)
        lag = _count("lag", lag, 0)
        self._tick = tick = Tick(everything(tree, sensors, outputs, seed), backend, watch)
        system = tick.system
        self._readings = CaseReadings(system)
        self.measurement_names, self.backend = self._readings.names, tick.solver.backend
        of = Hypotheses(self.states, len(self.contact_names), tick.freed, acceleration, self.rate, reach, self.dt)
        of.check_exact_rows(tick)
        self._hypotheses = of
        layout = Layout(tick.freed.plan.system, tick.freed.plan.outputs)
        self._values = np.full(layout.size, np.nan)
        kind: type[NativeJudging | NumpyJudging] = NumpyJudging if tick.solver.native is None else NativeJudging
        self._judging: Judging = kind(tick, of, self._values)
        self.probabilities = self._judging.probabilities
        self._places = self._readings.places_in(system.input_sizes)
        is_same = np.array_equal(self._places, np.arange(len(self._judging.state)))
        self._state = self._judging.state if is_same else np.zeros(int(self._places.max()) + 1)
        self.inputs = Inputs.of(self._state, tree, len(self.measurement_names))
        self.inputs.q[:], self.inputs.weights[:] = tree.neutral_configuration(), system.weights
        self.outputs = Outputs(**layout.views(self._values))
        turns = layout.turns and kind is NativeJudging  # that of NumPy turns what it writes
        self._turn = partial(layout.turn, vars(self.outputs)) if turns else None
        self._past, self._past_dt = np.zeros((lag, len(self.states))), np.zeros(lag)
        self.reset()

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight (n_weights): those of contacts begin with the contact and its case."""
        return tuple(self._tick.system.weight_names)

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self._tick.memory_names

    @property
    def free_names(self) -> tuple[str, ...]:
        """The name of each number that exact rows leave free, those that persist last."""
        return self._tick.freed.names

    @property
    def contacts(self) -> ContactState:
        """The contacts that are closed in the most likely state."""
        return self.states[self._best]

    @property
    def state(self) -> MemoryState:
        """What persists as known after the last tick, in the most likely state; before the first, at the beginning."""
        after = self._judging.found(self._best) if self._ticks else None
        known = self._before if after is None else after.memory(len(self.memory_names))
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
        self.probabilities[:] = self._beginning(probabilities)
        self._best = int(np.argmax(self.probabilities))
        self._before, self._ticks = before, 0
        self._judging.begin(before)
        self._time = 0.0 if state is None else state.time
        self.switches: deque[Switch] = deque(maxlen=KEPT_SWITCHES)
        self._n_switches = 0

    def tick(self, dt: float | None = None) -> Status:
        """Judge all states by the tick in `inputs`, write `outputs` of the most likely one, and return a status.

        It checks nothing of what it is given. `probabilities` and `contacts` tell the states. Where there is no
        estimate, see `Filter.tick`; states go on by themselves, too, where a number is not finite.

        Args:
            dt: time since the last tick [s], positive; the usual one when None.
        """
        if self._state is not self._judging.state:
            np.take(self._state, self._places, out=self._judging.state, mode="clip")
        wrong = self._judge(self.dt if dt is None else dt)
        if wrong:
            self._values[:] = np.nan
            return Status(ok=False, rcond=0.0 if wrong == UNDETERMINED else np.nan, cause=self._cause(wrong))
        if self._turn is not None:
            self._turn()
        return GOOD

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
        q, qd, y, w = checked_state(self._tick.system, q, qd, self._readings.of(y), weights, missing)
        self._judging.state[:] = np.concatenate([q, qd, y, w])
        n_switches = self._n_switches
        wrong = self._judge(dt)
        if wrong:
            raise SingularSystemError(self._cause(wrong))
        likely = np.flatnonzero(self.probabilities >= NO_PART).tolist()
        afters = {self.states[h]: self._judging.found(h) for h in {self._best, *likely}}
        return Recognised(
            dict(zip(self.states, self.probabilities.tolist(), strict=True)),
            self.switches[-1] if self._n_switches > n_switches else None,
            partial(self._tracked, q, qd, y, afters, self._time),
        )

    def _judge(self, dt: float) -> int:
        """Judge the state that there is; return 0, or why there is no estimate."""
        if self._ticks:
            self._time += dt
            if len(self._past):
                row = self._ticks % len(self._past)
                self._past[row], self._past_dt[row] = self.probabilities, dt
        wrong = self._judging.step(dt)
        best = self._judging.best
        if self._ticks and best != self._best:
            before, after = self.states[self._best], self.states[best]
            self.switches.append(Switch(self._time, before, after, float(self.probabilities[best])))
            self._n_switches += 1
        self._best = best
        self._ticks += 1
        return wrong

    def smoothed(self, ticks: int) -> dict[ContactState, float]:
        """Return the probability of each state so many ticks ago, given all readings since.

        Raises:
            InputError: the filter was not made with as large a `lag`, or has not run as long.
        """
        passed = min(max(self._ticks - 1, 0), len(self._past))
        if not 0 <= ticks <= passed:
            raise InputError(
                f"ticks is {ticks!r}: this filter looks back at most {len(self._past)} ticks, by `lag`, and "
                f"{passed} have passed so far."
            )
        found = self.probabilities
        for tick in range(self._ticks - 1, self._ticks - 1 - ticks, -1):
            row = tick % len(self._past)
            found = looked_back(self._past[row], self._hypotheses.transitions(float(self._past_dt[row])), found)
        return dict(zip(self.states, found.tolist(), strict=True))

    def _tracked(
        self,
        q: Floats,
        qd: Floats,
        y: Floats,
        afters: Mapping[ContactState, Updated | None],
        time: float,
        state: ContactState,
    ) -> Tracked:
        after, tick = afters[state], self._tick
        assert after is not None
        known = after.memory(len(self.memory_names))
        estimate = tick.outputs(q, qd, y, after.u)
        return Tracked(estimate, after, partial(self._state_of, known, time), lambda: tick.deviations(q, after.root()))

    def _state_of(self, known: Information, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._tick.memory_units, known, time)

    def _cause(self, wrong: int) -> str:
        """Return why the last tick has no estimate."""
        best, names = self._judging.found(self._best), self.free_names
        return cause_of(wrong, [names[k] for k in (best.undetermined if best else ())])

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


def _positive(name: str, value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise InputError(f"{name} is {value!r}: {what} is a positive number.")
    return float(value)


def _count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}: expected a whole number of at least {least}.")
    return int(value)
