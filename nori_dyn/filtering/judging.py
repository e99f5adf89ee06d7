"""A tick that judges contact states and runs: on arrays that stay where they are, natively in one call, or by NumPy.

See `contacts` for the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from nori_dyn.filtering.hypotheses import LIKELY, Hypotheses
from nori_dyn.filtering.instants import GAP
from nori_dyn.filtering.markov import NO_PART, mixed, weighed
from nori_dyn.filtering.running import NO_SOLUTION, NOT_FINITE, UNDETERMINED, without_readings
from nori_dyn.filtering.square_root import Information, Motion, Updated, estimate, propagated, updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.contact_source import ContactShape
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.native_contacts import ContactNumbers, NativeContacts
from nori_dyn.typing import Floats


class Judging(Protocol):
    """A tick that judges contact states.

    Attributes:
        state: what it reads: q, qd, y, weights, one after the other.
        probabilities: of the states, given all readings so far (S,); they go on from what is written there.
    """

    state: Floats
    probabilities: Floats

    def begin(self, before: Information) -> None:
        """Go back to before the first tick, where this is known of the memory."""

    def step(self, dt: float) -> int:
        """Judge the state that there is, a time [s] after the last tick, and estimate in the most likely one.

        Returns:
            0, or why there is no estimate. Where a number is not finite the states and what is known go on as without
            the readings; else these tell what they can.
        """

    def found(self, h: int) -> Updated | None:
        """Return what is known of what is free after the last step if a state is true; None where it is not judged."""

    @property
    def best(self) -> int:
        """The number of the most likely state at the last step."""


class NumpyJudging:
    """A tick through NumPy."""

    def __init__(self, tick: Tick, of: Hypotheses, values: Floats) -> None:
        self._of, self._of_tick, self._values = of, tick, values
        system = tick.system
        self.state = np.zeros(sum(system.input_sizes.values()))
        self._parts = np.split(self.state, np.cumsum([*system.input_sizes.values()])[:-1])
        self._outputs = tick.solver.ticker(tick.solver_state, values)
        self.probabilities = np.full(len(of.states), 1.0 / len(of.states))

    def begin(self, before: Information) -> None:
        self._before = before
        self._after: dict[int, Updated] = {}
        self._motion: Callable[[float], Motion] | None = None

    def step(self, dt: float) -> int:
        of, tick = self._of, self._of_tick
        T = np.eye(len(of.states)) if self._motion is None else of.transitions(dt)
        expected = self.probabilities @ T
        befores = self._mixed(of.judged(expected), T, expected, dt)
        wrong = self._judge(befores, expected)
        if wrong == NOT_FINITE:
            coasting = {h: without_readings(tick, before) for h, before in befores.items()}
            self._after = {h: after for h, (after, _) in coasting.items()}
            self._motion = next(motion for _, motion in coasting.values())
            self._weigh(expected, dict.fromkeys(befores, 0.0))
        return wrong

    def _judge(self, befores: dict[int, Information], expected: Floats) -> int:
        """Judge states by the readings, given what was known before them in each."""
        of, tick = self._of, self._of_tick
        q, qd, y, weights = self._parts
        for place, values in zip(vars(tick.rows.inputs).values(), (q, qd, y), strict=True):
            place[:] = values
        if tick.rows.tick():
            return NOT_FINITE
        said, n_s, of_rows = tick.formed(np.array(tick.rows.outputs)), tick.sizes[0], of.weights(weights)
        afters, logs = {}, {}
        for h, before in befores.items():
            rows = of.rows[h]
            after = afters[h] = updated(before, said.A[rows], said.c[rows], of_rows[rows], n_s)
            lost = [k for k in after.undetermined if k < n_s]
            replaced = rows[of.of_cases[rows] & (of_rows[rows] > 0)]
            logs[h] = after.log_likelihood + of.row_logs[replaced].sum() + of.free_logs[lost].sum()
        if not np.isfinite(list(logs.values())).all():
            return NOT_FINITE
        self._after, self._motion = afters, partial(tick.motion, said)
        self._weigh(expected, logs)
        best = afters[self.best]
        if best.undetermined:
            return UNDETERMINED
        tick.solver_state[:] = np.concatenate([q, qd, y[tick.freed.exact_readings], best.u])
        return 0 if self._outputs().ok else NO_SOLUTION

    def _weigh(self, expected: Floats, logs: dict[int, float]) -> None:
        every = np.full(len(expected), -np.inf)
        every[list(logs)] = list(logs.values())
        self.probabilities[:], _ = weighed(expected, every)

    @property
    def best(self) -> int:
        return int(np.argmax(self.probabilities))

    def found(self, h: int) -> Updated | None:
        return self._after.get(h)

    def _mixed(self, judged: Sequence[int], T: Floats, expected: Floats, dt: float) -> dict[int, Information]:
        """Return what is known of the memory before the readings, if it has come to each of the states."""
        if self._motion is None:
            return dict.fromkeys(judged, self._before)
        motion, knows_rates = self._motion(dt), dt <= GAP * self._of.usual
        carried: dict[int, Information] = {}
        found = {}
        for h in judged:
            share = self.probabilities * T[:, h] / expected[h]
            parts = np.flatnonzero(share >= min(NO_PART, share.max())).tolist()
            for g in parts:
                if g not in carried:
                    carried[g] = propagated(self._after[g], motion, knows_rates)
            found[h] = mixed([(float(share[g]), carried[g]) for g in parts])
        return found


class NativeJudging:
    """A tick in one foreign call.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(self, tick: Tick, of: Hypotheses, values: Floats) -> None:
        self.state = np.zeros(sum(tick.system.input_sizes.values()))
        outputs, rows, cases = tick.solver.native, tick.rows.kernel, of.of_cases
        assert outputs is not None
        assert isinstance(rows, NativeKernel)
        numbers = ContactNumbers(
            counting=of.counting,
            apart=of.apart,
            weights=of.exact_weights,
            row_logs=of.row_logs[cases],
            free_logs=of.free_logs,
            n_contacts=of.n_contacts,
            rate=of.rate,
            reach=of.reach,
            part=NO_PART,
            likely=LIKELY,
            longest=GAP * of.usual,
        )
        compiler = needed_compiler("the native filter")
        shape = ContactShape(tick.shape, cases.tolist(), (of.exact_weights > 0).tolist())
        self._native = NativeContacts(shape, numbers, compiler, rows, outputs, self.state, values)
        self.probabilities = self._native.probabilities
        self._afresh = tick.solver.ticker(self._native.free, values)

    def begin(self, before: Information) -> None:
        self._native.begin(before.R, before.z)

    def step(self, dt: float) -> int:
        wrong = self._native.step(dt)
        return 0 if wrong == NO_SOLUTION and self._afresh().ok else wrong

    @property
    def best(self) -> int:
        return self._native.best

    def found(self, h: int) -> Updated | None:
        if not self._native.is_judged(h):
            return None
        one = self._native.each[h]
        R, z = np.triu(one.R_u), one.z_u.copy()
        lost = tuple(np.flatnonzero(np.diag(R) == 0.0).tolist())
        return Updated(R, z, one.nis, one.degrees, one.log_likelihood, lost, estimate(R, z))
