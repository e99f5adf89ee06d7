"""What `print` shows of a tree: its links and joints, limits and masses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nori_dyn.model.joints import Joint
from nori_dyn.tables import Document, Facts, Table, number, numbers, unbroken

if TYPE_CHECKING:
    from nori_dyn.model.tree import KinematicTree

MOST_LINKS = 60
"""Links that are shown, of longer robots, where lines have a width."""


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
    return Document((Facts(facts), table, *(f"note: {note}" for note in tree.notes)))


def _limits(joint: Joint) -> str:
    """Return the limits of a joint's position; "" where there are none."""
    low, high = (f"{x:.2f}" if math.isfinite(x) else "any" for x in joint.room)
    return "" if low == high == "any" else f"{low} to {high}"
