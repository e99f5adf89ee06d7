"""A tick that judges contact states as hypotheses: through NumPy, or natively in one foreign call.

See `hypotheses` for the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nori_dyn.filtering.base_reference import AxesTurn, Bridge
from nori_dyn.filtering.hypotheses import LIKELY, HypothesisModel
from nori_dyn.filtering.markov import NO_PART, mixed, weighed
from nori_dyn.filtering.square_root import MotionModel, Posterior, SquareRootInformation, predict, update
from nori_dyn.filtering.steps import (
    NOT_FINITE,
    UNDETERMINED,
    NativeCall,
    NumpyTick,
    native_posterior,
    without_readings,
)
from nori_dyn.filtering.tick_programs import MeasurementRows, TickPrograms
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.native_track import NativeTick, interface
from nori_dyn.program.track_source import TrackShape, ordered_rows
from nori_dyn.typing import Floats


class NumpyHypothesisStep(NumpyTick):
    """A step that judges contact states, through NumPy.

    Attributes:
        probabilities: of the states, given all readings so far (S,); they go on from what is written there.
        totals: sums of chi-squares in the most likely state, of their degrees of freedom, and of ticks (3,).
        longest: the longest time over which rates are known [s].
        afters: the posterior of u after the last step under each hypothesis that was judged, by its number.
        has_rates: whether the last step had readings.
    """

    def __init__(self, tick: TickPrograms, of: HypothesisModel, values: Floats, longest: float) -> None:
        super().__init__(tick, values)
        self._of, self.longest, self.has_rates = of, longest, False
        self.probabilities, self.totals = np.full(len(of.states), 1.0 / len(of.states)), np.zeros(3)

    def begin(self, prior: SquareRootInformation) -> None:
        """Go back to before the first tick, where this is the prior of the memory."""
        self._before = prior
        self.totals[:] = 0.0
        self.afters: dict[int, Posterior] = {}
        self._measured: MeasurementRows | None = None

    def step(self, dt: float, change: AxesTurn | Bridge | None) -> int:
        """Judge the state that there is, a time [s] after the last tick, and estimate in the most likely one.

        Args:
            dt: see above.
            change: what is done to the prior of each state; None where nothing is.

        Returns:
            See `Step.step`. Where a number is not finite the states and their priors go on as without the readings.
        """
        of, tick = self._of, self.tick
        T = np.eye(len(of.states)) if self._measured is None else of.transitions(dt)
        expected = self.probabilities @ T
        befores = self._mixed(of.judged(expected), T, expected, dt)
        if change is not None:
            befores = {h: change.prior(before) for h, before in befores.items()}
        wrong = self._judge(befores, expected)
        self.has_rates = wrong != NOT_FINITE
        if wrong == NOT_FINITE:
            self.afters = {h: without_readings(tick, before) for h, before in befores.items()}
            self._measured = tick.nothing
            self._weigh(expected, dict.fromkeys(befores, 0.0))
        return wrong

    def _judge(self, befores: dict[int, SquareRootInformation], expected: Floats) -> int:
        """Judge states by the readings, given what was known before them in each."""
        of, n_s, read = self._of, self.tick.sizes[0], self.read()
        if read is None:
            return NOT_FINITE
        measured, of_rows = read[0], of.weights(read[1])
        afters, logs = {}, {}
        for h, before in befores.items():
            rows = of.rows[h]
            after = afters[h] = update(before, measured.A[rows], measured.c[rows], of_rows[rows], n_s)
            lost = [k for k in after.undetermined if k < n_s]
            replaced = rows[of.of_cases[rows] & (of_rows[rows] > 0)]
            logs[h] = after.log_likelihood + of.row_logs[replaced].sum() + of.free_logs[lost].sum()
        if not np.isfinite(list(logs.values())).all():
            return NOT_FINITE
        self.afters, self._measured = afters, measured
        self._weigh(expected, logs)
        best = afters[self.best]
        self.totals[:] += best.nis, best.degrees, 1
        return UNDETERMINED if best.undetermined else self.concluded(best.u)

    def _weigh(self, expected: Floats, logs: dict[int, float]) -> None:
        every = np.full(len(expected), -np.inf)
        every[list(logs)] = list(logs.values())
        self.probabilities[:], _ = weighed(expected, every)

    @property
    def best(self) -> int:
        """The number of the most likely state at the last step."""
        return int(np.argmax(self.probabilities))

    def posterior(self, h: int) -> Posterior | None:
        """The posterior of u after the last step under hypothesis h; None where it is not judged."""
        return self.afters.get(h)

    def motion(self, dt: float) -> MotionModel:
        """How the memory moves on from the last step, over a time [s]."""
        assert self._measured is not None
        return self.tick.motion(self._measured, dt, dt <= self.longest)

    def _mixed(self, judged: Sequence[int], T: Floats, expected: Floats, dt: float) -> dict[int, SquareRootInformation]:
        """Prior of the memory under each hypothesis that is judged."""
        if self._measured is None:
            return dict.fromkeys(judged, self._before)
        of, motion = self._of, self.motion(dt)
        carried: dict[int, SquareRootInformation] = {}
        found = {}
        for h in judged:
            share = self.probabilities * T[:, h] / expected[h]
            parts = np.flatnonzero(share >= min(NO_PART, share.max())).tolist()
            for g in parts:
                if g not in carried:
                    carried[g] = predict(self.afters[g], motion)
            closing = share[parts] @ of.closes[parts, h] / share[parts].sum()
            jump = np.sqrt(closing) * np.array(self.tick.jumps)
            found[h] = mixed([(float(share[g]), carried[g]) for g in parts], jump if jump.any() else None)
        return found


def hypothesis_shape(tick: TickPrograms, of: HypothesisModel) -> TrackShape:
    """What the C itself depends on."""
    return replace(tick.shape, of_case=of.of_cases.tolist(), heavy=(of.exact_weights > 0).tolist())


class NativeHypothesisStep(NativeCall):
    """The same in one foreign call, see `NumpyHypothesisStep`. Not to be shared between threads.

    Attributes:
        each: the tick of each state, with its prior.
        best: the number of the most likely state at the last step.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        tick: TickPrograms,
        of: HypothesisModel,
        values: Floats,
        longest: float,
        like: NumpyHypothesisStep | None = None,
    ) -> None:
        self.tick, n, k = tick, len(of.states), tick.shape.k
        self.state = np.zeros(tick.system.n_inputs) if like is None else like.state
        self.probabilities = np.full(n, 1.0 / n) if like is None else like.probabilities
        self.totals, self.each, shape = np.zeros(3), list[NativeTick](), hypothesis_shape(tick, of)
        programs = needed_compiler("the native filter"), *tick.native_kernels, self.state, values
        for _ in range(n):
            known, entries = (np.zeros((k, k)), np.zeros(k)), self.each[0].values if self.each else None
            self.each.append(NativeTick(shape, *programs, known, self.totals, longest, entries))
        self._factorise = tick.solver.ticker(self.each[0].free, values)
        self._prior_of = np.full(n, -1, dtype=np.int32)
        self._judge = self.each[0].library.judge
        self._place(of, shape)

    def _place(self, of: HypothesisModel, shape: TrackShape) -> None:
        """Say where C finds what it reads and writes."""
        ffi, n = interface(), len(self.each)
        self._ticks = ffi.new("tick *[]", [one.at for one in self.each])
        order, counts, ends = ordered_rows(shape, of.counting)
        self._arrays: dict[str, NDArray[Any]] = {
            "work": aligned(-(-self.each[0].library.judging_room(n) // 8)),
            "probabilities": self.probabilities,
            "expected": np.zeros(n),
            "logs": np.zeros(n),
            "transitions": np.zeros((n, n)),
            "weights": of.exact_weights.copy(),
            "row_logs": of.row_logs[of.of_cases],
            "free_logs": of.free_logs.copy(),
            "apart": of.apart.astype(np.int32),
            "closes": of.closes.astype(np.int32),
            "order": order,
            "counts": counts,
            "ends": ends,
            "prior_of": self._prior_of,
        }
        self._at = at = ffi.new("hypotheses *")
        at.each, at.dt = self._ticks, np.nan
        for name, array in self._arrays.items():
            kind = "void *" if name == "work" else "double *" if array.dtype == float else "int *"
            setattr(at, name, ffi.cast(kind, array.ctypes.data))
        at.n, at.n_contacts, at.reach = n, of.n_contacts, of.reach
        at.rate, at.part, at.likely = of.options.rate, NO_PART, LIKELY

    def begin(self, prior: SquareRootInformation) -> None:
        first = self.each[0]
        first.R[:], first.z[:], self.totals[:] = prior.R, prior.z, 0.0
        self._prior_of[:] = -1
        self._at.has_begun = 0

    def go_on_from(self, other: NumpyHypothesisStep, of: TickPrograms) -> None:
        """Go on from the last tick of another, by its programs."""
        self.each[0].values[:], self._prior_of[:], self._at.has_begun = of.rows.outputs, -1, 1
        for h, after in other.afters.items():
            one, diagonal = self.each[h], np.diagonal(after.R)
            self._prior_of[h], one.at.has_rates = 0, other.has_rates
            one.R_u[:], one.z_u[:] = after.R, after.z
            one.pivots[:] = np.divide(1.0, diagonal, out=np.zeros_like(after.z), where=diagonal != 0)

    def step(self, dt: float, change: AxesTurn | Bridge | None) -> int:
        if change is not None:
            self._at.change = self._taken = change.native
        return self.concluded(self._judge(self._at, dt))

    @property
    def best(self) -> int:
        found: int = self._at.best
        return found

    def motion(self, dt: float) -> MotionModel:
        tick, one = self.tick, self.each[self.best]
        measured = tick.measured_of(one.values) if one.has_rates else tick.nothing
        return tick.motion(measured, dt, dt <= self.longest)

    def posterior(self, h: int) -> Posterior | None:
        if self._prior_of[h] < 0:
            return None
        return native_posterior(self.each[h], h == self.best and self.each[h].has_rates)  # C solves for the best one


HypothesisStep: TypeAlias = NumpyHypothesisStep | NativeHypothesisStep
