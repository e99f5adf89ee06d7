"""The step of a tracker as C, compiled and loaded: one foreign call a tick, and one for a run over many.

Source: see `filtering.square_root` and `track_source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import cffi
import numpy as np

from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.track_source import TrackShape, track_source
from nori_dyn.typing import Floats

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
    """The arrays of a square-root information filter that C updates and predicts. Not to be shared between threads.

    Write into the arrays that it reads, call `update` of its library on `steps`, read what it found, call `propagate`.

    Attributes:
        steps: the C struct of it.
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
        self.library = load_library(ffi, track_source(shape, compiler.lanes, smooths), compiler)
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
        self.steps = ffi.new("filter *", (*parts, 0.0, 0.0, 0.0, 0))

    @property
    def nis(self) -> float:
        """The normalised innovation squared of the last update."""
        found: float = self.steps.nis
        return found

    @property
    def degrees(self) -> int:
        """Its degrees of freedom."""
        found: int = self.steps.degrees
        return found

    @property
    def log_likelihood(self) -> float:
        """The log likelihood of its readings."""
        found: float = self.steps.log_likelihood
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
        self.at.steps = self.steps
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
