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
from nori_dyn.filtering.delays import Delays, delays
from nori_dyn.filtering.history import History
from nori_dyn.filtering.instants import checked_time
from nori_dyn.filtering.knowledge import MemoryState, memory_state
from nori_dyn.filtering.running import GOOD, UNDETERMINED
from nori_dyn.filtering.smoother import Cut, Recorded, Stretch
from nori_dyn.filtering.square_root import Updated
from nori_dyn.filtering.ticking import Ticking
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.program.status import Status
from nori_dyn.solve.contact_numbers import Closed, ClosedInAll
from nori_dyn.solve.solver import Singular, check_singular
from nori_dyn.system.inputs import Missing, Weights, configuration
from nori_dyn.typing import Floats


class Filter(Ticking):
    """Estimates over time; not to be shared between threads.

    Attributes:
        plans: the plan of each contact state.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states, see `SwitchingSolver`.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        consistency: how well the readings of all ticks so far fit what is said of their noise.
    """

    def reset(self, state: MemoryState | None = None) -> None:
        """Go back to the beginning, or to what is known at some time.

        Args:
            state: what is known at the next tick, before its readings, see `predicted`; what the sensors' config says
                when None.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none.
        """
        self._begin(state)

    @property
    def state(self) -> MemoryState:
        """What is known after the last tick; before the first, at the beginning."""
        if self._last is None:
            return memory_state(self.memory_names, self._tick.memory_units, self._shared.information, self._time)
        return self._state_of(self._last.found(), self._time)

    def predicted(self, dt: float | None = None) -> MemoryState:
        """Return what is known of what persists before the next readings: what `reset` takes to go on from.

        Args:
            dt: time since the last tick [s]; the usual one when None.

        Raises:
            InputError: a time that is not positive.
        """
        if self._last is None:
            return self.state
        dt = self.dt if dt is None else checked_time("dt", dt)
        units = self._tick.memory_units
        return memory_state(self.memory_names, units, self._last.carried(dt), self._time + dt)

    @property
    def expected(self) -> MemoryState:
        """What was known of what persists before the readings of the last tick, at its time."""
        return memory_state(self.memory_names, self._tick.memory_units, self._shared.information, self._time)

    def tick(self, dt: float | None = None) -> Status:
        """Estimate the tick in `inputs`, write `outputs`, and return a status. It checks nothing of what it is given.

        Where there is no estimate, as for a reading that is not a number, what is known goes on without the readings of
        the tick; where something is not determined, or only the outputs cannot be had, with what they tell.

        Args:
            dt: time since the last tick [s], positive; the usual one when None.
        """
        self._read_inputs()
        wrong = self._estimate(self.dt if dt is None else dt)
        if wrong:
            self._shared.values[:] = np.nan
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
                first: names it. What is known goes on with what the readings tell of the rest.
        """
        dt = self.dt if dt is None else checked_time("dt", dt)
        tick = self._tick
        q, qd, y = self._read(q, qd, y, weights, missing)
        wrong = self._estimate(dt)
        if wrong:
            raise SingularSystemError(self._cause(wrong))
        after = self._now.found()
        estimate = tick.outputs(q, qd, y, after.u)
        return Tracked(
            estimate, after, partial(self._state_of, after, self._time), lambda: tick.deviations(q, after.root())
        )

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
        Qd, Y = shaped("Qd", Qd, (N, tree.nv)), shaped("Y", Y, (N, self._all.ny))
        weighed = weights if weights is None or isinstance(weights, Mapping) else numeric("weights", weights)
        numbers = np.full(N, self._number) if contacts is None else self._ticks.planned.numbers_of(contacts, N)
        whole = Stretch(0, t, np.diff(t, prepend=t[0]), numbers, Q, Qd, Y, weighed)
        run = Recorded(self._ticks, self.dt, self._ticks.beginning(state), missing, singular)
        if causal:
            return History.joined(list(run.filtered(Cut(whole))))
        return History.joined(list(run.smoothed(Cut(whole)))[::-1])

    def delays(self, q: Floats) -> Delays:
        """Return how late estimates follow what persists, at rest at a configuration, once the filter has settled.

        Args:
            q: configuration (nq,).

        Raises:
            InputError: a wrong shape, or a value that is not finite.
            SingularSystemError: the readings of a tick do not determine all there, even if what persists were known.
        """
        return delays(self._tick, configuration(self._tick.system.tree, q), self.dt)

    def _state_of(self, after: Updated, time: float) -> MemoryState:
        return memory_state(self.memory_names, self._tick.memory_units, after.memory(len(self.memory_names)), time)


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
