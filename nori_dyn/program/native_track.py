"""The step of a tracker as C, compiled and loaded: one foreign call a tick, and one for a run over many.

Source: see `filtering.square_root` and `track_source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.track_source import TrackShape, ordered_rows, track_source
from nori_dyn.typing import Booleans, Floats, Indices

NOTHING = cffi.FFI().NULL
"""In place of a tick before the first."""


@cache
def interface() -> Any:
    """The cffi interface that the libraries are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(c_file("filter.h") + c_file("filter_calls.h"))
    return ffi


def doubles(array: Floats) -> Any:
    """Where C finds an array."""
    return interface().cast("double *", array.ctypes.data)


def axes_change(**parts: Floats) -> Any:
    """What is done to the prior of a tick where a floating base gets other axes, see `axes_change` in c/filter.h."""
    found = interface().new("axes_change *", {name: part.ravel().tolist() for name, part in parts.items()})
    found.is_turn = "T" in parts
    return found


class NativeFilter:
    """Update and prediction of a square-root information filter. Not to be shared between threads.

    Write into the arrays that it reads, call `update`, read what it found, call `propagate`. Each is one foreign call
    that allocates nothing.

    Attributes:
        values: what the program of a tick gives: entries of A, c, entries of X, x, and one over the times in which
            memory fades as the state says, one after the other; A, c, X, x and fading are views of it.
        weights: one over the variances of the weighed rows (p,); 0 where a reading is missing.
        decay, Q: of each number of the memory (k,), over the dt of `propagate`.
        R, z: the prior of the memory: R m = z + noise, (k, k) and (k,).
        u: the estimate (n,); nan where it is not determined.
        pivots: one over each pivot (n,); 0 where it vanishes.
        R_u, z_u: the posterior of u (n, n), (n,).
        library: the library.

    Args:
        shape: sizes and patterns.
        compiler: the compiler.
        values: where A, c, X and x are to be read; an array of its own when None.
        known: where R and z are; arrays of its own when None.
        smooths: whether ticks keep what steps back need.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        shape: TrackShape,
        compiler: Compiler,
        values: Floats | None = None,
        known: tuple[Floats, Floats] | None = None,
        smooths: bool = False,
    ) -> None:
        self.shape, self._lanes = shape, compiler.lanes
        ffi = interface()
        self.library = library = load_library(ffi, track_source(shape, compiler.lanes, smooths), compiler)
        n, k, p, width = shape.n, shape.k, shape.p, compiler.lanes * shape.blocks(compiler.lanes)
        self.values = aligned(shape.n_values) if values is None else values
        self.A, self.c, self.X, rates = np.split(self.values, np.cumsum((len(shape.A), p, len(shape.X))))
        self.x, self.fading = rates[: shape.n_v], rates[shape.n_v :]
        self.weights, self.decay, self.Q = np.ones(p), np.ones(k), np.zeros(k)
        self.R, self.z = known or (np.zeros((k, k)), np.zeros(k))
        self.u, self.pivots = np.zeros(n), np.zeros(n)
        self._work = aligned(shape.n_work(compiler.lanes))
        self._rows = self._work[: n * width].reshape(n, width)
        self.R_u, self.z_u = self._rows[:, :n], self._rows[:, n]
        read = (self.A, self.c, self.X, rates, self.weights, self.decay, self.Q)
        parts = [(doubles(self.R), doubles(self.z)), *map(doubles, (*read, self.u, self.pivots, self._work))]
        self._at = ffi.new("filter *", (*parts, 0.0, 0.0, 0.0, 0))
        self._update, self._propagate = library.update, library.propagate

    def update(self) -> int:
        """Take in the readings of a tick; return how many pivots vanish."""
        count: int = self._update(self._at)
        return count

    def propagate(self, dt: float) -> None:
        """Predict the memory a time [s] later."""
        self._at.dt = dt
        self._propagate(self._at)

    @property
    def nis(self) -> float:
        """The normalised innovation squared of the last update."""
        found: float = self._at.nis
        return found

    @property
    def degrees(self) -> int:
        """Its degrees of freedom."""
        found: int = self._at.degrees
        return found

    @property
    def log_likelihood(self) -> float:
        """The log likelihood of its readings."""
        found: float = self._at.log_likelihood
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What a tick leaves for a step back to it.

    Attributes:
        rows: the workspace's rows [R | z] of u, see `NativeFilter`.
        step: what a step back needs, once time has gone on.
        place: where C finds that.
    """

    rows: Floats
    step: Floats
    place: Any


class NativeTick(NativeFilter):
    """A whole tick in one foreign call. Not to be shared between threads.

    Attributes:
        at: the C struct of the tick.
        step: the C function that estimates the state that there is: of `at`, the `at` of the tick before or `NOTHING`,
            and the time since that [s]. It returns 0, or where there is no estimate 1: numbers that are not finite;
            2: something is not determined; 3: exact rows have no solution.
        late: the estimate that the last step back found (n,).
        late_covariance: the covariance that it found, where it was wanted (n, n).

    Args:
        shape: what its C depends on.
        compiler: the compiler.
        rows: the kernel of the program of its rows.
        outputs: the kernel of the program of its outputs.
        state: what it reads: q, qd, y and the weights, one after the other.
        values: where the outputs go.
        known: where the prior of the memory is, R (k, k) and z (k,); those of several ticks may be the same.
        totals: where sums of chi-squares, of degrees of freedom and of ticks go (3,).
        longest: the longest time over which rates are known [s].
        entries: where the program of its rows writes, see `NativeFilter.values`; an array of its own when None.
        smooths: whether it keeps what steps back need.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        shape: TrackShape,
        compiler: Compiler,
        rows: NativeKernel,
        outputs: NativeKernel,
        state: Floats,
        values: Floats,
        known: tuple[Floats, Floats],
        totals: Floats,
        longest: float,
        entries: Floats | None = None,
        smooths: bool = False,
    ) -> None:
        super().__init__(shape, compiler, entries, known, smooths)
        ffi, library = interface(), self.library
        self.free = aligned(shape.n_motion + len(shape.exact) + shape.n)
        inputs = state[: shape.n_motion + shape.n_y]
        self._outputs, self._n_motion = outputs, shape.n_motion
        self._exact = shape.n_motion + np.array(shape.exact, dtype=np.intp)
        self._programs = placed = rows.bind(inputs, self.values), outputs.bind(self.free, values)
        self._arrays = state, values, totals
        self.at = ffi.new("tick *")
        self.at.steps = self._at
        for name, kernel, at in zip(("rows", "outputs"), (rows, outputs), placed, strict=True):
            setattr(self.at, name, ffi.cast("job *", kernel.address(kernel.run)))
            setattr(self.at, f"{name}_at", ffi.cast("void *", kernel.address(at)))
        self.at.go_on = library.go_on_and_keep if smooths else library.go_on
        for name, array in (("state", state), ("free", self.free), ("totals", totals)):
            setattr(self.at, name, doubles(array))
        self.at.dt, self.at.longest = np.nan, longest
        self.step = library.step
        if smooths:
            self._begin_smoothing()

    def _begin_smoothing(self) -> None:
        shape, lanes = self.shape, self._lanes
        n, k = shape.n, shape.k
        self.late, self.late_covariance, self._room = np.zeros(n), np.zeros((n, n)), aligned(shape.n_room(lanes))
        self._mean, self._covariance = np.zeros(k), np.zeros((k, k))
        self._places = doubles(self._mean), doubles(self._covariance), doubles(self.late_covariance)
        self._back = interface().new("run *")
        self._back.n, self._back.u, self._back.room = 1, doubles(self.late), doubles(self._room)

    @property
    def has_rates(self) -> bool:
        """Whether the last step determined the rates of the memory."""
        return bool(self.at.has_rates)

    def conclude(self, state: Floats, u: Floats) -> bool:
        """Write the outputs of a state, given the null-space coordinates (n,); return whether there are any."""
        n, end, free = self._n_motion, len(self.free) - len(u), self.free
        free[:n], free[n:end], free[end:] = state[:n], state[self._exact], u
        return not self._outputs.run(self._programs[1])

    def room(self) -> Kept:
        """Room for what a tick leaves."""
        step = aligned(self.shape.n_kept(self._lanes))
        return Kept(np.empty_like(self._rows), step, doubles(step))

    def keep(self, kept: Kept) -> None:
        """Keep the tick that was: at once, and when time goes on from it."""
        kept.rows[:] = self._rows
        self.at.kept = kept.place

    def back(self, kept: Kept, is_gap: bool, mean: Floats, covariance: Floats | None = None) -> bool:
        """Step back to a tick that was, and find `late`.

        Args:
            kept: what it left.
            is_gap: whether the motion since is not known.
            mean: the estimate of the memory at the next (k,), by all readings.
            covariance: that of the same (k, k); none is computed when None.

        Returns:
            Whether it was found; otherwise a step back of `square_root` is needed.
        """
        self._mean[:] = mean
        self._back.is_gap = is_gap
        self._back.kept, self._back.covariance = kept.place, NOTHING
        place, given, found = self._places
        if covariance is None:
            return not self.library.backward(self._back, place, NOTHING)
        self._covariance[:] = covariance
        self._back.covariance = found
        return not self.library.backward(self._back, place, given)


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisNumbers:
    """What judging contact states takes beside the shape.

    Attributes:
        counting: of each of S states, which weighed rows count (p,).
        apart: in how many contacts states differ (S, S).
        closes: whether contacts close from a state to another, and none opens (S, S).
        weights: of weighed rows that hold exactly where they count; 0 of others (p,).
        row_logs: what each weighed row of a case adds to the logarithm of the density of a state that has it.
        free_logs: what each number of u outside the memory adds, where a state leaves it undetermined (n_s,).
        n_contacts: number of contacts.
        rate: how often a contact switches on average [1/s].
        reach: states are judged that differ from a likely one by as many contacts at most.
        part: the probability below which a state has no part in a mixture.
        likely: that from which on states near one are judged.
        longest: the longest time over which rates are known [s].
    """

    counting: Sequence[Booleans]
    apart: Indices
    closes: Booleans
    weights: Floats
    row_logs: Floats
    free_logs: Floats
    n_contacts: int
    rate: float
    reach: int
    part: float
    likely: float
    longest: float


class NativeHypotheses:
    """A tick that judges contact states as hypotheses in one foreign call. Not to be shared between threads.

    Attributes:
        each: the tick of each state, with its prior.
        totals: sums of chi-squares in the most likely state, of their degrees of freedom, and of ticks (3,).
        probabilities: of the states, given all readings so far (S,); they go on from what is written there.

    Args:
        shape: what its C depends on.
        numbers: what it takes besides.
        compiler: the compiler.
        rows: the kernel of the program of its rows.
        outputs: the kernel of the program of its outputs.
        state: what it reads: q, qd, y and the weights, one after the other.
        values: where the outputs of the most likely state go.
        probabilities: see above.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        shape: TrackShape,
        numbers: HypothesisNumbers,
        compiler: Compiler,
        rows: NativeKernel,
        outputs: NativeKernel,
        state: Floats,
        values: Floats,
        probabilities: Floats,
    ) -> None:
        ffi, k, n = interface(), shape.k, len(numbers.counting)
        self.each, self.totals = list[NativeTick](), np.zeros(3)
        for _ in range(n):
            known, entries = (np.zeros((k, k)), np.zeros(k)), self.each[0].values if self.each else None
            programs = (rows, outputs, state, values, known, self.totals, numbers.longest, entries)
            self.each.append(NativeTick(shape, compiler, *programs))
        library = self.each[0].library
        self._ticks = ffi.new("tick *[]", [tick.at for tick in self.each])
        order, counts, ends = ordered_rows(shape, numbers.counting)
        arrays: dict[str, NDArray[Any]] = {
            "work": aligned(-(-library.judging_room(n) // 8)),
            "probabilities": probabilities,
            "expected": np.zeros(n),
            "logs": np.zeros(n),
            "transitions": np.zeros((n, n)),
            "weights": numbers.weights.copy(),
            "row_logs": numbers.row_logs.copy(),
            "free_logs": numbers.free_logs.copy(),
            "apart": numbers.apart.astype(np.int32),
            "closes": numbers.closes.astype(np.int32),
            "order": order,
            "counts": counts,
            "ends": ends,
            "prior_of": np.full(n, -1, dtype=np.int32),
        }
        self.probabilities, self._prior_of, self._arrays = arrays["probabilities"], arrays["prior_of"], arrays
        self._at = at = ffi.new("hypotheses *")
        at.each, at.dt = self._ticks, np.nan
        for name, array in arrays.items():
            kind = "void *" if name == "work" else "double *" if array.dtype == float else "int *"
            setattr(at, name, ffi.cast(kind, array.ctypes.data))
        at.n, at.n_contacts, at.reach = n, numbers.n_contacts, numbers.reach
        at.rate, at.part, at.likely = numbers.rate, numbers.part, numbers.likely
        self._judge = library.judge

    def begin(self, R: Floats, z: Floats) -> None:
        """Go back to before the first tick, with the prior of the memory, (k, k) and (k,)."""
        first = self.each[0]
        first.R[:], first.z[:], self.totals[:] = R, z, 0.0
        self._prior_of[:] = -1
        self._at.has_begun = 0

    def go_on_from(self, values: Floats, known: Mapping[int, tuple[Floats, Floats]], has_rates: bool) -> None:
        """Go on from a tick that was judged elsewhere.

        Args:
            values: what the program of its rows gave, see `NativeFilter`.
            known: the posterior R (n, n) and z (n,) of u under each hypothesis that was judged, by its number.
            has_rates: whether it had readings.
        """
        self.each[0].values[:], self._prior_of[:], self._at.has_begun = values, -1, 1
        for h, (R, z) in known.items():
            one, diagonal = self.each[h], np.diagonal(R)
            self._prior_of[h], one.at.has_rates = 0, has_rates
            one.R_u[:], one.z_u[:] = R, z
            one.pivots[:] = np.divide(1.0, diagonal, out=np.zeros_like(z), where=diagonal != 0)

    def step(self, dt: float, change: Any = None) -> int:
        """Judge the state that there is, a time [s] after the last tick, and estimate in the most likely one.

        Args:
            dt: see above.
            change: what is done to the prior of each state, see `axes_change`; None where nothing is.

        Returns:
            0, or where there is no estimate a number above 0, see `NativeTick.step`; after 3 the readings have been
            used as far as they can.
        """
        if change is not None:
            self._at.change = self._taken = change
        wrong: int = self._judge(self._at, dt)
        return wrong

    @property
    def best(self) -> int:
        """The number of the most likely state at the last step."""
        found: int = self._at.best
        return found

    def is_judged(self, h: int) -> bool:
        """Whether a state was judged at the last step."""
        return bool(self._prior_of[h] >= 0)
