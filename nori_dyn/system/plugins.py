"""Types of sensors and of components from other packages, by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, TypeVar

from nori_dyn.errors import NoriError

Plugin = TypeVar("Plugin")


def types_by_name(
    group: str, built_in: Mapping[str, type[Plugin]], base: type[Any], what: str, error: type[NoriError]
) -> dict[str, type[Plugin]]:
    """Return the built-in types, and those of other packages, by the names that configs use.

    Args:
        group: the entry-point group.
        built_in: our own types.
        base: the base class of every type.
        what: such a type in words: "sensor".
        error: the exception to raise.

    Raises:
        NoriError: a package offers an object that cannot be loaded, is no such type, or has the name of another one.
    """
    types = dict(built_in)
    for entry in entry_points(group=group):
        try:
            offered: Any = entry.load()
        except Exception as cause:
            raise error(
                f"{what} '{entry.name}' of another package cannot be loaded from {entry.value}: {cause}"
            ) from cause
        if not (isinstance(offered, type) and issubclass(offered, base)):
            raise error(f"{what} '{entry.name}' ({entry.value}) is not a subclass of {base.__name__}.")
        if entry.name in types:
            raise error(f"{what} '{entry.name}' ({entry.value}) has the name of another {what}.")
        types[entry.name] = offered
    return types
