"""Sensor configs: YAML files, one a set of sensors, checked against the schema of all sensors that exist."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from nori_dyn.errors import SensorConfigError, UnknownNameError
from nori_dyn.io.files import read_text
from nori_dyn.measurements.sensor_set import InvalidConfigError, SensorSet, config_model

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = (_PACKAGE / "sensor_configs", _PACKAGE.parent / "sensor_configs")
"""Inside an installed wheel, and beside the package in a checkout."""


class UnknownConfigError(UnknownNameError, SensorConfigError):
    """A set of sensors that is not shipped."""


def shipped_configs() -> dict[str, Path]:
    """Return the sensor configs that come with the package, by name."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def sensors(name: str) -> SensorSet:
    """Return a shipped set of sensors by name, such as "inverse_dynamics".

    Raises:
        UnknownConfigError: there is none of that name.
    """
    shipped = shipped_configs()
    if name not in shipped:
        raise UnknownConfigError("shipped set of sensors", name, shipped)
    return load_sensors(shipped[name])


def load_sensors(path: str | Path) -> SensorSet:
    """Return the set of sensors that a YAML file describes.

    Raises:
        FileFormatError: the file cannot be read.
        SensorConfigError: it is not YAML, or does not follow the schema: names the file and line.
    """
    text = read_text(path)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise SensorConfigError(f"{path}{line}: is not YAML: {problem}.") from None
    try:
        return SensorSet.from_dict(data)
    except InvalidConfigError as error:
        raise SensorConfigError(f"{path}:{_line(text, error.path)}: {error}") from None
    except SensorConfigError as error:
        error.args = (f"{path}: {error}",)
        raise


def schema_json() -> str:
    """Return the JSON schema of sensor configs, for editors."""
    return json.dumps(config_model().model_json_schema(by_alias=True), indent=2)


def _line(text: str, path: Sequence[str | int]) -> int:
    """Return the line (from 1) of the deepest entry along a path that exists in a YAML text."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 0
    for key in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
        elif isinstance(node, yaml.MappingNode):
            match = [(k, v) for k, v in node.value if k.value == str(key)]
            if not match:
                continue  # a missing key, or the name of a variant of the schema
            line = match[0][0].start_mark.line
            node = match[0][1]
            continue
        else:
            break
        line = node.start_mark.line
    return line + 1
