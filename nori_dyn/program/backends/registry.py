"""The backends that exist, by name; `auto` is the fastest that can run here."""

from __future__ import annotations

from collections.abc import Callable

from nori_dyn.errors import BackendError, UnknownNameError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Backend
from nori_dyn.program.backends.numpy import NumpyBackend
from nori_dyn.program.backends.umfpack import UmfpackBackend

BACKENDS: dict[str, Callable[[EliminationPlan], Backend]] = {
    "numpy": NumpyBackend,
    "umfpack": UmfpackBackend,
}

AUTO = "auto"


class UnknownBackendError(UnknownNameError, BackendError):
    """A backend that does not exist."""


def make_backend(name: str, plan: EliminationPlan) -> Backend:
    """Return a backend by name, for a plan.

    Raises:
        UnknownBackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
    """
    if name == AUTO:
        name = "numpy"
    if name not in BACKENDS:
        raise UnknownBackendError("backend", name, (*BACKENDS, AUTO))
    return BACKENDS[name](plan)
