"""Contact states as hypotheses: which rows each has, how readings of different states are compared, how they switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.errors import PlanError, named_contacts
from nori_dyn.filtering.contact_rows import counting, exact_where_counted, of_cases
from nori_dyn.filtering.free import Freed
from nori_dyn.filtering.markov import distances, transitions
from nori_dyn.filtering.tick import Tick
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes
from nori_dyn.typing import Booleans, Floats, Indices

AS_GOOD_AS_EXACT = 1e-7
"""Share of the wide density's size that what holds exactly in a case of a contact is off by at most."""

LIKELY = 0.01
"""From which probability on a state counts as likely, where only states near those are judged."""

HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """The contact states of a filter that judges them.

    Attributes:
        states: the states.
        n_contacts: number of contacts.
        freed: the system of all cases over what is free.
        acceleration: how large accelerations are, and forces over the robot's mass [m/s^2].
        rate: how often a contact switches on average [1/s].
        reach: states are judged that differ from a likely one by as many contacts at most.
        usual: usual time between ticks [s].
    """

    states: tuple[ContactState, ...]
    n_contacts: int
    freed: Freed
    acceleration: float
    rate: float
    reach: int
    usual: float

    @cached_property
    def counting(self) -> Sequence[Booleans]:
        """Of each state, which weighed rows count (p,)."""
        return [counting(self.freed.weighed, state) for state in self.states]

    @cached_property
    def rows(self) -> Sequence[Indices]:
        """Of each state, the weighed rows that count."""
        return [np.flatnonzero(counts) for counts in self.counting]

    @cached_property
    def of_cases(self) -> Booleans:
        """Which weighed rows (p,) are of a case of a contact."""
        return of_cases(self.freed.weighed)

    @cached_property
    def sizes(self) -> WideSizes:
        """Those of the wide density."""
        return WideSizes.of(self.freed, self.acceleration)

    @cached_property
    def exact_weights(self) -> Floats:
        """The weights of weighed rows that hold exactly where they count (p,); 0 of others."""
        weights = (AS_GOOD_AS_EXACT * self.sizes.rows) ** -2.0
        return np.where(exact_where_counted(self.freed.weighed), weights, 0.0)

    @cached_property
    def row_logs(self) -> Floats:
        """What each weighed row adds to the logarithm of the density of a state by whose case it counts (p,)."""
        return np.asarray(np.log(self.sizes.rows)) + HALF_LOG_TWO_PI

    @cached_property
    def free_logs(self) -> Floats:
        """What each number of s adds to it where the state leaves it undetermined (n_s,)."""
        return np.asarray(np.log(self.sizes.free[: self.freed.sizes[0]])) + HALF_LOG_TWO_PI

    @cached_property
    def apart(self) -> Indices:
        """In how many contacts states differ (S, S)."""
        return distances(self.states)

    def transitions(self, dt: float) -> Floats:
        """Return the probability of each state after a time [s] (S, S), a row for each state before."""
        return self._usual if dt == self.usual else transitions(self.apart, self.n_contacts, self.rate, dt)

    @cached_property
    def _usual(self) -> Floats:
        return transitions(self.apart, self.n_contacts, self.rate, self.usual)

    def judged(self, expected: Floats) -> list[int]:
        """Return the states that are judged: those near a likely one.

        Args:
            expected: the probabilities before the readings (S,).
        """
        likely = expected >= min(LIKELY, expected.max())
        near = (self.apart[likely] <= self.reach).any(axis=0) & (expected > 0)
        return [int(h) for h in np.flatnonzero(near)]

    def weights(self, given: Floats) -> Floats:
        """Return the weights of weighed rows (p,), those of exact rows as good as exact.

        Args:
            given: those of the system (n_weights,).
        """
        of_rows = given[self.freed.weight_of_rows]
        return np.where((self.exact_weights > 0) & (of_rows > 0), self.exact_weights, of_rows)

    def check_exact_rows(self, tick: Tick) -> None:
        """Check that no state says the same twice by rows that hold exactly.

        Raises:
            PlanError: one does.
        """
        system = tick.system
        q = system.tree.random_configurations(1, np.random.default_rng(0))[0]
        A = tick.said(q, np.zeros(system.tree.nv), np.zeros(system.ny)).A / self.sizes.rows[:, None]
        for state, rows in zip(self.states, self.rows, strict=True):
            exact = A[rows[self.exact_weights[rows] > 0]] * self.sizes.free
            if len(exact) and np.linalg.matrix_rank(exact, tol=NULL_TOLERANCE * len(exact)) < len(exact):
                raise PlanError(
                    f"sensors '{system.sensors.name}': with {named_contacts(state)} rows that hold exactly "
                    "say the same twice, or what other exact rows say. Take one of them out, or give it a `sigma`."
                )


@dataclass(frozen=True, slots=True, eq=False)
class WideSizes:
    """Standard deviations of the wide density, see `contacts`.

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
