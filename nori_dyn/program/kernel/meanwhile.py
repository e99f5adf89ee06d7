"""NumPy while a program is compiled, and native code from then on: the first estimate does not wait for the compiler.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

import numpy as np

from nori_dyn.algebra.arrays import DOUBLE
from nori_dyn.errors import CompilerError, NoriWarning
from nori_dyn.program.kernel.base import Batches, Kernel, Outcomes, Returns
from nori_dyn.typing import Floats

T = TypeVar("T")

_TURN = Lock()
"""Programs are compiled one after the other: the first is there sooner, and who runs them is not crowded out."""


class _SwitchedBuffers:
    """Where a program reads its inputs and writes its outputs, for the kernel that runs it now."""

    def __init__(self, kernel: Kernel, state: Floats, values: Floats) -> None:
        self._kernel, self._arrays = kernel, (state, values)
        self._at = kernel.bind(state, values)

    def of(self, kernel: Kernel) -> Any:
        """The buffers as bound by a kernel."""
        if kernel is not self._kernel:
            self._kernel, self._at = kernel, kernel.bind(*self._arrays)
        return self._at

    @property
    def residual(self) -> float:
        """The residual of the last state that was solved."""
        residual: float = self._at.residual
        return residual


class Background(Generic[T]):
    """Serves by one object until a thread has made another, which serves from the next request on.

    Where compiling fails it warns, when it is asked next, and stays with the first.

    Args:
        first: the object that serves at first.
        make: makes the other.
    """

    def __init__(self, first: T, make: Callable[[], T]) -> None:
        self.first = first
        self._made: T | None = None
        self._failed: Exception | None = None
        self._thread = Thread(target=self._compile, args=(make,), name="nori_dyn compiles", daemon=True)
        self._thread.start()

    def _compile(self, make: Callable[[], T]) -> None:
        try:
            with _TURN:
                self._made = make()
        except Exception as error:  # for whoever calls next, in whose thread it is raised
            self._failed = error

    def join(self) -> None:
        """Wait until it is compiled, or cannot be."""
        self._thread.join()

    @property
    def serving(self) -> T:
        """The object that serves now."""
        failed, self._failed = self._failed, None
        if isinstance(failed, CompilerError):
            warnings.warn(
                f"{failed} The plan goes on through NumPy instead, which is slower.", NoriWarning, stacklevel=4
            )
        elif failed is not None:
            raise failed
        return self._made or self.first


class NumpyUntilCompiled(Background[Kernel]):
    """A kernel that is NumPy's until a thread has compiled the native one, see `Background`."""

    @property
    def name(self) -> str:
        return self.serving.name

    @property
    def has_residual(self) -> bool:
        return self.first.has_residual

    @property
    def has_single(self) -> bool:
        return self.first.has_single

    @property
    def limits(self) -> Floats:
        return self.serving.limits

    @property
    def pivot_names(self) -> Sequence[str]:
        return self.serving.pivot_names

    def bind(self, state: Floats, values: Floats) -> _SwitchedBuffers:
        return _SwitchedBuffers(self.first, state, values)

    def bound(self, at: _SwitchedBuffers, checks: bool = False, returns: Returns | None = None) -> Callable[[], Any]:
        kernel = self.first
        run = kernel.bound(at.of(kernel), checks, returns)

        def bound() -> Any:
            nonlocal kernel, run
            if kernel is self.first and self.serving is not kernel:
                kernel = self.serving
                run = kernel.bound(at.of(kernel), checks, returns)
            return run()

        return bound

    def prepare(self, wait: bool = True) -> None:
        if wait:
            self.join()

    def guarded(self, at: _SwitchedBuffers) -> tuple[Floats, Floats]:
        kernel = self.serving
        return kernel.guarded(at.of(kernel))

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int, dtype: np.dtype[Any] = DOUBLE) -> Batches:
        return lambda arrays, N, threads: self.serving.batches(sizes, n_out, n_each, dtype)(arrays, N, threads)

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcomes:
        return self.serving.batch(inputs, outputs, threads)
