"""The backends that exist, by name; `auto` is the fastest that can run here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Backend
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.backends.numpy import NumpyBackend
from nori_dyn.program.backends.umfpack import UmfpackBackend
from nori_dyn.program.kernel.choice import chosen

BACKENDS: dict[str, Callable[[EliminationPlan, bool], Backend]] = {
    backend.name: backend for backend in (NativeBackend, NumpyBackend, UmfpackBackend)
}


def make_backend(name: str, plan: EliminationPlan, check_residual: bool = True) -> Backend:
    """Return a backend by name, for a plan.

    Raises:
        UnknownBackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.
    """
    ways = {name: partial(backend, plan, check_residual) for name, backend in BACKENDS.items()}
    return chosen(name, ways, "The plan")
