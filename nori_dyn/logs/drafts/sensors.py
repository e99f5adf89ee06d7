"""Drafts of the entries of sensors: wrenches, inertial units, and which contacts are closed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

import numpy as np

from nori_dyn.logs.drafts.drafting import IN_NAME, DraftEntry, Drafting, unit_in_name
from nori_dyn.logs.drafts.families import LIMBS, NOT_MEASURED, WORDS, inertial_kind, kind_of, words_of
from nori_dyn.logs.mapping.conversions import STANDARD_GRAVITY
from nori_dyn.measurements.contacts import CONTACT
from nori_dyn.model.joints import FORCE

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

HANDS = {"hand"} | LIMBS["arm"]
"""Words in the names of columns that are of no foot."""


def wrenches(of: Drafting) -> Iterator[DraftEntry]:
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
            note = f"; in {unit}, as the names say" if unit else ""
            entry |= {"unit": unit} if unit else {}
            gives = tuple(f"{group}.{part}" for part in parts)
            yield DraftEntry(entry, why + note, tuple(own[part] for part in parts), gives, is_doubtful)


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


def imus(of: Drafting) -> Iterator[DraftEntry]:
    """Yield what holds angular velocities and proper accelerations of inertial units: vectors, by their names."""
    taken, values, record = of.taken, of.values, of.record
    vectors = [(stem, own) for stem, own in of.vectors() if not set(own) & taken]
    for kind, letter, unit in (("accelerometer", "a", "m/s^2"), ("gyroscope", "w", "rad/s")):
        parts = [f"{letter}{axis}" for axis in AXES]
        groups = [
            group
            for group, own in record.groups.items()
            if not group.startswith(("qd:", "qdd:"))  # of a free joint, without gravity
            and (three := {f"{group}.{part}" for part in parts}) <= set(own)
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


def contacts(of: Drafting) -> Iterator[DraftEntry]:
    """Yield what says which contacts are closed: zeros and ones, or a force; by a contact's name, or one a contact."""
    taken, record = of.taken, of.record
    named = {n: sided(words_of(n)) for n in of.values if n not in taken}
    found = [
        entry
        for contact in record.contacts
        if (called := sided(words_of(contact)) - FEET)
        for entry in _of_contact(
            of, contact, {n: words for n, words in named.items() if called <= words and not HANDS & words}
        )
    ]
    yield from found
    for family in () if found else of.families:
        words, columns = sided(family.words), family.columns
        if len(columns) == len(record.contacts) > 1 and (FEET | CONTACTS) & words and {*columns} <= named.keys():
            for contact, column in zip(record.contacts, columns, strict=True):
                for entry in _of_contact(of, contact, {column: words}):
                    why = f"{entry.why}; as many as there are contacts: check that they are in their order"
                    yield replace(entry, why=why.replace("this contact", "contacts"), is_doubtful=True)


def _of_contact(of: Drafting, contact: str, near: Mapping[str, Set[str]]) -> Iterator[DraftEntry]:
    """Yield what says whether a contact is closed, of columns whose words are near its name."""
    name = f"{CONTACT}{contact}"
    flags = [n for n, words in near.items() if CONTACTS & words and np.isin(of.values[n], (0.0, 1.0)).all()]
    forces = [n for n, words in near.items() if LOADS & words and not NOT_MEASURED & words]
    if len(forces) > 1:  # of a vector, or of a wrench, the force along z
        forces = [n for n in forces if {"z", "fz"} & near[n] and not WORDS["tau"] & near[n]]
    if len(flags) == 1:
        entry: dict[str, object] = {"of": name, "from": flags[0]}
        yield DraftEntry(entry, "named as this contact, zeros and ones", tuple(flags), (name,))
    elif len(forces) == 1:
        force, entry = of.values[forces[0]], {"of": name, "from": forces[0]}
        if -np.nanmin(force) > np.nanmax(force):
            force, entry = -force, entry | {"scale": -1}
        usual = float(np.median(force[force > np.nanmax(force) / 20])) if np.nanmax(force) > 0 else 0.0
        why = "named as the force of this contact: closed above a fifth of what it usually bears, check it"
        yield DraftEntry(entry | {"above": float(f"{usual / 5:.2g}")}, why, tuple(forces), (name,), True)


def sided(words: Iterable[str]) -> set[str]:
    """Words, l and r as left and right."""
    return {next((side for side in ("left", "right") if word in LIMBS[side]), word) for word in words}


def _nearest(name: str, groups: Iterable[str], cutoff: float) -> str | None:
    """The group whose name is most like another; None where none is by a ratio of `difflib`."""
    by_name = {group.lower(): group for group in groups}
    close = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=cutoff)
    return by_name[close[0]] if close else None
