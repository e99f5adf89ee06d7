"""A fixed-lag smoother: each tick is estimated some ticks later, by the readings that came since as well.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. X.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.held import Held, looked_back
from nori_dyn.filtering.instants import checked_time, undetermined
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.running import GOOD, NO_SOLUTION, NOT_FINITE, Running
from nori_dyn.filtering.ticking import Ticking
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.native_window import NativeWindowTick
from nori_dyn.program.status import Status
from nori_dyn.system.inputs import Missing, Weights
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of what is free at a tick of the window, see `Updated`.

    Attributes:
        u: the estimate (n,).
        nis, degrees, log_likelihood: of the readings of the tick, given those before it.
    """

    u: Floats
    nis: float
    degrees: int
    log_likelihood: float


class Seen:
    """How sure the estimate of a tick of the window is, by the readings up to now: worked out when it is asked for.

    Args:
        window: the ticks from it on.
        u: the estimate of what is free (n,).
        usual: the usual time between ticks [s].
    """

    def __init__(self, window: Sequence[Held], u: Floats, usual: float) -> None:
        for held in window:
            held.is_shared = True
        self._window: Sequence[Held] | None = window
        self._tick, self._q, self._time = window[0].tick, window[0].parts[0], window[0].time
        self._u, self._usual = u, usual

    @cached_property
    def covariance(self) -> Floats:
        """That of what is free (n, n)."""
        assert self._window is not None
        found, self._window = looked_back(self._window, self._usual)[0][1], None
        return found

    def memory(self) -> MemoryState:
        """Return what persists."""
        names, P = self._tick.memory_names, self.covariance
        k = len(names)
        return MemoryState(names, self._tick.memory_units, self._u[-k:], P[-k:, -k:], self._time)

    def deviations(self) -> Mapping[str, Floats]:
        """Return the standard deviations of the outputs."""
        return self._tick.deviations_of(self._q, self.covariance)


class Window(Ticking):
    """Estimates some ticks late; not to be shared between threads.

    Attributes:
        plans: the plan of each contact state.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states, see `SwitchingSolver`.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        consistency: how well the readings of all ticks so far fit what is said of their noise.
    """

    _native = NativeWindowTick

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        dt: float,
        lag: int,
        backend: str = "auto",
        watch: Watch = unwatched,
        name: str = "contacts",
    ) -> None:
        if isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 1:
            raise InputError(f"lag is {lag!r}: a window looks at least one tick back; without any it is a filter.")
        super().__init__(plans, contact_names, dt, backend, watch, name)
        self.lag = int(lag)
        self._held: deque[Held] = deque()
        self._spare: dict[Running, list[Held]] = {running: [] for running in self._running.values()}

    def reset(self, state: MemoryState | None = None) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known at the next tick, before its readings; what the sensors' config says when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none.
        """
        self._begin(state)
        self._held.clear()

    def tick(self, dt: float | None = None) -> Status:
        """Take the tick in `inputs`, write the estimate of the tick `lag` ticks before to `outputs`; return its status.

        It checks nothing of what it is given. A tick that says nothing, as where a reading is not a number, is left out
        of what is known; where its own turn comes there is no estimate.

        Args:
            dt: time since the last tick [s], positive; the usual one when None.
        """
        self._read_inputs()
        self._take(self.dt if dt is None else dt)
        if len(self._held) <= self.lag:
            cause = f"the window has seen {len(self._held)} ticks, and says of each what {self.lag} later ones tell"
            return self._without(Status(ok=False, rcond=np.nan, cause=cause))
        u, held = self._late(), self._held[0]
        if np.isnan(u).any():
            return self._without(Status(ok=False, rcond=0.0, cause=self._unknown(held, u)))
        if not held.conclude(u):
            return self._without(Status(ok=False, rcond=np.nan, cause=self._cause(NO_SOLUTION)))
        if self._turn is not None:
            self._turn()
        return GOOD

    def _without(self, status: Status) -> Status:
        self._shared.values[:] = np.nan
        return status

    def step(
        self,
        q: Floats,
        qd: Floats,
        y: Floats | Mapping[str, Any],
        dt: float | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Tracked | None:
        """Take a tick's readings, and return the estimate of the tick `lag` ticks before it; None until there is one.

        For the arguments see `Filter.step`.

        Raises:
            InputError: as there.
            SingularSystemError: something was not determined then, not even by the readings since; says what. The
                readings of this tick are taken. Or the exact rows have no solution at this tick: its readings are not.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        self._read(q, qd, y, weights, missing)
        wrong = self._take(dt)
        if wrong == NOT_FINITE:
            raise SingularSystemError(self._cause(wrong))
        return self._tracked(0, self._late().copy()) if len(self._held) > self.lag else None

    @property
    def present(self) -> Tracked:
        """The estimate of the last tick, by the readings up to it.

        Raises:
            InputError: there was no tick yet.
            SingularSystemError: something is not determined by then; says what.
        """
        if not self._held:
            raise InputError("the window has seen no tick yet: `step` takes one.")
        last = len(self._held) - 1
        return self._tracked(last, self._held[last].u.copy())

    def rest(self) -> list[Tracked]:
        """Return the estimates of the ticks that `step` has not returned yet, oldest first, by all readings.

        Raises:
            SingularSystemError: something is not determined in one; says what.
        """
        if not self._held:
            return []
        first = 1 if len(self._held) > self.lag else 0
        found = looked_back(self._held, self.dt)
        return [self._tracked(k, found[k][0]) for k in range(first, len(found))]

    def _take(self, dt: float) -> int:
        """Take the tick that was read; return why it has no estimate, or 0."""
        wrong = self._estimate(dt)
        if len(self._held) > self.lag:
            out = self._held.popleft()
            if not out.is_shared:
                self._spare[out.running].append(out)
        spare = self._spare[self._now]
        held = spare.pop() if spare else Held(self._now)
        held.take(dt, self._time, wrong)
        self._held.append(held)
        return wrong

    def _late(self) -> Floats:
        """Return the estimate of what is free at the first tick of the window, by all readings."""
        mean, k = self._held[-1].u, len(self.memory_names)
        for number in range(len(self._held) - 2, -1, -1):
            before = self._held[number].mean_back(self._held[number + 1], mean[-k:], self.dt)
            if before is None:
                return looked_back(self._held, self.dt)[0][0]
            mean = before
        return mean

    def _tracked(self, number: int, u: Floats) -> Tracked:
        """Return what is known of a tick of the window, by its number there."""
        held = self._held[number]
        if np.isnan(u).any():
            raise SingularSystemError(self._unknown(held, u))
        q, qd, y, _ = held.parts
        estimate = held.tick.outputs(q, qd, y, u)
        seen = Seen([self._held[k] for k in range(number, len(self._held))], u, self.dt)
        known = Known(u, held.nis, held.degrees, held.log_likelihood)
        return Tracked(estimate, known, seen.memory, seen.deviations)

    def _unknown(self, held: Held, u: Floats) -> str:
        """Return the message that something of a tick is not determined."""
        names = [held.tick.freed.names[place] for place in np.flatnonzero(np.isnan(u)).tolist()]
        return f"at {held.time:.6g} s: {undetermined(names)}"
