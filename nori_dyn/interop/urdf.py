"""A tree as the text of a URDF, so that another program loads the very same robot, fixed links lumped as here."""

from __future__ import annotations

import math

import numpy as np
from lxml import etree

from nori_dyn.errors import ModelError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

ROOT = "base"
"""Name of the root link of a robot on a fixed base."""

KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}


def link_name(name: str) -> str:
    """Name of a link there: some names, such as "world", mean something to some loaders."""
    return f"link_{name}"


def to_urdf(tree: KinematicTree) -> str:
    """Write a tree of joints of one freedom, on a fixed base or on a free root link, as the text of a URDF.

    Continuous joints become revolute ones without limits that matter. A massless link has no inertia. Components are
    left out.

    Raises:
        ModelError: a joint of another kind, or a free joint that is not the root's, or starts from elsewhere.
    """
    is_floating = tree.joints[0].kind == "free"
    if is_floating and not np.array_equal(tree.X_tree[0].motion_matrix(), np.eye(6)):
        raise ModelError(f"joint '{tree.joint_names[0]}' is free, but not from the world's own frame.")
    document = etree.Element("robot", name=tree.name)
    if not is_floating:
        etree.SubElement(document, "link", name=ROOT)
    for name, I in zip(tree.names, tree.I, strict=True):
        link = etree.SubElement(document, "link", name=link_name(name))
        mass = float(I[3, 3])
        if mass > 0:
            _write_inertia(etree.SubElement(link, "inertial"), mass, I)
    for i, joint in enumerate(tree.joints):
        if is_floating and i == 0:
            continue
        if joint.kind not in KINDS or (is_floating and tree.is_root(i)):
            raise ModelError(f"joint '{tree.joint_names[i]}' is {joint.kind}: not one that is written.")
        element = etree.SubElement(document, "joint", name=tree.joint_names[i], type=KINDS[joint.kind])
        X = tree.X_tree[i]
        etree.SubElement(element, "origin", xyz=_text(X.r), rpy=_text(_roll_pitch_yaw(X.E.T)))
        etree.SubElement(element, "parent", link=ROOT if tree.is_root(i) else link_name(tree.names[tree.parents[i]]))
        etree.SubElement(element, "child", link=link_name(tree.names[i]))
        etree.SubElement(element, "axis", xyz=_text(np.array(joint.axis)))  # type: ignore[attr-defined]
        etree.SubElement(element, "limit", lower="-1000", upper="1000", effort="1e6", velocity="1e6")
    return str(etree.tostring(document, encoding="unicode"))


def _write_inertia(element: etree._Element, mass: float, I: Floats) -> None:
    com = np.array([I[2, 4], I[0, 5], I[1, 3]]) / mass
    about_com = I[:3, :3] - mass * (com @ com * np.eye(3) - np.outer(com, com))
    etree.SubElement(element, "origin", xyz=_text(com), rpy="0 0 0")
    etree.SubElement(element, "mass", value=repr(mass))
    x, y, z = range(3)
    places = {"ixx": (x, x), "ixy": (x, y), "ixz": (x, z), "iyy": (y, y), "iyz": (y, z), "izz": (z, z)}
    etree.SubElement(element, "inertia", **{name: repr(float(about_com[at])) for name, at in places.items()})


def _roll_pitch_yaw(R: Floats) -> Floats:
    """Angles of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-9:  # about z and about x alike: all of it about x
        return np.array([math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])])


def _text(values: Floats) -> str:
    return " ".join(repr(float(value)) for value in values)
