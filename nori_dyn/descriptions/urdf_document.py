"""The part of a URDF that the dynamics depend on, read from the file and checked number by number."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import FileFormatError, ModelError, naming
from nori_dyn.io.xml_file import Element, read_xml
from nori_dyn.model.assembly import JointData
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import LinkData
from nori_dyn.model.joints import Continuous, Free, Joint, Planar, Prismatic, Revolute
from nori_dyn.typing import Floats

LARGEST = 1e50
"""In SI units; products of a few such numbers still do not overflow."""

NO_LIMIT = 1e6
"""A limit of this size or more [rad or m] is how some exporters write that there is none."""

IDENTIFIED, YES = "identified", "true"
"""The attribute by which `nd.tools.save_robot` marks friction and rotors that are the robot's own, and its value.

No other program minds it. Where it stands they are taken in without being asked for.
"""

ZEROS = frozenset(("0", "0.0", "0."))
"""How no friction is written."""

# element -> attribute -> how many numbers, and whether it must be there
ORIGIN = {"xyz": (3, False), "rpy": (3, False)}
_INERTIAL = {
    "origin": ORIGIN,
    "mass": {"value": (1, True)},
    "inertia": {
        **{f"i{axes}": (1, True) for axes in ("xx", "yy", "zz")},
        **{f"i{axes}": (1, False) for axes in ("xy", "xz", "yz")},
    },
}
_JOINT = {
    "origin": ORIGIN,
    "axis": {"xyz": (3, False)},
    "limit": {"lower": (1, False), "upper": (1, False)},
    "mimic": {"multiplier": (1, False), "offset": (1, False)},
}

Vector = tuple[float, float, float]
_Texts = dict[str, list[str]]  # the numbers of an element as printed, by attribute; empty where there is no element


@dataclass(frozen=True, slots=True, eq=False)
class UrdfJoint:
    """A <joint>.

    Attributes:
        data: what the tree is made of.
        type: its type.
        mimic: of q = multiplier q_other + offset the other joint, the multiplier and the offset [rad or m]; None of a
            joint of its own.
        element: the element, from which drives and friction are read: few want them.
    """

    data: JointData
    type: str
    mimic: tuple[str, float, float] | None
    element: Element

    @property
    def name(self) -> str:
        """Its name."""
        return self.data.name

    def printed(self, tag: str, attribute: str, default: str = "0") -> str:
        """An attribute of a child as printed, not checked; the default where there is none."""
        child = self.element.find(tag)
        return default if child is None else str(child.get(attribute, default))

    @property
    def rubs(self) -> bool:
        """Whether the file has friction of it."""
        return bool({self.printed("dynamics", "damping"), self.printed("dynamics", "friction")} - ZEROS)


@dataclass(frozen=True, slots=True, eq=False)
class UrdfRobot:
    """A <robot>: its links and joints in the order of the file, every number of them checked.

    Attributes:
        name: its name, or that of the file.
        links: its links.
        joints: its joints.
        root: the element, from which transmissions and sensors are read.
        path: the file, for messages.
    """

    name: str
    links: tuple[LinkData, ...]
    joints: tuple[UrdfJoint, ...]
    root: Element
    path: str | os.PathLike[str]


def read_urdf(path: str | os.PathLike[str], cleaner: Cleaner | None = None) -> UrdfRobot:
    """Read a URDF; meshes, materials and extensions of simulators are not looked at.

    Args:
        path: the file.
        cleaner: removes rounding.

    Raises:
        FileFormatError: not a readable XML file, not a URDF, or an attribute that is missing or not numbers.
        ModelError: an unsupported joint, or a zero axis.
    """
    cleaner = cleaner or Cleaner()
    root = read_xml(path)
    if root.tag != "robot":
        hint = " It is an MJCF model: use load_mjcf." if root.tag == "mujoco" else ""
        raise FileFormatError(f"{path} is not a URDF: its root element is <{root.tag}>, not <robot>.{hint}")
    _refuse_xacro(path, root)
    return UrdfRobot(
        name=root.get("name") or os.path.splitext(os.path.basename(path))[0],
        links=tuple(_link(path, element, cleaner) for element in root.findall("link")),
        joints=tuple(_joint(path, element, cleaner) for element in root.findall("joint")),
        root=root,
        path=path,
    )


def _link(path: str | os.PathLike[str], element: Element, cleaner: Cleaner) -> LinkData:
    name = required(path, element, "name", "a <link>")
    inertial = element.find("inertial")
    if inertial is None:
        return LinkData(name)
    texts = numbers_of(path, inertial, _INERTIAL, f"link '{name}': its inertial")
    ixx, ixy, ixz, iyy, iyz, izz = (
        float(texts["inertia"].get(f"i{axes}", ["0"])[0]) for axes in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    com, R = _origin(texts["origin"], cleaner)
    I = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    return LinkData(name, float(texts["mass"].get("value", ["0"])[0]), com, R @ I @ R.T)


def _joint(path: str | os.PathLike[str], element: Element, cleaner: Cleaner) -> UrdfJoint:
    name = required(path, element, "name", "a <joint>")
    kind = required(path, element, "type", f"joint '{name}'")
    texts = numbers_of(path, element, _JOINT, f"joint '{name}': its")
    ends = _end(path, element, name, "parent"), _end(path, element, name, "child")
    leader = _named(path, element, name, "mimic", "joint")

    def number(tag: str, attribute: str, default: float) -> float:
        return float(texts[tag].get(attribute, [default])[0])

    r, R = _origin(texts["origin"], cleaner)
    limits = number("limit", "lower", -math.inf), number("limit", "upper", math.inf)
    with naming(path):
        model = _model(name, kind, texts["axis"].get("xyz", ["1", "0", "0"]), limits, cleaner)
    return UrdfJoint(
        data=JointData(name, *ends, Transform(np.ascontiguousarray(R.T), r), model),
        type=kind,
        mimic=None if leader is None else (leader, number("mimic", "multiplier", 1.0), number("mimic", "offset", 0.0)),
        element=element,
    )


def _model(name: str, kind: str, direction: list[str], limits: tuple[float, float], cleaner: Cleaner) -> Joint | None:
    if kind == "fixed":
        return None
    if kind == "floating":
        return Free()
    if kind not in ("revolute", "continuous", "prismatic", "planar"):
        raise ModelError(
            f"joint '{name}' has the type '{kind}', which is not supported. "
            "Supported: revolute, continuous, prismatic, planar, floating, fixed."
        )
    axis_as_given = np.array(direction, dtype=float)
    if not np.linalg.norm(axis_as_given) > 0:
        raise ModelError(f"joint '{name}' has a zero axis. Give it a direction.")
    axis = cleaner.axis(axis_as_given)
    if kind == "planar":
        if axis != (0.0, 0.0, 1.0):
            shown = " ".join(f"{component:g}" for component in axis)
            raise ModelError(
                f"joint '{name}' is planar with the normal ({shown}); only motion in x and y, "
                "with the <axis> 0 0 1, is supported (without an <axis> it is 1 0 0). "
                "Turn the joint's frame to make z the normal."
            )
        return Planar()
    if kind == "continuous":
        return Continuous(axis)
    lower, upper = limits
    limits = (-math.inf if lower <= -NO_LIMIT else lower, math.inf if upper >= NO_LIMIT else upper)
    return (Revolute if kind == "revolute" else Prismatic)(axis, limits)


def _origin(texts: _Texts, cleaner: Cleaner) -> tuple[Floats, Floats]:
    """Position (3,) [m] and rotation (3, 3), to parent coordinates, of an <origin>."""
    if not texts:
        return np.zeros(3), np.eye(3)
    roll, pitch, yaw = texts.get("rpy", ["0", "0", "0"])
    r = np.array(texts.get("xyz", ["0", "0", "0"]), dtype=float)
    return cleaner.position(r + 0.0), cleaner.rpy((roll, pitch, yaw))  # -0.0 becomes 0.0


def _end(path: str | os.PathLike[str], joint: Element, name: str, tag: str) -> str:
    """Link at one end of a joint."""
    link = _named(path, joint, name, tag, "link")
    if link is None:
        raise FileFormatError(f"{where(path, joint)}: joint '{name}' has no <{tag}>. Name its {tag} link.")
    return link


def _named(path: str | os.PathLike[str], joint: Element, name: str, tag: str, attribute: str) -> str | None:
    """Name in a child element of a joint; None without the element."""
    element = joint.find(tag)
    return None if element is None else required(path, element, attribute, f"joint '{name}': its <{tag}>")


def _refuse_xacro(path: str | os.PathLike[str], root: Element) -> None:
    for element in root:
        if "xacro" in str(element.tag).split("}")[0]:
            raise FileFormatError(
                f"{where(path, element)}: this is a xacro template, not a URDF. "
                "Expand it first: xacro FILE.xacro > FILE.urdf"
            )


def numbers_of(
    path: str | os.PathLike[str], parent: Element, table: dict[str, dict[str, tuple[int, bool]]], what: str
) -> dict[str, _Texts]:
    """Numbers of the children of an element as printed, by child and attribute.

    Raises:
        FileFormatError: one is missing that must be there, or is no number.
    """
    found: dict[str, _Texts] = {tag: {} for tag in table}
    for tag, attributes in table.items():
        element = parent.find(tag)
        if element is None:
            continue
        for attribute, (n, is_required) in attributes.items():
            text = element.get(attribute)
            if text is None and is_required:
                raise FileFormatError(f"{where(path, element)}: {what} <{tag}> has no {attribute}.")
            if text is not None:
                problem = not_numbers(text, n, allow_infinite=tag == "limit")
                if problem:
                    place = f"{where(path, element)}: {what} <{tag}>"
                    raise FileFormatError(f"{place} has {attribute}='{text}': {problem}.")
                found[tag][attribute] = text.split()
    return found


def not_numbers(text: str, n: int, allow_infinite: bool = False) -> str:
    """Fault of a text that should hold n numbers, or ""."""
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
    """A required attribute of an element.

    Raises:
        FileFormatError: it is not there, or empty.
    """
    value = element.get(attribute)
    if not value:
        raise FileFormatError(f"{where(path, element)}: {what} has no {attribute}.")
    return str(value)


def where(path: str | os.PathLike[str], element: Element) -> str:
    """File and line of an element, for messages."""
    return f"{path}, line {element.sourceline}"
