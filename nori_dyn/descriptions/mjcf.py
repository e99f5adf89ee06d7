"""Kinematic trees of MJCF files, compiled by MuJoCo."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.component_files import with_components
from nori_dyn.descriptions.mjcf_components import MjcfComponents, beyond_components, components_in
from nori_dyn.descriptions.mjcf_model import ROOT, MjcfModel, compiled, mjcf_sensors, rotation
from nori_dyn.errors import ModelError, NoriWarning, UnknownModelNameError, naming
from nori_dyn.model.assembly import JointData, assemble, positions_of
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import Inertias, LinkData
from nori_dyn.model.joints import Free, Joint, Prismatic, Revolute, Spherical
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats


def load_mjcf(
    path: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    locked: Sequence[str] | Mapping[str, float] = (),
    kept: Sequence[str] = (),
    components: bool | str | os.PathLike[str] = True,
    inertias: Inertias = "as_given",
    gravity: tuple[float, float, float] | None = None,
    clean: bool = True,
) -> KinematicTree:
    """Load the kinematic tree of an MJCF file, with its components.

    hinge, slide, ball and free joints become Revolute, Prismatic, Spherical and Free; q is MuJoCo's qpos,
    with `ref` in X_tree and quaternions as (x, y, z, w). Velocities of ball and free joints are in body
    coordinates, angular first. A body with several joints is a chain of massless links `BODY/JOINT` that ends
    in the body; one without joints is lumped into the body that carries it. The frame of a link has the axes
    of MuJoCo's body frame and its origin in the joint's anchor; where that moves the origin, the body frame
    is the frame `BODY/body`. Named sites are frames (`SITE/site` where a body has that name). What has no
    name is called by its number: body3, joint5.

    armature, damping and frictionloss, stiffness with springref become rotors, friction and springs; tendons
    become passive ones of their name; `equality` connect and weld loops between frames `NAME/BODY`, joint and
    tendon couplings and tendons that are held. They hold exactly, where MuJoCo's are as soft as its solref says.
    What no component says is ignored with a warning that names it; limits and contacts are no part of a tree.

    Args:
        path: the file.
        base: "floating" puts the one body that the world carries on a free joint; a model whose moving bodies
            are on free joints already stays as it is.
        locked: joints to freeze, at zero or (a mapping) at the position given [rad or m].
        kept: bodies without joints whose weld to the body that carries them is kept as a joint `BODY/fixed` of no
            freedoms, so that the wrench f through it is a variable, and locked joints likewise; "sensors" for those
            with a force or torque sensor in the model.
        components: True takes in those of the model, False gives the bare rigid bodies; the path of a YAML file
            (see `load_components`) adds those that it describes to the model's.
        inertias: what to make of inertias that no distribution of mass has, as of `load_urdf`. MuJoCo refuses them
            itself; a model with `<compiler balanceinertia="true"/>` makes them spheres.
        gravity: [m/s^2] in world axes; None takes the model's.
        clean: remove rounding (components within 1e-12 of 0 or ±1) from rotations, axes and positions.

    Raises:
        MissingExtraError: mujoco is not installed.
        FileFormatError: not a readable file, or not an MJCF model.
        ModelError: MuJoCo refuses the model, a floating base that makes no sense, an unknown locked joint, a kept body
            that is unknown or has joints, components that do not fit.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("pendulum.xml").write_text('''
        ... <mujoco model="pendulum"><worldbody><body name="rod">
        ...   <joint name="hinge" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/>
        ... </body></worldbody></mujoco>
        ... ''')
        >>> nd.load_mjcf("pendulum.xml")
        KinematicTree('pendulum', 1 links, nq=1, nv=1)
    """
    mjcf = compiled(path)
    reader = MjcfReader(mjcf, Cleaner(active=clean))
    still = positions_of(locked)
    kept = _sensed(mjcf, still) if kept == "sensors" else [kept] if isinstance(kept, str) else list(kept)
    with naming(path):
        float_it, notes = reader.read(base)
        welds = reader.welds(kept, still)
        notes += [*reader.cleaner.notes(), *reader.notes(still, kept)]
        tree = assemble(
            mjcf.name,
            reader.links,
            reader.joints,
            base="floating" if float_it else "fixed",
            locked=locked,
            kept=welds,
            inertias=inertias,
            gravity=_gravity(mjcf) if gravity is None else gravity,
            notes=notes,
            file=os.fspath(path),
        )
        if components in (None, False):
            left_out = [*components_in(mjcf.model), *beyond_components(mjcf.model)]
            return tree.replace(notes=(*tree.notes, f"left out: {', '.join(left_out)}")) if left_out else tree
        found = MjcfComponents(mjcf, tree, reader.anchors, still, reader.cleaner)
        own, more = found.read()
        tree = tree.replace(frames={**tree.frames, **found.frames}, notes=(*tree.notes, *more))
    tree = with_components(tree, own, components, still)
    if found.ignored:
        warnings.warn(
            f"robot '{mjcf.name}': ignored: {', '.join(found.ignored)}. The equations do not include them.",
            NoriWarning,
            stacklevel=2,
        )
    return tree


def _sensed(mjcf: MjcfModel, locked: Collection[str]) -> list[str]:
    """The bodies without joints, and the locked joints, that carry a force or torque sensor."""
    entries = [sensor.entry for sensor in mjcf_sensors(mjcf) if sensor.entry is not None]
    joints = dict.fromkeys(entry["joints"] for entry in entries if entry["type"] == "force_torque")
    welds = {f"{link}/fixed": link for body, link in enumerate(mjcf.links) if not mjcf.model.body_jntnum[body]}
    return [*(welds[joint] for joint in joints if joint in welds), *(joint for joint in joints if joint in locked)]


@dataclass
class MjcfReader:
    """Turns MuJoCo bodies into links and joints, parents first.

    Attributes:
        mjcf: the model.
        cleaner: removes rounding.
        links: links so far.
        joints: joints so far.
        anchors: where the link frame of each body is, in its body frame (3,) [m].
    """

    mjcf: MjcfModel
    cleaner: Cleaner
    links: list[LinkData] = field(default_factory=list)
    joints: list[JointData] = field(default_factory=list)
    anchors: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mujoco, self.model, self.name = self.mjcf.mujoco, self.mjcf.model, self.mjcf.named

    def joints_of(self, body: int) -> range:
        first = int(self.model.body_jntadr[body])
        return range(first, first + int(self.model.body_jntnum[body]))

    def read(self, base: str) -> tuple[bool, list[str]]:
        """Read the links and joints; return whether to add a free joint to the root, and notes.

        Raises:
            ModelError: a floating base that makes no sense.
        """
        float_it, bodies, notes = _base(self, base)
        for body in bodies:
            self.add(body, is_root=body == bodies[0])
        return float_it, notes

    def add(self, body: int, is_root: bool) -> None:
        """Add a body, and the joints that it is on unless it is the root of the tree."""
        m = self.model
        name = self.name("body", body)
        numbers = range(0) if is_root else self.joints_of(body)
        anchor = np.zeros(3)
        if not is_root:
            # The frame of the body before its joints move, then each joint's anchor in it.
            carrier = int(m.body_parentid[body])
            parent, parent_anchor = self.name("body", carrier), self.anchors[carrier]
            R = self.cleaner.rotation(rotation(m.body_quat[body]))
            place = Transform(np.ascontiguousarray(R.T), np.array(m.body_pos[body]) - parent_anchor)
            for number in numbers:
                is_last = number == numbers[-1]
                joint, before, at = self._joint(number)
                if isinstance(joint, Free):  # its pose in the file is MuJoCo's initial state only
                    place, at = Transform.identity(), np.zeros(3)
                child = name if is_last else f"{name}/{self.name('joint', number)}"
                X = before @ Transform(np.eye(3), at - anchor) @ place
                self.joints.append(JointData(self.name("joint", number), parent, child, self._clean(X), joint))
                if not is_last:
                    self.links.append(LinkData(child))
                parent, anchor, place = child, at, Transform.identity()
            if not numbers:
                self.joints.append(JointData(f"{name}/fixed", parent, name, self._clean(place), None))
        self.anchors[body] = anchor
        R = self.cleaner.rotation(rotation(m.body_iquat[body]))
        self.links.append(
            LinkData(
                name,
                float(m.body_mass[body]),
                np.array(m.body_ipos[body]) - anchor,
                R @ np.diag(m.body_inertia[body]) @ R.T,
                dict(self._frames(body, name, anchor)),
            )
        )

    def _joint(self, number: int) -> tuple[Joint, Transform, Floats]:
        """Model of a joint, its X_J(-ref), and its anchor (3,) [m] in the body frame."""
        m = self.model
        types = self.mujoco.mjtJoint
        anchor = np.array(m.jnt_pos[number])
        kind = m.jnt_type[number]
        if kind == types.mjJNT_FREE:
            return Free(), Transform.identity(), anchor
        if kind == types.mjJNT_BALL:
            return Spherical(), Transform.identity(), anchor
        limits = (-math.inf, math.inf)
        if m.jnt_limited[number]:
            lower, upper = m.jnt_range[number]
            limits = (float(lower), float(upper))
        axis = self.cleaner.axis(np.array(m.jnt_axis[number]))
        joint = (Revolute if kind == types.mjJNT_HINGE else Prismatic)(axis, limits)
        ref = float(m.qpos0[m.jnt_qposadr[number]])
        return joint, joint.transform(np.array([-ref])) if ref else Transform.identity(), anchor

    def _frames(self, body: int, name: str, anchor: Floats) -> Iterator[tuple[str, Transform]]:
        m = self.model
        if anchor.any():
            yield f"{name}/body", Transform(np.eye(3), -anchor)
        for site in np.flatnonzero(m.site_bodyid == body).tolist():
            if self.mjcf.given_name("site", site):
                R = self.cleaner.rotation(rotation(m.site_quat[site]))
                X = Transform(np.ascontiguousarray(R.T), np.array(m.site_pos[site]) - anchor)
                yield self.mjcf.site_frame(site), X

    def _clean(self, X: Transform) -> Transform:
        return Transform(self.cleaner.rotation(X.E), self.cleaner.position(X.r))

    def welds(self, kept: Sequence[str], locked: Collection[str]) -> list[str]:
        """Joints to keep: the welds of bodies, and locked joints.

        Raises:
            UnknownModelNameError: neither a body without joints nor a locked joint.
        """
        welded = {joint.child: joint.name for joint in self.joints if joint.joint is None}
        for name in kept:
            if name not in welded and name not in locked:
                raise UnknownModelNameError("body without joints to keep", name, (*welded, *locked))
        return [welded.get(name, name) for name in kept]

    def notes(self, locked: Collection[str], kept: Sequence[str]) -> Iterator[str]:
        """Notes on what was done to the model."""
        n_between = len(self.links) - len(self.anchors)
        if n_between:
            yield f"{n_between} massless links added between the joints of bodies with several joints"
        n_fixed = sum(joint.joint is None and joint.child not in kept for joint in self.joints)
        if n_fixed:
            yield f"{_bodies(n_fixed)} without joints lumped, kept as frames"
        if locked:
            yield f"locked: {', '.join(locked)}"
        if kept:
            yield f"kept, without freedoms: {', '.join(kept)}"


def _base(reader: MjcfReader, base: str) -> tuple[bool, list[int], list[str]]:
    """Whether to add a free joint, the bodies of the tree with its root first, and notes."""
    m = reader.model
    everything = list(range(m.nbody))
    if base not in ("fixed", "floating"):
        raise ModelError(f"base must be 'fixed' or 'floating', not {base!r}.")
    if base == "fixed":
        return False, everything, []
    top = [body for body in everything[1:] if m.body_parentid[body] == ROOT]
    subtrees = {body: np.flatnonzero(m.body_rootid == body).tolist() for body in top}
    movers = [body for body in top if any(len(reader.joints_of(i)) for i in subtrees[body])]
    names = [reader.name("body", body) for body in movers]
    free = [any(m.jnt_type[j] == reader.mujoco.mjtJoint.mjJNT_FREE for j in reader.joints_of(body)) for body in movers]
    if movers and all(free):
        return False, everything, ["the base is on a free joint of the model already"]
    if len(movers) != 1 and len(top) != 1:
        shown = f"{len(movers)} moving bodies ({', '.join(names)})" if movers else "no moving body"
        raise ModelError(
            f"base='floating': the world carries {shown}, so it is not clear which one is the base. "
            "Give the base a <freejoint/> in the model, and load it with base='fixed'."
        )
    body = movers[0] if movers else top[0]
    if reader.joints_of(body):
        raise ModelError(
            f"base='floating': the base '{reader.name('body', body)}' is on joint "
            f"'{reader.name('joint', reader.joints_of(body)[0])}' to the world. "
            "Remove that joint, or load it with base='fixed'."
        )
    left_out = len(everything) - 1 - len(subtrees[body])
    notes = [f"{_bodies(left_out)} fixed to the world left out"] if left_out else []
    return True, subtrees[body], notes


def _bodies(n: int) -> str:
    return f"{n} {'body' if n == 1 else 'bodies'}"


def _gravity(mjcf: MjcfModel) -> tuple[float, float, float]:
    if mjcf.model.opt.disableflags & mjcf.mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        return (0.0, 0.0, 0.0)
    x, y, z = (float(component) for component in mjcf.model.opt.gravity)
    return x, y, z
