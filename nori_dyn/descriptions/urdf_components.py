"""The components of a URDF: friction of <dynamics>, couplings of <mimic>, rotors of <transmission>."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nori_dyn.components import Coupling, Friction, Rotor
from nori_dyn.components.base import Component
from nori_dyn.components.building import joint_components
from nori_dyn.descriptions.urdf_document import IDENTIFIED, YES, UrdfJoint, UrdfRobot, not_numbers, where
from nori_dyn.errors import FileFormatError, UnknownModelNameError
from nori_dyn.io.xml_file import Element

ROTOR = ("rotor_inertia", "rotorInertia")
"""Elements of a transmission for the inertia of a rotor; URDF itself has none, Drake's is the first."""

GEAR = ("gear_ratio", "mechanicalReduction")


@dataclass(frozen=True, slots=True)
class Transmission:
    """A <transmission> of one joint.

    Attributes:
        joint: its name.
        gear: turns of the motor for one of the joint.
        inertia: of the rotor [kg m^2]; None where the file has none.
    """

    joint: str
    gear: float
    inertia: float | None


def frictions(joints: Iterable[UrdfJoint]) -> Iterator[Component]:
    """Yield the friction of joints.

    Raises:
        FileFormatError: a number that is none.
        ModelError: a negative number.
    """
    return joint_components((joint.name, Friction, _coefficients(joint)) for joint in joints)


def _coefficients(joint: UrdfJoint) -> dict[str, float]:
    found = {"viscous": _value(joint, "damping"), "coulomb": _value(joint, "friction")}
    is_wide = joint.is_identified and joint.width and found["coulomb"]
    return {**found, "width": _value(joint, "width")} if is_wide else found


def _value(joint: UrdfJoint, what: Literal["damping", "friction", "width"]) -> float:
    text: str = getattr(joint, what)
    problem = not_numbers(text, 1)
    if problem:
        raise FileFormatError(f"joint '{joint.name}': its <dynamics> has {what}='{text}': {problem}.")
    return float(text)


def couplings(robot: UrdfRobot, moving: Collection[str], locked: Mapping[str, float]) -> Iterator[Coupling]:
    """Yield what mimic joints follow; a joint that follows one that is locked, or fixed, is held where that puts it.

    Raises:
        UnknownModelNameError: there is no such joint.
    """
    names = [joint.name for joint in robot.joints]
    for joint in robot.joints:
        mimic = joint.mimic
        if mimic is None or joint.name not in moving:
            continue
        if mimic.joint not in names:
            raise UnknownModelNameError(
                f"joint that '{joint.name}' mimics", mimic.joint, names, f"robot '{robot.name}'"
            )
        if mimic.joint in moving:
            of, offset = {mimic.joint: mimic.multiplier}, mimic.offset
        else:
            of, offset = {}, mimic.offset + mimic.multiplier * locked.get(mimic.joint, 0.0)
        yield Coupling.model_validate({"joint": joint.name, "of": of, "offset": offset})


def rotors(found_in: Iterable[Transmission]) -> Iterator[Rotor]:
    """Yield the rotors of transmissions that tell their inertia."""
    for found in found_in:
        if found.inertia is not None:
            yield Rotor(joints=found.joint, inertia=found.inertia, gear=found.gear)


def transmissions(robot: UrdfRobot, identified: bool = False) -> Iterator[Transmission]:
    """Yield the transmissions of a URDF that are of one joint each, in the order of the file.

    The gear is a <mechanicalReduction>, or Drake's <gear_ratio>, wherever it is in a transmission; a rotor's inertia
    a <rotor_inertia> or <rotorInertia>, as an attribute `value` or as text.

    Args:
        robot: the URDF.
        identified: only those whose rotors were identified; nothing of others is read.

    Raises:
        FileFormatError: a number that is none, or a negative inertia.
    """
    path = robot.path
    for element in robot.root.findall("transmission"):
        joint = transmitted(element)
        if not joint or (identified and not _is_identified(element)):
            continue  # a differential says what it couples in a way of its own
        gear, inertia = _number(path, element, GEAR), _number(path, element, ROTOR)
        if inertia is not None and inertia < 0:
            raise FileFormatError(f"{where(path, element)}: a rotor's inertia of {inertia:g}: it cannot be negative.")
        yield Transmission(joint, 1.0 if gear is None else gear, inertia)


def _is_identified(transmission: Element) -> bool:
    place = first_of(transmission, ROTOR)
    return place is not None and place.get(IDENTIFIED) == YES


def transmitted(transmission: Any) -> str:
    """Joint of a <transmission> of one joint; empty for others."""
    joints = [joint.get("name") for joint in transmission.findall("joint")]
    return (joints[0] or "") if len(joints) == 1 else ""


def first_of(element: Any, tags: tuple[str, ...]) -> Any:
    """First descendant with one of some names, whatever its prefix, or None."""
    found = (one for tag in tags for one in element.iter() if re.split("[}:]", str(one.tag))[-1] == tag)
    return next(found, None)


def _number(path: str | os.PathLike[str], transmission: Element, tags: tuple[str, ...]) -> float | None:
    """Number in the first descendant with one of some names, or None."""
    element = first_of(transmission, tags)
    if element is None:
        return None
    text = element.get("value") or (element.text or "").strip()
    problem = not_numbers(text, 1)
    if problem:
        raise FileFormatError(f"{where(path, element)}: <{element.tag}> is '{text}': {problem}.")
    return float(text)
