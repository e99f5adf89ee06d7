"""Contact states as hypotheses: which rows each has, how readings of different states are compared, how they switch.

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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.algebra.arrays import counted, is_positive
from nori_dyn.errors import InputError, PlanError, named_contacts
from nori_dyn.filtering.contact_rows import CaseRows, case_of_rows
from nori_dyn.filtering.free_coordinates import FreeCoordinates
from nori_dyn.filtering.markov import distances, transitions
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes
from nori_dyn.typing import Booleans, Floats, Indices

AS_GOOD_AS_EXACT = 1e-7
"""Share of the wide density's size that what holds exactly in a case of a contact is off by at most."""

LIKELY = 0.01
"""From which probability on a state counts as likely, where only states near those are judged."""

RATE = 3.0
"""How often a contact switches by default [1/s]: a walking robot's foot does some times a second."""

ACCELERATION = 1.0
"""How large accelerations are by default [m/s^2, rad/s^2]: a foot stands from a tenth of the robot's weight on."""

HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """The contact states of a plan as hypotheses, of which a tracker finds out which is true.

    Attributes:
        rate: how often a contact switches on average [1/s]; the less, the more it takes to believe in a switch.
        acceleration: from which force over the robot's mass on a touch shall about count as contact [m/s^2]; it is the
            size of the wide density by which states are compared, see docs/design.md, 4.12. It has to be well above
            the noise of such forces, or a contact is believed in where there is none.
        reach: states are judged that differ from a likely one by as many contacts at most; all when None.
        lag: how many ticks later the contact state of a tick is settled, where a tracker has a lag; `Tracker.smoothed`
            can look back as far. None is half of the tracker's lag.

    Raises:
        InputError: a rate or an acceleration that is not positive; a reach or lag that is no number of them.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> brake = wrench | {"components": ["mx", "my", "fx", "fy", "fz"], "value": 0}
        >>> contacts = {"brake": {"closed": [brake], "open": [wrench | {"value": 0}]}}
        >>> read = [{"type": f"joint_{of}", "joints": "all", "sigma": 0.1} for of in ("torque", "acceleration")]
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.01}}
        >>> content = {"name": "wheel", "measurements": read, "contacts": contacts, "memory": memory}
        >>> plan = nd.plan(nd.autotree(1), nd.SensorSet.from_dict(content), outputs=["fx"])
        >>> wheel = nd.Tracker(plan, dt=0.001, hypotheses=nd.Hypotheses(rate=10))
        >>> held = wheel.step(np.zeros(1), np.zeros(1), {"tau:joint1": 3.0, "qdd:joint1": 0.0})
        >>> held.contacts, held.probability_of("brake") > 0.9
        (('brake',), True)
    """

    rate: float = RATE
    acceleration: float = ACCELERATION
    reach: int | None = None
    lag: int | None = None

    def __post_init__(self) -> None:
        _check_positive("rate", self.rate, "how often a contact switches in a second")
        _check_positive("acceleration", self.acceleration, "how large accelerations are")
        if self.reach is not None:
            counted("reach", self.reach)
        if self.lag is not None:
            counted("lag", self.lag, 0)


def _check_positive(name: str, value: float, what: str) -> None:
    if not is_positive(value):
        raise InputError(f"{name} is {value!r}: {what} is a positive number.")


@dataclass(frozen=True, eq=False)
class HypothesisModel:
    """What judging contact states takes.

    Attributes:
        states: the states.
        n_contacts: number of contacts.
        coordinates: the null-space coordinates of the system of all cases.
        options: how they switch, and how they are compared.
    """

    states: tuple[ContactState, ...]
    n_contacts: int
    coordinates: FreeCoordinates
    options: Hypotheses

    @property
    def reach(self) -> int:
        """States are judged that differ from a likely one by as many contacts at most."""
        return self.n_contacts if self.options.reach is None else self.options.reach

    @cached_property
    def cases(self) -> Sequence[CaseRows | None]:
        """Of each weighed row, the case of a contact by which it counts (p,); None of rows that always do."""
        return case_of_rows(self.coordinates.weighed)

    @cached_property
    def counting(self) -> Sequence[Booleans]:
        """Of each state, which weighed rows count (p,)."""
        counts = [[case is None or case.counts(state) for case in self.cases] for state in self.states]
        return [np.array(one, dtype=bool) for one in counts]

    @cached_property
    def rows(self) -> Sequence[Indices]:
        """Of each state, the weighed rows that count."""
        return [np.flatnonzero(counts) for counts in self.counting]

    @cached_property
    def of_cases(self) -> Booleans:
        """Which weighed rows (p,) are of a case of a contact."""
        return np.array([case is not None for case in self.cases], dtype=bool)

    @cached_property
    def sizes(self) -> WideSizes:
        """Those of the wide density."""
        return WideSizes.of(self.coordinates, self.options.acceleration)

    @cached_property
    def exact_weights(self) -> Floats:
        """The weights of weighed rows that hold exactly where they count (p,); 0 of others."""
        weights = (AS_GOOD_AS_EXACT * self.sizes.rows) ** -2.0
        exact = np.array([case is not None and case.holds_exactly for case in self.cases], dtype=bool)
        return np.where(exact, weights, 0.0)

    @cached_property
    def row_logs(self) -> Floats:
        """What each weighed row adds to the logarithm of the density of a state by whose case it counts (p,)."""
        return np.asarray(np.log(self.sizes.rows)) + HALF_LOG_TWO_PI

    @cached_property
    def free_logs(self) -> Floats:
        """What each number of s adds to it where the state leaves it undetermined (n_s,)."""
        return np.asarray(np.log(self.sizes.free[: self.coordinates.sizes[0]])) + HALF_LOG_TWO_PI

    @cached_property
    def apart(self) -> Indices:
        """In how many contacts states differ (S, S)."""
        return distances(self.states)

    @cached_property
    def closes(self) -> Booleans:
        """Whether contacts close from a state, a row for each, to another, and none opens (S, S)."""
        return np.array([[set(before) < set(after) for after in self.states] for before in self.states])

    def transitions(self, dt: float) -> Floats:
        """The probability of each state after a time [s] (S, S), a row for each state before."""
        return transitions(self.apart, self.n_contacts, self.options.rate, dt)

    def judged(self, expected: Floats) -> list[int]:
        """The states that are judged: those near a likely one.

        Args:
            expected: the probabilities before the readings (S,).
        """
        likely = expected >= min(LIKELY, expected.max())
        near = (self.apart[likely] <= self.reach).any(axis=0) & (expected > 0)
        return [int(h) for h in np.flatnonzero(near)]

    def weights(self, given: Floats) -> Floats:
        """The weights of weighed rows (p,), those of exact rows as good as exact.

        Args:
            given: those of the system (n_weights,).
        """
        of_rows = given[self.coordinates.weight_of_rows]
        return np.where((self.exact_weights > 0) & (of_rows > 0), self.exact_weights, of_rows)

    def check_exact_rows(self, tick: TickPrograms) -> None:
        """Check that no state says the same twice by rows that hold exactly.

        Raises:
            PlanError: one does.
        """
        system = tick.system
        q = system.tree.random_configurations(1, np.random.default_rng(0))[0]
        A = tick.measured(q, np.zeros(system.tree.nv), np.zeros(system.ny)).A / self.sizes.rows[:, None]
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
    def of(coordinates: FreeCoordinates, acceleration: float) -> WideSizes:
        """Those of a system, where accelerations are as large as that."""
        sizes = natural_sizes(coordinates.system, touched=True)
        rows = np.concatenate([sizes.rows[row.slice] for row in coordinates.weighed])
        return WideSizes(acceleration * sizes.unknowns[coordinates.columns], acceleration * rows)
