"""A job as C, compiled and loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.c_source import c_source
from nori_dyn.program.c_writer import Job
from nori_dyn.program.compiler import Compiler, load_library
from nori_dyn.program.kernel.caller import INTERFACE, caller
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
typedef struct { ptrdiff_t n, step, across; } block;
typedef struct {
    ptrdiff_t n, n_out;
    double *const *arrays;
    const block *blocks;
    const double *limits;
    double residual_limit, step_limit, *residuals;
    int *wrong;
} batch;
extern ptrdiff_t n_batch;
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w);
"""

LEAST = 4
"""Vectors of states that a thread takes at a time, at least: half a microsecond of work, for the smallest programs."""

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
    ffi.cdef(INTERFACE)
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
        is_long: whether a state takes long, see `caller.LONG`.
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
        is_long: bool = False,
    ) -> None:
        self._ffi, self._open_batch, self._compiler = interface(), open_batch, compiler
        self._single = single
        self.run, self.solve = single.run, single.solve
        self.work = aligned(n_work)
        self._limits, self._residual_limit, self._step_limit = np.array([*limits, 0.0]), residual_limit, step_limit
        self._has_residual, self._is_long = has_residual, is_long
        self._idle: list[_Call] = []

    @staticmethod
    def of(
        job: Job,
        compiler: Compiler,
        before_batch: Callable[[], AbstractContextManager[Any]],
        limits: Sequence[float] = (),
        is_long: bool = False,
    ) -> NativeKernel:
        """Return the kernel of a job, compiled unless it is in the cache.

        Args:
            job: the job, without equations and steps.
            compiler: the compiler.
            before_batch: what to be in while its library for batches is compiled, when it is first needed.
            limits: smallest size of each of its pivots.
            is_long: whether a state takes long, see `caller.LONG`.

        Raises:
            CompilerError: the compiler fails, or there is no room for what it makes.
        """
        source = c_source(job, compiler.lanes)

        def open_batch() -> Any:
            with before_batch():
                return load_library(interface(), source.batch, compiler)

        single = load_library(interface(), source.single, compiler)
        return NativeKernel(single, open_batch, compiler, source.n_work, limits, is_long=is_long)

    @cached_property
    def _batch(self) -> tuple[Any, int]:
        """The entry for batches, and how many doubles it works in."""
        library = self._open_batch()
        return library.run_batch, library.n_batch

    @cached_property
    def _run_parts(self) -> Any:
        return pool(self._ffi, self._compiler).run_parts

    def place(self, state: Floats, values: Floats) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps them, and the library, alive."""
        at = self._pointer
        limits = (self._residual_limit, np.nan, self._step_limit)
        parts = (at(state), at(self.work), at(values), at(self._limits), *limits)
        placed = self._ffi.new("state *", parts)
        self._single.prepare(placed)
        _KEPT[placed] = (state, values, self.work, self._limits, self._single)
        return placed

    def caller(self, at: Any, good: object, otherwise: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that runs one state, and returns `good` where nothing is wrong, or else `otherwise()`.

        Args:
            at: what `place` returns.
            good: what to return.
            otherwise: what to call where something is wrong.
        """
        return self._caller(self.run, at, good, otherwise)

    def bound(self, at: Any, checks: bool = False) -> Callable[[], int]:
        """Return a function that does what `run(at)` does, or `solve(at)` if it checks."""
        entry = self.solve if checks else self.run
        return self._caller(entry, at, 0, partial(entry, at))

    def _caller(self, entry: Any, at: Any, good: object, otherwise: Callable[[], Any]) -> Callable[[], Any]:
        if self._is_long:  # others may run in Python meanwhile
            return lambda: otherwise() if entry(at) else good
        return caller(entry, at, good, otherwise, self._ffi, self._compiler)

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
        (run_batch, n_work), N, lanes = self._batch, len(outputs[0]), self._compiler.lanes
        residuals = np.empty(N) if self._has_residual else None
        try:
            call = self._idle.pop()
        except IndexError:
            call = _Call(self._ffi, self._limits, self._residual_limit, self._step_limit)
        kept = call.describe([*inputs, *outputs], len(outputs), N, residuals)
        if threads > 1 and LEAST * lanes < N:
            w = call.workspace(n_work * threads)
            found = self._run_parts(run_batch, call.at, N, LEAST * lanes, w, n_work, threads)
        else:
            found = run_batch(call.at, 0, N, call.workspace(n_work))
        del kept
        wrong = call.wrong[:N].copy() if found else None
        self._idle.append(call)
        return wrong, residuals

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


class _Call:
    """What C is told of a batch, and room for what it works on and says; of one call at a time.

    Attributes:
        at: the C struct.
        wrong: what is wrong with each state, of the last call's N the first.
    """

    def __init__(self, ffi: Any, limits: Floats, residual_limit: float, step_limit: float) -> None:
        self._ffi, self._doubles = ffi, ffi.typeof("double[]")
        self._lie: list[tuple[int, ...]] = []
        self._work, self.wrong = aligned(0), np.zeros(0, dtype=np.int32)
        self.at = ffi.new("batch *")
        self.at.residual_limit, self.at.step_limit = residual_limit, step_limit
        self.at.limits = self._kept = ffi.from_buffer(self._doubles, limits)

    def workspace(self, size: int) -> Any:
        """Return a pointer to so many doubles."""
        if len(self._work) < size:
            self._work = aligned(size)
            self._w = self._ffi.from_buffer(self._doubles, self._work)
        return self._w

    def describe(self, arrays: list[Floats], n_out: int, N: int, residuals: Floats | None) -> list[Any]:
        """Say where arrays are, the last of them outputs; return what to keep while C uses them."""
        at, from_buffer, doubles = self.at, self._ffi.from_buffer, self._doubles
        try:
            kept = [from_buffer(doubles, X) for X in arrays]
        except (BufferError, ValueError):  # not each in one piece
            arrays = [_in_doubles(X) for X in arrays]
            kept = [self._ffi.cast("double *", X.ctypes.data) for X in arrays]
        lie = [X.strides for X in arrays]
        if lie != self._lie:
            self._lay(arrays, n_out)
            self._lie = lie
        self._arrays[0 : len(kept)] = kept
        if len(self.wrong) < N:
            self.wrong = np.empty(N, dtype=np.int32)
            at.wrong = self._wrong = self._ffi.from_buffer("int[]", self.wrong)
        at.n = N
        if residuals is not None:
            at.residuals = kept_too = from_buffer(doubles, residuals)
            kept.append(kept_too)
        return [arrays, kept]

    def _lay(self, arrays: list[Floats], n_out: int) -> None:
        """Say how arrays (N, size), or (size,) that all states have, lie."""
        self._arrays, self._blocks = self._ffi.new("double *[]", len(arrays)), self._ffi.new("block[]", len(arrays))
        self.at.arrays, self.at.blocks, self.at.n_out = self._arrays, self._blocks, n_out
        for block, X in zip(self._blocks, arrays, strict=True):
            block.n = X.shape[-1]
            block.step, block.across = (stride // X.itemsize for stride in (0, *X.strides)[-2:])


def _in_doubles(X: Floats) -> Floats:
    """Return an array as it lies, if that is in steps of whole numbers."""
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X


def aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
