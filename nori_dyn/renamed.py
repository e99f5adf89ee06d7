"""Names of the release before, which warn and are gone with the next one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar


class Renamed:
    """A class some of whose attributes had other names.

    Attributes:
        FORMER: the present name by the former one.
    """

    __slots__ = ()
    FORMER: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker would take any name

        def __getattr__(self, name: str) -> Any:
            new = self.FORMER.get(name)
            if new is None:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            warnings.warn(f"{type(self).__name__}.{name} is now {new}", DeprecationWarning, stacklevel=2)
            return getattr(self, new)


def former_names(module: str, former: Mapping[str, Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose classes and functions had other names."""

    def attribute(name: str) -> Any:
        if name not in former:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        new = former[name]
        warnings.warn(f"{module}.{name} is now {module}.{new.__name__}", DeprecationWarning, stacklevel=2)
        return new

    return attribute
