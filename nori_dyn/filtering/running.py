"""A tick of a filter that runs: on arrays that stay where they are, natively in one foreign call, or through NumPy.

Both know the same: what is known of the memory is in arrays that the ticks of all contact states share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from nori_dyn.filtering.instants import undetermined
from nori_dyn.filtering.square_root import Information, Motion, Updated, forgotten, propagated, updated
from nori_dyn.filtering.tick import Said, Tick
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.native_filter import NOTHING, NativeTick
from nori_dyn.program.status import Status
from nori_dyn.typing import Floats

NOT_FINITE, UNDETERMINED, NO_SOLUTION = 1, 2, 3
"""Why a tick has no estimate."""

GOOD = Status()
"""The status of one that has."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What the ticks of all contact states share.

    Attributes:
        R, z: what is known of the memory, R m = z + noise (k, k), (k,): before the readings of the tick that runs.
        totals: sums of chi-squares, of their degrees of freedom, and of ticks (3,).
        values: the outputs, one after the other.
    """

    R: Floats
    z: Floats
    totals: Floats
    values: Floats

    @property
    def information(self) -> Information:
        """What is known, in arrays of its own."""
        return Information(self.R.copy(), self.z.copy())

    def put(self, known: Information) -> None:
        """Know this."""
        self.R[:], self.z[:] = known.R, known.z


class Running(Protocol):
    """A tick that runs.

    Attributes:
        tick: its programs.
        state: what it reads: q, qd, y, weights, one after the other.
        at: what a native step has to know of the one before.
    """

    tick: Tick
    at: Any
    state: Floats

    def step(self, last: Running | None, dt: float) -> int:
        """Estimate the state that there is, a time [s] after the last tick, if there was one.

        Returns:
            0, or why there is no estimate. Where a number is not finite what is known goes on as without the readings;
            else these tell what they can.
        """

    def found(self) -> Updated:
        """Return what is known of what is free after the readings of the last step."""

    def carried(self, dt: float) -> Information:
        """Return what is known of the memory a time [s] after the last step."""

    def conclude(self, state: Floats, u: Floats) -> bool:
        """Write the outputs of a state, given what is free (n,); return whether there are any."""

    @property
    def lost(self) -> tuple[int, ...]:
        """The places in u of what the last step did not determine."""


def without_readings(tick: Tick, before: Information) -> tuple[Updated, Callable[[float], Motion]]:
    """Return what is known after a tick without readings, and so without rates, and how it goes on.

    What is known of v is not known any more.

    Args:
        tick: its programs.
        before: what was known of the memory.
    """
    n_s, n_v, n_f = tick.sizes
    known = forgotten(before, n_v)
    n = n_s + n_v + n_f
    R, z = np.zeros((n, n)), np.zeros(n)
    R[n_s:, n_s:], z[n_s:] = known.R, known.z
    return Updated(R, z, 0.0, 0, 0.0, (), np.full(n, np.nan)), partial(tick.motion, tick.nothing)


def cause_of(wrong: int, lost: Sequence[str]) -> str:
    """Return why a tick has no estimate, in words.

    Args:
        wrong: what `step` returned.
        lost: the names of what is not determined.
    """
    if wrong == NOT_FINITE:
        return "a number of the state is not finite, or the exact rows nearly have no unique solution at this pose"
    if wrong == NO_SOLUTION:
        return "the exact rows have no unique solution at this pose"
    return undetermined(lost)


class NumpyRunning:
    """A tick through NumPy."""

    at = None

    def __init__(self, tick: Tick, shared: Shared, longest: float) -> None:
        self.tick, self._shared, self._longest = tick, shared, longest
        system = tick.system
        self.state = np.zeros(sum(system.input_sizes.values()))
        self._parts = np.split(self.state, np.cumsum([*system.input_sizes.values()])[:-1])
        self._tick = tick.solver.ticker(tick.solver_state, shared.values)
        self._lost: tuple[int, ...] = ()
        self._after: Updated | None = None
        self._motion: Callable[[float], Motion] | None = None

    def step(self, last: Running | None, dt: float) -> int:
        shared, tick = self._shared, self.tick
        if last is not None:
            shared.put(last.carried(dt))
        q, qd, y, weights = self._parts
        rows = tick.rows
        for place, values in zip(vars(rows.inputs).values(), (q, qd, y), strict=True):
            place[:] = values
        wrong = NOT_FINITE if rows.tick() else 0
        if not wrong:
            said = tick.formed(np.array(rows.outputs))
            after = updated(shared.information, said.A, said.c, weights[tick.freed.weight_of_rows], tick.sizes[0])
            wrong = NOT_FINITE if not np.isfinite(after.nis) else UNDETERMINED if after.undetermined else 0
            self._lost = after.undetermined
            self._after, self._motion = after, partial(tick.motion, said)
        if not wrong:
            wrong = 0 if self.conclude(self.state, after.u) else NO_SOLUTION
        if wrong == NOT_FINITE:
            self._after, self._motion = without_readings(tick, shared.information)
        else:
            shared.totals[:] += after.nis, after.degrees, 1
        return wrong

    def conclude(self, state: Floats, u: Floats) -> bool:
        tick = self.tick
        q, qd, y, _ = np.split(state, np.cumsum([*tick.system.input_sizes.values()])[:-1])
        tick.solver_state[:] = np.concatenate([q, qd, y[tick.freed.exact_readings], u])
        return self._tick().ok

    def found(self) -> Updated:
        assert self._after is not None
        return self._after

    def carried(self, dt: float) -> Information:
        assert self._motion is not None
        return propagated(self.found(), self._motion(dt), dt <= self._longest)

    @property
    def lost(self) -> tuple[int, ...]:
        return self._lost


class NativeRunning:
    """A tick in one foreign call.

    Attributes:
        native: the call.

    Args:
        tick: its programs.
        shared: what it shares with others.
        longest: the longest time over which rates are known [s].
        kind: of the call.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self, tick: Tick, shared: Shared, longest: float, kind: Callable[..., NativeTick] = NativeTick
    ) -> None:
        self.tick, self._longest = tick, longest
        self.state = np.zeros(sum(tick.system.input_sizes.values()))
        outputs = tick.solver.native
        rows = tick.rows.kernel
        assert outputs is not None
        assert isinstance(rows, NativeKernel)
        self.native = kind(
            tick.shape,
            needed_compiler("the native filter"),
            rows,
            outputs,
            self.state,
            shared.values,
            (shared.R, shared.z),
            shared.totals,
            longest,
        )
        self.at, self._step = self.native.at, self.native.step
        self._afresh = tick.solver.ticker(self.native.free, shared.values)

    def step(self, last: Running | None, dt: float) -> int:
        wrong: int = self._step(self.at, NOTHING if last is None else last.at, dt)
        return 0 if wrong == NO_SOLUTION and self._afresh().ok else wrong

    def found(self) -> Updated:
        native = self.native
        parts = native.R_u.copy(), native.z_u.copy(), native.nis, native.degrees, native.log_likelihood
        return Updated(*parts, (), native.u.copy())

    def carried(self, dt: float) -> Information:
        said, has_rates = self.tick.formed(self.native.values), self.native.has_rates
        rates = (said.X, said.x) if has_rates else (np.zeros_like(said.X), np.zeros_like(said.x))
        return propagated(self.found(), self.tick.motion(Said(said.A, said.c, *rates), dt), dt <= self._longest)

    def conclude(self, state: Floats, u: Floats) -> bool:
        return self.native.conclude(state, u) or self._afresh().ok

    @property
    def lost(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.native.pivots == 0).tolist())
