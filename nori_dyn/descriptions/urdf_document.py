"""The part of a URDF that the dynamics depend on, read from the file and checked number by number."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from nori_dyn.errors import FileFormatError
from nori_dyn.io.xml_file import Element, read_xml

LARGEST = 1e50
"""In SI units; products of a few such numbers still do not overflow."""

IDENTIFIED, YES = "identified", "true"
"""The attribute by which `nd.tools.save_robot` marks friction and rotors that are the robot's own, and its value.

No other program minds it. Where it stands they are taken in without being asked for.
"""

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
    "mimic": {"multiplier": (1, False), "offset": (1, False)},
}

Vector = tuple[float, float, float]
_Texts = dict[str, list[str]]  # the numbers of an element as printed, by attribute; empty where there is no element


@dataclass(frozen=True, slots=True)
class UrdfOrigin:
    """An <origin>: where a frame is, in that of its parent.

    Attributes:
        xyz: position [m].
        rpy: roll, pitch and yaw [rad] as printed: the number of decimals says what may be rounding.
    """

    xyz: Vector
    rpy: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class UrdfInertial:
    """An <inertial>; what it leaves out is zero.

    Attributes:
        origin: the frame in the centre of mass; None is the link's own.
        mass: [kg].
        inertia: xx, xy, xz, yy, yz and zz about the centre of mass [kg m^2], in the axes of the origin.
    """

    origin: UrdfOrigin | None
    mass: float
    inertia: tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class UrdfLink:
    """A <link>.

    Attributes:
        name: its name.
        inertial: its inertia; None is none.
    """

    name: str
    inertial: UrdfInertial | None


@dataclass(frozen=True, slots=True)
class UrdfMimic:
    """A <mimic>: a joint follows another one, q = multiplier q_other + offset.

    Attributes:
        joint: name of the joint that it follows.
        multiplier: 1 if the file has none.
        offset: [rad or m]; 0 if the file has none.
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A <joint>.

    Attributes:
        name: its name.
        type: its type, not checked here.
        parent: name of the link that carries it.
        child: name of the link that it carries.
        origin: where it sits in the parent's frame; None is there.
        axis: its direction or normal, of any length; x if the file has none.
        lower: the lower limit [rad or m]; None if the file has none.
        upper: the upper limit [rad or m]; None if the file has none.
        mimic: what it follows; None for one of its own.
        damping: viscous friction [N m s/rad or N s/m] as printed, not checked here: few want it.
        friction: Coulomb friction [N m or N], likewise.
        velocity: the largest speed [rad/s or m/s], likewise.
        effort: the largest torque or force [N m or N], likewise.
        width: velocity over which Coulomb friction changes its sign [rad/s or m/s], likewise; empty if the file has
            none, as but for identified friction.
        is_identified: whether the file says that the friction was identified, see `IDENTIFIED`.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: UrdfOrigin | None
    axis: Vector
    lower: float | None
    upper: float | None
    mimic: UrdfMimic | None
    damping: str = "0"
    friction: str = "0"
    velocity: str = "0"
    effort: str = "0"
    width: str = ""
    is_identified: bool = False


@dataclass(frozen=True, slots=True)
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
    links: tuple[UrdfLink, ...]
    joints: tuple[UrdfJoint, ...]
    root: Element = field(default=None, compare=False, repr=False)
    path: str | os.PathLike[str] = field(default="", compare=False)


def read_urdf(path: str | os.PathLike[str]) -> UrdfRobot:
    """Read a URDF; meshes, materials and extensions of simulators are not looked at.

    Raises:
        FileFormatError: not a readable XML file, not a URDF, or an attribute that is missing or not numbers.
    """
    root = read_xml(path)
    if root.tag != "robot":
        hint = " It is an MJCF model: use load_mjcf." if root.tag == "mujoco" else ""
        raise FileFormatError(f"{path} is not a URDF: its root element is <{root.tag}>, not <robot>.{hint}")
    _refuse_xacro(path, root)
    return UrdfRobot(
        name=root.get("name") or os.path.splitext(os.path.basename(path))[0],
        links=tuple(_link(path, element) for element in root.findall("link")),
        joints=tuple(_joint(path, element) for element in root.findall("joint")),
        root=root,
        path=path,
    )


def _link(path: str | os.PathLike[str], element: Element) -> UrdfLink:
    name = required(path, element, "name", "a <link>")
    inertial = element.find("inertial")
    if inertial is None:
        return UrdfLink(name, None)
    texts = _numbers(path, inertial, _INERTIAL, f"link '{name}': its inertial")
    ixx, ixy, ixz, iyy, iyz, izz = (
        float(texts["inertia"].get(f"i{axes}", ["0"])[0]) for axes in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    mass = float(texts["mass"].get("value", ["0"])[0])
    return UrdfLink(name, UrdfInertial(_origin(inertial, texts), mass, (ixx, ixy, ixz, iyy, iyz, izz)))


def _joint(path: str | os.PathLike[str], element: Element) -> UrdfJoint:
    name = required(path, element, "name", "a <joint>")
    kind = required(path, element, "type", f"joint '{name}'")
    texts = _numbers(path, element, _JOINT, f"joint '{name}': its")
    lower, upper = (texts["limit"].get(end) for end in ("lower", "upper"))
    dynamics, limit = element.find("dynamics"), element.find("limit")
    leader = _named(path, element, name, "mimic", "joint")

    def number(tag: str, attribute: str, default: str = "0") -> float:
        return float(texts[tag].get(attribute, [default])[0])

    return UrdfJoint(
        name=name,
        type=kind,
        parent=_end(path, element, name, "parent"),
        child=_end(path, element, name, "child"),
        origin=_origin(element, texts),
        axis=_vector(texts["axis"].get("xyz", ["1", "0", "0"])),
        lower=None if lower is None else float(lower[0]),
        upper=None if upper is None else float(upper[0]),
        mimic=None
        if leader is None
        else UrdfMimic(leader, number("mimic", "multiplier", "1"), number("mimic", "offset")),
        damping="0" if dynamics is None else dynamics.get("damping", "0"),
        friction="0" if dynamics is None else dynamics.get("friction", "0"),
        velocity="0" if limit is None else limit.get("velocity", "0"),
        effort="0" if limit is None else limit.get("effort", "0"),
        width="" if dynamics is None else dynamics.get("width", ""),
        is_identified=dynamics is not None and dynamics.get(IDENTIFIED) == YES,
    )


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


def _origin(parent: Element, texts: dict[str, _Texts]) -> UrdfOrigin | None:
    if parent.find("origin") is None:
        return None
    roll, pitch, yaw = texts["origin"].get("rpy", ["0", "0", "0"])
    return UrdfOrigin(_vector(texts["origin"].get("xyz", ["0", "0", "0"])), (roll, pitch, yaw))


def _vector(texts: list[str]) -> Vector:
    x, y, z = map(float, texts)
    return x, y, z


def _refuse_xacro(path: str | os.PathLike[str], root: Element) -> None:
    for element in root:
        if "xacro" in str(element.tag).split("}")[0]:
            raise FileFormatError(
                f"{where(path, element)}: this is a xacro template, not a URDF. "
                "Expand it first: xacro FILE.xacro > FILE.urdf"
            )


def _numbers(
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
