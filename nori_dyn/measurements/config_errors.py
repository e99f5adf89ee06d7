"""Errors of a config for people: which field, which value, what is expected, and which fields there are."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from nori_dyn.errors import InvalidConfigError

Path = tuple[str | int, ...]
Finding = tuple[Mapping[str, Any], Path]
"""An error of pydantic's, and where in the content it is."""

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's types of an error on a field that a model has not, and a dataclass."""

STRUCTURAL = ("missing", *UNKNOWN)

OWNERS = {"Except": "a selector", "Match": "a selector", "At": "a selector", "Pose": "a pose"}
"""What people call parts of the schema."""

EXPECTED = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "a number greater than {gt:g}",
    "greater_than_equal": "a number greater than or equal to {ge:g}",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "literal_error": "{expected}",
    "string_type": "text",
    "string_too_short": "text of at least {min_length} characters",
    "too_long": "a list of at most {max_length} items",
    "too_short": "at least {min_length} items",
}
"""The expected value, by pydantic's type of error; pydantic's words where there is none here."""


@dataclass(frozen=True, slots=True)
class ConfigSchema:
    """The schema of a config, and the words for its errors.

    Attributes:
        model: the schema.
        what: such a content in words: "a set of sensors".
        entry: the meaning of `type` in an entry.
        beginning: how such a content begins.
    """

    model: type[BaseModel]
    what: str
    entry: str = "the sensor: joint_torque, accelerometer and so on"
    beginning: str = "It begins with `name: mine`, and then has `measurements:`, a list."


def config_error(error: ValidationError, data: Any, schema: ConfigSchema) -> InvalidConfigError:
    """The error of a config that does not follow its schema.

    Where a field may be one of several things, pydantic gives an error for each: the one that went deepest is the one
    that was meant; of several at one place, all allowed values are listed.

    Args:
        error: pydantic's error.
        data: the content.
        schema: its schema.
    """
    findings = [(each, _path_in(data, each)) for each in error.errors()]
    first, path = max(findings, key=lambda found: _depth(found[0]))
    if first["type"] in STRUCTURAL:
        message, path = _of_fields(first, path, findings, schema)
    else:
        message = _of_value(path, data, [each for each, there in findings if there == path], schema)
    return InvalidConfigError(f"at {place(path)}: {message}", path)


def unknown_type(error: ValidationError, data: Any) -> tuple[str, Path] | None:
    """The `type` of the first entry that has one which does not exist, and where the entry is."""
    found = [each for each in error.errors() if each["type"] == "union_tag_invalid"]
    named = ((each["input"]["type"], _path_in(data, each)) for each in found)
    return next(((name, path) for name, path in named if isinstance(name, str)), None)


def place(path: Path) -> str:
    """Where something is for people: "measurements[2].sigma"."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the top level"


def _depth(error: Mapping[str, Any]) -> tuple[int, bool]:
    """How specific an error is: a value of the wrong length is meant to be a list, whatever its items could be."""
    is_list = error["type"] in ("too_short", "too_long")
    return len(error["loc"]) + 2 * is_list, error["type"] not in STRUCTURAL


def _path_in(data: Any, error: Mapping[str, Any]) -> Path:
    """Where in the content an error is, without the names of alternatives that pydantic puts in between."""
    path: list[str | int] = []
    for part in error["loc"]:
        is_item = isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int)
        if is_item or (isinstance(data, Mapping) and part in data):
            data = data[part]
            path.append(part)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _of_fields(
    first: Mapping[str, Any], path: Path, findings: Sequence[Finding], schema: ConfigSchema
) -> tuple[str, Path]:
    """The message on a field that is missing or unknown, and its path."""
    beside = [(each, there) for each, there in findings if each["type"] in STRUCTURAL and there[:-1] == path[:-1]]
    parts = [part for each, _ in beside for part in _parts(schema.model, each["loc"][:-1])]
    fields = list(dict.fromkeys(name for part in parts for name in part.get("properties", ())))
    extra = next((found for found in beside if found[0]["type"] in UNKNOWN), None)
    variant = next((str(part) for part in first["loc"][-2:-1] if part not in path), None)
    owner = OWNERS.get(variant, variant) if variant else place(path[:-1]) if path[:-1] else schema.what
    listed = f"Its fields are {', '.join(fields)}."
    if extra is None:
        return f"{owner} lacks '{path[-1]}'{_as_in(parts, str(path[-1]))}. {listed}", path
    name = str(extra[1][-1])
    close = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
    if first["type"] == "missing" and not close:
        return f"{owner} lacks '{path[-1]}', and '{name}' is no field of it. {listed}", path
    hint = f"Did you mean '{close[0]}'? " if close else ""
    return f"'{name}' is no field of {owner}. {hint}{listed}", extra[1]


def _of_value(path: Path, data: Any, errors: Sequence[Mapping[str, Any]], schema: ConfigSchema) -> str:
    """The message on a value that the schema does not allow."""
    for error in errors:
        if error["loc"][-1:] == ("[key]",):
            return "it cannot be called so: names are of letters, digits, '_', '-' and '.'."
        if error["type"] == "value_error":
            return f"{error['ctx']['error']}."
        if error["type"] == "union_tag_not_found":
            return f"it lacks 'type', which names {schema.entry}."
    given = data
    for part in path:
        given = given[part]
    expected = list(dict.fromkeys(_expected(error) for error in errors))
    hint = f" Write [{given}]." if isinstance(given, str) and expected == ["a list"] else ""
    if not path:
        hint = f" {schema.beginning}"
    return f"it is {_in_few_words(given)}, expected {' or '.join(expected)}.{hint}"


def _in_few_words(given: Any) -> str:
    """A value as given, shortened."""
    try:
        return "nothing" if given is None else reprlib.repr(given)
    except ValueError:  # more digits than Python writes
        return "a number of thousands of digits"


def _expected(error: Mapping[str, Any]) -> str:
    """The expected value, in words."""
    context = error.get("ctx", {})
    if error["type"] in EXPECTED:
        return EXPECTED[error["type"]].format(**context)
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return {"Except": "{except: names}", "Match": "{match: pattern}", "At": "{at: places}"}.get(
            context.get("class_name"), "fields by name"
        )
    message = str(error["msg"])
    return message.removeprefix("Input should be ") if message.startswith("Input should be ") else message


def _as_in(parts: Iterable[Mapping[str, Any]], field: str) -> str:
    """An entry of the kind that has a field, from what documents it; "" where none is."""
    lines = [line.strip() for part in parts for line in part.get("description", "").splitlines()]
    entry = next((line for line in lines if line.startswith("- {type: ") and f"{field}: " in line), "")
    return entry and f", as in {entry.removeprefix('- ')}"


def _parts(model: type[BaseModel], loc: Sequence[str | int]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema that pydantic names so."""
    schema = model.model_json_schema(by_alias=True)
    nodes: list[Mapping[str, Any]] = [schema]
    for part in loc:
        nodes = [after for node in nodes for after in _below(schema, node, part)] or nodes
    return (_resolved(schema, node) for node in nodes)


def _below(schema: Mapping[str, Any], node: Mapping[str, Any], part: str | int) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema that a key, an index or the name of an alternative leads to."""
    node = _resolved(schema, node)
    if part in node.get("properties", {}):
        yield node["properties"][part]
    if isinstance(part, str):
        of_any_name = node.get("additionalProperties"), *node.get("patternProperties", {}).values()
        yield from (each for each in of_any_name if isinstance(each, dict))
    if "items" in node and isinstance(part, int):
        yield node["items"]
    reference = node.get("discriminator", {}).get("mapping", {}).get(part)
    if reference is not None:
        yield {"$ref": reference}
    for alternative in node.get("anyOf", ()):
        resolved = _resolved(schema, alternative)
        if resolved.get("title") == part:
            yield resolved
        elif isinstance(part, int) or part in resolved.get("properties", {}):
            yield from _below(schema, resolved, part)


def _resolved(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that a node refers to; of one that may be left out, what it is otherwise, as pydantic names no other."""
    kinds = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
    if len(kinds) == 1:
        node = kinds[0]
    reference = node.get("$ref")
    return schema["$defs"][reference.rpartition("/")[2]] if reference else node
