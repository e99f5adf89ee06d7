"""JSON: records of samples, or an array a quantity; also JSON Lines, a record a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.logs.formats.arrays import ArraySeries, ArraySource
from nori_dyn.logs.formats.source import refusing
from nori_dyn.typing import Floats


class JsonSource(ArraySource):
    """The arrays of numbers in JSON, by the names of what they are in: `arm.position[0]`; null is nan."""

    def __init__(self, path: Path) -> None:
        with refusing(f"{path}: is damaged, or not JSON"):
            content = _parsed(path.read_text(encoding="utf-8-sig"))
        found = [ArraySeries.of(name or "column", each, name.rpartition(".")[0]) for name, each in _arrays(content)]
        super().__init__(path, found)


def _parsed(text: str) -> Any:
    """What a text says: one value, or one a line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _arrays(value: Any, name: str = "") -> Iterator[tuple[str, Floats]]:
    """Yield the arrays of numbers in a value, by their dotted paths: of records each field as an array.

    So are those of lists of records a sample, one a motor.
    """
    if _are(dict, value):
        fields = dict.fromkeys(field for each in value for field in each)
        value = {field: [each.get(field) for each in value] for field in fields}
    elif _are(list, value) and all(_are(dict, row) for row in value):
        fields = dict.fromkeys(field for row in value for each in row for field in each)
        value = {field: [[each.get(field) for each in row] for row in value] for field in fields}
    if isinstance(value, dict):
        for field, each in value.items():
            yield from _arrays(each, f"{name}.{field}" if name else str(field))
    elif isinstance(value, list):
        try:
            yield name, np.array(value, dtype=float)
        except (ValueError, TypeError):  # text, or rows of several lengths
            return
    elif isinstance(value, int | float):
        yield name, np.array(value, dtype=float)


def _are(kind: type, value: Any) -> bool:
    """Whether a value is a list, not empty, of values of a kind."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)
