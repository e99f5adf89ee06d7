"""The names of the backends that can run here, and the choice of `auto`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from nori_dyn.errors import CompilerError, NoriWarning, UnknownBackendError

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
