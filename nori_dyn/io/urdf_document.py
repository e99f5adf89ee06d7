"""The part of a URDF document that the dynamics depend on, checked number by number."""

from __future__ import annotations

import math
import os

from nori_dyn.errors import FileFormatError
from nori_dyn.io.xml_file import Element, read_xml

LARGEST = 1e50
"""In SI units; products of a few such numbers still do not overflow."""

# element -> attribute -> how many numbers, and whether it must be there
_INERTIAL = {
    "origin": {"xyz": (3, False), "rpy": (3, False)},
    "mass": {"value": (1, True)},
    "inertia": {
        **{f"i{axes}": (1, True) for axes in ("xx", "yy", "zz")},
        **{f"i{axes}": (1, False) for axes in ("xy", "xz", "yz")},
    },
}
_JOINT = {
    "origin": {"xyz": (3, False), "rpy": (3, False)},
    "axis": {"xyz": (3, False)},
    "limit": {"lower": (1, False), "upper": (1, False)},
}
_NAMES = {"parent": "link", "child": "link", "mimic": "joint"}


def read_urdf(path: str | os.PathLike[str]) -> Element:
    """Return a new <robot> element with names, inertials and joints only, every number of it checked.

    Meshes, materials, transmissions, simulator extensions and limits of effort are left out.

    Raises:
        FileFormatError: not a readable XML file, not a URDF, or an attribute that is missing or not numbers.
    """
    from lxml import etree

    root = read_xml(path)
    if root.tag != "robot":
        hint = " It is an MJCF model: use load_mjcf." if root.tag == "mujoco" else ""
        raise FileFormatError(f"{path} is not a URDF: its root element is <{root.tag}>, not <robot>.{hint}")
    _refuse_xacro(path, root)

    robot = etree.Element("robot", name=root.get("name") or os.path.splitext(os.path.basename(path))[0])
    for link in root.findall("link"):
        copy = etree.SubElement(robot, "link", name=required(path, link, "name", "a <link>"))
        inertial = link.find("inertial")
        if inertial is not None:
            part = etree.SubElement(copy, "inertial")
            _copy_numbers(path, inertial, part, _INERTIAL, f"link '{copy.get('name')}': its inertial")
    for joint in root.findall("joint"):
        name = required(path, joint, "name", "a <joint>")
        copy = etree.SubElement(robot, "joint", name=name, type=required(path, joint, "type", f"joint '{name}'"))
        _copy_numbers(path, joint, copy, _JOINT, f"joint '{name}': its")
        for tag, attribute in _NAMES.items():
            element = joint.find(tag)
            if element is not None:
                value = required(path, element, attribute, f"joint '{name}': its <{tag}>")
                etree.SubElement(copy, tag, {attribute: value})
            elif tag != "mimic":
                raise FileFormatError(f"{where(path, joint)}: joint '{name}' has no <{tag}>. Name its {tag} link.")
    return robot


def _refuse_xacro(path: str | os.PathLike[str], root: Element) -> None:
    for element in root:
        if "xacro" in str(element.tag).split("}")[0]:
            raise FileFormatError(
                f"{where(path, element)}: this is a xacro template, not a URDF. "
                "Expand it first: xacro FILE.xacro > FILE.urdf"
            )


def _copy_numbers(
    path: str | os.PathLike[str],
    source: Element,
    target: Element,
    table: dict[str, dict[str, tuple[int, bool]]],
    what: str,
) -> None:
    from lxml import etree

    for tag, attributes in table.items():
        element = source.find(tag)
        if element is None:
            continue
        copy = etree.SubElement(target, tag)
        for attribute, (n, required) in attributes.items():
            text = element.get(attribute)
            if text is None and required:
                raise FileFormatError(f"{where(path, element)}: {what} <{tag}> has no {attribute}.")
            if text is not None:
                problem = not_numbers(text, n, allow_infinite=tag == "limit")
                if problem:
                    place = f"{where(path, element)}: {what} <{tag}>"
                    raise FileFormatError(f"{place} has {attribute}='{text}': {problem}.")
                copy.set(attribute, text)


def not_numbers(text: str, n: int, allow_infinite: bool = False) -> str:
    """Return what is wrong with a text that should hold n numbers; empty if nothing is."""
    parts = text.split()
    if len(parts) != n:
        return f"{n} number{'s' * (n > 1)} expected, not {len(parts)}"
    for part in parts:
        try:
            number = float(part)
        except ValueError:
            return f"'{part}' is not a number"
        if math.isnan(number) or (math.isinf(number) and not allow_infinite):
            return f"'{part}' is not finite"
        if abs(number) > LARGEST and not allow_infinite:
            return f"'{part}' is too large"
    return ""


def required(path: str | os.PathLike[str], element: Element, attribute: str, what: str) -> str:
    """Return an attribute of an element.

    Raises:
        FileFormatError: it is not there, or empty.
    """
    value = element.get(attribute)
    if not value:
        raise FileFormatError(f"{where(path, element)}: {what} has no {attribute}.")
    return str(value)


def where(path: str | os.PathLike[str], element: Element) -> str:
    """Return the file and line of an element, for messages."""
    return f"{path}, line {element.sourceline}"
