"""A tree as the text of a URDF, so that another program loads the very same robot, fixed links lumped as here."""

from __future__ import annotations

import numpy as np
from lxml import etree

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.corrections import link_of
from nori_dyn.descriptions.model_sensors import roll_pitch_yaw
from nori_dyn.descriptions.urdf_corrected import MOMENTS
from nori_dyn.errors import ModelError
from nori_dyn.io.xml_text import numbers
from nori_dyn.model.tree import KinematicTree

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
        body = link_of(name, I, Transform.identity())
        if body.mass > 0:
            inertial = etree.SubElement(link, "inertial")
            etree.SubElement(inertial, "origin", xyz=numbers(*body.com), rpy="0 0 0")
            etree.SubElement(inertial, "mass", value=numbers(body.mass))
            etree.SubElement(inertial, "inertia", **{name: numbers(body.I_com[at]) for name, at in MOMENTS.items()})
    for i, joint in enumerate(tree.joints):
        if is_floating and i == 0:
            continue
        if joint.kind not in KINDS or (is_floating and tree.is_root(i)):
            raise ModelError(f"joint '{tree.joint_names[i]}' is {joint.kind}: not one that is written.")
        element = etree.SubElement(document, "joint", name=tree.joint_names[i], type=KINDS[joint.kind])
        X = tree.X_tree[i]
        etree.SubElement(element, "origin", xyz=numbers(*X.r), rpy=numbers(*roll_pitch_yaw(X.E.T)))
        etree.SubElement(element, "parent", link=ROOT if tree.is_root(i) else link_name(tree.names[tree.parents[i]]))
        etree.SubElement(element, "child", link=link_name(tree.names[i]))
        etree.SubElement(element, "axis", xyz=numbers(*joint.axis))  # type: ignore[attr-defined]
        etree.SubElement(element, "limit", lower="-1000", upper="1000", effort="1e6", velocity="1e6")
    return str(etree.tostring(document, encoding="unicode"))
