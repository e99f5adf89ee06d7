"""A filter: estimates at each tick from all readings up to it, exactly, as all is linear once q and qd are given.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. V to VII.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.instants import GAP, Instant, Ticks
from nori_dyn.filtering.knowledge import MemoryState, information, memory_state
from nori_dyn.filtering.square_root import Information, Updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import Watch, unwatched
from nori_dyn.solve.contact_numbers import Closed
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
        if state is not None and state.names != self.memory_names:
            raise InputError(
                f"the state is of {listed(state.names, 4)}; this filter's memory is {listed(self.memory_names, 4)}."
            )
        self._before = self._tick.beginning() if state is None else information(state)
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

    def _state_of(self, after: Updated, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._tick.memory_units, after.memory(len(self.memory_names)), time)

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


def undetermined_error(tick: Tick, places: Sequence[int]) -> SingularSystemError:
    """Return the error that says what no reading up to now tells."""
    names = [tick.freed.names[k] for k in places]
    return SingularSystemError(
        f"{listed(names, 4)} not determined: no reading up to now tells "
        f"{'it' if len(names) == 1 else 'them'}, and nothing is known at first. Say what is, by the `sigma` of its "
        "entry in `memory`, or begin where the sensors see it."
    )
