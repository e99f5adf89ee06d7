"""A filter: estimates at each tick from all readings up to it, exactly, as all is linear once q and qd are given.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. V to VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import batched, checked, numeric, shaped
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.history import History
from nori_dyn.filtering.instants import GAP, Instant, Ticks
from nori_dyn.filtering.knowledge import MemoryState, information, memory_state
from nori_dyn.filtering.smoother import Cut, Recorded, Stretch
from nori_dyn.filtering.square_root import Information, Updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import Watch, unwatched
from nori_dyn.solve.contact_numbers import Closed, ClosedInAll
from nori_dyn.solve.solver import Singular, check_singular
from nori_dyn.system.inputs import Missing, Weights
from nori_dyn.tables import listed
from nori_dyn.typing import Floats


class Filter:
    """Estimates over time; not to be shared between threads.

    Attributes:
        plans: the plan of each contact state.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        consistency: how well the readings of all ticks so far fit what is said of their noise.
    """

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        dt: float,
        backend: str = "auto",
        watch: Watch = unwatched,
        name: str = "contacts",
    ) -> None:
        self.plans, self.contact_names, self.dt = dict(plans), tuple(contact_names), checked_time("dt", dt)
        self._ticks = Ticks(plans, contact_names, backend, watch, name)
        self._number = 0
        self.reset()

    @property
    def _tick(self) -> Tick:
        return self._ticks.each[self._number]

    @property
    def contacts(self) -> ContactState:
        """The contacts that are closed."""
        return self._ticks.planned.states[self._number]

    def switch(self, closed: Closed) -> None:
        """Go to another contact state, for the ticks to come; what persists goes on.

        Args:
            closed: the contacts that are closed: names in any order, or booleans (n_contacts,).

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: the state has no plan.
        """
        self._number = self._ticks.planned.number_of(closed)

    @property
    def free_names(self) -> tuple[str, ...]:
        """The name of each number that exact rows leave free, those that persist last."""
        return self._tick.freed.names

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self._tick.memory_names

    def reset(self, state: MemoryState | None = None) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known at the next tick, before its readings; what the sensors' config says when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none.
        """
        self._before = self._known_first(state)
        self._after: Updated | None = None
        self._instant: Instant | None = None
        self._time = 0.0 if state is None else state.time
        self.consistency = Consistency()

    @property
    def state(self) -> MemoryState:
        """What is known after the last tick; before the first, at the beginning."""
        if self._after is None:
            return memory_state(self.memory_names, self._tick.memory_units, self._before, self._time)
        return self._state_of(self._after, self._time)

    def step(
        self,
        q: Floats,
        qd: Floats,
        y: Floats | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Tracked:
        """Estimate a tick from its readings and all before.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings (ny,), see `Solver.solve`.
            dt: time since the last tick [s]; the usual one when None.
            weights: see `Solver.solve`; those of what is known at first have no part.
            missing: see `Solver.solve`.

        Raises:
            InputError: as `Solver.solve`, and a time that is not positive.
            SingularSystemError: something is not determined by the readings up to now, and nothing was known of it at
                first: names it. The filter stays as it was.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        instant = self._ticks.instant(self._number, q, qd, y, weights, missing)
        before = self._carried(dt)
        after = instant.updated(before)
        if after.undetermined:
            raise undetermined_error(instant.tick, after.undetermined)
        estimate = instant.tick.outputs(instant.q, instant.qd, instant.y, after.u)
        self._time += 0.0 if self._after is None else dt
        self._before, self._after, self._instant = before, after, instant
        self.consistency.add(after.nis, after.degrees)
        deviations = partial(instant.tick.deviations, instant.q)
        return Tracked(estimate, after, partial(self._state_of, after, self._time), deviations)

    def over(
        self,
        T: Floats | None,
        Q: Floats,
        Qd: Floats,
        Y: Floats,
        contacts: ClosedInAll | Sequence[Closed] | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
        singular: Singular = "refuse",
        causal: bool = True,
        state: MemoryState | None = None,
    ) -> History:
        """Estimate N ticks that were recorded: each from the readings up to it, or from all.

        The filter stays as it is: it begins with what the sensors' config says, or with `state`.

        Args:
            T: times (N,) [s], which increase; the usual time apart when None.
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny), of all contact states.
            contacts: those that are closed, see `SwitchingSolver.solve_batch`; the present ones when None.
            weights: see `Solver.solve_batch`.
            missing: see `Solver.solve_batch`.
            singular: what to do with ticks at which something is not determined: "refuse" them all, or give "nan".
            causal: whether each is estimated from the readings up to it; otherwise from all of them.
            state: what is known before the first.

        Raises:
            InputError: as `step`, wrong shapes, times that do not increase; says of which tick.
            SingularSystemError: something is not determined, and that is refused; says what and when.
            UnplannedStateError: a contact state that has no plan.
        """
        check_singular(singular)
        tree = self._tick.system.tree
        Q = batched("Q", Q, tree.nq)
        N = len(Q)
        if not N:
            raise InputError("Q holds no tick.")
        t = self.dt * np.arange(N, dtype=float) if T is None else increasing(checked("T", T, (N,)))
        Qd, Y = shaped("Qd", Qd, (N, tree.nv)), shaped("Y", Y, (N, self._ticks.ny))
        weighed = weights if weights is None or isinstance(weights, Mapping) else numeric("weights", weights)
        numbers = np.full(N, self._number) if contacts is None else self._ticks.planned.numbers_of(contacts, N)
        whole = Stretch(0, t, np.diff(t, prepend=t[0]), numbers, Q, Qd, Y, weighed)
        run = Recorded(self._ticks, self.dt, self._known_first(state), missing, singular)
        if causal:
            return History.joined(list(run.filtered(Cut(whole))))
        return History.joined(list(run.smoothed(Cut(whole)))[::-1])

    def _state_of(self, after: Updated, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._tick.memory_units, after.memory(len(self.memory_names)), time)

    def _known_first(self, state: MemoryState | None) -> Information:
        """Return what is known at first.

        Raises:
            InputError: it is of other numbers, or its covariance is none.
        """
        if state is None:
            return self._tick.beginning()
        if state.names != self.memory_names:
            raise InputError(
                f"the state is of {listed(state.names, 4)}; this filter's memory is {listed(self.memory_names, 4)}."
            )
        return information(state)

    def _carried(self, dt: float) -> Information:
        """Return what is known before the next readings, a time [s] after the last."""
        if self._after is None or self._instant is None:
            return self._before
        return self._instant.carried(self._after, dt, dt > GAP * self.dt)


def checked_time(name: str, dt: float) -> float:
    """Return a time between ticks.

    Raises:
        InputError: it is no positive number.
    """
    if isinstance(dt, bool) or not isinstance(dt, int | float | np.number) or not 0 < dt < np.inf:
        raise InputError(f"{name} is {dt!r}: the time from one tick to the next is a positive number of seconds.")
    return float(dt)


def increasing(T: Floats) -> Floats:
    """Return times (N,).

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


def undetermined_error(tick: Tick, places: Sequence[int]) -> SingularSystemError:
    """Return the error that says what no reading up to now tells."""
    names = [tick.freed.names[k] for k in places]
    return SingularSystemError(
        f"{listed(names, 4)} not determined: no reading up to now tells "
        f"{'it' if len(names) == 1 else 'them'}, and nothing is known at first. Say what is, by the `sigma` of its "
        "entry in `memory`, or begin where the sensors see it."
    )
