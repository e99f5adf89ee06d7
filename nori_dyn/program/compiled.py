"""Base of everything compiled: a program on a kernel, and a fallback where its guards do not trust it.

Source: docs/design.md, 4.8 and 5.2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import accumulate
from math import nan, prod
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from nori_dyn.algebra.arrays import DOUBLE, SINGLE
from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import InputError
from nori_dyn.program.kernel.base import Kernel, is_refused
from nori_dyn.program.kernel.single import Single
from nori_dyn.program.learning import Differentiable
from nori_dyn.program.remade import Remade
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Booleans, Floats

T = TypeVar("T")
Made = TypeVar("Made")

Order: TypeAlias = Literal["C", "F"]

Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""What shows how far long work is, given a title; see `io.progress`."""


@contextmanager
def unwatched(title: str) -> Iterator[Progress]:
    """Show nothing."""
    yield lambda stage, done=None: None


def on_all_cores(
    make: Callable[[T], Made],
    of: Sequence[T],
    title: str = "",
    watch: Watch = unwatched,
    before: int = 0,
    of_all: int = 0,
) -> Iterator[Made]:
    """Yield what is made of each of some things, in their order: the compiler runs for several at a time.

    Args:
        make: makes it.
        of: the things.
        title: what it is for.
        watch: shows how far it is.
        before: how many were made before.
        of_all: how many there are in all.
    """
    with watch(title) as stage, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(make, of)
        for k in range(len(of)):
            stage(f"compiling {before + k + 1} of {of_all}", k / len(of))
            yield next(found)


class Arrays(SimpleNamespace):
    """Arrays that a tick uses where they lie, by name: write into them, as in `inputs.q[:] = ...`."""

    def __setattr__(self, name: str, value: object) -> None:
        if value is not self.__dict__.get(name):  # as it is after `inputs.q += ...`
            raise InputError(f"'{name}' stays where it is, as a tick uses it there: write into it, `.{name}[:] = ...`.")


Trust: TypeAlias = tuple[Floats | float, Booleans | bool, Floats | float]
"""Reliability of the outputs of a state, or of N states: of each quantity N numbers, or one for all.

The largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in the same equation, nan when not
computed; whether the program was given up for a freshly pivoted factorisation; one over the condition that this found,
1 where the program held. A tuple without names is made in a tenth of the time.
"""

Solved: TypeAlias = tuple[Floats, Floats | float, Booleans | bool, Floats | float]
"""The outputs of a state (n_outputs,), or of N states, and how far to trust them."""

QuickBatch: TypeAlias = Callable[[tuple[Any, ...], Any, Order | None, Any], Solved | None]
"""Solves a batch of inputs on some threads, in an order, to a place, where nothing is wrong; returns None otherwise."""


class Compiled(Remade, Differentiable):
    """A program with guards: on arrays that stay where they are, on one state, or on many.

    What the guards do not trust is computed in another way, where there is one. Not to be shared between threads.

    Attributes:
        kernel: the kernel that runs the program.
        inputs: the arrays that `tick` reads, by name.
        outputs: the outputs of `tick`.
        tick: computes the outputs from `inputs`, which it does not check.

    Args:
        kernel: the kernel.
        shapes: the shape of each input.
        n_outputs: number of outputs.
        defaults: values of the last inputs, where these may be left out.
    """

    inputs: Any
    outputs: Any
    tick: Callable[[], Any]

    def __init__(
        self, kernel: Kernel, shapes: Mapping[str, tuple[int, ...]], n_outputs: int, defaults: Sequence[Floats] = ()
    ) -> None:
        self.kernel, self._shapes, self._n_outputs = kernel, dict(shapes), n_outputs
        self._single = Single(kernel, shapes.values(), n_outputs, defaults)
        self._solve, self._copy, self._at = self._single.solve, self._single.values.copy, self._single.at
        self._has_residual = kernel.has_residual
        self._defaults = tuple(defaults)
        self._batch_quickly = self._quickly_in_batches(DOUBLE)

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self.kernel.name

    @property
    def cost(self) -> Cost:
        """Counted operations of a tick, sines and cosines not counted."""
        raise NotImplementedError

    def _check(self, given: Sequence[Any], batch: tuple[int, ...] = ()) -> Sequence[Floats]:
        """Inputs of a state, or of N states, as arrays of their shapes, quaternions of unit length.

        Raises:
            InputError: they are none.
        """
        raise NotImplementedError

    def _otherwise(self, state: Sequence[Floats], which: str) -> Solved:
        """The outputs (n_outputs,) of a state that the guards do not trust.

        Args:
            state: the inputs.
            which: the state, for messages.

        Raises:
            SingularSystemError: there are none.
        """
        raise NotImplementedError

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The inputs given by position or by name, those that may be left out at their defaults.

        Raises:
            InputError: an input is missing, or there is one too many.
        """
        names = list(self._shapes)
        given = dict(zip(names, args, strict=False)) | dict(kwargs)
        left_out = {name: x.copy() for name, x in zip(reversed(names), reversed(self._defaults), strict=False)}
        whole = left_out | given
        if len(args) + len(kwargs) != len(given) or set(whole) != set(names):
            received = [f"{len(args)} by position", *kwargs]
            raise InputError(f"the inputs are {', '.join(names)}; given: {', '.join(received)}.")
        return tuple(whole[name] for name in names)

    def solved(self, *state: Floats, which: str = "this state") -> Solved:
        """The outputs of a state that was checked, all inputs given; `which` it is, for messages."""
        if not self._single.solve_all(*state):
            return self._copy(), self._at.residual if self._has_residual else nan, False, 1.0
        return self._otherwise(state, which)

    def _number_type(self, dtype: Any) -> np.dtype[Any]:
        """The type of a batch's numbers.

        Raises:
            InputError: it is neither doubles nor floats, or these are not for this program.
        """
        if dtype in (DOUBLE.name, DOUBLE, np.float64):
            return DOUBLE
        if dtype not in (SINGLE.name, SINGLE, np.float32):
            raise InputError(f"dtype is {dtype!r}: a batch is of 'float64' or 'float32'.")
        if not self.kernel.has_single:
            raise InputError(
                "dtype='float32' is for batches whose equations all hold exactly, through the backends 'native' and "
                "'numpy': weights span more decades than floats have digits. Leave it out."
            )
        return SINGLE

    @cached_property
    def _singles_quickly(self) -> QuickBatch:
        """`_batch_quickly` in single precision."""
        return self._quickly_in_batches(SINGLE)

    def solved_batch(self, states: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Trust:
        """Write the outputs of N states, whose shapes were checked; return how far to trust them.

        Args:
            states: the inputs, with a leading N; or without, of those that all states have.
            outputs: where they go, one array (N, size) after the other; of floats, for a batch in single precision.
            threads: number of threads.

        Raises:
            InputError: a number is not finite.
            SingularSystemError: a state has no outputs.
        """
        shapes = zip(states, self._shapes.values(), strict=True)
        flat = [array.reshape(*array.shape[: array.ndim - len(shape)], -1) for array, shape in shapes]
        outcomes, residual = self.kernel.batch(flat, outputs, threads)
        if outcomes is None:
            return nan if residual is None else residual, False, 1.0
        return self._judged(states, outputs, outcomes, residual)

    def _quickly_in_batches(self, dtype: np.dtype[Any]) -> QuickBatch:
        """A faster `solved_batch` that returns the outputs too, where nothing is wrong; it returns None otherwise.

        Inputs that have a default are left out; where there is no order, outputs lie as the first input does. All
        that it uses is at hand: looking it up takes as long as some states.
        """
        shapes, n, judged = [*self._shapes.values()], self._n_outputs, self._judged
        defaults = tuple(x.astype(dtype, copy=False) for x in self._defaults)
        n_given = len(shapes) - len(defaults) if all(len(shape) == 1 for shape in shapes) else -1
        run = self.kernel.batches((*map(prod, shapes), n), 1, len(shapes) - len(defaults), dtype)

        def quick(given: tuple[Any, ...], threads: Any, order: Order | None, out: Any) -> Solved | None:
            if len(given) != n_given or type(first := given[0]) is not ndarray or first.ndim != 2:
                return None
            if type(threads) is not int or threads < 1:
                return None
            N, values = len(first), out
            if out is None:
                is_by_number = order == "F" if order else first.flags.fnc
                values = empty((N, n), dtype, "F") if is_by_number else empty((N, n), dtype)
            found = run((*given, *defaults, values) if defaults else (*given, values), N, threads)
            if found is None:
                return None
            outcomes, residual = found
            if outcomes is None:
                return values, nan if residual is None else residual, False, 1.0
            return values, *judged(given + defaults, [values], outcomes, residual)

        return quick

    def _judged(
        self,
        states: Sequence[Floats],
        outputs: Sequence[Floats],
        outcomes: NDArray[np.int32],
        residual: Floats | None,
    ) -> Trust:
        """Recompute in place those of N states that the guards do not trust; return how reliable all are.

        In single precision they are computed in doubles first.
        """
        N, refused, is_single = len(outcomes), is_refused(outcomes), outputs[0].dtype == SINGLE
        if refused.any():
            states = self._check(states, (N,))  # an invalid state is refused here
        residual, rcond = np.full(N, nan) if residual is None else residual, np.ones(N)
        fell_back = np.zeros(N, dtype=bool)
        ends = list(accumulate(rows.shape[1] for rows in outputs))[:-1]
        for k in np.flatnonzero(outcomes).tolist():
            own = [X[k] if X.ndim > len(shape) else X for X, shape in zip(states, self._shapes.values(), strict=True)]
            own, which = [x.astype(float, copy=False) for x in own], f"state {k} of {N}"
            found = self.solved(*own, which=which) if is_single else self._otherwise(own, which)
            values, residual[k], fell_back[k], rcond[k] = found
            for rows, part in zip(outputs, np.split(values, ends), strict=True):
                rows[k] = part
        return residual, fell_back, rcond
