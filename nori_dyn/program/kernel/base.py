"""The interface of a kernel: a program on arrays that stay in place, or on many states."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.arrays import DOUBLE
from nori_dyn.errors import CompilerError, NoriWarning, UnknownBackendError
from nori_dyn.typing import Floats

NATIVE, NUMPY, AUTO = "native", "numpy", "auto"

Made = TypeVar("Made")


def chosen(name: str, ways: Mapping[str, Callable[[], Made]], what: str) -> Made:
    """The result of one of some makers by name; "auto" is the native one, or NumPy's without a compiler.

    Args:
        name: the way, or "auto".
        ways: the makers, by name.
        what: the made object, for the warning, whose place is where its maker's caller's caller was called.

    Raises:
        UnknownBackendError: there is no such way.
        MissingExtraError: it needs an extra that is not installed.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.
    """
    if name == AUTO:
        try:
            return ways[NATIVE]()
        except CompilerError as error:
            warnings.warn(f"{error} {what} runs through NumPy instead, which is slower.", NoriWarning, stacklevel=5)
            return ways[NUMPY]()
    if name not in ways:
        raise UnknownBackendError("backend", name, (*ways, AUTO))
    return ways[name]()


class Outcome(IntEnum):
    """How a state went: the numbers of c/statuses.h."""

    OK = 0
    INPUT_NOT_FINITE = 1
    QUATERNION_NOT_UNIT = 2
    SMALL_PIVOT = 3
    OUTPUT_NOT_FINITE = 4
    INACCURATE = 5
    NEGATIVE_WEIGHT = 6
    WEIGHT_SPREAD = 7
    ZERO_WEIGHT = 8
    UNPLANNED_CONTACTS = 9
    UNDETERMINED = 10
    TIME_NOT_POSITIVE = 11
    LARGE_RESIDUAL = 12
    NOT_USUAL = 13


def is_refused(outcome: Any) -> Any:
    """Whether nothing was computed of a state, or of each of some, as it is none."""
    return (outcome == Outcome.INPUT_NOT_FINITE) | (outcome == Outcome.QUATERNION_NOT_UNIT)


Outcomes: TypeAlias = tuple[NDArray[np.int32] | None, Floats | None]
"""The outcome of each of N states (N,), and their residuals (N,); None where all are OK, or none are computed."""

Batches: TypeAlias = Callable[[tuple[Any, ...], int, int], Outcomes | None]
"""Runs N states of arrays on some threads, inputs before outputs."""

Returns: TypeAlias = tuple[object, Callable[[], Any]]
"""A constant to return where a state is OK, and a function to call where it is not."""


class Kernel(Protocol):
    """A way to run a program: `bind` binds it to arrays, `bound` takes its result.

    Laws, for those that run plans, tested over the registry in tests/contracts/test_backends.py:

    - what is bound does what `batch` does of one state, in place, to rounding;
    - of a state at which the guards do not trust the outputs, or which is none, the outcome is not OK;
    - nothing depends on the states solved before.
    """

    @property
    def has_residual(self) -> bool:
        """Whether it computes the residual of a state that is solved."""

    @property
    def has_single(self) -> bool:
        """Whether it runs batches in single precision: those without weights, whose ratios exceed its digits."""

    @property
    def limits(self) -> Floats:
        """The limits of its guards, see `state` in c/program.h; written in place."""

    @property
    def pivot_names(self) -> Sequence[str]:
        """The name of each guarded pivot; empty where they have none."""

    @property
    def name(self) -> str:
        """The kernel's name, that of its backend."""

    def bind(self, state: Floats, values: Floats) -> Any:
        """Bind the program to arrays of its inputs, one after the other, and outputs; the result keeps both alive.

        Its `residual` is that of the last state that was solved.
        """

    def bound(self, at: Any, checks: bool = False, returns: Returns | None = None) -> Callable[[], Any]:
        """A function that computes the outputs from the bound inputs and returns the outcome.

        Args:
            at: the result of `bind`.
            checks: whether it makes all checks, and brings quaternions to unit length.
            returns: a replacement for the outcome.
        """

    def prepare(self, wait: bool = True) -> None:
        """Compile the refinement of states off the fast path, if not yet there; in a thread unless `wait`.

        Until then such a state has the outcome NOT_USUAL; where it is checked, or in a batch, this is done by itself.
        """

    def guarded(self, at: Any) -> tuple[Floats, Floats]:
        """The pivots (n_pivots,) and the steps (n_steps,), the last ones, of the state that ran last there."""

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int, dtype: np.dtype[Any] = DOUBLE) -> Batches:
        """A function that runs N states as `batch` does, on arrays of the caller.

        It returns None, and nothing is computed, where they are not in order: arrays of the type in whole steps,
        outputs writeable and apart from inputs; or where the kernel has no such way.

        Args:
            sizes: how many numbers a state has in each array, outputs after inputs.
            n_out: number of arrays of outputs.
            n_each: so many of the first arrays have a row for each state, and others may.
            dtype: type of their numbers, doubles or floats.
        """

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcomes:
        """Run N states with all checks.

        Args:
            inputs: arrays (N, size), or (size,) that all states have, in the order of the program.
            outputs: where the outputs go, one array (N, size) after the other; where they are of floats, so is what is
                computed.
            threads: number of threads, where the kernel can use them; results do not depend on it.
        """
