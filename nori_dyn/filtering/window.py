"""A fixed-lag smoother: each tick is estimated some ticks later, by the readings that came since as well.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. X.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.instants import GAP, Instant, OverTime, checked_time, undetermined
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.square_root import Updated
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import Watch, unwatched
from nori_dyn.system.inputs import Missing, Weights
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A tick of the window.

    Attributes:
        instant: the tick with its readings.
        after: what is known after these.
        dt: time since the tick before [s].
        time: time since the first tick [s].
    """

    instant: Instant
    after: Updated
    dt: float
    time: float


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of what is free at a tick of the window, see `Updated`.

    Attributes:
        u: the estimate (n,).
        covariance: of that (n, n).
        nis, degrees, log_likelihood: of the readings of the tick, given those before it.
    """

    u: Floats
    covariance: Floats
    nis: float
    degrees: int
    log_likelihood: float


class Window(OverTime):
    """Estimates some ticks late; not to be shared between threads.

    Attributes:
        plans: the plan of each contact state.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        consistency: how well the readings of all ticks so far fit what is said of their noise.
    """

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
        self.reset()

    def reset(self, state: MemoryState | None = None) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known at the next tick, before its readings; what the sensors' config says when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none.
        """
        self._beginning = self._ticks.beginning(state)
        self._time = 0.0 if state is None else state.time
        self._held: deque[Held] = deque(maxlen=self.lag + 1)
        self.consistency = Consistency()

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
                readings of this tick are taken.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        instant = self._ticks.instant(self._number, q, qd, y, weights, missing)
        before = self._beginning
        if self._held:
            last = self._held[-1]
            before = last.instant.carried(last.after, dt, self._is_gap(dt))
            self._time += dt
        after = instant.updated(before)
        self._held.append(Held(instant, after, dt, self._time))
        self.consistency.add(after.nis, after.degrees)
        if len(self._held) <= self.lag:
            return None
        return self._tracked(self._held[0], self._back()[0])

    @property
    def present(self) -> Tracked:
        """The estimate of the last tick, by the readings up to it.

        Raises:
            InputError: there was no tick yet.
            SingularSystemError: something is not determined by then; says what.
        """
        if not self._held:
            raise InputError("the window has seen no tick yet: `step` takes one.")
        last = self._held[-1]
        return self._tracked(last, (last.after.u, last.after.covariance()))

    def rest(self) -> list[Tracked]:
        """Return the estimates of the ticks that `step` has not returned yet, oldest first, by all readings.

        Raises:
            SingularSystemError: something is not determined in one; says what.
        """
        first = 1 if len(self._held) > self.lag else 0
        found = list(zip(self._held, self._back(), strict=True))[first:]
        return [self._tracked(held, known) for held, known in found]

    def _is_gap(self, dt: float) -> bool:
        return dt > GAP * self.dt

    def _back(self) -> list[tuple[Floats, Floats]]:
        """Return the mean and the covariance of what is free at each tick of the window, by all readings."""
        if not self._held:
            return []
        k, last = len(self.memory_names), self._held[-1]
        found = [(last.after.u, last.after.covariance())]
        for following, held in pairwise(reversed(self._held)):
            mean, P = found[-1]
            part = mean[-k:], P[-k:, -k:]
            dt = following.dt
            found.append(held.instant.returned(held.after, dt, self._is_gap(dt), *part))
        return found[::-1]

    def _tracked(self, held: Held, known: tuple[Floats, Floats]) -> Tracked:
        (u, P), instant, after = known, held.instant, held.after
        tick, k = instant.tick, len(self.memory_names)
        lost = np.flatnonzero(np.isnan(u))
        if len(lost):
            names = [tick.freed.names[place] for place in lost.tolist()]
            raise SingularSystemError(f"at {held.time:.6g} s: {undetermined(names)}")
        estimate = tick.outputs(instant.q, instant.qd, instant.y, u)
        memory = MemoryState(self.memory_names, tick.memory_units, u[-k:], P[-k:, -k:], held.time)
        own = Known(u, P, after.nis, after.degrees, after.log_likelihood)
        return Tracked(estimate, own, lambda: memory, partial(tick.deviations_of, instant.q, P))
