"""Types of sensors and of components: those of our own modules, and those of other packages by entry point."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import GenericAlias
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from nori_dyn.errors import NoriError


class ConfigPart(BaseModel):
    """A part of a config: it has no fields but its own, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def types_by_name(group: str, base: type[Any], what: str, error: type[NoriError]) -> dict[str, type[Any]]:
    """The built-in types, and those of other packages, by the names that configs use.

    Args:
        group: the package of our own types, and the entry-point group of others.
        base: the base class of every type.
        what: such a type in words: "sensor".
        error: the exception to raise.

    Raises:
        NoriError: a package offers an object that cannot be loaded, is no such type, or has the name of another one.
    """
    types = types_in(group, base)
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


def entries_of(types: Sequence[type[Any]]) -> Any:
    """The type of a list of entries of a config, told apart by their field `type`."""
    union: Any = reduce(operator.or_, types)
    entry = operator.getitem(Annotated, (union, Field(discriminator="type")))
    return GenericAlias(list, (entry,))


def types_in(package: str, base: type[Any]) -> dict[str, type[Any]]:
    """The types that the modules of a package define, by the word that their field `type` takes."""
    modules = [import_module(f"{package}.{each.name}") for each in iter_modules(import_module(package).__path__)]
    classes: Iterator[Any] = (part for module in modules for part in vars(module).values() if isinstance(part, type))
    types = {kind: get_args(kind.model_fields["type"].annotation) for kind in classes if issubclass(kind, base)}
    return dict(sorted((name, kind) for kind, names in types.items() for name in names))
