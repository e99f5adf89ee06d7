"""What a robot's file has to say from now on: its links where inertias changed, its joints where what acts on them did.

In a tree the links on fixed joints are part of the one that carries them, and so is their inertia; in the file each has
its own. Formats write what is found here in their own ways.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.spatial import Transform, rigid_parts, skew
from nori_dyn.components.base import OnJoints
from nori_dyn.components.friction import Friction
from nori_dyn.descriptions.component_files import moving_joints
from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.model.assembly import FLOATING_JOINT, JointData, lumped
from nori_dyn.model.inertia import LinkData, check_inertia, first_few
from nori_dyn.model.tree import KinematicTree, RobotComponent
from nori_dyn.typing import Floats

UNCHANGED = 1e-13
"""Relative: what loading a file twice, with and without cleaning, may differ by."""

LEAST_SHARE = 1e-9
"""Of the mass of a body: a link of less is left by rounding."""

WIDTH = float(Friction.model_fields["width"].default)
"""The width of Coulomb friction of which a file says nothing [rad/s or m/s]."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A robot's file, corrected.

    Attributes:
        content: its bytes.
        notes: what was done besides, and what it cannot hold, for people.
    """

    content: bytes
    notes: tuple[str, ...]


FileModel: TypeAlias = tuple[Sequence[LinkData], Sequence[JointData]]
"""The links and joints of a file, as a loader reads them."""


def _likeness(tree: KinematicTree, model: FileModel) -> int:
    """Number of inertias and placements of a tree that are as in a file; it may have been loaded with cleaning."""
    links, of_file = model
    joints = {joint.name: joint.X_tree for joint in of_file}
    placed = [(joints[name], X) for name, X in zip(tree.joint_names, tree.X_tree, strict=True) if name in joints]
    n_placed = sum(np.array_equal(X.E, Y.E) and np.array_equal(X.r, Y.r) for X, Y in placed)
    return n_placed + sum(
        np.array_equal(lumped(own), I) for own, I in zip(links_of_bodies(tree, links), tree.I, strict=True)
    )


def likeliest(tree: KinematicTree, models: Sequence[FileModel], path: str | os.PathLike[str]) -> int:
    """Index of that of several models of a file, cleaned or not, which a tree was most likely made of.

    Raises:
        ModelError: the tree is of another file: names a link or a joint that only one of them has.
    """
    _check_same_robot(tree, models[0], path)
    return max(range(len(models)), key=lambda k: _likeness(tree, models[k]))


def _check_same_robot(tree: KinematicTree, model: FileModel, path: str | os.PathLike[str]) -> None:
    children = {joint.name: joint.child for joint in model[1]}
    links = [link.name for link in model[0]]
    for link, joint in zip(tree.names, tree.joint_names, strict=True):
        if link not in links:
            raise UnknownModelNameError("link", link, links, f"{path}; is it the file that the robot was loaded from?")
        if joint not in children and joint != FLOATING_JOINT:
            raise UnknownModelNameError(
                "joint", joint, children, f"{path}; is it the file that the robot was loaded from?"
            )
        if children.get(joint, link) != link:
            raise ModelError(
                f"{path}: its joint '{joint}' carries '{children[joint]}', and that of robot '{tree.name}' carries "
                f"'{link}'. Name the file that the robot was loaded from."
            )
    for link in links:
        if link not in tree.names and link not in tree.frames:
            raise ModelError(
                f"{path}: robot '{tree.name}' does not have its link '{link}'. Name the file that the robot was loaded "
                "from."
            )


def links_of_bodies(tree: KinematicTree, links: Sequence[LinkData]) -> list[list[tuple[LinkData, Transform]]]:
    """The links of each body of a tree, its own first, with their transforms from its frame."""
    bodies: list[list[tuple[LinkData, Transform]]] = [[] for _ in tree.names]
    by_name = {link.name: link for link in links}
    for i, name in enumerate(tree.names):
        bodies[i].append((by_name[name], Transform.identity()))
    for link in links:
        if link.name not in tree.names:
            frame = tree.frame(link.name)
            if not frame.on_world:
                bodies[frame.link].append((link, frame.X))
    return bodies


def corrected_links(
    tree: KinematicTree, links: Sequence[LinkData], holders: Collection[str] | None = None
) -> tuple[dict[str, LinkData], list[str]]:
    """Links of a file that have another inertia in a tree, as they are to be written, and notes.

    A change of a body is put on its own link, which keeps what is fixed to it as it is: I_own = I - sum of X^T I X of
    the others (own derivation, tests/unit/descriptions/test_urdf_corrected.py). Where no distribution of mass has
    that, the link gets all of the inertia, and the others none.

    Args:
        tree: the robot; `likeliest` has found that it is that of the file.
        links: the links of the file.
        holders: those that can hold an inertia there, None for all: the first one of a body is its own link.

    Raises:
        ModelError: a body without mass, or of less than none, that is more than zero: no file can hold that.
    """
    found: dict[str, LinkData] = {}
    notes: list[str] = []
    for I, parts in zip(tree.I, links_of_bodies(tree, links), strict=True):
        if is_same_inertia(I, lumped(parts)):
            continue
        own, X = next((part for part in parts if holders is None or part[0].name in holders), parts[0])
        fixed = [(link, Y) for link, Y in parts if link is not own and (link.mass or link.I_com.any())]
        new = whole = link_of(own.name, I, X)
        if fixed:
            kept = lumped(fixed)
            can_keep = all(can_be(link) for link, _ in fixed) and I[5, 5] - kept[5, 5] > LEAST_SHARE * I[5, 5]
            new = link_of(own.name, I - kept, X) if can_keep else whole
            if not (can_keep and can_be(new)):
                new = whole
                names = [link.name for link, _ in fixed]
                found.update({name: LinkData(name) for name in names})
                notes.append(f"'{own.name}' has the inertia of all that is fixed to it; {listed(names)} no longer any")
        if not can_be(new):
            notes.append(f"no distribution of mass has the inertia of '{own.name}': it is written as it is")
        found[own.name] = new
    return found, notes


def can_be(link: LinkData) -> bool:
    """Whether some distribution of mass has the inertia of a link."""
    return check_inertia(link.name, link.mass, link.com, link.I_com)


def link_of(name: str, I: Floats, X: Transform) -> LinkData:
    """Link that has a spatial inertia (6, 6) in the frame of its body, from which X leads to its own."""
    if not np.isfinite(I).all():
        raise ModelError(f"link '{name}': its inertia holds a value that is not finite.")
    J, h, m = rigid_parts(X.inverse().inertia_to_parent(I))
    if m < 0 or (m == 0 and h.any()):
        raise ModelError(
            f"link '{name}': its mass is {m:g} kg{' and its first moment is not zero' if m == 0 else ''}, which no "
            "file of a robot can hold. Identify it again with physically consistent inertias, or leave its own out."
        )
    com = h / m if m > 0 else np.zeros(3)
    C = skew(com)
    I_com = J + m * C @ C
    return LinkData(name, float(m), com, (I_com + I_com.T) / 2)


def is_same_inertia(I: Floats, other: Floats, tolerance: float = UNCHANGED) -> bool:
    """Whether two spatial inertias (6, 6) are the same up to rounding: mass, first and second moments each."""
    (J, h, m), (J_other, h_other, m_other) = rigid_parts(I), rigid_parts(other)
    size_J = float(np.abs([J, J_other]).max())
    size_m = float(max(abs(m), abs(m_other)))
    size_h = max(float(np.abs([h, h_other]).max()), float(np.sqrt(size_m * size_J)))
    return bool(
        abs(m - m_other) <= tolerance * size_m
        and np.abs(h - h_other).max() <= tolerance * size_h
        and np.abs(J - J_other).max() <= tolerance * size_J
    )


def by_joint(tree: KinematicTree, kind: type[OnJoints]) -> dict[str, dict[str, float]]:
    """Coefficients of each joint on which components of a kind act, added up."""
    found: dict[str, dict[str, float]] = {}
    for component in tree.components:
        if isinstance(component, kind):
            for i in component.joints_on(tree):
                sums = found.setdefault(tree.joint_names[i], dict.fromkeys(kind.COEFFICIENTS, 0.0))
                for name, value in component.coefficients().items():
                    sums[name] += float(value)
    return found


def widths_by_joint(tree: KinematicTree) -> dict[str, tuple[float, ...]]:
    """Widths over which Coulomb friction of each joint that has some changes its sign."""
    found: dict[str, dict[float, None]] = {}
    for component in tree.components:
        if isinstance(component, Friction) and component.coulomb:
            for i in component.joints_on(tree):
                found.setdefault(tree.joint_names[i], {})[component.width] = None
    return {name: tuple(widths) for name, widths in found.items()}


def notes_on_widths(tree: KinematicTree, form: str) -> list[str]:
    """Notes on the widths of Coulomb friction of a tree, for a format without a place for them."""
    widths = {width for found in widths_by_joint(tree).values() for width in found} - {WIDTH}
    if not widths:
        return []
    shown = ", ".join(f"{width:g}" for width in sorted(widths))
    return [
        f"{form} has no place for the width over which Coulomb friction changes its sign: {shown} rad/s or m/s is "
        f"read as {WIDTH:g}"
    ]


def notes_on_curves(tree: KinematicTree, form: str) -> list[str]:
    """Notes on friction of a tree beyond viscous and Coulomb's, for a format without a place for it."""
    found: dict[str, dict[str, None]] = {}
    for friction in (component for component in tree.components if isinstance(component, Friction)):
        curves = {
            "quadratic friction": friction.quadratic != 0,
            "friction that differs by direction": friction.asymmetry != 0,
            "Stribeck's friction": friction.static is not None and friction.static > friction.coulomb,
            "friction by the weight (mu)": friction.mu > 0,
            "presliding": friction.presliding is not None,
            "stiction": friction.stiction is not None,
        }
        for curve in (curve for curve, is_there in curves.items() if is_there):
            found.setdefault(curve, {}).update(dict.fromkeys(tree.joint_names[i] for i in friction.joints_on(tree)))
    return [f"{form} has no place for {curve} of {listed(names)}" for curve, names in found.items()]


def notes_on_joints(
    tree: KinematicTree, form: str, kind: type[OnJoints], places: Collection[str], present: Iterable[str]
) -> list[str]:
    """Notes on components of joints that have no place in a file, and on what it says of others, which stays there.

    Args:
        tree: the robot.
        form: the format, for people.
        kind: the components.
        places: joints for which the file can say it.
        present: joints of which it says something.
    """
    what, wanted, moving = kind.__name__.lower(), by_joint(tree, kind), moving_joints(tree)
    elsewhere = [name for name, sums in wanted.items() if any(sums.values()) and name not in places]
    left = [name for name in present if name in moving and name not in wanted]
    stays = f"the {what} of {listed(left)} is left as the file has it: the robot has none there"
    return [*note_on_no_place(form, what, elsewhere), *([stays] if left else [])]


def notes_on_left_out(tree: KinematicTree, components: Iterable[RobotComponent], form: str) -> list[str]:
    """Notes on components of a tree that a format has no place for, a line for each type."""
    found: dict[str, list[str]] = {}
    for component in components:
        names = found.setdefault(component.type, [])
        if isinstance(component, OnJoints):
            coefficients = component.coefficients()
            if any(coefficients.values()) or not coefficients:
                names += [tree.joint_names[i] for i in component.joints_on(tree)]
        else:
            names.append(component.name)
    return [note for what, names in found.items() for note in note_on_no_place(form, what, names)]


def note_on_no_place(form: str, what: str, names: Sequence[str]) -> list[str]:
    """Note on components that a format has no place for, with their joints or names."""
    return [f"{form} has no place for the {what} of {listed(names)}: a file of components has"] if names else []


def listed(names: Iterable[str]) -> str:
    """Names for people."""
    return first_few([f"'{name}'" for name in names])
