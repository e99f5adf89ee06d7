"""A job as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.program.kernel.base import CHUNK, Batches, Outcome
from nori_dyn.program.kernel.choice import NUMPY
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.program.straight_line import Program
from nori_dyn.typing import Floats

Place: TypeAlias = tuple[list[Floats], Floats]
"""The inputs of a job, and its outputs."""


class NumpyKernel:
    """Runs a program on floats one state at a time, and on arrays chunk by chunk.

    Args:
        program: the program.
        limits: the least sizes of its last outputs, which are looked at by `run` and `batch`, and not returned by them.
    """

    name = NUMPY
    sees_bad_input = False

    def __init__(self, program: Program, limits: Sequence[float] = ()) -> None:
        self._program, self._limits = PythonProgram(program), np.array(limits)
        self._ends = np.cumsum([len(scalars) for scalars in program.inputs.values()])[:-1]

    def single(self, *inputs: Floats) -> Floats:
        """Return the outputs (n_outputs,) of one state; where a divisor is zero it goes on with infinities."""
        try:
            return self._program.single(*inputs)
        except (ZeroDivisionError, OverflowError, ValueError):
            return self._program.batch(*(array[None] for array in inputs))[:, 0]

    def chunks(self, *inputs: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield which of N states were run, and their outputs (n_outputs, n)."""
        for start in range(0, len(inputs[0]), CHUNK):
            part = slice(start, start + CHUNK)
            yield part, self._program.batch(*(array[part] for array in inputs))

    def place(self, state: Floats, values: Floats) -> Place:
        """Return where a job reads its inputs, one array after the other, and writes its outputs."""
        return np.split(state, self._ends), values

    def run(self, at: Place) -> int:
        """Compute the outputs of what is there; return whether some are not finite, or less than their limits."""
        inputs, values = at
        found = self.single(*inputs)
        values[:] = found[: len(values)]
        return int(not self._are_good(found))

    def _are_good(self, found: Floats) -> Any:
        """Return whether outputs (n_outputs, ...) are finite, and keep their limits."""
        guarded = np.abs(found[len(found) - len(self._limits) :])
        return np.isfinite(found).all(axis=0) & (self._limits <= guarded.T).all(axis=-1)

    solve = run

    def bound(self, at: Place, checks: bool = False) -> Callable[[], int]:
        """Return a function that does what `run(at)` does."""
        return partial(self.run, at)

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int) -> Batches:
        """Return what runs no batch: all of them are checked."""
        return lambda arrays, N, threads: None

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcome:
        """Run N states, see `Kernel`; on one thread."""
        N = len(outputs[0])
        ends = np.cumsum([values.shape[1] for values in outputs])
        wrong = np.zeros(N, dtype=np.int32)
        for part, found in self.chunks(*(np.broadcast_to(X, (N, X.shape[-1])) for X in inputs)):
            for values, rows in zip(outputs, np.split(found, ends)[:-1], strict=True):
                values[part] = rows.T
            wrong[part] = ~self._are_good(found)
        return wrong if wrong.any() else None, None
