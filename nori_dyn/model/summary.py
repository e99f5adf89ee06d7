"""What `print` shows of a tree: its links and joints, limits and masses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nori_dyn.model.joints import Joint
from nori_dyn.tables import Document, Facts, Table, listed, number, numbers, unbroken

if TYPE_CHECKING:
    from nori_dyn.model.tree import KinematicTree

MOST_LINKS = 60
"""Links that are shown, of longer robots, where lines have a width."""


MOST_NAMES = 4
"""Joints or frames of a component that are named; others are counted."""

PLACES = ("joint", "joints", "frames", "through")
"""The fields of components that say where they are."""


def tree_document(tree: KinematicTree) -> Document:
    """Return what is shown of a tree."""
    depths: list[int] = []
    for i, parent in enumerate(tree.parents):
        depths.append(1 if tree.is_root(i) else depths[parent] + 1)
    masses = [float(I[5, 5]) for I in tree.I]
    links = "1 moving link" if tree.n_links == 1 else f"{tree.n_links:,} moving links"
    facts = (
        ("robot", unbroken(tree.name)),
        ("links", f"{links}, at most {max(depths)} in a row"),
        ("freedoms", f"{tree.nv:,} (nv); a configuration has {tree.nq:,} numbers (nq)"),
        ("mass", f"{sum(masses):,.3f} kg, of what moves"),
        ("frames", f"{len(tree.frames):,} further ones by name" if tree.frames else ""),
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
    return Document((Facts(facts), *parts, *(f"note: {note}" for note in tree.notes)))


def _components(tree: KinematicTree) -> Iterator[Table]:
    """Yield the table of its components; none for a robot without."""
    rows = []
    for component in tree.components:
        fields = {key: value for key, value in component.to_dict().items() if key not in ("type", "name")}
        on = "; ".join(_said(value) for key, value in fields.items() if key in PLACES)
        numbers_of_it = ", ".join(f"{key} {_said(value)}" for key, value in fields.items() if key not in PLACES)
        rows.append((component.type, unbroken(component.name), on, numbers_of_it))
    if rows:
        columns, notes = ("component", "name", "on", "with"), ("In SI units.",)
        yield Table("Components", columns, tuple(rows), notes, left=(0, 1, 2, 3), most=MOST_LINKS)


def _said(value: Any) -> str:
    """Return a value of a config in a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{unbroken(str(key))} {_said(of)}" for key, of in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return listed([_said(of) for of in value], MOST_NAMES)
    return number(value) if isinstance(value, int | float) else unbroken(str(value))


def _limits(joint: Joint) -> str:
    """Return the limits of a joint's position; "" where there are none."""
    low, high = (f"{x:.2f}" if math.isfinite(x) else "any" for x in joint.room)
    return "" if low == high == "any" else f"{low} to {high}"
