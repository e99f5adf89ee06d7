"""Components as data: the content of a YAML file, or of a plan file, checked against all components that exist."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError, create_model

from nori_dyn.components.base import Component
from nori_dyn.errors import InvalidConfigError, ModelError, UnknownModelNameError
from nori_dyn.measurements.config_errors import ConfigSchema, config_error
from nori_dyn.system.plugins import entries_of, types_by_name

ENTRY_POINTS = "nori_dyn.components"
"""The package of our own components, and the entry-point group of others."""


@cache
def component_types() -> dict[str, type[Component]]:
    """Return every component by the name that configs use: our own, and those of other packages by entry point.

    Raises:
        ModelError: a package offers something under the entry-point group that is not a component.
    """
    return types_by_name(ENTRY_POINTS, Component, "component", ModelError)


def components_of(data: Any) -> tuple[Component, ...]:
    """Return the components that a config's content describes.

    Raises:
        InvalidConfigError: content that does not follow the schema, or a type that does not exist.
    """
    entries = data.get("components") if isinstance(data, Mapping) else None
    for number, entry in enumerate(entries) if isinstance(entries, list) else ():
        named = entry.get("type") if isinstance(entry, Mapping) else None
        if isinstance(named, str) and named not in component_types():
            unknown = UnknownModelNameError("component type", named, component_types())
            raise InvalidConfigError(f"at components[{number}].type: {unknown}", ("components", number, "type"))
    model = config_model()
    try:
        config: Any = model.model_validate(data)
    except ValidationError as error:
        schema = ConfigSchema(
            model,
            "a file of components",
            "the component: rotor, friction, loop and so on",
            "It has `components:`, a list.",
        )
        raise config_error(error, data, schema) from None
    return tuple(config.components)


def config_model() -> type[BaseModel]:
    """Return the pydantic model of a file of components, over all components that exist."""
    return _config_model(tuple(component_types().values()))


@lru_cache(maxsize=4)
def _config_model(types: tuple[type[Component], ...]) -> type[BaseModel]:
    return create_model(
        "ComponentsConfig",
        __config__=ConfigDict(extra="forbid"),
        name=(str, ""),
        source=(str, ""),
        instead=(StrictBool, False),
        components=(entries_of(types), ...),
    )
