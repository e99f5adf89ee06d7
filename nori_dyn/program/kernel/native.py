"""A program as C, compiled and loaded: one state a foreign call, or vectors of states.

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
from pydantic import BaseModel, ConfigDict

from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.emit import Target, Unit, emit
from nori_dyn.program.kernel.base import Batches, Judged, Observed, Outcomes
from nori_dyn.program.kernel.batches import Routine, aligned, batches
from nori_dyn.program.kernel.caller import by_cffi, caller
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.pool import pool
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


class Sizes(BaseModel):
    """What a kernel has to know of a compiled program.

    Attributes:
        n_inputs, n_outputs: numbers of a state.
        n_work: length of the workspace.
        first_pivot: where the pivots are in it; steps of refinement, or what is watched, come next.
        n_pivots, n_steps, n_watched: how many there are.
        has_residual: whether the residual is computed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_inputs: int
    n_outputs: int
    n_work: int
    first_pivot: int
    n_pivots: int
    n_steps: int
    n_watched: int
    has_residual: bool

    @staticmethod
    def of(program: Program, unit: Unit) -> Sizes:
        """Return the sizes of a program that was written."""
        return Sizes(
            n_inputs=len(program.scalars),
            n_outputs=len(program.outputs),
            n_work=unit.n_work,
            first_pivot=unit.first_pivot,
            n_pivots=len(program.pivots),
            n_steps=len(program.refinement.steps),
            n_watched=len(program.refinement.watched),
            has_residual=bool(program.equations),
        )

    @property
    def n_limits(self) -> int:
        """Number of limits, see `state` in c/program.h."""
        return self.n_pivots + self.n_steps + (2 * self.n_inputs + self.n_watched if self.n_steps else 0)


class NativeKernel:
    """The libraries of a program.

    Attributes:
        limits: see `Kernel`; zeros at first.
        run, solve: the entries for single states, see c/one_state.h; each takes what `place` returns.
        work: their workspace.

    Args:
        single: the library for single states.
        open_batch: returns that for batches; called when it is first needed.
        compiler: the compiler that made them.
        sizes: the sizes of the program.
        is_long: whether a state takes long, see `caller.LONG`.
    """

    name = NATIVE

    def __init__(
        self, single: Any, open_batch: Callable[[], Any], compiler: Compiler, sizes: Sizes, is_long: bool = False
    ) -> None:
        self._ffi, self._open_batch, self._compiler = interface(), open_batch, compiler
        self._single, self._sizes, self._is_long = single, sizes, is_long
        self.run, self.solve = single.run, single.solve
        self.work, self._held = aligned(sizes.n_work), np.zeros(sizes.n_limits + 1)
        self.limits = self._held[:-1]
        self._batches: dict[tuple[int, ...], Batches] = {}

    @staticmethod
    def of(
        program: Program,
        compiler: Compiler,
        before_batch: Callable[[], AbstractContextManager[Any]],
        is_long: bool = False,
    ) -> NativeKernel:
        """Return the kernel of a program, compiled unless it is in the cache.

        Args:
            program: the program.
            compiler: the compiler.
            before_batch: what to be in while its library for batches is compiled, when it is first needed.
            is_long: whether a state takes long, see `caller.LONG`.

        Raises:
            CompilerError: the compiler fails, or there is no room for what it makes.
        """

        def open_batch() -> Any:
            with before_batch():
                return load_library(interface(), emit(program, Target.BATCH, compiler.lanes).text, compiler)

        unit = emit(program, Target.ONE_STATE, compiler.lanes)
        single = load_library(interface(), unit.text, compiler)
        return NativeKernel(single, open_batch, compiler, Sizes.of(program, unit), is_long)

    @cached_property
    def _routine(self) -> Routine:
        library, threads = self._open_batch(), pool(self._ffi, self._compiler)
        least = LEAST * self._compiler.lanes
        return Routine(self._ffi, threads.run_call, library.run_batch, library.n_batch, least)

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
        return by_cffi(entry, at, judged) if self._is_long else caller(entry, at, judged, self._ffi, self._compiler)

    def observed(self, *states: Floats) -> Observed:
        """Return what is computed at N states, see `Kernel`."""
        n, first = self._sizes, self._sizes.first_pivot
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
        n = self._sizes
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
            has_residual = self._sizes.has_residual
            self._batches[key] = batches(lambda: self._routine, self._held, has_residual, sizes, n_out, n_each)
        return self._batches[key]

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _in_doubles(X: Floats) -> Floats:
    """Return an array as it lies, if that is in steps of whole numbers."""
    return np.ascontiguousarray(X) if any(stride % X.itemsize for stride in X.strides) else X
