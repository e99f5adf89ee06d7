"""What `print` shows of a set of sensors: an entry of its config a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nori_dyn.measurements.base import Measurement
from nori_dyn.tables import Document, Facts, Table, listed, unbroken

if TYPE_CHECKING:
    from nori_dyn.measurements.sensor_set import SensorSet

MOST_SENSORS = 60
"""Entries that are shown, of longer sets, where lines have a width."""


def sensors_document(sensors: SensorSet) -> Document:
    """Return what is shown of a set of sensors."""
    facts = (
        ("sensors", unbroken(sensors.name)),
        ("source", sensors.source),
        ("contacts", listed(sensors.contact_names)),
        ("dynamics", "" if sensors.dynamics is None else _said(sensors.dynamics.model_dump(exclude_defaults=True))),
    )
    rows = [_row(measurement) for measurement in sensors.measurements]
    for contact in sensors.contacts:
        for case, measurements in (("closed", contact.closed), ("open", contact.open)):
            rows += [_row(each, f", while {unbroken(contact.name)} is {case}") for each in measurements]
    for name, memory in sensors.memory:
        at_first = "" if memory.sigma is None else _said(memory.sigma)
        rows.append((f"memory {unbroken(name)}", _content(memory), at_first))
    columns = ("type", "what it says", "sigma")
    return Document((Facts(facts), Table("Measurements", columns, tuple(rows), left=(0, 1, 2), most=MOST_SENSORS)))


def _row(measurement: Measurement, when: str = "") -> tuple[str, str, str]:
    """Return the type of a sensor, what else its entry says, and its sigma."""
    sigma = "exact" if measurement.sigma is None else _said(measurement.sigma)
    return measurement.type, _content(measurement) + when, sigma


def _content(entry: BaseModel) -> str:
    """Return what an entry says beside its type and sigma."""
    content = entry.model_dump(by_alias=True, exclude_defaults=True, exclude={"type", "sigma"})
    return "; ".join(f"{key}: {_said(value)}" for key, value in content.items())


def _said(value: Any) -> str:
    """Return a value of a config in a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(each)}" for key, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_items(value))
    return unbroken(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _items(values: Sequence[Any]) -> Iterator[str]:
    """Yield the items of a list in a line."""
    for value in values:
        nested = isinstance(value, Sequence) and not isinstance(value, str)
        yield f"[{_said(value)}]" if nested else _said(value)
