"""A kernel on arrays of its own: one state at a time, as it comes."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Protocol

from numpy import ndarray

from nori_dyn.program.kernel.base import Kernel, Outcome
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.typing import Floats

ALL = slice(None)

MISFITS = (BufferError, RuntimeError, TypeError, ValueError)
"""What a slot raises that is given anything but numbers of its type and shape."""


class Slot(Protocol):
    """Where an input goes: `slot[ALL] = value` takes doubles of its own shape only.

    Of one axis it is a `memoryview`, which compares type and shape and copies in the time that NumPy takes to look one
    of them up.
    """

    def __setitem__(self, part: slice, value: Any) -> None:
        """Copy a value."""


class _Block:
    """The slot of an array of several axes."""

    def __init__(self, array: Floats) -> None:
        self._array = array

    def __setitem__(self, part: slice, value: Floats) -> None:
        if value.dtype != self._array.dtype or value.shape != self._array.shape:
            raise ValueError("another type or shape")
        self._array[part] = value


class Single:
    """A program on arrays of its own.

    Attributes:
        state: all that it reads, one array after the other.
        inputs: its parts, each of its shape.
        values: what it writes (n_outputs,).
        slots: where to put inputs.
        at: where these are, for the kernel.
        run: computes the outputs of what is in the inputs, with the kernel's checks; returns the outcome.

    Args:
        kernel: the kernel.
        shapes: the shape of each input.
        n_outputs: number of outputs.
    """

    def __init__(self, kernel: Kernel, shapes: Iterable[tuple[int, ...]], n_outputs: int) -> None:
        shapes = list(shapes)
        edges = [0, *accumulate(map(prod, shapes))]
        self.state, self.values = aligned(edges[-1]), aligned(n_outputs)
        self.inputs = [self.state[a:b].reshape(shape) for (a, b), shape in zip(pairwise(edges), shapes, strict=True)]
        self.at = kernel.place(self.state, self.values)
        self.run = kernel.bound(self.at, checks=True)
        self.slots: list[Slot] = [memoryview(x) if x.ndim == 1 else _Block(x) for x in self.inputs]  # type: ignore[arg-type]

    def solve(self, given: Sequence[Any]) -> int:
        """Compute the outputs of a state with the kernel's checks; return the outcome.

        Where an input is no plain array of doubles of its shape it is refused as a number that is not finite is.
        """
        try:
            for value, slot in zip(given, self.slots):  # noqa: B905 (as many, and `strict` takes as long as two slots)
                if type(value) is not ndarray:  # a masked array would lose its mask
                    return Outcome.INPUT_NOT_FINITE
                slot[ALL] = value
        except MISFITS:
            return Outcome.INPUT_NOT_FINITE
        outcome: int = self.run()
        return outcome
