"""NumPy while a plan is compiled, and native code from then on: the first estimate does not wait for the compiler.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from nori_dyn.errors import CompilerError, NoriWarning
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Backend, Found, Solution, Status
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.backends.numpy import NumpyBackend
from nori_dyn.typing import Floats

_TURN = Lock()
"""Plans are compiled one after the other: the first is there sooner, and who runs them is not crowded out."""


class Meanwhile:
    """Runs the plan by NumPy until a thread of its own has compiled it; whoever calls next is served natively.

    Where compiling fails it warns, at the next call, and stays with NumPy.

    Args:
        plan: the plan.
        check_residual: see `NativeBackend`.
    """

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._numpy = NumpyBackend(plan, check_residual)
        self._native: NativeBackend | None = None
        self._failed: Exception | None = None
        self._thread = Thread(target=self._compile, args=(plan, check_residual), name="nori_dyn compiles", daemon=True)
        self._thread.start()

    def _compile(self, plan: EliminationPlan, check_residual: bool) -> None:
        try:
            with _TURN:
                self._native = NativeBackend(plan, check_residual)
        except Exception as error:  # for whoever calls next, in whose thread it can be seen
            self._failed = error

    def join(self) -> None:
        """Wait until it is compiled, or cannot be."""
        self._thread.join()

    @property
    def serving(self) -> Backend:
        """The backend that runs the plan now."""
        failed, self._failed = self._failed, None
        if isinstance(failed, CompilerError):
            warnings.warn(
                f"{failed} The plan goes on through NumPy instead, which is slower.", NoriWarning, stacklevel=4
            )
        elif failed is not None:
            raise failed
        return self._native or self._numpy

    @property
    def name(self) -> str:
        return self.serving.name

    def quick(self, q: Any, qd: Any, y: Any) -> Found | None:
        return self.serving.quick(q, qd, y)

    def quick_batch(self, Q: Any, Qd: Any, Y: Any, threads: Any, out: Any) -> Found | None:
        return self.serving.quick_batch(Q, Qd, Y, threads, out)

    def solve(self, *state: Floats) -> Solution:
        return self.serving.solve(*state)

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        return self.serving.solve_batch(*states, threads=threads, out=out)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        serving: Backend = self._numpy
        run = serving.ticker(state, values)

        def tick() -> Status:
            nonlocal serving, run
            if serving is self._numpy and self.serving is not serving:
                serving = self.serving
                run = serving.ticker(state, values)
            return run()

        return tick
