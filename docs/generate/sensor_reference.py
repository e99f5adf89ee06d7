"""The reference of sensors: their types, from docstrings and schemas, and the sets that are shipped."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import yaml
from pydantic import BaseModel

import nori_dyn as nd
from docs.generate.places import plain
from nori_dyn.descriptions.sensor_configs import shipped_configs
from nori_dyn.errors import SensorConfigError

SAMPLE = nd.autotree(4, branching=2)
"""The robot on which examples of sensors are tried."""


def sensor_types() -> str:
    """Return what all types may say, and of each what it reads, its equation, an example, units and fields."""
    common = nd.measurements.Measurement
    shared = f"## What each may say {{ #common }}\n\n{_fields(common, ('name', 'value', 'sigma', 'range'))}\n"
    types = nd.measurements.measurement_types()
    return "\n".join([shared, *(_sensor(name, kind) for name, kind in sorted(types.items()))])


def _sensor(name: str, kind: type[nd.measurements.Measurement]) -> str:
    text = (inspect.getdoc(kind) or "").partition("Attributes:")[0].strip()
    classes = kind.__mro__[: kind.__mro__.index(nd.measurements.Measurement)]
    own = [key for key in kind.model_fields if any(key in vars(owner).get("__annotations__", ()) for owner in classes)]
    parts = [
        f"## `{name}` {{ #{name} }}",
        _as_code(text),
        f"Units: {units(kind)}." if units(kind) else "",
        _fields(kind, (key for key in own if key != "type" and _meaning(kind, key) != "there is none.")),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _fields(kind: type[nd.measurements.Measurement], keys: Iterable[str]) -> str:
    """Return the table of some fields of a sensor."""
    rows = []
    for key in keys:
        field = kind.model_fields[key]
        rows.append(
            f"| `{field.alias or key}` | {_choices(field.annotation)} | {_default(field)} | {_meaning(kind, key)} |"
        )
    return "\n".join(["| field | may be | default | meaning |", "|---|---|---|---|", *rows])


def example(kind: type[nd.measurements.Measurement]) -> dict[str, Any]:
    """Return the entry of a config that the docstring of a sensor shows.

    Raises:
        ValueError: it shows none, or no equation before it.
    """
    blocks = [textwrap.dedent(block).strip() for block in _blocks(inspect.getdoc(kind) or "")]
    entries = [block for block in blocks if block.startswith("- {type:")]
    if not entries or entries[0] == blocks[0]:
        raise ValueError(f"the docstring of {kind.__name__} lacks its equation, or an example in YAML after it")
    entry: dict[str, Any] = yaml.safe_load(entries[0])[0]
    return entry


def units(kind: type[nd.measurements.Measurement]) -> str:
    """Return the components that a sensor reads by default, with their units, as it says itself of a robot."""
    try:
        (first, *_) = kind.model_validate(example(kind)).on(SAMPLE)
    except SensorConfigError:  # it is for robots of another kind, such as on a floating base
        return ""
    of = zip(first.components, getattr(first, "units", None) or (), strict=False)
    return ", ".join(f"{component or 'each'} [{unit}]" for component, unit in of)


def _blocks(text: str) -> list[str]:
    return re.findall(r"(?:(?<=\n\n)|^)(?: {4}.*(?:\n|$))+", text, flags=re.MULTILINE)


def _as_code(text: str) -> str:
    """Return a docstring with its blocks of equations and YAML in fences."""
    for block in _blocks(text):
        inner = textwrap.dedent(block).strip()
        language = "yaml" if inner.startswith("- {type:") else "text"
        text = text.replace(block.rstrip("\n"), f"```{language}\n{inner}\n```", 1)
    return text


def _meaning(kind: type, key: str) -> str:
    """Return what the docstring of a class, or of one that it derives from, says of a field."""
    said = next((said for owner in kind.__mro__ if (said := _says(owner, key))), MEANINGS.get(key, ""))
    return said.rstrip(".") + "." if said else ""


def _says(owner: type, key: str) -> str:
    """Return what the docstring of a class itself says of an attribute."""
    section = (owner.__doc__ or "").partition("Attributes:")[2].split("\n\n")[0]
    found = re.search(rf"^ +{key}: (.*(?:\n {{9,}}.*)*)", section, flags=re.MULTILINE)
    return " ".join(found[1].split()).replace("None", "null") if found else ""


MEANINGS = {
    "components": "which components it reads, in this order; all where it is left out.",
    "links": "which links, or frames on links.",
}


def _choices(annotation: Any) -> str:
    """Return in words what a field takes."""
    text = repr(annotation).replace("typing.", "")
    if literal := re.search(r"Literal\[([^\]]*)\]", text):
        return ("some of " if "list[" in text.lower() else "") + ", ".join(
            f"`{one}`" for one in re.findall(r"'([^']+)'", literal[1])
        )
    for mark, words in WORDS:
        if mark in text:
            return words
    return "text"


WORDS = (
    ("Half", "`{sigma: ..., range: ..., offset: ...}`"),
    ("Except", "a [selector](../sensors.md)"),
    ("Pose", "a frame by its name, or `{xyz: [...], rpy: [...], relative_to: ...}`"),
    ("dict[", "a number for each name"),
    ("max_length=2", "`[lowest, highest]`, or one pair a component"),
    ("float", "a number, or one a component"),
    ("bool", "`true`, `false`"),
    ("list[", "a list of names"),
)


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    default = field.default
    content = default.model_dump(exclude_defaults=True) if isinstance(default, BaseModel) else default
    return "" if content is None else f"`{yaml.safe_dump(content).splitlines()[0]}`"


def shipped_sets() -> str:
    """Return every shipped set of sensors: the comment at its head, and its lines."""
    return "\n".join(_set_of_sensors(name, path.read_text()) for name, path in shipped_configs().items())


def _set_of_sensors(name: str, text: str) -> str:
    lines = text.splitlines()
    head = [line for line in lines if line.startswith("#")]
    body = "\n".join(line for line in lines if not line.startswith("#"))
    said = " ".join(line.removeprefix("#").strip() for line in head)
    return f"## `{name}` {{ #{name} }}\n\n{plain(said)}\n\n```yaml\n{body.strip()}\n```\n"
