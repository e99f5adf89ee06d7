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

from nori_dyn.program.c_batch_template import BATCH
from nori_dyn.program.c_source import c_source
from nori_dyn.program.c_templates import STATE
from nori_dyn.program.compiler import Compiler, load_library
from nori_dyn.program.job import Job
from nori_dyn.program.kernel.base import Batches, Outcome
from nori_dyn.program.kernel.batches import Limits, Routine, aligned, batches
from nori_dyn.program.kernel.caller import INTERFACE, Judged, by_cffi, caller
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.pool import CALL, pool
from nori_dyn.typing import Floats

SINGLE = (
    STATE
    + """
void prepare(const state *at);
int run(const state *at);
int solve(state *at);
"""
)
FOR_BATCHES = """
extern ptrdiff_t n_batch;
ptrdiff_t run_batch(const batch *at, ptrdiff_t from, ptrdiff_t to, double *w);
"""

LEAST = 4
"""Vectors of states that a thread takes at a time, at least: half a microsecond of work, for the smallest programs."""

_KEPT: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()
"""What C reads and writes, by the structs that point to it: they keep nothing alive."""


@cache
def interface() -> Any:
    """Return the cffi interface that the libraries of jobs are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(SINGLE)
    ffi.cdef(BATCH + FOR_BATCHES + CALL + INTERFACE)
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
        self._limits = Limits(np.array([*limits, 0.0]), residual_limit, step_limit)
        self._has_residual, self._is_long = has_residual, is_long
        self._batches: dict[tuple[int, ...], Batches] = {}

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
    def _routine(self) -> Routine:
        library, threads = self._open_batch(), pool(self._ffi, self._compiler)
        least = LEAST * self._compiler.lanes
        return Routine(self._ffi, threads.run_call, library.run_batch, library.n_batch, least)

    def place(self, state: Floats, values: Floats) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps them, and the library, alive."""
        at = self._pointer
        limits, judged = self._limits.sizes, (self._limits.residual, np.nan, self._limits.step)
        parts = (at(state), at(self.work), at(values), at(limits), *judged)
        placed = self._ffi.new("state *", parts)
        self._single.prepare(placed)
        _KEPT[placed] = (state, values, self.work, limits, self._single)
        return placed

    def bound(self, at: Any, checks: bool = False, judged: Judged | None = None) -> Callable[[], Any]:
        """Return a function that does what `run(at)` does, or `solve(at)` if it checks.

        Args:
            at: what `place` returns.
            checks: whether it checks.
            judged: what to return instead of the number of what is wrong, see `caller`.
        """
        entry = self.solve if checks else self.run
        return by_cffi(entry, at, judged) if self._is_long else caller(entry, at, judged, self._ffi, self._compiler)

    @property
    def address_of_run(self) -> int:
        """Where `run` is, for C that calls it."""
        return self.address(self.run)

    def address(self, pointer: Any) -> int:
        """Return the number of a pointer, such as what `place` returns, for C of another library."""
        return int(self._ffi.cast("uintptr_t", pointer))

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcome:
        """Run N states, see `Kernel`.

        Inputs are not copied that lie state by state, with or without something between, or number by number.
        """
        arrays = (*map(_in_doubles, inputs), *outputs)
        found = self.batches([X.shape[-1] for X in arrays], len(outputs))(arrays, len(outputs[0]), threads)
        if found is None:
            raise ValueError("outputs must be in steps of whole numbers")
        return found

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int = 0) -> Batches:
        """Return what runs batches of arrays of some sizes, see there."""
        key = (*sizes, n_out, n_each)
        if key not in self._batches:
            self._batches[key] = batches(lambda: self._routine, self._limits, self._has_residual, sizes, n_out, n_each)
        return self._batches[key]

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _in_doubles(X: Floats) -> Floats:
    """Return an array as it lies, if that is in steps of whole numbers."""
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X
