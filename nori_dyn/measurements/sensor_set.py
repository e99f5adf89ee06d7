"""A set of sensors: what a sensor config says, before it meets a robot."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from nori_dyn.errors import NoriError, SensorConfigError, UnknownSensorNameError
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.linear_relation import LinearRelation
from nori_dyn.measurements.registry import measurement_types
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation


class InvalidConfigError(SensorConfigError):
    """A config that does not follow the schema.

    Attributes:
        path: keys and indices that lead to the offending entry.
    """

    def __init__(self, message: str, path: tuple[str | int, ...]) -> None:
        self.path = path
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class SensorSet:
    """A named set of sensors.

    Attributes:
        name: its name.
        measurements: the sensors, in the order of their rows.
        source: where the set stands in the literature.

    Raises:
        InvalidConfigError: two sensors of one name; says which is the second.
    """

    name: str
    measurements: tuple[Measurement, ...]
    source: str = ""

    def __post_init__(self) -> None:
        seen: set[tuple[bool, str]] = set()
        for k, measurement in enumerate(self.measurements):
            key = (isinstance(measurement, LinearRelation), str(measurement.name))  # relations have names of their own
            if measurement.name is not None and key in seen:
                raise InvalidConfigError(
                    f"two sensors are named '{measurement.name}'. Rename or remove one of the two.",
                    ("measurements", k, "name"),
                )
            seen.add(key)

    @staticmethod
    def from_dict(data: Any, of_model: Sequence[Mapping[str, Any]] | None = None) -> SensorSet:
        """Return the set that a config's content describes.

        Args:
            data: the content.
            of_model: entries of the robot's own sensors, for a config with `from_model`: they come first, changed as
                `from_model` says, but for those whose names the config's own measurements have.

        Raises:
            InvalidConfigError: content that does not follow the schema; says where.
            UnknownSensorNameError: a sensor type that does not exist.
        """
        entries = data.get("measurements") if isinstance(data, Mapping) else None
        for entry in entries if isinstance(entries, Sequence) else ():
            named = entry.get("type") if isinstance(entry, Mapping) else None
            if isinstance(named, str) and named not in measurement_types():
                raise UnknownSensorNameError("sensor type", named, measurement_types())
        try:
            config: Any = config_model().model_validate(data)
        except ValidationError as error:
            message, path = _most_specific(error, data)
            place = ".".join(map(str, path)) or "the top level"
            raise InvalidConfigError(f"at {place}: {message}", path) from None
        if not config.from_model:
            return SensorSet(config.name, tuple(config.measurements), config.source)
        if of_model is None:
            raise InvalidConfigError(
                "from_model takes the sensors that a robot's file describes. Name it: load_sensors(path, model=FILE).",
                ("from_model",),
            )
        changes = {} if config.from_model is True else config.from_model
        own = {measurement.name for measurement in config.measurements}
        inherited = [entry for entry in _changed(of_model, changes) if entry["name"] not in own]
        try:
            first = SensorSet.from_dict({"name": config.name, "measurements": inherited})
        except InvalidConfigError as error:  # its path is one in the robot's own sensors
            named = next((inherited[k]["name"] for k in error.path[1:2] if isinstance(k, int)), "")
            raise InvalidConfigError(f"sensor '{named}' of the model, as changed: {error}", ("from_model",)) from None
        return SensorSet(config.name, (*first.measurements, *config.measurements), config.source)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the config, as `from_dict` takes it."""
        measurements = [m.model_dump(by_alias=True, exclude_defaults=False) for m in self.measurements]
        return {"name": self.name, "source": self.source, "measurements": measurements}

    @property
    def fingerprint(self) -> str:
        """A hash of all that the equations depend on beside the tree."""
        return hashlib.sha256(json.dumps(self.to_dict()["measurements"], sort_keys=True).encode()).hexdigest()

    def equations(self, tree: KinematicTree) -> list[Equation]:
        """Return the measurement rows on a robot.

        Raises:
            SensorConfigError: names what the robot does not have, and the sensor that asked for it.
        """
        equations: list[Equation] = []
        for number, measurement in enumerate(self.measurements, start=1):
            try:
                equations.extend(measurement.on(tree))
            except NoriError as error:
                error.args = (f"sensors '{self.name}', measurement {number} ({measurement.type}): {error}",)
                raise
        return equations


def _changed(
    entries: Sequence[Mapping[str, Any]], changes: Mapping[str, Mapping[str, Any] | None]
) -> list[dict[str, Any]]:
    """Return entries with some fields changed, by their type and then by their name; None leaves them out.

    Raises:
        UnknownSensorNameError: there is no such type, and no entry of such a name.
    """
    known = dict.fromkeys([*measurement_types(), *(str(entry["name"]) for entry in entries)])
    for name in changes:
        if name not in known:
            raise UnknownSensorNameError("type or name of a sensor of the model", name, known)
    found = []
    for entry in entries:
        applied = [changes[entry[key]] for key in ("type", "name") if entry[key] in changes]
        if None not in applied:
            found.append(reduce(lambda fields, change: {**fields, **(change or {})}, applied, dict(entry)))
    return found


def _most_specific(error: ValidationError, data: Any) -> tuple[str, tuple[str | int, ...]]:
    """Return the message and the place in the data of the error that says most.

    Where a field may be one of several things, pydantic gives an error for each, and puts names of the
    alternatives in the path: the one that went deepest is the one that was meant.
    """
    structural = ("missing", "extra_forbidden")
    found = max(error.errors(), key=lambda e: (len(e["loc"]), e["type"] not in structural))
    path: list[str | int] = []
    for part in found["loc"]:
        is_item = isinstance(data, Sequence) and isinstance(part, int)
        if is_item or (isinstance(data, Mapping) and part in data):
            data = data[part]
            path.append(part)
    if found["type"] == "missing":
        path.append(found["loc"][-1])
    return found["msg"], tuple(path)


def config_model() -> type[BaseModel]:
    """Return the pydantic model of a sensor config, over all sensors that exist."""
    union: Any = reduce(operator.or_, measurement_types().values())
    entry = operator.getitem(Annotated, (union, Field(discriminator="type")))
    entries: Any = GenericAlias(list, (entry,))
    return create_model(
        "SensorConfig",
        __config__=ConfigDict(extra="forbid"),
        name=(Annotated[str, Field(min_length=1)], ...),
        source=(str, ""),
        from_model=(bool | dict[str, dict[str, Any] | None], False),
        measurements=(entries, ...),
    )
