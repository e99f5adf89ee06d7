"""Robots and sensors: links, joints, limits and masses; an entry of a sensor config a row; robots known by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from nori_dyn.descriptions.robot_names import DOWNLOADED, EXTRA, Robots
from nori_dyn.estimation.presets import Preset
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Joint
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables import Document, Facts, Table, attributes, listed, number, numbers, unbroken

MOST_LINKS = 60
"""Links that are shown, of longer robots, where lines have a width."""

MOST_SENSORS = 60
"""Entries that are shown, of longer sets, where lines have a width."""

MOST_NAMES = 4
"""Joints or frames of a component that are named; others are counted."""

PLACES = ("joint", "joints", "frames", "through")
"""The fields of components that say where they are."""


def kinematic_tree_document(tree: KinematicTree) -> Document:
    """The document of a robot."""
    masses = [float(I[5, 5]) for I in tree.I]
    links = "1 moving link" if tree.n_links == 1 else f"{tree.n_links:,} moving links"
    facts = (
        ("robot", unbroken(tree.name)),
        ("links", f"{links}, the longest chain {max(tree.depths())}"),
        ("freedoms", f"{tree.nv:,} (nv), {tree.nq:,} configuration coordinates (nq)"),
        ("mass", f"{sum(masses):,.3f} kg in all moving links"),
        ("frames", f"{len(tree.frames):,} besides those of the links" if tree.frames else ""),
        ("gravity", f"{', '.join(number(g) for g in tree.gravity)} m/s^2"),
    )
    rows = tuple(
        (
            i,
            unbroken(tree.names[i]),
            unbroken(tree.joint_names[i]),
            joint.kind,
            "world" if tree.is_root(i) else unbroken(tree.names[tree.parents[i]]),
            _limits(joint),
            mass,
        )
        for (i, joint), mass in zip(enumerate(tree.joints), numbers(masses), strict=True)
    )
    columns = ("#", "link", "joint", "kind", "parent", "limits", "mass")
    notes = ("Limits in rad or m, masses in kg.",)
    table = Table("Links", columns, rows, notes, left=(1, 2, 3, 4), most=MOST_LINKS)
    parts = (table, *_components(tree))
    figures = {
        **tree_figures(tree),
        "mass": sum(masses),
        "links": [
            {
                "name": tree.names[i],
                "joint": tree.joint_names[i],
                "kind": joint.kind,
                "parent": None if tree.is_root(i) else tree.names[tree.parents[i]],
                "mass": masses[i],
            }
            for i, joint in enumerate(tree.joints)
        ],
        "frames": {name: None if frame.on_world else tree.names[frame.link] for name, frame in tree.frames.items()},
        "notes": list(tree.notes),
    }
    return Document((Facts(facts), *parts, *(f"note: {note}" for note in tree.notes)), figures)


def tree_figures(tree: KinematicTree) -> dict[str, Any]:
    """The sizes of a robot, and its components."""
    components = [component.to_dict() for component in tree.components]
    return {"robot": tree.name, **attributes(tree, "n_links", "nq", "nv"), "components": components}


def _components(tree: KinematicTree) -> Iterator[Table]:
    """Yield the table of its components; none for a robot without."""
    rows = []
    for component in tree.components:
        fields = {key: value for key, value in component.to_dict().items() if key not in ("type", "name")}
        on = "; ".join(_in_a_line(value, MOST_NAMES) for key, value in fields.items() if key in PLACES)
        numbers_of_it = ", ".join(
            f"{key} {_in_a_line(value, MOST_NAMES)}" for key, value in fields.items() if key not in PLACES
        )
        rows.append((component.type, unbroken(component.name), on, numbers_of_it))
    if rows:
        columns, notes = ("component", "name", "on", "with"), ("In SI units.",)
        yield Table("Components", columns, tuple(rows), notes, left=(0, 1, 2, 3), most=MOST_LINKS)


def _limits(joint: Joint) -> str:
    """The limits of a joint's position; "" where there are none."""
    low, high = (f"{x:.2f}" if math.isfinite(x) else "any" for x in joint.room)
    return "" if low == high == "any" else f"{low} to {high}"


def sensor_set_document(sensors: SensorSet) -> Document:
    """The document of a set of sensors."""
    dynamics = sensors.dynamics
    facts = (
        ("sensors", unbroken(sensors.name)),
        ("source", sensors.source),
        ("contacts", listed(sensors.contact_names)),
        ("dynamics", _in_a_line(dynamics.model_dump(exclude_defaults=True)) if dynamics else ""),
    )
    rows = [_sensor_row(measurement) for measurement in sensors.measurements]
    for contact in sensors.contacts:
        for case, measurements in (("closed", contact.closed), ("open", contact.open)):
            rows += [_sensor_row(each, f", while {unbroken(contact.name)} is {case}") for each in measurements]
    if sensors.touch is not None:
        rows.append(("touch", _content(sensors.touch), ""))
    for name, memory in sensors.memory:
        at_first = "" if memory.sigma is None else _in_a_line(memory.sigma)
        rows.append((f"memory {unbroken(name)}", _content(memory), at_first))
    columns = ("type", "settings", "sigma")
    table = Table("Measurements", columns, tuple(rows), left=(0, 1, 2), most=MOST_SENSORS)
    return Document((Facts(facts), table), sensors.to_dict())


def _sensor_row(measurement: Measurement, when: str = "") -> tuple[str, str, str]:
    """The type of a sensor, what else its entry says, and its sigma."""
    sigma = "exact" if measurement.sigma is None else _in_a_line(measurement.sigma)
    return measurement.type, _content(measurement) + when, sigma


def _content(entry: BaseModel) -> str:
    """The settings of an entry beside its type and sigma."""
    content = entry.model_dump(by_alias=True, exclude_defaults=True, exclude={"type", "sigma"})
    return "; ".join(f"{key}: {_in_a_line(value)}" for key, value in content.items())


def _in_a_line(value: Any, most: int | None = None) -> str:
    """A value of a config in a line; of lists so many items, all others are counted."""
    if isinstance(value, Mapping):
        return ", ".join(f"{unbroken(str(key))} {_in_a_line(each, most)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        items = [f"[{_in_a_line(one)}]" if isinstance(one, list | tuple) else _in_a_line(one, most) for one in value]
        return listed(items, most)
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else unbroken(str(value))


def preset_document(preset: Preset) -> Document:
    """The document of a robot that is ready to use."""
    data = preset.data
    obtain = f": {data.obtain}" if data.obtain else ""
    facts = (
        ("preset", f"{data.name}: {data.about}"),
        ("model", str(preset.file or f"{listed(data.robot, MOST_NAMES)}, not here yet{obtain}")),
        ("base", data.base),
        ("locked", listed(data.locked, MOST_NAMES)),
        ("sources", data.sources),
    )
    estimates = tuple((name, one.about, listed(one.outputs, MOST_NAMES)) for name, one in data.estimates.items())
    logs = tuple((name, one.about) for name, one in data.logs.items())
    return Document(
        (
            Facts(facts),
            Table("Estimates", ("name", "what it is", "outputs"), estimates, left=(0, 1, 2)),
            *((Table("Logs that are known", ("name", "what they are"), logs, left=(0, 1)),) if logs else ()),
        ),
        data.model_dump(mode="json", by_alias=True),
    )


def robots_document(known: Robots) -> Document:
    """The document of the robots that are known by name."""
    rows = tuple((", ".join(map(unbroken, (one.name, *one.aliases))), one.package, one.about) for one in known.robots)
    notes = []
    if any(one.path is None for one in known.robots):
        notes.append(f"Those of {DOWNLOADED} are downloaded on first use.")
    if known.absent:
        notes.append(f"Not installed, and not listed: {', '.join(known.absent)} ({EXTRA}).")
    title = f"{len(rows):,} robots known by name"
    figures = {
        "robots": [
            {**attributes(one, "name", "aliases", "package", "about"), "file": one.path and str(one.path)}
            for one in known.robots
        ],
        "not_installed": list(known.absent),
    }
    return Document((Table(title, ("name", "package", "what"), rows, tuple(notes), left=(0, 1, 2)),), figures)
