"""The steps of a filter as C, compiled and loaded: one foreign call an update, one a motion.

Source: see `filtering.square_root`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import cffi
import numpy as np

from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.filter_source import FilterShape, filter_source
from nori_dyn.program.filter_step import TickShape, tick_source
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.typing import Floats

NOTHING = cffi.FFI().NULL
"""In place of a tick before the first."""


@cache
def interface() -> Any:
    """Return the cffi interface that the libraries of filters are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(c_file("filter.h") + c_file("filter_calls.h"))
    return ffi


def doubles(array: Floats) -> Any:
    """Return where C finds an array."""
    return interface().cast("double *", array.ctypes.data)


class NativeSteps:
    """The update and the motion of a filter. Not to be shared between threads.

    Write into the arrays that it reads, call `update`, read what it found, call `propagate`. Each is one foreign call
    that allocates nothing.

    Attributes:
        values: what the program of a tick gives: entries of A, c, entries of X, x, one after the other; A, c, X and x
            are views of it.
        weights: one over the variances of the weighed rows (p,); 0 where a reading is missing.
        decay, Q: of each number of the memory (k,), over the dt of `propagate`.
        R, z: what is known of the memory: R m = z + noise, (k, k) and (k,).
        u: the estimate (n,); nan where it is not determined.
        pivots: one over each pivot (n,); 0 where it vanishes.
        R_u, z_u: what is known of u after the sensors (n, n), (n,).
        library: the library.

    Args:
        shape: sizes and patterns.
        compiler: the compiler.
        values: where A, c, X and x are to be read; an array of its own when None.
        known: where R and z are; arrays of its own when None.
        source: the C; that of the steps when None.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        shape: FilterShape,
        compiler: Compiler,
        values: Floats | None = None,
        known: tuple[Floats, Floats] | None = None,
        source: str | None = None,
    ) -> None:
        self.shape = shape
        ffi = interface()
        library = load_library(ffi, source or filter_source(shape, compiler.lanes), compiler)
        n, k, p, width = shape.n, shape.k, shape.p, compiler.lanes * shape.blocks(compiler.lanes)
        sizes = (len(shape.A), p, len(shape.X), shape.n_v)
        self.values = aligned(sum(sizes)) if values is None else values
        self.A, self.c, self.X, self.x = np.split(self.values, np.cumsum(sizes)[:-1])
        self.weights, self.decay, self.Q = np.ones(p), np.ones(k), np.zeros(k)
        self.R, self.z = known or (np.zeros((k, k)), np.zeros(k))
        self.u, self.pivots = np.zeros(n), np.zeros(n)
        self._work = aligned(shape.n_work(compiler.lanes))
        self._rows = self._work[: n * width].reshape(n, width)
        self.R_u, self.z_u = self._rows[:, :n], self._rows[:, n]
        read = (self.A, self.c, self.X, self.x, self.weights, self.decay, self.Q)
        parts = [(doubles(self.R), doubles(self.z)), *map(doubles, (*read, self.u, self.pivots, self._work))]
        self._placed = ffi.new("filter *", (*parts, 0.0, 0.0, 0.0, 0))
        self._update, self._propagate, self.library = library.update, library.propagate, library

    def update(self) -> int:
        """Take in the sensors of a tick; return how many pivots vanish."""
        count: int = self._update(self._placed)
        return count

    def propagate(self, dt: float) -> None:
        """Move the memory on to the next tick.

        Args:
            dt: time to it [s].
        """
        self._placed.dt = dt
        self._propagate(self._placed)

    @property
    def nis(self) -> float:
        """The normalised innovation squared of the last update."""
        found: float = self._placed.nis
        return found

    @property
    def degrees(self) -> int:
        """Its degrees of freedom."""
        found: int = self._placed.degrees
        return found

    @property
    def log_likelihood(self) -> float:
        """The log likelihood of its readings."""
        found: float = self._placed.log_likelihood
        return found


class NativeTick(NativeSteps):
    """A whole tick of a filter in one foreign call. Not to be shared between threads.

    Attributes:
        at: the C struct of the tick.
        step: the C function that estimates the state that there is: of `at`, the `at` of the tick before or `NOTHING`,
            and the time since that [s]. It returns 0, or where there is no estimate 1: numbers that are not finite;
            2: something is not determined; 3: exact rows have no solution.

    Args:
        shape: what its C has to know.
        compiler: the compiler.
        rows: the kernel of the program of its rows.
        outputs: the kernel of the program of its outputs.
        state: what it reads: q, qd, y and the weights, one after the other.
        values: where the outputs go.
        known: where what is known of the memory is, R (k, k) and z (k,); those of several ticks may be the same.
        totals: where sums of chi-squares, of degrees of freedom and of ticks go (3,).
        longest: the longest time over which rates are known [s].
        entries: where the program of its rows writes, see `NativeSteps.values`; an array of its own when None.
        source: the C; that of a tick when None.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    _way_on: ClassVar[str] = "go_on"
    """The function of its C by which time goes on."""

    def __init__(
        self,
        shape: TickShape,
        compiler: Compiler,
        rows: NativeKernel,
        outputs: NativeKernel,
        state: Floats,
        values: Floats,
        known: tuple[Floats, Floats],
        totals: Floats,
        longest: float,
        entries: Floats | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(shape.steps, compiler, entries, known, source or self._written(shape, compiler.lanes))
        ffi, library = interface(), self.library
        self.free = aligned(shape.n_motion + len(shape.exact) + shape.steps.n)
        inputs = state[: shape.n_motion + shape.n_y]
        self._outputs, self._n_motion = outputs, shape.n_motion
        self._exact = shape.n_motion + np.array(shape.exact, dtype=np.intp)
        self._programs = placed = rows.place(inputs, self.values), outputs.place(self.free, values)
        self._arrays = state, values, totals
        self.at = ffi.new("tick *")
        self.at.steps = self._placed
        for name, kernel, at in zip(("rows", "outputs"), (rows, outputs), placed, strict=True):
            setattr(self.at, name, ffi.cast("job *", kernel.address_of_run))
            setattr(self.at, f"{name}_at", ffi.cast("void *", kernel.address(at)))
        self.at.go_on = getattr(library, self._way_on)
        for name, array in (("state", state), ("free", self.free), ("totals", totals)):
            setattr(self.at, name, ffi.cast("double *", array.ctypes.data))
        self.at.dt, self.at.longest = np.nan, longest
        self.step = library.step

    @staticmethod
    def _written(shape: TickShape, lanes: int) -> str:
        """Return its C."""
        return tick_source(shape, lanes)

    @property
    def has_rates(self) -> bool:
        """Whether the last step told the rates of the memory."""
        return bool(self.at.has_rates)

    def conclude(self, state: Floats, u: Floats) -> bool:
        """Write the outputs of a state, given what is free (n,); return whether there are any."""
        n, end, free = self._n_motion, len(self.free) - len(u), self.free
        free[:n], free[n:end], free[end:] = state[:n], state[self._exact], u
        return not self._outputs.run(self._programs[1])
