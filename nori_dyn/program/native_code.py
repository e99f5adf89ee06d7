"""C of a job, loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.compiler import Compiler
from nori_dyn.typing import Floats

SINGLE = """
typedef struct { double *in, *w, *out; const double *limits; double residual_limit, residual, step_limit; } state;
void prepare(const state *at);
int run(const state *at);
int solve(state *at);
"""
BATCH = """
void run_batch(ptrdiff_t n, const double *const *in, const ptrdiff_t *n_in, const ptrdiff_t *step, double *w,
               double *out, const double *limits, double step_limit, int *wrong, double *residuals);
"""

ALIGNMENT = 64
"""Bytes of the widest vector."""


def interface() -> Any:
    """Return the cffi interface that the libraries of jobs are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(SINGLE)
    ffi.cdef(BATCH)
    return ffi


class NativeCode:
    """The libraries of a job.

    Attributes:
        run, solve: the entries for single states, see `c_source`; each takes what `place` returns.
        work: their workspace.

    Args:
        ffi: see `interface`.
        single: the library for single states.
        open_batch: returns that for batches; called when it is first needed.
        compiler: the compiler that made them.
        n_work: length of the workspace.
        limits: smallest size of each guarded pivot, then the usual size of each output that has a step.
        step_limit: the share of an output, or of its usual size, that its step may be.
    """

    def __init__(
        self,
        ffi: Any,
        single: Any,
        open_batch: Callable[[], Any],
        compiler: Compiler,
        n_work: int,
        limits: Sequence[float],
        step_limit: float = 0.0,
    ) -> None:
        self._ffi, self._open_batch, self._compiler = ffi, open_batch, compiler
        self._single = single
        self.run, self.solve = single.run, single.solve
        self.work = aligned(n_work)
        self._limits, self._step_limit = np.array([*limits, 0.0]), step_limit

    @cached_property
    def _batch(self) -> Any:
        return self._open_batch()

    def place(self, inputs: Floats, outputs: Floats, residual_limit: float) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps neither alive."""
        at = self._pointer
        limits = (residual_limit, np.nan, self._step_limit)
        parts = (at(inputs), at(self.work), at(outputs), at(self._limits), *limits)
        placed = self._ffi.new("state *", parts)
        self._single.prepare(placed)
        return placed

    def batch(self, inputs: Sequence[Floats], outputs: Floats, threads: int = 1) -> tuple[NDArray[np.int32], Floats]:
        """Run N states; return how many things are wrong with each (N,), and their residuals (N,).

        Args:
            inputs: arrays (N, size), in the order of the job; one whose states are all in one place, as
                `np.broadcast_to` makes it, is not copied.
            outputs: where the outputs go (N, n_outputs).
            threads: number of threads.
        """
        N = len(outputs)
        wrong, residuals = np.empty(N, dtype=np.int32), np.empty(N)
        library = self._batch

        def run(part: slice) -> None:
            self._run_batch(library, [X[part] for X in inputs], outputs[part], wrong[part], residuals[part])

        if 1 < threads < N:
            edges = np.linspace(0, N, threads + 1).astype(int)
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, [slice(a, b) for a, b in pairwise(edges)]))
        else:
            run(slice(0, N))
        return wrong, residuals

    def _run_batch(
        self, library: Any, inputs: list[Floats], outputs: Floats, wrong: NDArray[np.int32], residuals: Floats
    ) -> None:
        ffi, at = self._ffi, self._pointer
        inputs = [X if X.strides == (0, X.itemsize) else np.ascontiguousarray(X) for X in inputs]
        work = aligned(len(self.work) * self._compiler.lanes)
        starts = ffi.new("double *[]", [at(X) for X in inputs])
        sizes = ffi.new("ptrdiff_t[]", [X.shape[1] for X in inputs])
        steps = ffi.new("ptrdiff_t[]", [X.strides[0] // X.itemsize for X in inputs])
        library.run_batch(
            len(outputs),
            starts,
            sizes,
            steps,
            at(work),
            at(outputs),
            at(self._limits),
            self._step_limit,
            ffi.cast("int *", wrong.ctypes.data),
            at(residuals),
        )

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
