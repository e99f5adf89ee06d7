"""The family of errors: each names the offending thing, what is known about it, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class NoriError(Exception):
    """Base of every error that nori_dyn raises on purpose; the message is meant to be read by a person."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[NoriError], args: tuple[object, ...], attributes: dict[str, object]) -> NoriError:
    """Return an error as it was, in another process: those with attributes take other arguments than their message."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class ModelError(NoriError):
    """A robot model that cannot be used: its topology, its inertias, its joints, or its file."""


class SensorConfigError(NoriError):
    """A set of sensors that cannot be read, or does not fit the robot."""


class UnknownNameError(NoriError):
    """A name that is not among the known ones; suggests the closest.

    Attributes:
        name: the name asked for.
        known: the names that exist.
    """

    def __init__(self, what: str, name: str, known: Iterable[str], where: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        close = difflib.get_close_matches(str(name), self.known, n=1, cutoff=0.5)
        place = f" in {where}" if where else ""
        if close:
            hint = f"Did you mean '{close[0]}'?"
        elif self.known:
            shown = ", ".join(self.known[:12]) + (", ..." if len(self.known) > 12 else "")
            hint = f"Known: {shown}."
        else:
            hint = "There is none."
        super().__init__(f"unknown {what} '{name}'{place}. {hint}")


class UnknownSensorNameError(UnknownNameError, SensorConfigError):
    """A sensor type, link, joint, frame or component that a set of sensors names and that does not exist."""


class UnknownModelNameError(UnknownNameError, ModelError):
    """A link, joint or frame that the robot does not have."""


class SystemShapeError(NoriError):
    """A system with more or fewer rows than unknowns, where an exact (square) one is needed.

    Attributes:
        n_rows: number of scalar equations.
        n_variables: number of scalar unknowns.
    """

    def __init__(self, message: str, n_rows: int, n_variables: int) -> None:
        self.n_rows = n_rows
        self.n_variables = n_variables
        super().__init__(message)


class SingularSystemError(NoriError):
    """A system without a unique solution, at every configuration or at the one given.

    To say what is not determined takes as long as a rank: it is worked out when the message, or `undetermined`, is
    first asked for, so that a control loop that catches the error does not wait for it.

    Attributes:
        undetermined: names of the variables that the null space moves, the largest first.

    Args:
        message: what is singular, and where.
        undetermined: see above.
        explain: returns the rest of the message, and `undetermined`.
    """

    def __init__(
        self,
        message: str,
        undetermined: tuple[str, ...] = (),
        explain: Callable[[], tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        super().__init__(message)
        self._undetermined, self._explain = undetermined, explain

    @property
    def undetermined(self) -> tuple[str, ...]:
        self._worked_out()
        return self._undetermined

    def __str__(self) -> str:
        self._worked_out()
        return super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        self._worked_out()
        return super().__reduce__()

    def _worked_out(self) -> None:
        explain, self._explain = self._explain, None
        if explain is not None:
            rest, self._undetermined = explain()
            self.args = (f"{self.args[0]} {rest}",)


class PlanError(NoriError):
    """A plan that cannot be made, read, or used with this model or version."""


class InputError(NoriError):
    """Values given to a solver that have the wrong shape, the wrong name, or are not finite."""


class FileFormatError(NoriError):
    """A file that cannot be read as what it should be, or an output that cannot be written."""


class MissingExtraError(NoriError):
    """Something asked for needs an optional dependency that is not installed.

    Attributes:
        extra: the name of the extra that brings it.
    """

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs the extra '{extra}': pip install 'nori_dyn[{extra}]'")


class BackendError(NoriError):
    """A backend that does not exist or cannot run here."""


class NoriWarning(UserWarning):
    """A thing worth knowing that does not stop the work."""
