"""Which contacts are closed, recognised: a filter for each contact state, and a hidden Markov chain over the states.

At each tick every state h says how well it explains the readings y, by the density

    p(y | h) = integral of p(y | u, h) p(u | h) du

over what its exact rows leave free, u = [s | m]. The memory m has its density from the ticks before. The others, s, have
a wide one: all unknown accelerations and forces, in natural units, are normal about 0 with a standard deviation as
large as `acceleration`, for forces that times the mass that is carried. It is so much wider than what the readings tell
that it is the same number wherever they may be, and only its height counts:

    log p(y | h) = log likelihood of the filter - sum_s log(sqrt(2 pi) size_s) - log|det N_s|
                   + sum_r log(sqrt(2 pi) size_r)

Without it states could not be compared: one that leaves more free always fits better. The height is that of a density
over the states that the exact rows of h allow, N_s being the rows of s of an orthonormal basis of these: which numbers
are chosen for s makes no difference. A weighed row r of something known, "give or take", replaces the wide density in
one direction, whose height is taken out again.

Source: own derivation (tests/unit/filtering/test_contacts.py); the memories are mixed as by the interacting multiple
model filter: Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import InputError, PlanError, UnplannedStateError, named_contacts
from nori_dyn.filtering.filter import GAP, checked_time, forgotten, undetermined_error
from nori_dyn.filtering.free import Freed
from nori_dyn.filtering.knowledge import MemoryState, information, memory_state
from nori_dyn.filtering.markov import distances, looked_back, transitions, weighed
from nori_dyn.filtering.square_root import Information, Motion, Updated, propagated, updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState, contact_state
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import Watch, unwatched
from nori_dyn.system.inputs import Missing, Weights, checked_state
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.system.sources import SourceSplit, natural_sizes, over_sources
from nori_dyn.tables import Document, Facts, Shown, Table, listed, number
from nori_dyn.typing import Floats

RATE = 3.0
"""How often a contact switches unless told [1/s]: a walking robot's foot does some times a second."""

ACCELERATION = 10.0
"""How large accelerations are unless told [m/s^2, rad/s^2]: as gravity, so that a force is about the robot's weight."""

LIKELY = 0.01
"""From which probability on a state counts as likely, where only states near those are judged."""

NO_PART = 1e-3
"""Below which probability another state's memory has no part in a mixture."""

KEPT_SWITCHES = 1000
"""How many switches a filter remembers."""

POSES = 4
"""Configurations over which the height of the wide density is averaged: it varies by about a unit of the logarithm."""

HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of the most likely contact state.

    Attributes:
        time: time since the first tick [s].
        before, after: the states.
        probability: that of the state after, at that tick.
    """

    time: float
    before: ContactState
    after: ContactState
    probability: float


class Recognised(Shown):
    """The estimate of a tick of which the contact state was not told.

    Attributes:
        contacts: the contacts that are closed in the most likely state.
        probabilities: of each state that has a plan, given all readings up to the tick.
        switch: the switch at this tick; None where the most likely state is that of the tick before.
        tracked: the estimate in the most likely state, and what it is worth.

    Args:
        probabilities: see above.
        switch: see above.
        tracked: returns the estimate in a state that was judged.
    """

    def __init__(
        self,
        probabilities: Mapping[ContactState, float],
        switch: Switch | None,
        tracked: Callable[[ContactState], Tracked],
    ) -> None:
        self.probabilities, self.switch, self._tracked = dict(probabilities), switch, tracked
        self.contacts = max(self.probabilities, key=self.probabilities.__getitem__)
        self.tracked = tracked(self.contacts)

    @property
    def probability(self) -> float:
        """That of the most likely state."""
        return self.probabilities[self.contacts]

    def probability_of(self, contact: str) -> float:
        """Return the probability that a contact is closed."""
        return sum(p for state, p in self.probabilities.items() if contact in state)

    def mixture(self, name: str) -> Floats:
        """Return an output by name, the mean over all states with their probabilities.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        likely = {state: p for state, p in self.probabilities.items() if p >= NO_PART}
        return np.asarray(sum(p * self._tracked(state)[name] for state, p in likely.items()) / sum(likely.values()))

    def __getitem__(self, name: str) -> Floats:
        """Return an output of the most likely state by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.tracked[name]

    def __repr__(self) -> str:
        return f"Recognised({named_contacts(self.contacts)}, probability {self.probability:.6g})"

    def shown(self) -> Document:
        ranked = sorted(self.probabilities.items(), key=lambda one: -one[1])
        rows = tuple((", ".join(state) or "none", number(p, 3)) for state, p in ranked)
        facts = () if self.switch is None else (("switched", f"from {named_contacts(self.switch.before)}"),)
        return Document((Facts(facts), Table("Contact states", ("closed", "probability"), rows, left=(0,))))


class ContactFilter:
    """Estimates over time of a robot whose contacts are not told; not to be shared between threads.

    Attributes:
        plans: the plan of each contact state.
        contact_names: all contacts.
        states: the contact states, in the order of `probabilities`.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s].
        probabilities: of each state, given all readings so far (n_states,).
        switches: the last changes of the most likely state, the newest last.
    """

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        dt: float,
        rate: float = RATE,
        acceleration: float = ACCELERATION,
        reach: int | None = None,
        lag: int = 0,
        backend: str = "auto",
        watch: Watch = unwatched,
        name: str = "contacts",
    ) -> None:
        self.plans, self.contact_names, self.dt = dict(plans), tuple(contact_names), checked_time("dt", dt)
        self.rate = _positive("rate", rate, "how often a contact switches in a second")
        _positive("acceleration", acceleration, "how large accelerations are")
        self._reach = len(self.contact_names) if reach is None else _count("reach", reach, 1)
        self._lag = _count("lag", lag, 0)
        self.states = tuple(self.plans)
        self._all = SideBySide([plan.system for plan in plans.values()], name)
        self._ticks = [Tick(plan, backend, watch) for plan in plans.values()]
        first, *others = self._ticks
        if any(tick.memory_names != first.memory_names for tick in others):
            raise PlanError(f"sensors '{name}': what persists is not the same in all contact states.")
        self._apart = distances(self.states)
        self._heights = [WideDensity.of(tick.freed, acceleration) for tick in self._ticks]
        self.reset()

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y (ny), the readings of all states."""
        return self._all.measurement_names

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight (n_weights), the weights of all states; see `SideBySide`."""
        return self._all.weight_names

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self._ticks[0].memory_names

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
        if state is not None and state.names != self.memory_names:
            raise InputError(
                f"the state is of {listed(state.names, 4)}; this filter's memory is {listed(self.memory_names, 4)}."
            )
        self.probabilities = self._beginning(probabilities)
        self._before = self._ticks[0].beginning() if state is None else information(state)
        self._after: dict[int, Updated] = {}
        self._motions: dict[int, Callable[[float], Motion]] = {}
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
                nothing was known of it at first: names it. The filter stays as it was.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        T = self._transitions(dt)
        expected = self.probabilities @ T
        judged = self._judged(expected)
        befores = self._mixed(judged, T, expected, dt)
        afters: dict[int, Updated] = {}
        motions: dict[int, Callable[[float], Motion]] = {}
        told: dict[int, Callable[[], Tracked]] = {}
        logs = np.full(len(self.states), -np.inf)
        time = self._time + (dt if self._after else 0.0)
        for h in judged:
            tick = self._ticks[h]
            own, weighting = self._all.reading(h, y), self._all.weighting(h, weights)
            q_h, qd_h, y_h, w = checked_state(tick.system, q, qd, own, weighting, missing)
            said = tick.said(q_h, qd_h, y_h)
            of_rows = w[tick.freed.weight_of_rows]
            after = updated(befores[h], said.A, said.c, of_rows, tick.sizes[0])
            logs[h] = after.log_likelihood + self._heights[h].log_ratio(after.undetermined, of_rows)
            afters[h], motions[h] = after, partial(tick.motion, said)
            told[h] = partial(self._tracked, tick, q_h, qd_h, y_h, after, time)
        probabilities, _ = weighed(expected, logs)
        best, last = int(np.argmax(probabilities)), int(np.argmax(self.probabilities))
        if afters[best].undetermined:
            raise undetermined_error(self._ticks[best], afters[best].undetermined)
        switch = None
        if self._after and best != last:
            switch = Switch(time, self.states[last], self.states[best], float(probabilities[best]))
        found = Recognised(
            dict(zip(self.states, probabilities.tolist(), strict=True)),
            switch,
            lambda state: told[self.states.index(state)](),
        )
        if switch is not None:
            self.switches.append(switch)
        if self._after:
            self._past.append((self.probabilities, T))
        self.probabilities, self._after, self._motions, self._time = probabilities, afters, motions, time
        return found

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

    def _tracked(self, tick: Tick, q: Floats, qd: Floats, y: Floats, after: Updated, time: float) -> Tracked:
        known = after.memory(len(self.memory_names))
        estimate = tick.outputs(q, qd, y, after.u)
        return Tracked(estimate, after, partial(self._state_of, known, time), partial(tick.deviations, q))

    def _state_of(self, known: Information, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._ticks[0].memory_units, known, time)

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
        if not self._after:
            return dict.fromkeys(judged, self._before)
        shares = {h: self.probabilities * T[:, h] / expected[h] for h in judged}
        used = {g for share in shares.values() for g in np.flatnonzero(share >= NO_PART).tolist()}
        carried = {g: self._carried(g, dt) for g in sorted(used)}
        mixtures: dict[tuple[float, ...], Information] = {}
        found = {}
        for h, share in shares.items():
            parts = [g for g in carried if share[g] >= NO_PART]
            key = (*parts, *share[parts]) if len(parts) > 1 else (parts[0],)
            if key not in mixtures:
                mixtures[key] = mixed([(float(share[g]), carried[g]) for g in parts])
            found[h] = mixtures[key]
        return found

    def _carried(self, h: int, dt: float) -> Information:
        before = propagated(self._after[h], self._motions[h](dt))
        return before if dt <= GAP * self.dt else forgotten(before, self._ticks[h].sizes[1])

    def _beginning(self, probabilities: Mapping[ContactState, float] | None) -> Floats:
        n = len(self.states)
        if probabilities is None:
            return np.full(n, 1.0 / n)
        found = np.zeros(n)
        for closed, p in probabilities.items():
            state = contact_state(self.contact_names, closed, "the filter")
            if state not in self.plans:
                raise UnplannedStateError(state, self.states)
            found[self.states.index(state)] = p
        if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
            raise InputError(
                f"probabilities are {list(probabilities.values())}: give numbers of at least 0, some above it."
            )
        return found / found.sum()


@dataclass(frozen=True, slots=True, eq=False)
class WideDensity:
    """The height of the wide density over what is free and does not persist, see the module.

    Attributes:
        of_free: minus the logarithm of its height along each number of s (n_s,).
        volume: the logarithm of |det N_s|.
        of_rows: the same as `of_free` for each weighed row of something known (p,); 0 for readings.
    """

    of_free: Floats
    volume: float
    of_rows: Floats

    @staticmethod
    def of(freed: Freed, acceleration: float) -> WideDensity:
        """Return that of a contact state."""
        system, n_s = freed.system, freed.sizes[0]
        sizes = natural_sizes(system)
        log = float(np.log(acceleration)) + HALF_LOG_TWO_PI
        known = [not row.equation.is_measured for row in freed.weighed for _ in range(len(numbers(row.slice)))]
        of_rows = np.concatenate([sizes.rows[row.slice] for row in freed.weighed])
        return WideDensity(
            of_free=np.log(sizes.unknowns[freed.columns[:n_s]]) + log,
            volume=_volume(freed),
            of_rows=np.where(known, np.log(of_rows) + log, 0.0),
        )

    def log_ratio(self, undetermined: Sequence[int], weights: Floats) -> float:
        """Return what the wide density adds to the logarithm of a likelihood.

        Args:
            undetermined: numbers of u of which the tick knows nothing: over these the density integrates to one.
            weights: those of the weighed rows (p,); 0 where a row is left out.
        """
        n_s = len(self.of_free)
        lost = [k for k in undetermined if k < n_s]
        return float(
            self.of_rows[weights > 0].sum() - self.of_free.sum() + self.of_free[lost].sum() - self.volume
        )


def _volume(freed: Freed) -> float:
    """Return log|det N_s|, on average over some configurations."""
    system, n_s = freed.system, freed.sizes[0]
    split, sizes = SourceSplit.of(system), natural_sizes(system)
    others = np.flatnonzero(~np.isin(split.sources, freed.columns[n_s:]))
    chosen = np.searchsorted(split.sources[others], freed.columns[:n_s])
    is_exact = np.concatenate([np.full(len(numbers(row.slice)), row.is_exact) for row in system.rows])
    found = []
    for q in system.tree.random_configurations(POSES, np.random.default_rng(0)):
        at = over_sources(system, sizes, system.D(q))
        N = la.null_space(at.M[is_exact[at.rows]][:, others])
        found.append(np.linalg.slogdet(N[chosen])[1])
    return float(np.mean(found))


def mixed(parts: Iterable[tuple[float, Information]]) -> Information:
    """Return one normal density with the mean and the covariance of a mixture of several.

    No covariance is formed: P = C C^T with the columns sqrt(w_i) [R_i^-1, m_i - m], and C is made triangular. Where one
    of them does not know all numbers, the weightiest is returned.

    Args:
        parts: their weights and square-root forms.
    """
    each = list(parts)
    if len(each) == 1 or any((np.diag(known.R) == 0.0).any() for _, known in each):
        return max(each, key=lambda one: one[0])[1]
    w = np.array([share for share, _ in each])
    w /= w.sum()
    means = np.array([known.mean() for _, known in each])
    m = w @ means
    eye = np.eye(len(m))
    roots = [la.solve_triangular(known.R, eye) for _, known in each]
    C = np.hstack([np.sqrt(w_i) * np.column_stack([L, m_i - m]) for w_i, L, m_i in zip(w, roots, means, strict=True)])
    (L,) = la.qr(C[::-1].T, mode="r")
    U = L[: len(m)].T[::-1, ::-1]
    R = np.triu(la.solve_triangular(U, eye))
    return Information(R, R @ m)


def _positive(name: str, value: float, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise InputError(f"{name} is {value!r}: {what} is a positive number.")
    return float(value)


def _count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}: expected a whole number of at least {least}.")
    return int(value)
