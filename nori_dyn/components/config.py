"""Components as data: the content of a YAML file, or of a plan file, checked against all components that exist."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache, reduce
from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, create_model

from nori_dyn.components.base import Component
from nori_dyn.components.registry import component_types
from nori_dyn.errors import InvalidConfigError, UnknownModelNameError
from nori_dyn.measurements.config_errors import ConfigSchema, config_error


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
    union: Any = reduce(operator.or_, types)
    entry = operator.getitem(Annotated, (union, Field(discriminator="type")))
    entries: Any = GenericAlias(list, (entry,))
    return create_model(
        "ComponentsConfig",
        __config__=ConfigDict(extra="forbid"),
        name=(str, ""),
        source=(str, ""),
        instead=(StrictBool, False),
        components=(entries, ...),
    )
