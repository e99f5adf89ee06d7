"""Records over ticks: dataclasses whose arrays have an axis of ticks first, one after the other or in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from nori_dyn.solve.estimate import Estimate
from nori_dyn.typing import Booleans, Indices

T = TypeVar("T")


def joined(parts: Sequence[T]) -> T:
    """Records of ticks that follow each other as one.

    Arrays are concatenated, those of mappings and of records in it as well; what some part lacks, None, all lack; all
    else is that of the first. A record of which some numbers are no sequence of ticks has a method `amended`, which is
    called with the parts.
    """
    found: T = _joined(parts, {})
    return found


def _joined(parts: Sequence[Any], known: dict[tuple[int, ...], Any]) -> Any:
    """The same; `known` holds what has been joined, by the identities of its parts: records may share some."""
    first, key = parts[0], tuple(map(id, parts))
    if len(set(key)) == 1 or any(part is None for part in parts):
        return first if len(set(key)) == 1 else None
    if key not in known:
        if isinstance(first, np.ndarray):
            known[key] = np.concatenate(parts)
        elif isinstance(first, Estimate):
            known[key] = Estimate.joined(parts)
        elif isinstance(first, Mapping):
            known[key] = {name: _joined([part[name] for part in parts], known) for name in first}
        elif is_dataclass(first) and not isinstance(first, type):
            each = {own.name: [getattr(part, own.name) for part in parts] for own in fields(first)}
            found = replace(first, **{name: _joined(values, known) for name, values in each.items()})
            known[key] = found.amended(parts) if hasattr(found, "amended") else found
        else:
            known[key] = first
    return known[key]


def some(record: T, chosen: Indices | Booleans | slice | int) -> T:
    """Some ticks of a record, of which all arrays have an axis of ticks."""
    values = {own.name: getattr(record, own.name) for own in fields(record)}  # type: ignore[arg-type]
    return replace(record, **{name: x[chosen] for name, x in values.items() if isinstance(x, np.ndarray)})  # type: ignore[type-var]
