"""The backends that exist, by name; `auto` is the fastest that can run here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nori_dyn.errors import InputError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Backend
from nori_dyn.program.backends.meanwhile import Meanwhile
from nori_dyn.program.backends.native import NativeBackend, is_compiled
from nori_dyn.program.backends.numpy import NumpyBackend
from nori_dyn.program.backends.umfpack import UmfpackBackend
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.choice import AUTO, chosen

BACKENDS: dict[str, Callable[[EliminationPlan, bool], Backend]] = {
    backend.name: backend for backend in (NativeBackend, NumpyBackend, UmfpackBackend)
}


def make_backend(name: str, plan: EliminationPlan, check_residual: bool = True, wait: bool = True) -> Backend:
    """Return a backend by name, for a plan.

    Args:
        name: the backend, or "auto".
        plan: the plan.
        check_residual: see `NativeBackend`.
        wait: whether to wait for the compiler; if not, NumPy runs the plan until it is compiled.

    Raises:
        InputError: not to wait makes sense for "auto" only.
        UnknownBackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.
    """
    if not wait:
        if name != AUTO:
            raise InputError(f"wait=False is for backend='auto', which goes from NumPy to native code, not '{name}'.")
        if find_compiler() is not None and not is_compiled(plan, check_residual):
            return Meanwhile(plan, check_residual)
    ways = {name: partial(backend, plan, check_residual) for name, backend in BACKENDS.items()}
    return chosen(name, ways, "The plan")
