"""Batches by foreign calls: their argument structs are kept from call to call.

Source: docs/design.md, 4.8.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.kernel.base import Batches, Outcomes
from nori_dyn.typing import Floats

ALIGNMENT = 64
"""Bytes of the widest vector."""


class BatchEntry(NamedTuple):
    """The C entry for batches of a program.

    Attributes:
        ffi: the cffi interface of its libraries.
        run_call: runs a call, see `pool`.
        run: the program's own entry.
        n_work: doubles that a thread works in.
        least: states that a thread takes at a time, at least.
    """

    ffi: Any
    run_call: Any
    run: Any
    n_work: int
    least: int


UNFIT, NO_ROOM = -1, -2
"""What `run_call` returns where it has computed nothing, see `refusal` in c/program.h."""


def batches(
    find_entry: Callable[[], BatchEntry],
    limits: Floats,
    has_residual: bool,
    sizes: Sequence[int],
    n_out: int,
    n_each: int,
    dtype: np.dtype[Any],
) -> Batches:
    """A function that runs batches of arrays of some sizes, with all buffers at hand.

    Args:
        find_entry: returns the entry; called when it is first needed.
        limits: see `Kernel`.
        has_residual: whether the program computes the residual.
        sizes: how many numbers a state has in each array, outputs after inputs.
        n_out: number of arrays of outputs.
        n_each: so many of the first arrays must have a row for each state; 0 where arrays are checked already.
        dtype: type of their numbers.
    """
    idle: list[_BatchCall] = []
    pop, push, good = idle.pop, idle.append, (None, None)

    def run(arrays: tuple[Any, ...], N: int, threads: int) -> Outcomes | None:
        try:
            call = pop()
        except IndexError:
            call = _BatchCall(find_entry(), limits, tuple(sizes), n_out, n_each, dtype)
        residuals = call.residuals_of(N) if has_residual else None
        found = call.run(call.struct, id(arrays), N, threads)
        if not found:
            push(call)
            return (None, residuals) if has_residual else good
        if found == NO_ROOM:
            call.make_room(N, threads)
            push(call)
            return run(arrays, N, threads)
        outcomes = call.outcomes[:N].copy()
        push(call)
        return None if found == UNFIT else (outcomes, residuals)

    return run


class _BatchCall:
    """The arguments of a call of C, with its workspace and results; for one call at a time.

    Attributes:
        run: runs the call of the struct.
        struct: the C struct.
        outcomes: the outcome of each state, of the last call's N the first.
    """

    __slots__ = ("_ffi", "_kept", "_n_work", "_residuals", "_work", "outcomes", "run", "struct")

    def __init__(
        self,
        entry: BatchEntry,
        limits: Floats,
        sizes: tuple[int, ...],
        n_out: int,
        n_each: int,
        dtype: np.dtype[Any],
    ) -> None:
        ffi = self._ffi = entry.ffi
        self.run, self._n_work = entry.run_call, entry.n_work
        arrays, blocks = ffi.new("void *[]", len(sizes)), ffi.new("block[]", len(sizes))
        for block, size in zip(blocks, sizes, strict=True):
            block.n = size
        kept = ffi.from_buffer("double[]", limits)
        self.struct = call = ffi.new("call *")
        call.run, call.n_arrays, call.n_each = entry.run, len(sizes), n_each
        call.least, call.n_work = entry.least, entry.n_work
        call.type, call.size = ffi.cast("void *", id(dtype)), dtype.itemsize
        at = call.at
        at.n_out, at.arrays, at.blocks, at.limits = n_out, arrays, blocks, kept
        self._kept = arrays, blocks, kept, dtype
        self.outcomes, self._work, self._residuals = np.zeros(0, dtype=np.int32), aligned(0), None

    def make_room(self, states: int, threads: int) -> None:
        """Have room for so many."""
        from_buffer, call = self._ffi.from_buffer, self.struct
        if states > call.most_states:
            self.outcomes, call.most_states = np.empty(states, dtype=np.int32), states
            call.at.statuses = from_buffer("int[]", self.outcomes)
        if threads > call.most_threads:
            self._work, call.most_threads = aligned(self._n_work * threads), threads
            call.w = from_buffer("double[]", self._work)

    def residuals_of(self, N: int) -> Floats:
        """Where the residuals of the next call go."""
        residuals = np.empty(N)
        self.struct.at.residuals = self._residuals = self._ffi.from_buffer("double[]", residuals)
        return residuals


def aligned(size: int, made: Callable[[int], Floats] = np.zeros) -> Floats:
    """Zeros (size,), or what else makes an array, at an address that fits the widest vector."""
    room = made(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]


@cache
def pool(ffi: Any, compiler: Compiler) -> Any:
    """The library of the threads, of which a process has one, for good: they wait in its code.

    Args:
        ffi: the cffi interface with its declarations.
        compiler: the compiler.

    Raises:
        CompilerError: the compiler fails, or there is no room for its output.
    """
    found = load_library(ffi, c_file("threads.c"), compiler, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
    found.array_class = ffi.cast("void *", id(np.ndarray))
    found.head, found.items = object.__basicsize__, tuple.__basicsize__
    os.register_at_fork(after_in_child=found.forget_threads)
    return found
