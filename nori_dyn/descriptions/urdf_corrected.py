"""A URDF with the inertias, the friction and the rotors of an identified robot; every other byte stays as it is."""

from __future__ import annotations

import os

from nori_dyn.components import Coupling, Friction, Rotor
from nori_dyn.descriptions.component_files import checked_components
from nori_dyn.descriptions.corrections import (
    WIDTH,
    Corrected,
    by_joint,
    corrected_links,
    likeliest,
    note_on_no_place,
    notes_on_curves,
    notes_on_joints,
    notes_on_left_out,
    widths_by_joint,
)
from nori_dyn.descriptions.urdf import ROTOR, Transmission, first_of, transmissions, transmitted
from nori_dyn.descriptions.urdf_document import IDENTIFIED, YES, UrdfRobot, read_urdf
from nori_dyn.io.xml_text import LEVEL, XmlElement, XmlText, numbers
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import LinkData
from nori_dyn.model.tree import KinematicTree

MOMENTS = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""The attributes of <inertia>, and where they are in the matrix."""


def corrected_urdf(tree: KinematicTree, source: str | os.PathLike[str]) -> Corrected:
    """URDF in which <inertial>, <dynamics> and the inertias of rotors are those of a tree.

    What did not change is left as it is printed, and so are links that are part of the world. What is on fixed joints
    keeps its inertia, and the link that carries it gets the change: see `corrected_links`. Friction and rotors of
    joints that have none in the tree are left as they are. What changed is marked, see `IDENTIFIED`, and where anything
    did, friction and rotors are, so that a loader takes them in unasked.

    Args:
        tree: the robot, as `load_urdf` made it of the file, with other inertias and components.
        source: the file.

    Returns:
        The content of the corrected file, and what it cannot hold.

    Raises:
        FileFormatError: not a readable URDF.
        ModelError: the robot is of another file, or has a number that no file can hold.
    """
    robots = [read_urdf(source, Cleaner(active=clean)) for clean in (True, False)]
    robot, text = robots[0], XmlText(source)
    checked_components(tree)
    models = [(one.links, [joint.data for joint in one.joints]) for one in robots]
    links, notes = corrected_links(tree, robots[likeliest(tree, models, source)].links)
    elements = {element.get("name"): element for element in text.root.findall("link")}
    for name, link in links.items():
        _write_inertial(text, elements[name], link)
    notes += _write_friction(text, tree, robot)
    notes += _write_rotors(text, tree, robot)
    _mark(text, tree)
    mimics = [joint.name for joint in robot.joints if joint.mimic is not None]
    others = [one for one in tree.components if not isinstance(one, Friction | Rotor)]
    others = [one for one in others if not (isinstance(one, Coupling) and one.joint in mimics)]
    return Corrected(text.changed(), (*notes, *notes_on_left_out(tree, others, "a URDF")))


def relative_files(source: str | os.PathLike[str]) -> list[str]:
    """Meshes and textures that a URDF names from its own folder."""
    found = (element.get("filename") or "" for element in XmlText(source).root.iter() if element.tag != "plugin")
    return [name for name in dict.fromkeys(found) if name and "://" not in name and not os.path.isabs(name)]


def _write_inertial(text: XmlText, element: XmlElement, link: LinkData) -> None:
    """Make the <inertial> of a <link> that of a link, about the centre of mass and in the axes of the link."""
    inertial = element.find("inertial")
    if not (link.mass or link.I_com.any()):
        if inertial is not None:
            text.remove(inertial)
        return
    moments = {name: float(link.I_com[at]) for name, at in MOMENTS.items()}
    missing = []
    origin, mass, inertia = (None if inertial is None else inertial.find(tag) for tag in ("origin", "mass", "inertia"))
    if origin is not None:
        text.set_numbers(origin, "xyz", *link.com)
        text.set_numbers(origin, "rpy", 0.0, 0.0, 0.0)
    elif link.com.any():
        missing.append(f'<origin xyz="{numbers(*link.com)}" rpy="0 0 0"/>')
    if mass is not None:
        text.set_numbers(mass, "value", link.mass)
    else:
        missing.append(f'<mass value="{numbers(link.mass)}"/>')
    if inertia is not None:
        for name, moment in moments.items():
            text.set_numbers(inertia, name, moment, default=0.0)
    else:
        attributes = " ".join(f'{name}="{numbers(moment)}"' for name, moment in moments.items())
        missing.append(f"<inertia {attributes}/>")
    if inertial is None:
        text.add(element, [f'<inertial {IDENTIFIED}="{YES}">', *(LEVEL + line for line in missing), "</inertial>"])
        return
    if missing:
        text.add(inertial, missing)
    if inertial.get(IDENTIFIED) != YES:
        text.set(inertial, IDENTIFIED, YES)


def _write_friction(text: XmlText, tree: KinematicTree, robot: UrdfRobot) -> list[str]:
    """Make the <dynamics> of joints what acts on them in a tree; return notes."""
    wanted = by_joint(tree, Friction)
    widths = {name: found for name, found in widths_by_joint(tree).items() if len(found) == 1}
    for element in text.root.findall("joint"):
        name = element.get("name") or ""
        now = wanted.get(name)
        if now is None:
            continue
        dynamics = element.find("dynamics")
        if dynamics is not None:
            text.set_numbers(dynamics, "damping", now["viscous"])
            text.set_numbers(dynamics, "friction", now["coulomb"])
            text.set_numbers(dynamics, "width", *widths.get(name, (WIDTH,)), default=WIDTH)
        elif any(now.values()):
            wide = f' width="{numbers(*widths[name])}"' if name in widths else ""
            given = f'damping="{numbers(now["viscous"])}" friction="{numbers(now["coulomb"])}"{wide}'
            text.add(element, [f'<dynamics {given} {IDENTIFIED}="{YES}"/>'])
    names = [joint.name for joint in robot.joints]
    rubbing = [joint.name for joint in robot.joints if joint.rubs]
    several = [name for name, found in widths_by_joint(tree).items() if len(found) > 1]
    return [
        *notes_on_curves(tree, "a URDF"),
        *note_on_no_place("a URDF", "several widths of friction", several),
        *notes_on_joints(tree, "a URDF", Friction, names, rubbing),
    ]


def _mark(text: XmlText, tree: KinematicTree) -> None:
    """Mark friction and rotors of a tree in a file that is changed, so that loaders take them in unasked."""
    if not text.is_changed:
        return
    frictions, rotors = by_joint(tree, Friction), by_joint(tree, Rotor)
    marked = [
        joint.find("dynamics")
        for joint in text.root.findall("joint")
        if any(frictions.get(joint.get("name") or "", {}).values())
    ]
    marked += [
        first_of(one, ROTOR)
        for one in text.root.findall("transmission")
        if any(rotors.get(transmitted(one), {}).values())
    ]
    for element in marked:
        if element is not None and element.get(IDENTIFIED) != YES:
            text.set(element, IDENTIFIED, YES)


def _write_rotors(text: XmlText, tree: KinematicTree, robot: UrdfRobot) -> list[str]:
    """Make the rotors of transmissions that tell their inertia those of a tree; return notes."""
    wanted = {joint: sums["rotor"] for joint, sums in by_joint(tree, Rotor).items()}
    found: dict[str, list[tuple[Transmission, XmlElement]]] = {}
    elements = [one for one in text.root.findall("transmission") if transmitted(one)]
    for transmission, element in zip(transmissions(robot), elements, strict=True):
        place = first_of(element, ROTOR)
        if place is not None and transmission.gear:
            found.setdefault(transmission.joint, []).append((transmission, place))
    for joint, places in found.items():
        before = sum(one.gear**2 * (one.inertia or 0.0) for one, _ in places)
        if joint not in wanted or wanted[joint] == before:
            continue
        for number, (transmission, place) in enumerate(places):
            inertia = numbers(0.0 if number else wanted[joint] / transmission.gear**2)
            if place.get("value"):
                text.set(place, "value", inertia)
            else:
                text.set_text(place, inertia)
    return notes_on_joints(tree, "a URDF", Rotor, found, found)
