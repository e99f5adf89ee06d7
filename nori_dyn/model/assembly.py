"""From the links and joints that a model file lists to a kinematic tree.

Checks the graph, locks joints, lumps fixed links into the body that carries them unless their joint is kept, adds a
floating base.
Source: RBDA ch. 4.1-4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

import numpy as np

from nori_dyn.algebra.spatial import Transform, skew, spatial_inertia
from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.model.inertia import Inertias, LinkData, first_few, notes_on_links, physical_links, warn_of_links
from nori_dyn.model.joints import Fixed, Free, Joint, notes_on_limits
from nori_dyn.model.tree import GRAVITY, WORLD, Frame, KinematicTree
from nori_dyn.typing import Floats

FLOATING_JOINT = "root_joint"
"""Name of the free joint that `base="floating"` adds."""


@dataclass(frozen=True, slots=True)
class JointData:
    """A joint as a file gives it.

    Attributes:
        name: its name.
        parent: name of the link that carries it.
        child: name of the link that it carries.
        X_tree: transform from the parent's coordinates to the frame where the joint sits.
        joint: the joint model; None is fixed.
    """

    name: str
    parent: str
    child: str
    X_tree: Transform
    joint: Joint | None


def assemble(
    name: str,
    links: Sequence[LinkData],
    joints: Sequence[JointData],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    locked: Sequence[str] | Mapping[str, float] = (),
    kept: Sequence[str] = (),
    inertias: Inertias = "as_given",
    gravity: tuple[float, float, float] = GRAVITY,
    notes: Sequence[str] = (),
    file: str = "",
) -> KinematicTree:
    """The tree of the links and joints of a model.

    Args:
        name: the robot's name, for messages.
        links: all links, in any order.
        joints: all joints, fixed ones included, in any order.
        base: "fixed" makes the root link part of the world; "floating" puts it on a free joint.
        locked: joints to freeze, at zero or (a mapping) at the position given [rad or m].
        kept: fixed or locked joints to keep as joints of no freedoms, so that the wrench through them is a variable.
        inertias: treatment of those that no distribution of mass has: they are taken as they are, with a warning; or
            the nearest that some distribution has is; or they are refused.
        gravity: [m/s^2] in world axes.
        notes: changes of the model by the loader so far.
        file: where they are from, for warnings; those who load a file name it in errors.

    Raises:
        ModelError: a cycle, two roots, a missing link, two parents, unphysical inertias, an unknown locked or
            kept joint, a kept joint that moves.
    """
    if base not in ("fixed", "floating"):
        raise ModelError(f"base must be 'fixed' or 'floating', not {base!r}.")
    locked = positions_of(locked)
    links, odd = physical_links(links, inertias)
    order = _topological_order(name, links, joints)
    for joint_name in locked:
        if joint_name not in {j.name for j in joints}:
            known = tuple(j.name for j in joints if j.joint is not None)
            raise UnknownModelNameError("joint to lock", joint_name, known, f"robot '{name}'")
    kept = (kept,) if isinstance(kept, str) else tuple(kept)
    _check_kept(name, joints, kept, locked)

    by_name = {link.name: link for link in links}
    by_child = {joint.child: joint for joint in joints}
    names: list[str] = []
    joint_names: list[str] = []
    parents: list[int] = []
    models: list[Joint] = []
    X_tree: list[Transform] = []
    carried: list[list[tuple[LinkData, Transform]]] = []  # the links of each body
    place: dict[str, Frame] = {}  # where each link of the file is: on which body, and at which transform
    frames: dict[str, Frame] = {}

    for link_name in order:
        link, joint = by_name[link_name], by_child.get(link_name)
        model: Joint | None
        if joint is None:
            carrier, X, model = WORLD, Transform.identity(), Free() if base == "floating" else None
            joint_name = FLOATING_JOINT
        else:
            on = place[joint.parent]
            carrier, X, model = on.link, joint.X_tree @ on.X, joint.joint
            joint_name = joint.name
            if model is not None and joint_name in locked:
                X, model = _lock(joint_name, model, locked[joint_name]) @ X, None
            if model is None and joint_name in kept:
                model = Fixed()

        if model is None:
            frame = place[link_name] = frames[link_name] = Frame(carrier, X)
            if carrier != WORLD:
                carried[carrier].append((link, X))
        else:
            frame = place[link_name] = Frame(len(names), Transform.identity())
            names.append(link_name)
            joint_names.append(joint_name)
            parents.append(carrier)
            models.append(model)
            X_tree.append(X)
            carried.append([(link, Transform.identity())])
        frames.update({key: Frame(frame.link, to_frame @ frame.X) for key, to_frame in link.frames.items()})

    tree = KinematicTree(
        name=name,
        names=tuple(names),
        joint_names=tuple(joint_names),
        parents=tuple(parents),
        joints=tuple(models),
        X_tree=tuple(X_tree),
        I=np.array([lumped(parts) for parts in carried]).reshape(-1, 6, 6),
        frames=frames,
        gravity=gravity,
        notes=(*notes, *(notes_on_links(odd) if inertias == "nearest" else ()), *notes_on_limits(joint_names, models)),
    )
    if odd and inertias == "as_given":
        warn_of_links(odd, tree, file, stacklevel=3)
    return tree


def positions_of(locked: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """The positions [rad or m] at which joints are frozen: zero where only their names are given."""
    names = (locked,) if isinstance(locked, str) else locked
    return dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, 0.0)


def _check_kept(name: str, joints: Sequence[JointData], kept: Sequence[str], locked: Mapping[str, float]) -> None:
    models = {joint.name: joint.joint for joint in joints}
    fixed = tuple(joint for joint, model in models.items() if model is None or joint in locked)
    for joint in kept:
        if joint not in fixed:
            model = models.get(joint)
            moves = "" if model is None else f" ('{joint}' is {model.kind}; only fixed or locked joints can be kept);"
            raise UnknownModelNameError(f"fixed joint to keep{moves}", joint, fixed, f"robot '{name}'")


def _topological_order(name: str, links: Sequence[LinkData], joints: Sequence[JointData]) -> list[str]:
    """The link names depth first from the root, siblings in the order of the file."""
    children: dict[str, dict[str, str]] = {}  # of each link, the links that it carries, each with its joint
    for link in links:
        if link.name in children:
            raise ModelError(f"robot '{name}' has two links named '{link.name}'.")
        children[link.name] = {}
    carriers: dict[str, list[str]] = {link: [] for link in children}  # of each link, the joints that carry it
    seen: set[str] = set()
    for joint in joints:
        if joint.name in seen:
            raise ModelError(f"robot '{name}' has two joints named '{joint.name}'.")
        seen.add(joint.name)
        for role, end in (("parent", joint.parent), ("child", joint.child)):
            if end not in children:
                raise UnknownModelNameError(
                    f"{role} link of joint '{joint.name}':",
                    end,
                    (link.name for link in links),
                    f"robot '{name}'",
                )
        if joint.child in children[joint.parent]:
            twin = children[joint.parent][joint.child]
            raise ModelError(
                f"robot '{name}': joints '{twin}' and '{joint.name}' both connect '{joint.parent}' to "
                f"'{joint.child}'. A link of a kinematic tree has one joint to its parent: remove one."
            )
        children[joint.parent][joint.child] = joint.name
        carriers[joint.child].append(joint.name)
    if not children:
        raise ModelError(f"robot '{name}' has no links: its file describes no body.")
    try:
        TopologicalSorter(children).prepare()
    except CycleError as error:
        path = " -> ".join(reversed(error.args[1]))
        raise ModelError(
            f"robot '{name}' has a cycle: {path}. A kinematic tree has none: cut one of its joints."
        ) from None
    for link_name, by in carriers.items():
        if len(by) > 1:
            above = first_few([f"'{joint}'" for joint in by])
            raise ModelError(
                f"robot '{name}': link '{link_name}' is the child of {above}. "
                "A link of a kinematic tree has one parent: this is a closed loop; cut one of its joints."
            )
    roots = [link_name for link_name, by in carriers.items() if not by]
    if len(roots) != 1:
        named = first_few([f"'{link}'" for link in roots])
        raise ModelError(
            f"robot '{name}' has {len(roots)} roots: {named}. Connect them by joints (a fixed one will do)."
        )
    order, stack = [], roots
    while stack:
        link_name = stack.pop()
        order.append(link_name)
        stack.extend(reversed(children[link_name]))
    return order


def lumped(parts: Sequence[tuple[LinkData, Transform]]) -> Floats:
    """The spatial inertia (6, 6) of links fixed to one body, each with its transform from the body's frame.

    Added up as mass, centre and rotational inertia, so that the structure (m 1, m c x, symmetry) stays exact.
    """
    mass = sum(link.mass for link, _ in parts)
    coms = [X.r + X.E.T @ link.com for link, X in parts]
    com = np.zeros(3)
    if mass > 0:
        com = sum((link.mass * c for (link, _), c in zip(parts, coms, strict=True)), com) / mass
    I_com = np.zeros((3, 3))
    for (link, X), c in zip(parts, coms, strict=True):
        C = skew(c - com)
        I_com += X.E.T @ link.I_com @ X.E - link.mass * C @ C
    return spatial_inertia(mass, com, (I_com + I_com.T) / 2)


def _lock(name: str, joint: Joint, position: float) -> Transform:
    if not np.isfinite(position):
        raise ModelError(f"joint '{name}' cannot be locked at {position}: give a finite position.")
    if position and joint.nq != 1:
        raise ModelError(f"joint '{name}' ({joint.kind}) can be locked at its neutral configuration only.")
    q = joint.neutral() if joint.nq != 1 else np.array([float(position)])
    X = joint.transform(q)
    return Transform(np.asarray(X.E, dtype=float), np.asarray(X.r, dtype=float))
