"""A job as C, compiled and loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, cached_property
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.c_source import c_source
from nori_dyn.program.c_writer import Job
from nori_dyn.program.compiler import Compiler, load_library
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.typing import Floats

SINGLE = """
typedef struct { double *in, *w, *out; const double *limits; double residual_limit, residual, step_limit; } state;
void prepare(const state *at);
int run(const state *at);
int solve(state *at);
"""
BATCH = """
void run_batch(ptrdiff_t n, const double *const *in, const ptrdiff_t *n_in, const ptrdiff_t *step,
               const ptrdiff_t *across, double *w, double *out, ptrdiff_t out_step, ptrdiff_t out_across,
               const double *limits, double step_limit, int *wrong, double *residuals);
"""

ALIGNMENT = 64
"""Bytes of the widest vector."""

_KEPT: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()
"""What C reads and writes, by the structs that point to it: they keep nothing alive."""


@cache
def interface() -> Any:
    """Return the cffi interface that the libraries of jobs are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(SINGLE)
    ffi.cdef(BATCH)
    return ffi


class NativeKernel:
    """The libraries of a job.

    Attributes:
        run, solve: the entries for single states, see `c_templates`; each takes what `place` returns.
        work: their workspace.

    Args:
        single: the library for single states.
        open_batch: returns that for batches; called when it is first needed.
        compiler: the compiler that made them.
        n_work: length of the workspace.
        limits: smallest size of each guarded pivot, then the usual size of each output that has a step.
        residual_limit: the residual above which `solve` finds a state suspicious.
        step_limit: the share of an output, or of its usual size, that its step may be.
    """

    name = NATIVE
    sees_bad_input = True

    def __init__(
        self,
        single: Any,
        open_batch: Callable[[], Any],
        compiler: Compiler,
        n_work: int,
        limits: Sequence[float] = (),
        residual_limit: float = np.inf,
        step_limit: float = 0.0,
    ) -> None:
        self._ffi, self._open_batch, self._compiler = interface(), open_batch, compiler
        self._single = single
        self.run, self.solve = single.run, single.solve
        self.work = aligned(n_work)
        self._limits, self._residual_limit, self._step_limit = np.array([*limits, 0.0]), residual_limit, step_limit

    @staticmethod
    def of(job: Job, compiler: Compiler, before_batch: Callable[[], AbstractContextManager[Any]]) -> NativeKernel:
        """Return the kernel of a job, compiled unless it is in the cache.

        Args:
            job: the job; without limits.
            compiler: the compiler.
            before_batch: what to be in while its library for batches is compiled, when it is first needed.

        Raises:
            CompilerError: the compiler fails, or there is no room for what it makes.
        """
        source = c_source(job, compiler.lanes)

        def open_batch() -> Any:
            with before_batch():
                return load_library(interface(), source.batch, compiler)

        return NativeKernel(load_library(interface(), source.single, compiler), open_batch, compiler, source.n_work)

    @cached_property
    def _batch(self) -> Any:
        return self._open_batch()

    def place(self, state: Floats, values: Floats) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps them, and the library, alive."""
        at = self._pointer
        limits = (self._residual_limit, np.nan, self._step_limit)
        parts = (at(state), at(self.work), at(values), at(self._limits), *limits)
        placed = self._ffi.new("state *", parts)
        self._single.prepare(placed)
        _KEPT[placed] = (state, values, self.work, self._limits, self._single)
        return placed

    @property
    def address_of_run(self) -> int:
        """Where `run` is, for C that calls it."""
        return self.address(self.run)

    def address(self, pointer: Any) -> int:
        """Return the number of a pointer, such as what `place` returns, for C of another library."""
        return int(self._ffi.cast("uintptr_t", pointer))

    def batch(self, inputs: Sequence[Floats], values: Floats, threads: int = 1) -> tuple[NDArray[np.int32], Floats]:
        """Run N states, see `Kernel`.

        Inputs are not copied that lie state by state, or number by number, or of which all states are in one place, as
        `np.broadcast_to` makes them.
        """
        N = len(values)
        wrong, residuals = np.empty(N, dtype=np.int32), np.empty(N)
        library = self._batch

        def run(part: slice) -> None:
            self._run_batch(library, [X[part] for X in inputs], values[part], wrong[part], residuals[part])

        if 1 < threads < N:
            edges = np.linspace(0, N, threads + 1).astype(int)
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, [slice(a, b) for a, b in pairwise(edges)]))
        else:
            run(slice(0, N))
        return wrong, residuals

    def _run_batch(
        self, library: Any, inputs: list[Floats], values: Floats, wrong: NDArray[np.int32], residuals: Floats
    ) -> None:
        ffi, at = self._ffi, self._pointer
        inputs = [_in_doubles(X) for X in inputs]
        work = aligned(len(self.work) * self._compiler.lanes)
        starts = ffi.new("double *[]", [at(X) for X in inputs])
        sizes = ffi.new("ptrdiff_t[]", [X.shape[1] for X in inputs])
        steps, across = (ffi.new("ptrdiff_t[]", [X.strides[k] // X.itemsize for X in inputs]) for k in (0, 1))
        library.run_batch(
            len(values),
            starts,
            sizes,
            steps,
            across,
            at(work),
            at(values),
            *(stride // values.itemsize for stride in values.strides),
            at(self._limits),
            self._step_limit,
            ffi.cast("int *", wrong.ctypes.data),
            at(residuals),
        )

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _in_doubles(X: Floats) -> Floats:
    """Return an array (N, size) as it lies, if that is state by state, number by number or all in one place."""
    is_in_place = X.itemsize in X.strides and not any(stride % X.itemsize for stride in X.strides)
    return X if is_in_place else np.ascontiguousarray(X)


def aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
