"""What takes the readings of one tick after the other has in common: a tick that runs for each contact state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.instants import GAP, OverTime
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.running import NativeRunning, NumpyRunning, Running, Shared, cause_of
from nori_dyn.filtering.tick import Tick
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.native_filter import NativeTick
from nori_dyn.program.remade import Uncopied
from nori_dyn.solve.contact_numbers import Closed
from nori_dyn.solve.estimate import Layout
from nori_dyn.solve.solver import Inputs, Outputs
from nori_dyn.system.inputs import Missing, Weights, checked_state
from nori_dyn.typing import Floats


class Ticking(Uncopied, OverTime):
    """Estimates tick by tick, on arrays that stay where they are.

    Attributes:
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states, see `SwitchingSolver`.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
    """

    _native: ClassVar[type[NativeTick]] = NativeTick

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        dt: float,
        backend: str = "auto",
        watch: Watch = unwatched,
        name: str = "contacts",
    ) -> None:
        super().__init__(plans, contact_names, dt, backend, watch, name)
        self._all, first = self._ticks.all, self._ticks.first
        k, tree = len(first.memory_names), first.system.tree
        layout = Layout(first.freed.plan.system, first.freed.plan.outputs)
        values = np.full(layout.size, np.nan)
        self._shared = Shared(np.zeros((k, k)), np.zeros(k), np.zeros(3), values)
        self.backend = first.solver.backend
        is_native = first.solver.native is not None
        self._running: dict[ContactState, Running] = {
            state: self._runs(tick, is_native) for state, tick in zip(plans, self._ticks.each, strict=True)
        }
        self._now = next(iter(self._running.values()))
        is_one, zeros = len(self._running) == 1, np.zeros(tree.nv + self._all.ny)
        self._places = None if is_one else [self._all.places(number) for number in range(len(self._running))]
        self._state = self._now.state if is_one else np.zeros(tree.nq + len(zeros) + self._all.n_weights)
        self._state[:] = np.concatenate([tree.neutral_configuration(), zeros, self._all.weights])
        self.inputs = Inputs.of(self._state, tree, self._all.ny)
        self.outputs = Outputs(**layout.views(values))
        turns = layout.turns and is_native  # that of NumPy turns what it writes
        self._turn = partial(layout.turn, vars(self.outputs)) if turns else None
        self._begin(None)

    def _runs(self, tick: Tick, is_native: bool) -> Running:
        if is_native:
            return NativeRunning(tick, self._shared, GAP * self.dt, self._native)
        return NumpyRunning(tick, self._shared, GAP * self.dt)

    def switch(self, closed: Closed) -> None:
        super().switch(closed)
        self._now = self._running[self.contacts]

    @property
    def ticks(self) -> Mapping[ContactState, Tick]:
        """The programs of each contact state."""
        return {state: running.tick for state, running in self._running.items()}

    @property
    def _tick(self) -> Tick:
        """The programs of the present contact state."""
        return self._now.tick

    @property
    def free_names(self) -> tuple[str, ...]:
        """The name of each number that exact rows leave free, those that persist last."""
        return self._tick.freed.names

    @property
    def consistency(self) -> Consistency:
        """How well the readings of all ticks so far fit what is said of their noise."""
        nis, degrees, ticks = self._shared.totals.tolist()
        return Consistency(nis, int(degrees), int(ticks))

    def _begin(self, state: MemoryState | None) -> None:
        """Go back to the beginning, or to what is known at the next tick.

        Raises:
            InputError: what is known is of other numbers, or its covariance is none.
        """
        self._shared.put(self._ticks.beginning(state))
        self._shared.totals[:] = 0.0
        self._last: Running | None = None
        self._time = 0.0 if state is None else state.time

    def _read(
        self, q: Floats, qd: Floats, y: Floats | Mapping[str, Any], weights: Weights, missing: Missing
    ) -> tuple[Floats, Floats, Floats]:
        """Take the state of a tick; return q, qd and y of its contact state.

        Raises:
            InputError: as `Solver.solve`.
        """
        own, weighting = self._all.reading(self._number, y), self._all.weighting(self._number, weights)
        q, qd, y, w = checked_state(self._tick.system, q, qd, own, weighting, missing)
        self._now.state[:] = np.concatenate([q, qd, y, w])
        return q, qd, y

    def _read_inputs(self) -> None:
        """Take the state in `inputs`."""
        if self._places is not None:
            self._now.state[:] = self._state[self._places[self._number]]

    def _estimate(self, dt: float) -> int:
        """Estimate the state that was taken, a time [s] after the last; return why there is no estimate, or 0."""
        last = self._last
        wrong = self._now.step(last, dt)
        if last is not None:
            self._time += dt
        self._last = self._now
        return wrong

    def _cause(self, wrong: int) -> str:
        """Return why the last tick has no estimate."""
        return cause_of(wrong, [self.free_names[k] for k in self._now.lost])
