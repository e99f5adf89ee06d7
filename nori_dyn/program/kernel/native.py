"""A program as C, compiled and loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from typing import Any
from weakref import WeakKeyDictionary

import cffi
import numpy as np

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.errors import CompilerError
from nori_dyn.program.cache_files import cache_root
from nori_dyn.program.compiler import Compiler, c_file, cached_library, library_key, load_library
from nori_dyn.program.emit import Target, Unit, emit
from nori_dyn.program.kernel.base import Batches, Judged, Kernel, Observed, Outcomes
from nori_dyn.program.kernel.batches import BatchEntry, aligned, batches
from nori_dyn.program.kernel.caller import by_cffi, caller
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.pool import pool
from nori_dyn.program.kernel.record import Record, recall, remember
from nori_dyn.program.program import Program
from nori_dyn.typing import Floats

LEAST = 4
"""Vectors of states that a thread takes at a time, at least: half a microsecond of work, for the smallest programs."""

_KEPT: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()
"""What C reads and writes, by the structs that point to it: they keep nothing alive."""


@cache
def interface() -> Any:
    """Return the cffi interface that the libraries of programs are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(c_file("program.h") + c_file("program_calls.h"))
    return ffi


class NativeKernel:
    """The libraries of a program: compiled, or found in the cache.

    Attributes:
        limits: see `Kernel`.
        pivot_names: see `Kernel`.
        run, solve: the entries for single states, see c/one_state.h; each takes what `place` returns.
        work: their workspace.

    Args:
        program: returns the program; called where it is not in the cache.
        measure: returns the limits, by what the kernel computes before it has any.
        compiler: the compiler.
        key: identity of the program, under which the cache has a record of it: then it is not even traced. None where
            it has none.
        before_batch: what to be in while the library for batches is compiled, when it is first needed.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    name = NATIVE

    def __init__(
        self,
        program: Callable[[], Program],
        measure: Callable[[Kernel], Floats],
        compiler: Compiler,
        key: str | None = None,
        before_batch: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._program, self._compiler, self._key, self._before_batch = program, compiler, key, before_batch
        self._ffi = interface()
        record = None if key is None else recall(key)
        library = None if record is None else cached_library(self._ffi, record.single)
        is_known = record is not None and library is not None
        if record is None or library is None:
            text, library = self._compiled(Target.ONE_STATE)
            record = Record.of(program(), text, library_key(text.text, compiler))
        self._single, self._record = library, record
        self.run, self.solve, self.pivot_names = library.run, library.solve, record.pivot_names
        self.work, self._held = aligned(record.n_work), np.zeros(record.n_limits + 1)
        self.limits = self._held[:-1]
        self._batches: dict[tuple[int, ...], Batches] = {}
        if not is_known:
            self._remember(limits=tuple(measure(self).tolist()))
        self.limits[:] = self._record.limits

    @property
    def has_residual(self) -> bool:
        """Whether the residual is computed, see `Kernel`."""
        return self._record.has_residual

    @property
    def packed(self) -> Mapping[int, int]:
        """How many operations of a tick isomorphic limbs do together: two at a time, four and so on."""
        return self._record.packed

    def unit(self, target: Target) -> Unit:
        """Return the C of the program."""
        with collector_at_rest():
            return emit(self._program(), target, self._compiler.lanes)

    def _compiled(self, target: Target) -> tuple[Unit, Any]:
        unit = self.unit(target)
        return unit, load_library(self._ffi, unit.text, self._compiler)

    def _remember(self, **changed: Any) -> None:
        self._record = self._record.model_copy(update=changed)
        if self._key is not None:
            remember(self._key, self._record)

    @cached_property
    def _of_batches(self) -> Any:
        """The library for batches; what is compiled for them is written when the first one comes."""
        found = None if self._record.batch is None else cached_library(self._ffi, self._record.batch)
        if found is None:
            with self._before_batch():
                unit, found = self._compiled(Target.BATCH)
            if len(self._program().pivots) != self._record.n_pivots:
                raise CompilerError(f"the cached program is of another trace of the plan: remove '{cache_root()}'.")
            self._remember(batch=library_key(unit.text, self._compiler))
        return found

    @cached_property
    def _batch_entry(self) -> BatchEntry:
        library, threads = self._of_batches, pool(self._ffi, self._compiler)
        least = LEAST * self._compiler.lanes
        return BatchEntry(self._ffi, threads.run_call, library.run_batch, library.n_batch, least)

    def place(self, state: Floats, values: Floats) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps them, and the library, alive."""
        at = self._pointer
        placed = self._ffi.new("state *", (at(state), at(self.work), at(values), at(self._held), np.nan))
        self._single.prepare(placed)
        _KEPT[placed] = (state, values, self.work, self._held, self._single)
        return placed

    def bound(self, at: Any, checks: bool = False, judged: Judged | None = None) -> Callable[[], Any]:
        """Return a function that does what `run(at)` does, or `solve(at)` if it checks, see `Kernel`."""
        entry = self.solve if checks else self.run
        if self._record.is_long:
            return by_cffi(entry, at, judged)
        return caller(entry, at, judged, self._ffi, self._compiler)

    def observed(self, *states: Floats) -> Observed:
        """Return what is computed at N states, see `Kernel`."""
        n, first = self._record, self._record.first_pivot
        state, values = aligned(n.n_inputs), aligned(n.n_outputs)
        at = self.place(state, values)
        found = []
        for parts in zip(*states, strict=True):
            np.concatenate(parts, out=state)
            self.run(at)
            rest = self.work[first + n.n_pivots :][: max(n.n_steps, n.n_watched)]
            found.append((values.copy(), self.work[first : first + n.n_pivots].copy(), rest.copy()))
        return Observed(*map(np.array, zip(*found, strict=True)))

    def guarded(self) -> tuple[Floats, Floats]:
        """Return the pivots and the steps that the last state left, see `Kernel`."""
        n = self._record
        left = self.work[n.first_pivot :]
        return left[: n.n_pivots], left[n.n_pivots + n.n_steps :][: n.n_steps]

    @property
    def address_of_run(self) -> int:
        """Where `run` is, for C that calls it."""
        return self.address(self.run)

    def address(self, pointer: Any) -> int:
        """Return the number of a pointer, such as what `place` returns, for C of another library."""
        return int(self._ffi.cast("uintptr_t", pointer))

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcomes:
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
            has = self.has_residual
            self._batches[key] = batches(lambda: self._batch_entry, self._held, has, sizes, n_out, n_each)
        return self._batches[key]

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _in_doubles(X: Floats) -> Floats:
    """Return an array as it lies, if that is in steps of whole numbers."""
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X
