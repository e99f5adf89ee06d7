"""The backends that exist, by name; `auto` is the fastest that can run here."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from nori_dyn.errors import CompilerError, NoriWarning, UnknownBackendError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Backend
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.backends.numpy import NumpyBackend
from nori_dyn.program.backends.umfpack import UmfpackBackend

BACKENDS: dict[str, Callable[[EliminationPlan, bool], Backend]] = {
    "native": NativeBackend,
    "numpy": NumpyBackend,
    "umfpack": UmfpackBackend,
}

AUTO = "auto"


def make_backend(name: str, plan: EliminationPlan, check_residual: bool = True) -> Backend:
    """Return a backend by name, for a plan.

    Raises:
        UnknownBackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
        CompilerError: "native" was asked for and there is no C compiler, or it fails; "auto" warns and takes NumPy.
    """
    if name == AUTO:
        try:
            return NativeBackend(plan, check_residual)
        except CompilerError as error:
            warnings.warn(f"{error} The plan runs through NumPy instead, which is slower.", NoriWarning, stacklevel=4)
            return NumpyBackend(plan, check_residual)
    if name not in BACKENDS:
        raise UnknownBackendError("backend", name, (*BACKENDS, AUTO))
    return BACKENDS[name](plan, check_residual)
