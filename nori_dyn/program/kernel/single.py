"""A kernel on arrays of its own: one state at a time, as it comes."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from math import prod
from typing import Any

from numpy import ndarray

from nori_dyn.program.kernel.base import Kernel, Outcome
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.typing import Floats

ALL = slice(None)

MISFITS = (BufferError, RuntimeError, TypeError, ValueError)
"""What a slot raises that is given anything but numbers of its type and shape."""


class _ArraySlot:
    """The slot of an input of several axes: `slot[ALL] = value` takes doubles of its shape only.

    Of one axis it is a `memoryview`, which compares type and shape and copies in the time that NumPy takes to look one
    of them up.
    """

    def __init__(self, array: Floats) -> None:
        self._array = array

    def __setitem__(self, part: slice, value: Floats) -> None:
        if value.dtype != self._array.dtype or value.shape != self._array.shape:
            raise ValueError("another type or shape")
        self._array[part] = value


class Single:
    """A program on arrays of its own.

    Attributes:
        inputs: the inputs, each of its shape.
        values: the outputs (n_outputs,).
        at: where its arrays are, for the kernel; `at.residual` is that of the last state.
        solve: computes the outputs of a state, one argument an input, with the kernel's checks; returns the outcome.
            Where an input is no plain array of doubles of its shape it is refused as one that is not finite. The last
            inputs that have a default are left out.
        solve_all: the same of all inputs.

    Args:
        kernel: the kernel.
        shapes: the shape of each input.
        n_outputs: number of outputs.
        defaults: values of the last inputs.
    """

    def __init__(
        self, kernel: Kernel, shapes: Iterable[tuple[int, ...]], n_outputs: int, defaults: Sequence[Floats] = ()
    ) -> None:
        shapes = list(shapes)
        edges = [0, *accumulate(map(prod, shapes))]
        state, self.values = aligned(edges[-1]), aligned(n_outputs)
        self.inputs = [state[a:b].reshape(shape) for (a, b), shape in zip(pairwise(edges), shapes, strict=True)]
        self.at = kernel.bind(state, self.values)
        slots: list[Any] = [memoryview(x) if x.ndim == 1 else _ArraySlot(x) for x in self.inputs]  # type: ignore[arg-type]
        run, n = kernel.bound(self.at, checks=True), len(slots) - len(defaults)
        self.solve: Callable[..., int] = _unrolled(n)(slots[:n], run)
        self.solve_all = self.solve
        if defaults:
            solve_all = _unrolled(len(slots))(slots, run)
            _put(slots[n:], defaults)

            def solve_and_put_back(*given: Any) -> int:
                outcome: int = solve_all(*given)
                _put(slots[n:], defaults)
                return outcome

            self.solve_all = solve_and_put_back


def _put(slots: Sequence[Any], values: Sequence[Floats]) -> None:
    """Put values into slots."""
    for slot, value in zip(slots, values, strict=True):
        slot[ALL] = value


@cache
def _unrolled(n: int) -> Callable[..., Any]:
    """A maker of `Single.solve` for n inputs: a loop over three takes as long as a program of an arm."""
    names, of_arrays = [f"x{k}" for k in range(n)], "".join(f"type(x{k}) is " for k in range(n))
    source = f"""
def made(slots, run):
    [{", ".join(f"put{k}" for k in range(n))}] = slots
    def solve({", ".join(names)}):
        if not {of_arrays or "ndarray is "}ndarray:  # a masked array would lose its mask
            return refused
        try:
            {"; ".join(f"put{k}[every] = x{k}" for k in range(n)) or "pass"}
        except misfits:
            return refused
        return run()
    return solve
"""
    scope: dict[str, Any] = {
        "ndarray": ndarray,
        "every": ALL,
        "misfits": MISFITS,
        "refused": int(Outcome.INPUT_NOT_FINITE),
    }
    exec(source, scope)
    made: Callable[..., Any] = scope["made"]
    return made
