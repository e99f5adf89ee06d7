"""Kinematic trees of URDF files; no meshes are loaded.

Components are friction of <dynamics>, couplings of <mimic> and rotors of <transmission>.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nori_dyn.components import Coupling, Friction, Rotor
from nori_dyn.components.base import Component
from nori_dyn.components.building import joint_components
from nori_dyn.descriptions.component_files import moving_joints, with_components
from nori_dyn.descriptions.urdf_document import IDENTIFIED, YES, UrdfJoint, UrdfRobot, not_numbers, read_urdf, where
from nori_dyn.descriptions.urdf_sensors import sensor_joints
from nori_dyn.errors import FileFormatError, ModelError, NoriWarning, UnknownModelNameError, naming
from nori_dyn.io.xml_file import Element
from nori_dyn.model.assembly import JointData, assemble, positions_of
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import Inertias
from nori_dyn.model.joints import DriveLimits
from nori_dyn.model.tree import GRAVITY, KinematicTree

NO_SPEED, NO_EFFORT = 100.0, 1e4
"""Likewise a largest speed [rad/s or m/s], and a largest torque or force [N m or N]."""


def load_urdf(
    path: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    locked: Sequence[str] | Mapping[str, float] = (),
    kept: Sequence[str] = (),
    components: bool | str | os.PathLike[str] | None = None,
    mimic: Literal["independent", "coupled", "refuse"] | None = None,
    inertias: Inertias = "as_given",
    gravity: tuple[float, float, float] = GRAVITY,
    clean: bool = True,
) -> KinematicTree:
    """Load the kinematic tree of a URDF file.

    Links on fixed (or locked) joints are lumped into the body that carries them, and stay as frames, unless their
    joint is kept. Link coordinates are the URDF's: the origin in the joint, the axes as the file has them.

    Args:
        path: the file.
        base: "fixed" makes the root link part of the world; "floating" puts it on a free joint.
        locked: joints to freeze, at zero or (a mapping) at the position given [rad or m].
        kept: fixed or locked joints to keep as joints of no freedoms, so that the wrench f through them is a variable
            and a force-torque sensor can read it; "sensors" for those that carry one in the file.
        components: True takes in what the file has beside rigid bodies: the friction of <dynamics>, mimic joints, and
            the rotors of <transmission> where it tells their inertia. None leaves it out, as most tools do, but for
            friction and rotors that were identified, which `save_robot` marks; False leaves these out, too. `notes`
            say so. The path of a YAML file (see `load_components`) adds those that it describes to the file's.
        mimic: "independent" takes mimic joints as joints of their own, with a warning; "coupled" couples them, see
            `nd.components.Coupling`; "refuse" raises. None is "coupled" with components, and else "independent".
        inertias: what to make of inertias that no distribution of mass has, since a principal moment is negative or
            larger than the sum of the others. "as_given" takes them with a warning; "nearest" takes the nearest that
            some distribution has (in the second moments of the mass; mass, centre of mass and principal axes stay),
            and `notes` say so; "refuse" raises.
        gravity: [m/s^2] in world axes.
        clean: take what is a quarter turn, a zero or a coordinate axis up to rounding as exactly that: an
            angle within 1e-12 rad of k pi/2, or within a unit of its last decimal where seven or more are
            printed (1.5707963 is, 1.5708 is not). `notes` says what was changed.

    Raises:
        FileFormatError: not a readable file, not a URDF, or numbers that are none.
        ModelError: an unsupported joint, a zero axis, a cycle, two roots, a missing link, unphysical
            inertias, an unknown locked joint, a kept joint that is unknown or moves, components that do not fit.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("pendulum.urdf").write_text('''
        ... <robot name="pendulum">
        ...   <link name="wall"/>
        ...   <link name="rod">
        ...     <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
        ...   </link>
        ...   <joint name="hinge" type="continuous"><parent link="wall"/><child link="rod"/></joint>
        ... </robot>
        ... ''')
        >>> nd.load_urdf("pendulum.urdf")
        KinematicTree('pendulum', 1 links, nq=1, nv=1)
        >>> nd.load_urdf("pendulum.urdf", base="floating")
        KinematicTree('pendulum', 2 links, nq=8, nv=7)
    """
    takes = components not in (None, False)
    mimic = ("coupled" if takes else "independent") if mimic is None else mimic
    if mimic not in ("independent", "coupled", "refuse"):
        raise ModelError(f"mimic must be 'independent', 'coupled' or 'refuse', not {mimic!r}.")
    still = positions_of(locked)
    frozen = [*still]
    cleaner = Cleaner(active=clean)
    robot = read_urdf(path, cleaner)
    kept = sensor_joints(robot, frozen) if kept == "sensors" else [kept] if isinstance(kept, str) else list(kept)
    joints = [joint.data for joint in robot.joints]
    with naming(path):
        mimics = [
            joint.name
            for joint in robot.joints
            if joint.mimic is not None and joint.type != "fixed" and joint.name not in frozen
        ]
        followed = mimics if mimic == "independent" else []
        notes = [*cleaner.notes(), *_notes(joints, frozen, kept, followed)]
        if mimics and mimic == "refuse":
            raise ModelError(
                f"robot '{robot.name}' has mimic joints: {', '.join(mimics)}. "
                "Lock them, or load them as independent joints (mimic='independent')."
            )
        tree = assemble(
            robot.name,
            robot.links,
            joints,
            base=base,
            locked=locked,
            kept=kept,
            inertias=inertias,
            gravity=gravity,
            notes=notes,
            file=os.fspath(path),
        )
        moving = moving_joints(tree)
        own: list[Component] = []
        if mimic == "coupled":
            own += couplings(robot, moving, still)
        rubbing = [joint for joint in robot.joints if joint.name in moving and joint.rubs]
        if takes:
            turning = [one for one in transmissions(robot) if one.joint in moving]
            geared = [one.joint for one in turning if one.inertia is None]
            more = [f"transmissions without a rotor inertia left out: {', '.join(geared)}"] if geared else []
        else:
            unmarked = [joint for joint in rubbing if components is False or not _is_identified(joint)]
            rubbing = [joint for joint in rubbing if joint not in unmarked]
            identified = () if components is False else transmissions(robot, identified=True)
            turning = [one for one in identified if one.joint in moving]
            more = [f"friction of {_joints(len(unmarked))} left out: components=True includes it"] if unmarked else []
            marked = [
                f"{what} of {_joints(n)}" for what, n in (("friction", len(rubbing)), ("rotors", len(turning))) if n
            ]
            if marked:
                more.append(f"{' and '.join(marked)} included, since identified: components=False leaves them out")
        own += joint_components((joint.name, Friction, _coefficients(joint)) for joint in rubbing)
        own += [Rotor(joints=t.joint, inertia=t.inertia, gear=t.gear) for t in turning if t.inertia is not None]
        drives = {joint.name: _drive(joint) for joint in robot.joints if joint.name in moving}
        tree = tree.replace(notes=(*tree.notes, *more), drives=drives)
    tree = with_components(tree, own, components, frozen)
    if followed:
        warnings.warn(
            f"robot '{robot.name}': its mimic joints are taken as independent: {', '.join(followed)}.",
            NoriWarning,
            stacklevel=2,
        )
    return tree


def _drive(joint: UrdfJoint) -> DriveLimits:
    """Limits of the drive of a joint; zero, huge or invalid numbers are no limits."""
    found = []
    for attribute, none in (("velocity", NO_SPEED), ("effort", NO_EFFORT)):
        text = joint.printed("limit", attribute)
        limit = math.inf if not_numbers(text, 1) else float(text)
        found.append(limit if 0 < limit < none else math.inf)
    return DriveLimits(*found)


def _notes(
    joints: Sequence[JointData], locked: Sequence[str], kept: Sequence[str], mimics: Sequence[str]
) -> Iterator[str]:
    n_fixed = sum(joint.joint is None and joint.name not in kept for joint in joints)
    if n_fixed == 1:
        yield "1 fixed joint lumped, its link kept as a frame"
    elif n_fixed:
        yield f"{n_fixed} fixed joints lumped, their links kept as frames"
    if locked:
        yield f"locked: {', '.join(locked)}"
    if kept:
        yield f"kept, without freedoms: {', '.join(kept)}"
    if mimics:
        yield f"mimic joints taken as independent: {', '.join(mimics)}"


def _joints(n: int) -> str:
    return f"{n} {'joint' if n == 1 else 'joints'}"


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


def _is_identified(joint: UrdfJoint) -> bool:
    return joint.printed("dynamics", IDENTIFIED) == YES


def _coefficients(joint: UrdfJoint) -> dict[str, float]:
    """Coefficients of the friction of a joint.

    Raises:
        FileFormatError: a number that is none.
    """
    found = {"viscous": _value(joint, "damping"), "coulomb": _value(joint, "friction")}
    is_wide = _is_identified(joint) and joint.printed("dynamics", "width", "") and found["coulomb"]
    return {**found, "width": _value(joint, "width")} if is_wide else found


def _value(joint: UrdfJoint, what: str) -> float:
    text = joint.printed("dynamics", what)
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
        if joint.mimic is None or joint.name not in moving:
            continue
        leader, multiplier, offset = joint.mimic
        if leader not in names:
            raise UnknownModelNameError(f"joint that '{joint.name}' mimics", leader, names, f"robot '{robot.name}'")
        of = {leader: multiplier} if leader in moving else {}
        if not of:
            offset += multiplier * locked.get(leader, 0.0)
        yield Coupling.model_validate({"joint": joint.name, "of": of, "offset": offset})


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
        place = first_of(element, ROTOR)
        if not joint or (identified and (place is None or place.get(IDENTIFIED) != YES)):
            continue  # a differential says what it couples in a way of its own
        gear, inertia = (_number(path, one) for one in (first_of(element, GEAR), place))
        if inertia is not None and inertia < 0:
            raise FileFormatError(f"{where(path, element)}: a rotor's inertia of {inertia:g}: it cannot be negative.")
        yield Transmission(joint, 1.0 if gear is None else gear, inertia)


def transmitted(transmission: Any) -> str:
    """Joint of a <transmission> of one joint; empty for others."""
    joints = [joint.get("name") for joint in transmission.findall("joint")]
    return (joints[0] or "") if len(joints) == 1 else ""


def first_of(element: Any, tags: tuple[str, ...]) -> Any:
    """First descendant with one of some names, whatever its prefix, or None."""
    found = (one for tag in tags for one in element.iter() if re.split("[}:]", str(one.tag))[-1] == tag)
    return next(found, None)


def _number(path: str | os.PathLike[str], element: Element | None) -> float | None:
    """Number in an element, or None without one."""
    if element is None:
        return None
    text = element.get("value") or (element.text or "").strip()
    problem = not_numbers(text, 1)
    if problem:
        raise FileFormatError(f"{where(path, element)}: <{element.tag}> is '{text}': {problem}.")
    return float(text)
