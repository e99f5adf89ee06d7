"""Robots that Pinocchio has loaded.

Nothing of Pinocchio is imported: the model comes with all that is asked of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.components import Coupling, Friction, Rotor
from nori_dyn.components.base import Component
from nori_dyn.components.building import JointTermData, component, joint_components
from nori_dyn.errors import ModelError, NoriWarning
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import Inertias, LinkData, notes_on_links, physical_links, warn_of_links
from nori_dyn.model.joints import (
    Continuous,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    notes_on_limits,
)
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.typing import Floats

NO_LIMIT = 1e6
"""A limit of this size or more [rad or m] is how Pinocchio and some exporters write that there is none."""

FRAME_KINDS = ("BODY", "OP_FRAME", "SENSOR", "FIXED_JOINT")
"""Pinocchio's kinds of frames that are kept; where two have one name, the first kind's."""

_REVOLUTE = ("RX", "RY", "RZ", "RevoluteUnaligned")
_CONTINUOUS = ("RUBX", "RUBY", "RUBZ", "RevoluteUnboundedUnaligned")
_PRISMATIC = ("PX", "PY", "PZ", "PrismaticUnaligned")
_HELICAL = ("HX", "HY", "HZ", "HelicalUnaligned")
_WHOLE: dict[str, type[Joint]] = {"FreeFlyer": Free, "Spherical": Spherical, "Planar": Planar}


def from_pinocchio(
    model: Any,
    *,
    name: str | None = None,
    components: bool = True,
    friction: bool = False,
    gravity: tuple[float, float, float] | None = None,
    inertias: Inertias = "as_given",
    clean: bool = True,
) -> KinematicTree:
    """Kinematic tree of a pinocchio.Model, its joints in the model's order.

    Link coordinates are those of Pinocchio's joints, which for a URDF are its link frames. A link has the name of the
    first body that the model has on its joint, in place, or the joint's where there is none; other bodies and the
    frames of operations, sensors and fixed joints are frames. A joint without bounds (cosine and sine in q) becomes
    Continuous. A mimic joint is one of its own, coupled with the one that it follows. What is to stay in place, freeze
    with pinocchio.buildReducedModel.

    Args:
        model: the model.
        name: the robot's name; the model's without it.
        components: whether the model's armature becomes rotors, as Pinocchio's own algorithms have it, and mimic joints
            are coupled.
        friction: whether its damping and dry friction are taken in, which Pinocchio's own algorithms leave out.
        gravity: [m/s^2] in world axes; the model's without it.
        inertias: what to make of inertias that no distribution of mass has, since a principal moment is negative or
            larger than the sum of the others. "as_given" takes them with a warning; "nearest" takes the nearest that
            some distribution has (in the second moments of the mass; mass, centre of mass and principal axes stay),
            and `notes` say so; "refuse" raises.
        clean: remove rounding (components within 1e-12 of 0 or ±1) from rotations, axes and positions. Angles
            printed in a URDF are past recognition here: `load_urdf` cleans more.

    Raises:
        ModelError: not a model, a kind of joint that is not supported (named), no joint, an unphysical inertia,
            gravity with an angular part.
    """
    check_model(model)
    cleaner = Cleaner(active=clean)
    joints = range(1, model.njoints)
    neutral = _neutral(model)
    links = dict(zip(joints, _link_names(model), strict=True))
    bodies, odd = physical_links([_link(link, model.inertias[j]) for j, link in links.items()], inertias)
    tree = KinematicTree(
        name=name or model.name or "robot",
        names=tuple(links.values()),
        joint_names=tuple(model.names[j] for j in joints),
        parents=tuple(int(model.parents[j]) - 1 for j in joints),
        joints=tuple(_joint(model, j, neutral, cleaner) for j in joints),
        X_tree=tuple(_transform(f"joint '{model.names[j]}'", model.jointPlacements[j], cleaner) for j in joints),
        I=np.array([spatial_inertia(body.mass, body.com, body.I_com) for body in bodies]).reshape(-1, 6, 6),
        frames=dict(_frames(model, set(links.values()), cleaner)),
        gravity=_gravity(model) if gravity is None else gravity,
    )
    if odd and inertias == "as_given":
        warn_of_links(odd, tree, file="", stacklevel=2)
    origin = f"from a model of Pinocchio's with {model.njoints - 1} joints"
    found, left_out, ignored = pinocchio_components(model, components, friction)
    if ignored:
        warnings.warn(f"robot '{tree.name}': ignored: {', '.join(ignored)}.", NoriWarning, stacklevel=2)
    mended = notes_on_links(odd) if inertias == "nearest" else ()
    notes = (origin, *cleaner.notes(), *mended, *notes_on_limits(tree.joint_names, tree.joints), *left_out)
    return tree.replace(notes=notes, components=tuple(found))


def check_model(model: Any) -> None:
    """Check that something is a pinocchio.Model over doubles.

    Raises:
        ModelError: it is not.
    """
    if not all(hasattr(model, name) for name in ("njoints", "joints", "jointPlacements", "inertias", "frames")):
        hint = " Give its .model." if hasattr(model, "model") else ""
        raise ModelError(f"a pinocchio.Model is needed, not {type(model).__name__}.{hint}")
    if model.lowerPositionLimit.dtype != np.float64:
        raise ModelError("a pinocchio.Model over doubles is needed, not over symbols.")


def _neutral(model: Any) -> Floats:
    """Configuration (model.nq,) at which the motion subspace of each joint is defined."""
    q = np.zeros(model.nq)
    for joint in list(model.joints)[1:]:
        if joint.nq > joint.nv:
            q[joint.idx_q + joint.nq - 1] = 1.0
        if kind_of(joint) in _CONTINUOUS or kind_of(joint) == "Planar":
            q[joint.idx_q + joint.nq - 2 : joint.idx_q + joint.nq] = 1.0, 0.0
    return q


def _joint(model: Any, j: int, neutral: Floats, cleaner: Cleaner) -> Joint:
    """Model of joint j, its axis read off the motion subspace that Pinocchio computes."""
    peer, name = model.joints[j], model.names[j]
    kind = kind_of(peer)
    if kind in _WHOLE:
        return _WHOLE[kind]()
    if kind not in (*_REVOLUTE, *_CONTINUOUS, *_PRISMATIC, *_HELICAL, MIMIC):
        supported = "revolute, prismatic and helical (aligned or not), unbounded revolute, FreeFlyer, Spherical, Planar"
        raise ModelError(
            f"joint '{name}' of the model is a {kind}, which is not supported. Supported: {supported}. "
            "Make it a chain of such joints, or freeze it with pinocchio.buildReducedModel."
        )
    data = peer.createData()
    peer.calc(data, neutral)
    linear, angular = np.split(np.ravel(data.S), 2)
    if kind == MIMIC:
        return _mimicking(name, linear, angular, float(peer.extract().scaling), cleaner)
    if kind in _CONTINUOUS:
        return Continuous(cleaner.axis(angular))
    limits = _limits(model, int(peer.idx_q))
    if kind in _PRISMATIC:
        return Prismatic(cleaner.axis(linear), limits)
    if kind in _REVOLUTE:
        return Revolute(cleaner.axis(angular), limits)
    return Helical(cleaner.axis(angular), limits, pitch=float(linear @ angular))


def _mimicking(name: str, linear: Floats, angular: Floats, scaling: float, cleaner: Cleaner) -> Joint:
    """Model of a joint that mimics another one, whose limits are those of that one.

    Its motion subspace is that of the other one's velocity: `scaling` times its own.
    """
    if (linear.any() and angular.any()) or not scaling:
        raise ModelError(
            f"joint '{name}' of the model is a mimic joint that is helical, or of scaling 0: neither is supported. "
            "Freeze it with pinocchio.buildReducedModel."
        )
    if angular.any():
        return Revolute(cleaner.axis(angular / scaling))
    return Prismatic(cleaner.axis(linear / scaling))


def _limits(model: Any, k: int) -> tuple[float, float]:
    lower, upper = float(model.lowerPositionLimit[k]), float(model.upperPositionLimit[k])
    return (-math.inf if lower <= -NO_LIMIT else lower, math.inf if upper >= NO_LIMIT else upper)


def _link_names(model: Any) -> Iterator[str]:
    """Yield the name of the link on each joint: of the first body that is in place on it, or the joint's."""
    bodies: dict[int, str] = {}
    for frame in model.frames:
        if frame.type.name == "BODY" and frame.placement.isIdentity():
            bodies.setdefault(int(frame.parentJoint), frame.name)
    taken: set[str] = set()
    for j in range(1, model.njoints):
        body = bodies.get(j, model.names[j])
        yield model.names[j] if body in taken else body
        taken.add(body)


def _frames(model: Any, links: set[str], cleaner: Cleaner) -> Iterator[tuple[str, Frame]]:
    taken = {*links, model.frames[0].name}  # the first is the world itself
    for kind in FRAME_KINDS:
        for frame in model.frames:
            if frame.type.name == kind and frame.name not in taken:
                taken.add(frame.name)
                X = _transform(f"frame '{frame.name}'", frame.placement, cleaner)
                yield frame.name, Frame(int(frame.parentJoint) - 1, X)


def _transform(what: str, placement: Any, cleaner: Cleaner) -> Transform:
    if not np.isfinite(placement.homogeneous).all():
        raise ModelError(f"the placement of {what} holds a value that is not finite.")
    R = np.array(placement.rotation)
    return Transform(cleaner.rotation(np.ascontiguousarray(R.T)), cleaner.position(np.array(placement.translation)))


def _link(name: str, inertia: Any) -> LinkData:
    I_com = np.array(inertia.inertia)
    return LinkData(name, float(inertia.mass), np.array(inertia.lever), (I_com + I_com.T) / 2)


def _gravity(model: Any) -> tuple[float, float, float]:
    if np.any(model.gravity.angular):
        raise ModelError(
            f"the model's gravity has an angular part: {np.array(model.gravity.angular)}. Give its linear part alone."
        )
    x, y, z = (float(component) for component in model.gravity.linear)
    return x, y, z


MIMIC = "Mimic"
"""Pinocchio's kind of a joint that follows another one, and has no freedom of its own."""


def kind_of(joint: Any) -> str:
    """Pinocchio's name for the kind of a joint."""
    return str(joint.shortname()).removeprefix("JointModel")


def pinocchio_components(model: Any, components: bool, friction: bool) -> tuple[list[Component], list[str], list[str]]:
    """Components of a model, see `from_pinocchio`; for people what was left out as asked, and what no component says.

    Raises:
        ModelError: a negative number.
    """
    notes, ignored = list[str](), list[str]()
    armature, damping = _of(model, "armature"), _of(model, "damping")
    dry = _of(model, "upperDryFrictionLimit", "friction")
    if np.any(armature) and not components:
        notes.append("armature left out")
    if (np.any(damping) or np.any(dry)) and not friction:
        notes.append("damping and dry friction left out: friction=True includes them")
    one_way = friction and np.any(_of(model, "lowerDryFrictionLimit") + dry) and hasattr(model, "lowerDryFrictionLimit")
    if one_way:
        ignored.append("dry friction that is not the same both ways")
        dry = np.zeros(model.nv)
    terms = [*_terms(model, ignored, "armature", Rotor, {"inertia": armature})] if components else []
    if friction:
        terms += _terms(model, ignored, "friction", Friction, {"viscous": damping, "coulomb": dry})
    found = [*joint_components(terms), *(_couplings(model) if components else ())]
    return found, notes, ignored


def _of(model: Any, *names: str) -> Floats:
    """First of some arrays (nv,) of a model that it has; zeros without one."""
    return next((np.array(getattr(model, name)) for name in names if hasattr(model, name)), np.zeros(model.nv))


def _terms(
    model: Any, ignored: list[str], what: str, kind: type[Component], numbers: dict[str, Floats]
) -> Iterator[JointTermData]:
    """Yield what acts on joints; a joint whose freedoms differ is ignored by name."""
    for j in range(1, model.njoints):
        peer = model.joints[j]
        own = {name: values[peer.idx_v : peer.idx_v + peer.nv] for name, values in numbers.items()}
        if any(np.ptp(values) for values in own.values() if len(values)):
            ignored.append(f"{what} of joint '{model.names[j]}', whose freedoms have different ones")
        elif peer.nv:
            yield model.names[j], kind, {name: float(values[0]) for name, values in own.items()}


def _couplings(model: Any) -> Iterator[Coupling]:
    """Yield what mimic joints follow."""
    for j, leader in zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ()), strict=True):
        mimic = model.joints[j].extract()
        of = {model.names[leader]: float(mimic.scaling)}
        yield component(Coupling, {"joint": model.names[j], "of": of, "offset": float(mimic.offset)})
