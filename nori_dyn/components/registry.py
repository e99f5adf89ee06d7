"""The components that exist: those of the modules of this package, and those of other packages by entry point."""

from __future__ import annotations

from functools import cache

from nori_dyn.components.base import Component
from nori_dyn.errors import ModelError
from nori_dyn.system.plugins import types_by_name

ENTRY_POINTS = "nori_dyn.components"
"""The package of our own components, and the entry-point group of others."""


@cache
def component_types() -> dict[str, type[Component]]:
    """Return every component by the name that configs use.

    Raises:
        ModelError: a package offers something under the entry-point group that is not a component.
    """
    return types_by_name(ENTRY_POINTS, Component, "component", ModelError)
