"""What a kernel does: a straight-line job on arrays that stay where they are, or on many states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nori_dyn.typing import Floats

CHUNK = 256
"""States taken at a time where NumPy does it: what is live then fits the processor's cache."""

REFUSED = -1
"""What is wrong with a state of which nothing was computed: it is not what the job takes."""


Outcome: TypeAlias = tuple[NDArray[np.int32] | None, Floats | None]
"""What is wrong with each of N states (N,), and their residuals (N,); None where there is nothing to say."""

Batches: TypeAlias = Callable[[tuple[Any, ...], int, int], Outcome | None]
"""Runs N states of arrays on some threads, inputs before outputs."""


class Kernel(Protocol):
    """A way to run a job; `place` says where its numbers are, `run` and `solve` take what that returns.

    Both return how many things are wrong with what they found: 0 where nothing is.
    """

    @property
    def name(self) -> str:
        """The kernel's name, one of `choice.KERNELS`."""

    @property
    def sees_bad_input(self) -> bool:
        """Whether `solve` finds numbers that are not finite and quaternions far from unit length: REFUSED."""

    def place(self, state: Floats, values: Floats) -> Any:
        """Return where a job reads its inputs, one after the other, and writes its outputs; it keeps both alive."""

    def run(self, at: Any) -> int:
        """Compute the outputs of what is there, and check nothing of that."""

    def solve(self, at: Any) -> int:
        """Compute the outputs with all checks, quaternions brought to unit length."""

    def bound(self, at: Any, checks: bool = False) -> Callable[[], int]:
        """Return a function that does what `run(at)` does, or `solve(at)` if it checks."""

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int) -> Batches:
        """Return what runs N states as `batch` does, of arrays as their user has them.

        It returns None, and nothing is computed, where they are not in order: arrays of doubles in whole steps, outputs
        writeable and apart from what is read; or where the kernel has no such way.

        Args:
            sizes: how many numbers a state has in each array, outputs after inputs.
            n_out: number of arrays of outputs.
            n_each: so many of the first arrays have a row for each state, and others may.
        """

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcome:
        """Run N states with the checks of `solve`; return what is wrong with each (N,), and their residuals (N,).

        The first is None where nothing is wrong with any, the second where the job has none.

        Args:
            inputs: arrays (N, size), or (size,) that all states have, in the order of the job.
            outputs: where the outputs go, one array (N, size) after the other.
            threads: number of threads, where the kernel can use them; what is computed does not depend on it.
        """
