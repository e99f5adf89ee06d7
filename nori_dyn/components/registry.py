"""The components that exist: the built-in ones, and those of other packages by entry point."""

from __future__ import annotations

from functools import cache

from nori_dyn.components.base import Component
from nori_dyn.components.coupling import Coupling
from nori_dyn.components.friction import Friction
from nori_dyn.components.loop import Loop
from nori_dyn.components.rotor import Rotor
from nori_dyn.components.spring import Spring
from nori_dyn.components.tendon import Tendon
from nori_dyn.errors import ModelError
from nori_dyn.system.plugins import types_by_name

ENTRY_POINTS = "nori_dyn.components"

BUILT_IN: dict[str, type[Component]] = {
    "coupling": Coupling,
    "friction": Friction,
    "loop": Loop,
    "rotor": Rotor,
    "spring": Spring,
    "tendon": Tendon,
}


@cache
def component_types() -> dict[str, type[Component]]:
    """Return every component by the name that configs use.

    Raises:
        ModelError: a package offers something under the entry-point group that is not a component.
    """
    return types_by_name(ENTRY_POINTS, BUILT_IN, Component, "component", ModelError)
