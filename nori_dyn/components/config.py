"""Components as data: the content of a YAML file, or of a plan file, checked against all components that exist."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError, create_model

from nori_dyn.components.base import Component
from nori_dyn.errors import InvalidConfigError, ModelError, UnknownModelNameError
from nori_dyn.measurements.config_errors import ConfigSchema, config_error, place, unknown_type
from nori_dyn.system.plugins import entries_of, types_by_name

ENTRY_POINTS = "nori_dyn.components"
"""The package of our own components, and the entry-point group of others."""


@cache
def component_types() -> dict[str, type[Component]]:
    """Every component by the name that configs use: our own, and those of other packages by entry point.

    Raises:
        ModelError: a package offers something under the entry-point group that is not a component.
    """
    return types_by_name(ENTRY_POINTS, Component, "component", ModelError)


def components_of(data: Any) -> tuple[Component, ...]:
    """The components that a config's content describes.

    Raises:
        InvalidConfigError: content that does not follow the schema, or a type that does not exist.
    """
    model = config_model()
    try:
        config: Any = model.model_validate(data)
    except ValidationError as error:
        if found := unknown_type(error, data):
            unknown, path = UnknownModelNameError("component type", found[0], component_types()), (*found[1], "type")
            raise InvalidConfigError(f"at {place(path)}: {unknown}", path) from None
        schema = ConfigSchema(
            model,
            "a file of components",
            "the component: rotor, friction, loop and so on",
            "It has `components:`, a list.",
        )
        raise config_error(error, data, schema) from None
    return tuple(config.components)


@cache
def config_model() -> type[BaseModel]:
    """The pydantic model of a file of components, over all components that exist."""
    return create_model(
        "ComponentsConfig",
        __config__=ConfigDict(extra="forbid"),
        name=(str, ""),
        source=(str, ""),
        instead=(StrictBool, False),
        components=(entries_of(tuple(component_types().values())), ...),
    )
