"""A job as C, compiled and loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property
from typing import Any
from weakref import WeakKeyDictionary

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.c_source import c_source
from nori_dyn.program.c_writer import Job
from nori_dyn.program.compiler import Compiler, load_library
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.pool import PARTS, pool
from nori_dyn.typing import Floats

SINGLE = """
typedef struct { double *in, *w, *out; const double *limits; double residual_limit, residual, step_limit; } state;
void prepare(const state *at);
int run(const state *at);
int solve(state *at);
"""
BATCH = """
typedef struct { double *at; ptrdiff_t n, step, across; } block;
typedef struct {
    ptrdiff_t n, n_out;
    const block *in, *out;
    const double *limits;
    double residual_limit, step_limit, *residuals;
    int *wrong;
} batch;
extern ptrdiff_t n_batch;
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w);
"""

PART = 8
"""Least number of vectors of states that a thread is given: half a microsecond of work, for the smallest programs."""

SHARES = 8
"""Into how many parts the states of each thread are cut, so that a late one leaves its share to the others."""

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
    ffi.cdef(PARTS)
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
        has_residual: whether the job computes the residual.
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
        has_residual: bool = False,
    ) -> None:
        self._ffi, self._open_batch, self._compiler = interface(), open_batch, compiler
        self._single = single
        self.run, self.solve = single.run, single.solve
        self.work = aligned(n_work)
        self._limits, self._residual_limit, self._step_limit = np.array([*limits, 0.0]), residual_limit, step_limit
        self._has_residual = has_residual
        self._idle: list[_Call] = []

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
    def _batch(self) -> tuple[Any, int]:
        """The entry for batches, and how many doubles it works in."""
        library = self._open_batch()
        return library.run_batch, library.n_batch

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

    def batch(
        self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1
    ) -> tuple[NDArray[np.int32] | None, Floats | None]:
        """Run N states, see `Kernel`.

        Inputs are not copied that lie state by state, with or without something between, or number by number.
        """
        N = len(outputs[0])
        wrong, residuals = np.empty(N, dtype=np.int32), np.empty(N) if self._has_residual else None
        try:
            call = self._idle.pop()
        except IndexError:
            call = _Call(self._ffi, len(inputs), self._limits, self._residual_limit, self._step_limit)
        kept = call.describe(inputs, outputs, wrong, residuals)
        (run_batch, n_work), lanes = self._batch, self._compiler.lanes
        if threads > 1 and N > PART * lanes:
            part = max(PART, -(-N // (lanes * threads * SHARES))) * lanes
            w = call.workspace(n_work * threads)
            run_parts = pool(self._ffi, self._compiler).run_parts
            found = run_parts(run_batch, call.at, N, part, w, n_work, threads)
        else:
            found = run_batch(call.at, 0, N, call.workspace(n_work))
        del kept
        self._idle.append(call)
        return wrong if found else None, residuals

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


class _Call:
    """What C is told of a batch, and a workspace for it; of one call at a time.

    Attributes:
        at: the C struct.
    """

    def __init__(self, ffi: Any, n_in: int, limits: Floats, residual_limit: float, step_limit: float) -> None:
        self._ffi, self._doubles, self._ints = ffi, ffi.typeof("double[]"), ffi.typeof("int[]")
        self._in, self._out, self._n_out = ffi.new("block[]", n_in), ffi.new("block[]", 1), 1
        self._limits, self._work, self._w = limits, np.zeros(0), ffi.NULL
        self.at = at = ffi.new("batch *")
        at.n_out, at.out = 1, self._out
        setattr(at, "in", self._in)
        at.limits, at.residual_limit, at.step_limit = ffi.from_buffer(self._doubles, limits), residual_limit, step_limit

    def workspace(self, size: int) -> Any:
        """Return a pointer to so many doubles."""
        if len(self._work) < size:
            self._work = aligned(size)
            self._w = self._ffi.from_buffer(self._doubles, self._work)
        return self._w

    def describe(
        self,
        inputs: Sequence[Floats],
        outputs: Sequence[Floats],
        wrong: NDArray[np.int32],
        residuals: Floats | None,
    ) -> list[Any]:
        """Say where the arrays of a batch are; return what to keep while C uses them."""
        at, from_buffer = self.at, self._ffi.from_buffer
        if len(outputs) != self._n_out:
            self._n_out = at.n_out = len(outputs)
            self._out = at.out = self._ffi.new("block[]", self._n_out)
        at.n = len(wrong)
        at.wrong = from_buffer(self._ints, wrong)
        at.residuals = self._ffi.NULL if residuals is None else from_buffer(self._doubles, residuals)
        return [
            *map(self._describe, self._in, inputs),
            *map(self._describe, self._out, outputs),
        ]

    def _describe(self, block: Any, X: Floats) -> Any:
        """Say where an array (N, size) is, or (size,) that all states have; return what to keep."""
        n = block.n = X.shape[-1]
        try:
            block.at = kept = self._ffi.from_buffer(self._doubles, X)
            block.step, block.across = n if X.ndim > 1 else 0, 1
        except (BufferError, ValueError):  # not in one piece
            kept = np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X
            block.at = self._ffi.cast("double *", kept.ctypes.data)
            block.step, block.across = (stride // X.itemsize for stride in (0, *kept.strides)[-2:])
        return kept


def aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
