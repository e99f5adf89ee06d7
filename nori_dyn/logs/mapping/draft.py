"""Drafts of mappings: likely meanings of the columns of a log, by names and magnitudes, with reasons."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

import numpy as np

from nori_dyn.logs.formats.source import LogSource, Stream, abbreviated, goes_on
from nori_dyn.logs.mapping.conversions import STANDARD_GRAVITY, factor
from nori_dyn.logs.mapping.drafting import IN_NAME, DraftEntry, Drafting, unit_in_name
from nori_dyn.logs.mapping.families import (
    NOT_MEASURED,
    UNIT_IN_NAME,
    Family,
    families_of,
    inertial_kind,
    kind_of,
    words_of,
)
from nori_dyn.logs.mapping.free_joints import poses, split
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.mapping.unnamed import TIME, recognised
from nori_dyn.measurements.contacts import CONTACT
from nori_dyn.model.joints import FORCE
from nori_dyn.typing import Floats

LOOKED_AT = 20_000
"""Samples that are looked at for units, at most."""

AXES = ("x", "y", "z")

WRENCH_NAME = re.compile(
    r"(.*?)(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))((?i:force|torque|moment|f|t|m))[._ ]?([xyzXYZ])"
    r"(?:\s*[\[(][^\])]*[\])])?"
)
"""Columns of a wrench by component: what it is called, force or moment, the axis."""

CONTACTS = {"contact", "contacts", "stance", "support", "standing", "closed"}
"""Words in the names of columns that say whether a contact is closed."""

LOADS = {"force", "forces", "load", "fz", "pressure", "grf"}
"""Words in the names of columns of what a contact bears."""

FEET = {"foot", "feet", "sole", "leg"}
"""Words in the names of contacts that logs may leave out."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A likely mapping, and the columns without a guess.

    Attributes:
        robot: the robot that it is for.
        guesses: its entries.
        streams: what is to be known of streams, by their names, and why.
        rate: how many samples a second [Hz] a log without times has: a number of its file says it, or positions and
            velocities; or None.
        lacking: what the sensors need and no column was found for.
        still: the joints of one number that no column is of, where columns are of others.
        left_over: the columns that were not taken.
        ranges: between which numbers they are, of logs whose columns have no names.
    """

    robot: str
    guesses: tuple[DraftEntry, ...]
    streams: Mapping[str, tuple[Mapping[str, object], str]]
    rate: float | None
    lacking: tuple[str, ...]
    still: tuple[str, ...]
    left_over: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]

    @property
    def lacks_velocities(self) -> bool:
        """Whether there is a velocity that no column was found for."""
        return any(re.match("qd[^d]", name) for name in self.lacking)

    def holds(self, kind: str) -> bool:
        """Whether columns were found for what begins so: tau, torques of joints."""
        return any(str(guess.entry["of"]).startswith(kind) for guess in self.guesses)

    def data(self) -> dict[str, object]:
        """The mapping as data."""
        said: dict[str, object] = {"robot": self.robot}
        if self.rate is not None:
            said["clock"] = {"rate": self.rate}
        if self.streams:
            said["streams"] = {name: dict(settings) for name, (settings, _) in self.streams.items()}
        return said | {"columns": [dict(guess.entry) for guess in self.guesses]}


def draft(
    source: LogSource,
    record: SampleRecord,
    order: Sequence[str] = (),
    called: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Draft:
    """Draft a mapping for a log and a robot with sensors.

    Args:
        source: the log; some of its samples are read.
        record: the numbers of a sample.
        order: the joints in the order in which the robot's messages number them, where that is known.
        called: what joints are called besides.

    Raises:
        FileFormatError: the log is damaged.
    """
    names = [name for stream in source.streams for name in stream.columns if name != stream.clock]
    joints = [n for n, j in zip(record.tree.joint_names, record.tree.joints, strict=True) if j.nq == j.nv == 1]
    values = _sample(source)
    families = [*split(recognised(families_of(names, joints, order, called), record.tree, values), record.tree)]
    times_of = {source.columns[f.columns[0]].name: f for f in families if f.words == (TIME,)}
    clocks = {s.name: found for s in source.streams if (found := _clock(s, values, times_of.get(s.name))) is not None}
    times = {column: t for s in source.streams for t in _times(s, clocks, values) for column in s.columns}
    of = Drafting(names, joints, record, families, values, times)
    for kind in ("q", "qd", "qdd", "tau", "current"):
        of.guesses.extend(of.joint_entries(kind))
    of.guesses.extend([*_wrenches(of), *_imus(of), *_contacts(of)])
    rate = of.rate(source.rate)
    if not record.estimated:
        of.guesses[:0] = poses(of, rate)
    given = of.given
    taken = of.taken | {settings.get("clock") for settings, _ in clocks.values()}
    moving = {joint for joint in joints if any(f"{kind}:{joint}" in given for kind in ("q", "qd", "tau"))}
    return Draft(
        robot=record.tree.name,
        guesses=tuple(of.guesses),
        streams=clocks,
        rate=rate,
        lacking=abbreviated(
            name
            for k, name in enumerate(record.names)
            if name not in given and k not in record.estimated and name not in record.deflections
        ),
        still=tuple(joint for joint in joints if joint not in moving) if any(n.startswith("q:") for n in given) else (),
        left_over=(left_over := tuple(name for name in names if name not in taken)),
        ranges={
            name: (float(np.nanmin(values[name])), float(np.nanmax(values[name])))
            for name in left_over
            if name.startswith("column[") and name in values and np.isfinite(values[name]).any()
        },
    )


def _sample(source: LogSource) -> dict[str, Floats]:
    """The first samples of all columns."""
    found: dict[str, Floats] = {}
    for stream in source.streams:
        if stream.columns:
            for block in islice(source.read({stream.name: stream.columns}), 1):
                found |= {n: v[:LOOKED_AT] for n, v in zip(stream.columns, block.values, strict=True)}
    return found


def _times(
    stream: Stream, clocks: Mapping[str, tuple[Mapping[str, object], str]], values: Mapping[str, Floats]
) -> Iterator[Floats]:
    """Yield the times of a stream [s], where they are known."""
    settings = clocks.get(stream.name, ({}, ""))[0]
    clock = str(settings.get("clock") or stream.clock)
    size = factor(str(settings.get("unit") or stream.units.get(clock, "s")), "s")
    if clock in values and size is not None:
        yield size * values[clock]


def _clock(
    stream: Stream, values: Mapping[str, Floats], unnamed: Family | None
) -> tuple[Mapping[str, object], str] | None:
    """Settings of the clock of a stream, and the reason; None if it needs none, or if there is none."""
    clock = stream.clock
    settings: dict[str, object] = {}
    why = ""
    if clock is None:
        why = "named as times are"
        named = (c for c in stream.columns if {"time", "duration", "stamp"} & set(words_of(c)))
        clock = next((c for c in named if c not in values or goes_on(values[c])), None)
        if clock is None and unnamed is not None:
            clock, why = unnamed.columns[0], unnamed.why
        if clock is None:
            return None
        settings["clock"] = clock
    match = UNIT_IN_NAME.search(clock)
    if match and factor(match[1], "s") is not None:
        settings["unit"] = match[1]
    elif clock in values and stream.units.get(clock, "s") == "s" and len(values[clock]) > 2:
        step = float(np.nanmedian(np.diff(values[clock])))
        unit = next((u for low, u in ((1e5, "ns"), (1e2, "us"), (0.5, "ms")) if step >= low), None)
        if unit is not None:
            settings["unit"], why = unit, f"{why}{'; ' if why else ''}a step is {step:g}: {unit}"
    return (settings, why) if settings else None


# ------------------------------------------------------------------------------------------------ sensors


def _wrenches(of: Drafting) -> Iterator[DraftEntry]:
    """Yield what holds wrenches: columns that are named so, and arrays of six numbers."""
    sensors = {
        group: [name.rpartition(".")[2] for name in parts]
        for group, parts in of.record.groups.items()
        if len(parts) >= 3 and {name.rpartition(".")[2] for name in parts} <= set(FORCE)
    }
    taken, found = of.taken, dict(_named_wrenches(of))
    for family in of.families:
        if len(family.columns) == 6 and not set(family.columns) & taken and kind_of(family) is None:
            components = [f"{letter}{axis}" for letter in "fm" for axis in AXES]
            by_component = dict(zip(components, family.columns, strict=True))
            found[family.pattern] = by_component, "six numbers: forces are taken to come first, check it", True
    left = dict(sensors)
    for stem, (columns, why, is_doubtful) in found.items():
        group = _nearest(stem, left, 0.4)
        if group is None and len(found) == len(sensors) == 1:
            group = next(iter(left), None)
        if group is None:
            continue
        wanted, why = left.pop(group), f"{why}, and of the likeliest name"
        own = {part: column for part, column in columns.items() if part in wanted}
        units = {part: unit_in_name(column, "N m" if part[0] == "m" else "N") or "" for part, column in own.items()}
        for unit in dict.fromkeys(units.values()):
            parts = [part for part in own if units[part] == unit]
            entry: dict[str, object] = {"of": group, "from": [own[part] for part in parts], "components": parts}
            told = f"; in {unit}, as the names say" if unit else ""
            entry |= {"unit": unit} if unit else {}
            gives = tuple(f"{group}.{part}" for part in parts)
            yield DraftEntry(entry, why + told, tuple(own[part] for part in parts), gives, is_doubtful)


def _named_wrenches(of: Drafting) -> Iterator[tuple[str, tuple[dict[str, str], str, bool]]]:
    """Yield columns named force.x to torque.z, Fx to Tz, f_x to m_z, by their stems: by component, why, and any doubt.

    Those whose names are spelled out, as in messages, leave none.
    """
    found: dict[tuple[str, bool], dict[str, str]] = {}
    taken = of.taken
    for name in of.names:
        match = WRENCH_NAME.fullmatch(name)
        if match and name not in taken and not NOT_MEASURED & set(words_of(match[1])):
            part = ("f" if match[2][0] in "fF" else "m") + match[3].lower()
            found.setdefault((match[1].rstrip("._/ "), len(match[2]) > 1), {})[part] = name
    for (stem, is_spelled), parts in found.items():
        if set(FORCE[3:]) <= set(parts):
            own = {part: parts[part] for part in FORCE if part in parts}
            why = "a message of a wrench" if is_spelled else "named as forces and moments: check their sign"
            yield stem, (own, why, not is_spelled)


def _imus(of: Drafting) -> Iterator[DraftEntry]:
    """Yield what holds angular velocities and proper accelerations of inertial units: vectors, by their names."""
    taken, values, record = of.taken, of.values, of.record
    vectors = [(stem, own) for stem, own in of.vectors() if not set(own) & taken]
    for kind, letter, unit in (("accelerometer", "a", "m/s^2"), ("gyroscope", "w", "rad/s")):
        parts = [f"{letter}{axis}" for axis in AXES]
        groups = [
            group
            for group, own in record.groups.items()
            if (three := {f"{group}.{part}" for part in parts}) <= set(own)
            and all(record.units[record.places[name]] == unit for name in three)
        ]
        for stem, columns in vectors:
            if inertial_kind(words_of(stem)) != kind:
                continue
            owner = stem.rstrip(" .").rpartition(".")[0] or stem  # of a message, without its field
            group = _nearest(owner, groups, 0.3) or (groups[0] if len(groups) == 1 else None)
            if group is None:
                continue
            groups.remove(group)
            entry: dict[str, object] = {"of": group, "from": list(columns), "components": parts}
            why = f"named as {'an' if letter == 'a' else 'a'} {kind}"
            if named := unit_in_name(columns[0], unit):
                entry["unit"], why = named, f"{why}; {IN_NAME}"
            elif letter == "a" and all(column in values for column in columns):
                size = float(np.nanmedian(np.linalg.norm([values[column] for column in columns], axis=0)))
                if 0.7 < size < 1.4:
                    entry["unit"] = "g"
                    why += f"; its size is {size:.2f} and not {STANDARD_GRAVITY:.2f}: in g"
            gives = tuple(f"{group}.{part}" for part in parts)
            yield DraftEntry(entry, why, columns, gives, words_of(stem)[-1] == "g")


def _contacts(of: Drafting) -> Iterator[DraftEntry]:
    """Yield what says which contacts are closed, by the contact's name: zeros and ones, or a force."""
    taken = of.taken
    for contact in of.record.contacts:
        name, called = f"{CONTACT}{contact}", {*words_of(contact)} - FEET
        near = {n: {*words_of(n)} for n in of.values if n not in taken and called and called <= {*words_of(n)}}
        flags = [n for n, words in near.items() if CONTACTS & words and np.isin(of.values[n], (0.0, 1.0)).all()]
        forces = [n for n, words in near.items() if LOADS & words and not NOT_MEASURED & words]
        if len(flags) == 1:
            entry: dict[str, object] = {"of": name, "from": flags[0]}
            yield DraftEntry(entry, "named as this contact, zeros and ones", tuple(flags), (name,))
        elif len(forces) == 1:
            force = of.values[forces[0]]
            usual = float(np.median(force[force > np.nanmax(force) / 20])) if np.nanmax(force) > 0 else 0.0
            entry = {"of": name, "from": forces[0], "above": float(f"{usual / 5:.2g}")}
            why = "named as the force of this contact: closed above a fifth of what it usually bears, check it"
            yield DraftEntry(entry, why, tuple(forces), (name,), True)


def _nearest(name: str, groups: Iterable[str], cutoff: float) -> str | None:
    """The group whose name is most like another; None where none is by a ratio of `difflib`."""
    by_name = {group.lower(): group for group in groups}
    close = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=cutoff)
    return by_name[close[0]] if close else None
