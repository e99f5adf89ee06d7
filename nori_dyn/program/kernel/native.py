"""A program as C, compiled and loaded: one state a foreign call, or vectors of states.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from threading import Lock, Thread
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import cffi
import numpy as np

from nori_dyn.algebra.arrays import DOUBLE, SINGLE
from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.errors import CompilerError, NoriWarning
from nori_dyn.io.cache_files import cache_root
from nori_dyn.program.compiler import Compiler, c_file, cached_library, library_key, load_library
from nori_dyn.program.emit import Target, Unit, emit
from nori_dyn.program.kernel.base import NATIVE, Batches, Outcome, Outcomes, Returns
from nori_dyn.program.kernel.batches import BatchEntry, aligned, batches, pool
from nori_dyn.program.kernel.caller import by_cffi, caller
from nori_dyn.program.kernel.record import KernelRecord, LibraryEntry, recall, remember
from nori_dyn.program.limits import single_limits
from nori_dyn.program.program import Program
from nori_dyn.typing import Floats

LEAST = 4
"""Vectors of states that a thread takes at a time, at least: half a microsecond of work, for the smallest programs."""

_KEPT: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()
"""What C reads and writes, by the structs that point to it: they keep nothing alive."""


@cache
def interface() -> Any:
    """The cffi interface that the libraries of programs are opened with."""
    ffi = cffi.FFI()
    ffi.cdef(c_file("program.h") + c_file("program_calls.h"))
    return ffi


class _Refined(NamedTuple):
    """The library for states off the fast path, its workspace, and the offset of the pivots there."""

    library: Any
    work: Floats
    first_pivot: int


class NativeKernel:
    """The libraries of a program: compiled, or from the cache.

    Attributes:
        limits: see `Kernel`.
        pivot_names, has_residual, has_single: see `Kernel`.
        packed: how many operations of a tick are in SIMD lanes: two at a time, four and so on.
        run: the entry for single states, see c/one_state.h; it takes the result of `bind`.
        work: its workspace.

    Args:
        program: returns the program; called where it is not in the cache.
        measure: returns the limits; called with the program.
        compiler: the compiler.
        key: identity of the program, under which the cache has a record of it: then it is not even traced. None where
            it has none.
        before_batch: a context for the compilation of the library for batches, when it is first needed.

    Raises:
        CompilerError: the compiler fails, or there is no room for its output.
    """

    name = NATIVE

    @collector_at_rest()
    def __init__(
        self,
        program: Callable[[], Program],
        measure: Callable[[], Floats],
        compiler: Compiler,
        key: str | None = None,
        before_batch: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._program, self._compiler, self._key, self._before_batch = program, compiler, key, before_batch
        self._ffi = interface()
        record = None if key is None else recall(key, KernelRecord)
        library = None if record is None else cached_library(self._ffi, record.single.address)
        if record is None or library is None:
            made, limits = program(), measure().tolist()
            unit, library = self._compiled(Target.USUAL if made.has_fast_path(limits) else Target.ONE_STATE)
            record = KernelRecord.of(made, unit, self._entry(unit), limits)
            self._remember(record)
        self._single, self._record = library, record
        self.run, self.pivot_names, self.packed = library.run, record.pivot_names, record.packed
        self.has_residual, self.has_single = record.has_residual, record.has_single
        self.work, self._held = aligned(record.single.n_work), np.array([*record.limits, np.nan])
        self.limits = self._held[:-1]
        self._batches: dict[tuple[Any, ...], Batches] = {}
        self._batch_entries: dict[np.dtype[Any], BatchEntry] = {}
        self._bindings = WeakSet[Any]()
        self._turn, self._is_failed = Lock(), False
        self._refined = self._cached_refined()

    def unit(self, target: Target, is_single: bool = False) -> Unit:
        """The C of the program."""
        with collector_at_rest():
            return emit(self._program(), target, self._compiler.lanes, is_single=is_single)

    def _compiled(self, target: Target, is_single: bool = False) -> tuple[Unit, Any]:
        unit = self.unit(target, is_single)
        return unit, load_library(self._ffi, unit.text, self._compiler)

    def _entry(self, unit: Unit) -> LibraryEntry:
        address = library_key(unit.text, self._compiler)
        return LibraryEntry(address=address, n_work=unit.n_work, first_pivot=unit.first_pivot)

    def _remember(self, record: KernelRecord) -> None:
        self._record = record
        if self._key is not None:
            remember(self._key, record)

    def _check_trace(self) -> None:
        """Check that the program is the one that the cache has a record of."""
        if len(self._program().pivots) != self._record.n_pivots:
            raise CompilerError(f"the cached program is of another trace of the plan: remove '{cache_root()}'.")

    def prepare(self, wait: bool = True) -> None:
        """Compile the refinement of states off the fast path, see `Kernel`.

        Raises:
            CompilerError: the compiler fails, or there is no room for its output.
        """
        if self._refined is not None or not self._record.has_fast_path:
            return
        if not wait:
            if not self._turn.locked() and not self._is_failed:
                Thread(target=self._prepare_behind, name="nori_dyn compiles", daemon=True).start()
            return
        with self._turn:
            if self._refined is None:
                unit, library = self._compiled(Target.ONE_STATE)
                self._check_trace()
                self._remember(self._record.model_copy(update={"refined": self._entry(unit)}))
                self._refined = _Refined(library, aligned(unit.n_work), unit.first_pivot)
                for binding in list(self._bindings):
                    self._go_on(binding, self._refined)

    def _prepare_behind(self) -> None:
        try:
            self.prepare()
        except CompilerError as error:
            self._is_failed = True
            warnings.warn(
                f"{error} States off the fast path are re-factorised with pivoting.", NoriWarning, stacklevel=2
            )

    def _cached_refined(self) -> _Refined | None:
        """The cached library for states off the fast path."""
        entry = self._record.refined
        library = None if entry is None else cached_library(self._ffi, entry.address)
        return None if entry is None or library is None else _Refined(library, aligned(entry.n_work), entry.first_pivot)

    def _go_on(self, binding: Any, by: _Refined) -> None:
        """Hand states off the fast path to their library."""
        refined = self._ffi.new("state *")
        self._ffi.memmove(refined, binding, self._ffi.sizeof("state"))
        refined.w = self._pointer(by.work)
        _KEPT[binding] = (*_KEPT[binding], refined, by)
        binding.refine = self._ffi.addressof(by.library, "refine")
        binding.refined = refined

    def _of_batches(self, dtype: np.dtype[Any]) -> Any:
        """The library for batches of a type of numbers; its C is written when the first batch comes."""
        known = self._record.batches
        found = cached_library(self._ffi, known[dtype.name]) if dtype.name in known else None
        if found is None:
            with self._before_batch():
                unit, found = self._compiled(Target.BATCH, dtype == SINGLE)
            self._check_trace()
            address = library_key(unit.text, self._compiler)
            self._remember(self._record.model_copy(update={"batches": {**known, dtype.name: address}}))
        return found

    def _batch_entry(self, dtype: np.dtype[Any]) -> BatchEntry:
        if dtype not in self._batch_entries:
            library, threads = self._of_batches(dtype), pool(self._ffi, self._compiler)
            least = LEAST * self._compiler.lanes * DOUBLE.itemsize // dtype.itemsize
            self._batch_entries[dtype] = BatchEntry(
                self._ffi, threads.run_call, library.run_batch, library.n_batch, least
            )
        return self._batch_entries[dtype]

    def bind(self, state: Floats, values: Floats) -> Any:
        """The C struct of pointers to inputs and outputs; it keeps them, and the library, alive."""
        at = self._pointer
        binding = self._ffi.new("state *", (at(state), at(self.work), at(values), at(self._held), np.nan))
        self._single.prepare(binding)
        _KEPT[binding] = (state, values, self.work, self._held, self._single)
        self._bindings.add(binding)
        if self._refined is not None:
            self._go_on(binding, self._refined)
        return binding

    def bound(self, at: Any, checks: bool = False, returns: Returns | None = None) -> Callable[[], Any]:
        """A function that computes the outputs, see `Kernel`."""
        entry = self._single.solve if checks else self.run
        if checks and returns is None and self._record.has_fast_path:
            returns = 0, lambda: self._solve(at)
        if self._record.is_long:
            return by_cffi(entry, at, returns)
        return caller(entry, at, returns, self._ffi, self._compiler)

    def _solve(self, at: Any) -> int:
        outcome: int = self._single.solve(at)
        if outcome == Outcome.NOT_USUAL:
            self.prepare()
            outcome = self._single.solve(at)
        return outcome

    def guarded(self, at: Any) -> tuple[Floats, Floats]:
        """The pivots and the steps of a state, see `Kernel`."""
        n, work, first = self._record, self.work, self._record.single.first_pivot
        if self._refined is not None:
            library, work, first = self._refined
            library.run(at.refined)
        left = work[first:]
        return left[: n.n_pivots], left[n.n_pivots + n.n_steps :][: n.n_steps]

    def address(self, pointer: Any) -> int:
        """The address of a pointer, such as `run` or the result of `bind`, for C of another library."""
        return int(self._ffi.cast("uintptr_t", pointer))

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcomes:
        """Run N states, see `Kernel`.

        Inputs are not copied that lie state by state, with or without something between, or number by number.
        """
        dtype = outputs[0].dtype
        arrays = (*(_as_it_lies(X, dtype) for X in inputs), *outputs)
        found = self.batches([X.shape[-1] for X in arrays], len(outputs), 0, dtype)(arrays, len(outputs[0]), threads)
        if found is None:
            raise ValueError("outputs must be in steps of whole numbers")
        return found

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int = 0, dtype: np.dtype[Any] = DOUBLE) -> Batches:
        """A function that runs batches of arrays of some sizes, see `batches`."""
        key = (*sizes, n_out, n_each, dtype)
        if key not in self._batches:
            limits = self._held if dtype == DOUBLE else single_limits(self._held)
            find_entry = partial(self._batch_entry, dtype)
            self._batches[key] = batches(find_entry, limits, self.has_residual, sizes, n_out, n_each, dtype)
        return self._batches[key]

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _as_it_lies(X: Floats, dtype: np.dtype[Any]) -> Floats:
    """An array as it lies, if it is of a type, and in steps of whole numbers."""
    if X.dtype != dtype:
        with np.errstate(over="ignore"):
            return X.astype(dtype)
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X
