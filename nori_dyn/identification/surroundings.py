"""What a robot that moves has around it: contacts on which it stands, its own body, the floor.

A robot that stands keeps its balance: the wrench of the ground stays in the cone of what its contacts can give. The
corners p of soles, and points on which a robot stands, give forces f within friction cones, here pyramids inside
these. So the wrench w of the ground is a sum of the rays (p x f, f) with factors that are not negative. Contacts stand
still: this contact wrench cone is the same all the time, and its faces a^T w <= 0 are found once, as those of the
convex hull of its rays at a normal force of 1. They say that no foot tips, slips or turns, whatever the shares of the
feet. On level ground those without friction are the zero-moment point in the hull of the soles.

The wrench is what inverse dynamics asks at the free joint of the base. The ratio of a face is 1 where w is on it, and 0
where w is as far inside as the weight in the middle of the cone.

Source: Hirukawa et al. (2006) and Caron, Pham and Nakamura (2015) for the cone; the derivatives are ours
(tests/unit/identification/test_motion_constraints.py).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.spatial import ConvexHull

from nori_dyn.algebra.arrays import checked
from nori_dyn.algebra.ranges import width
from nori_dyn.components.loop import Loop
from nori_dyn.descriptions.surfaces import solids
from nori_dyn.errors import InputError, MissingExtraError, UnknownModelNameError
from nori_dyn.identification.clearance import Clearance, level_axes
from nori_dyn.identification.dependent_joints import DependentJoints, MovingJoints
from nori_dyn.identification.motion_gradient import MotionGradient, Pullback
from nori_dyn.measurements.binding import scalar_rows
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.closure import closed
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.system.builder import System
from nori_dyn.tables import listed
from nori_dyn.typing import Array, Floats

Hold: TypeAlias = Literal["pose", "point"]
"""How a contact stands: flat, or on a point about which it turns."""

OF_DRIVES = 0.01
"""Standard deviation of torques that are read, as a share of what the drive can give; 1 N m or 1 N where not known."""


@dataclass(frozen=True)
class Surroundings:
    """What motions must not disturb.

    Attributes:
        contacts: frames that stand on the ground, and how.
        shapes: the robot's file, or its name, whose collision shapes stay apart; None where they are not known.
        floor: height of the floor [m]; where None, that on which contacts stand.
        apart: how far shapes stay apart [m].
        ground_friction: coefficient of the ground on which contacts keep the robot in balance; None where that is open.
    """

    contacts: Mapping[str, Hold]
    shapes: str | os.PathLike[str] | None = None
    floor: float | None = None
    apart: float = 0.01
    ground_friction: float | None = None

    @staticmethod
    def of(
        contacts: Sequence[str] | Mapping[str, Hold],
        shapes: str | os.PathLike[str] | None,
        floor: float | None,
        apart: float,
        ground_friction: float | None,
    ) -> Surroundings:
        """Check them.

        Raises:
            InputError: a contact that stands in no such way, a floor without shapes, a distance below zero.
        """
        names = [contacts] if isinstance(contacts, str) else contacts
        found = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, "pose")
        for name, how in found.items():
            if how not in ("pose", "point"):
                raise InputError(f"contact '{name}' stands in no way called {how!r}: say 'pose' (flat) or 'point'.")
        if floor is not None and (shapes is None or not np.isfinite(floor)):
            raise InputError("a floor is a height [m], for a robot whose `shapes` are known: name its file there.")
        if not 0 <= apart < np.inf:
            raise InputError(f"apart is {apart:g}: give a distance [m] that is not below zero.")
        if ground_friction is not None and not 0 < ground_friction < np.inf:
            raise InputError(f"ground_friction is {ground_friction:g}: give a positive coefficient, or None.")
        return Surroundings(found, shapes, floor, apart, ground_friction)  # type: ignore[arg-type]

    def constraints(self, joints: MovingJoints) -> tuple[Clearance | None, Balance | None, tuple[str, ...]]:
        """The distances and the balance that motions keep, where there are such; and what is not known, in words."""
        own, lost = ((), ()) if self.shapes is None else solids(self.shapes, joints.tree)
        X_0, feet = positions(joints.tree, joints.still).X_0, dict[str, Floats]()
        for name in self.contacts:
            i = joints.tree.frame(name).link
            corners = [s.corners.reshape(-1, 3) @ X_0[i].E + X_0[i].r for s in own if s.body == i]
            feet |= {name: np.concatenate(corners)} if corners else {}
        balance = self._balance(joints, feet)
        unknown = ["whether contacts slip or tip over"] if self.contacts and balance is None else []
        if self.shapes is None:
            return None, balance, (*unknown, "what the robot could hit, as its shapes are not given")
        unknown += [f"meshes of {listed(lost, 4)}, which are not found, or not .stl or .obj"] if lost else []
        floor = self.floor
        if floor is None and feet:
            floor = float(min((corners @ level_axes(joints.tree)[2]).min() for corners in feet.values()))
        if floor is None:
            unknown.append("the floor")
        if not own:
            return None, balance, (*unknown, "its own body, as its file has no collision shapes")
        standing = {joints.tree.frame(name).link for name in self.contacts}
        try:
            found = Clearance.of(joints, own, floor, standing, self.apart)
        except MissingExtraError as error:
            return None, balance, (*unknown, f"its own body: {error}")
        left_out = () if found is None else found.left_out
        return found, balance, (*unknown, *(f"{pair}, which are near anyhow" for pair in left_out))

    def _balance(self, joints: MovingJoints, feet: Mapping[str, Floats]) -> Balance | None:
        """That of a robot on a free joint, whose contacts are points, or feet whose corners in the world are known."""
        tree, held = joints.tree, {name for name, how in self.contacts.items() if how == "pose"}
        floats = [isinstance(joint, Free) for i, joint in enumerate(tree.joints) if tree.is_root(i)] == [True]
        is_heavy = self.contacts and floats and any(tree.gravity)
        if self.ground_friction is None or not is_heavy or held - feet.keys():
            return None
        X_0, soles = positions(tree, joints.still).X_0, []
        for name in self.contacts:
            frame = tree.frame(name)
            soles.append(sole(feet[name], level_axes(tree)[2]) if name in held else (frame.X @ X_0[frame.link]).r[None])
        return Balance.of(joints, soles, self.ground_friction)


def standing(tree: KinematicTree, contacts: Mapping[str, Hold], still: Floats) -> KinematicTree:
    """The robot with contacts as loops that hold frames where they are.

    Raises:
        UnknownModelNameError: there is no such frame.
    """
    X_0, frames, loops = positions(tree, still).X_0, dict(tree.frames), list(tree.components)
    for name, how in contacts.items():
        frame = tree.frame(name)
        ground = f"{name}_ground"
        frames[ground] = Frame(WORLD, frame.X @ X_0[frame.link])
        loops.append(Loop(name=f"{name}_stands", frames=[name, ground], constrains=how))
    return tree.replace(frames=frames, components=tuple(loops)) if contacts else tree


def torque_sensors(
    tree: KinematicTree, motors: Collection[int] | None = None, contacts: Mapping[str, Hold] | None = None
) -> SensorSet:
    """Sensors of the torques of motors on a robot that touches only what it stands on, or what holds its base.

    Args:
        tree: the robot.
        motors: the freedoms that have one; all of joints when None.
        contacts: frames that stand, and how; where none do, something holds a floating base.
    """
    entries: list[dict[str, Any]] = [{"type": "joint_acceleration", "joints": "all"}]
    for joint, name, s in zip(tree.joints, tree.joint_names, tree.v_slices, strict=True):
        if joint.nv and (s.start in motors if motors is not None else not isinstance(joint, Free)):
            effort = tree.drives[name].effort if name in tree.drives else np.inf
            sigma = OF_DRIVES * effort if np.isfinite(effort) else 1.0
            entries.append({"type": "joint_torque", "joints": [name], "sigma": sigma})
        elif joint.nv and (contacts or not isinstance(joint, Free)):
            entries.append({"type": "joint_torque", "joints": [name], "value": 0})
    held = [name for name, joint in zip(tree.names, tree.joints, strict=True) if isinstance(joint, Free)]
    if contacts:
        held = sorted({tree.names[tree.frame(name).link] for name in contacts})
        entries += [
            {"type": "external_wrench", "links": [tree.names[tree.frame(name).link]], "frame": name, "value": 0}
            | {"components": ["mx", "my", "mz"]}
            for name, how in contacts.items()
            if how == "point"
        ]
    links = {"except": held} if held else "all"
    if len(held) < tree.n_links:
        entries.append({"type": "external_wrench", "links": links, "value": 0})
    return SensorSet.from_dict({"name": "joint torques", "measurements": entries})


def moving_joints(tree: KinematicTree, joints: Sequence[str] | None) -> tuple[int, ...]:
    """Bodies whose joints may move: those that are named, or all of one freedom.

    Raises:
        UnknownModelNameError: a joint that the robot does not have.
        InputError: none moves, or one has several freedoms.
    """
    single = [i for i, joint in enumerate(tree.joints) if (joint.nq, joint.nv) == (1, 1)]
    if joints is None:
        found = single
    else:
        names_of = [joints] if isinstance(joints, str) else list(joints)
        known = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
        for name in names_of:
            if name not in known:
                raise UnknownModelNameError("moving joint", name, known, f"robot '{tree.name}'")
        found = sorted({tree.joint(name) for name in names_of})
        for i in found:
            if i not in single:
                raise InputError(
                    f"joint '{tree.joint_names[i]}' is {tree.joints[i].kind}, with {tree.joints[i].nv} freedoms: "
                    "only joints of one freedom are moved. Leave it out of `joints`; it stays where `at` puts it, "
                    "or follows."
                )
    if not found:
        raise InputError(f"robot '{tree.name}': no joint of one freedom moves, so there is nothing to excite.")
    return tuple(found)


def motors_of(robot: KinematicTree | System) -> set[int]:
    """The freedoms that have a motor: of which sensors do not say that the torque is zero; or those with drives."""
    tree = robot.tree if isinstance(robot, System) else robot
    single = {s.start: name for s, name in zip(tree.v_slices, tree.joint_names, strict=True) if s.stop == s.start + 1}
    if isinstance(robot, System):
        without = {
            freedom
            for row, _, freedom, _ in scalar_rows(robot, robot.sensor_rows, "tau")
            if row.is_exact and not width(row.y)
        }
        return set(single) - without
    driven = {k for k, name in single.items() if name in tree.drives and tree.drives[name].effort > 0}
    return driven or set(single)


def joints_of(
    robot: KinematicTree | System, joints: Sequence[str] | None, at: Any, contacts: Mapping[str, Hold]
) -> tuple[MovingJoints, set[int]]:
    """Joints that move and that follow, and the freedoms of motors."""
    tree = robot.tree if isinstance(robot, System) else robot
    bodies, motors = moving_joints(tree, joints), motors_of(robot)
    still = tree.neutral_configuration() if at is None else tree.normalised(checked("at", at, (tree.nq,)))
    still = closed(tree, still) if tree.closing_parts else still
    dependents = DependentJoints.of(standing(tree, contacts, still), bodies, motors, still)
    if dependents is not None:
        bodies = tuple(i for i in bodies if tree.v_slices[i].start in dependents.independent)
        if not isinstance(robot, System) and len(motors) == sum(j.nv == 1 for j in tree.joints) and not contacts:
            motors = set(dependents.independent)
        if not bodies:
            raise InputError(f"robot '{tree.name}': loops and contacts leave no joint that moves independently.")
    return MovingJoints(tree, bodies, still, dependents), motors


SHARE = 0.9
"""How much of soles, from their middle, and of friction is used."""

THICK = 0.005
"""How far above its lowest point a sole is flat [m]."""

EDGES = 4
"""Edges of the pyramid that stands for a friction cone."""

ALIKE = 9
"""Decimals by which faces differ."""


def ground_wrench(tree: KinematicTree, q: Array, qd: Array, qdd: Array) -> Array:
    """Wrench (6, ...) of the ground on a robot on a free joint, about the origin of the world, over any scalar."""
    X_0 = positions(tree, q).X_0[0]
    return np.asarray(X_0.force_to_parent(rnea(tree, q, qd, qdd)[tree.v_slices[0]]))


@dataclass(frozen=True, eq=False)
class Balance:
    """How near the wrench of the ground gets to what contacts cannot give.

    Attributes:
        joints: those of the robot that move.
        value: the wrench (6,), compiled.
        gradient: its derivatives, compiled.
        faces: of the cone (n_faces, 6): its product with a wrench is not positive.
        room: what each face leaves to the weight in the middle of the cone (n_faces,).
    """

    joints: MovingJoints
    value: CompiledFunction
    gradient: MotionGradient
    faces: Floats
    room: Floats

    @staticmethod
    def of(joints: MovingJoints, soles: Sequence[Floats], friction: float) -> Balance | None:
        """That on some soles; None where the cone is flat, as of points in a line, about which any robot tips.

        Args:
            joints: those that move, of a robot on a free joint.
            soles: corners of each (n, 3) in the world [m].
            friction: coefficient of the ground.
        """
        tree = joints.tree.replace(components=())
        axes, within = level_axes(tree), [each.mean(axis=0) + SHARE * (each - each.mean(axis=0)) for each in soles]
        rays = _rays(np.concatenate(within), axes, SHARE * friction)
        faces = _faces(rays, axes)
        if faces is None:
            return None
        weight = float(tree.I[:, 5, 5].sum() * np.linalg.norm(tree.gravity))
        found = traced(ground_wrench, tree, ("q", "qd", "qdd"))
        gradient = MotionGradient.of(found, joints.moved)
        return Balance(joints, CompiledFunction(found), gradient, faces, -faces @ rays.mean(axis=0) * weight)

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """The ratios (N, n_faces), none below 0, and their derivatives."""
        ratios = 1.0 + np.asarray(self.value.batch(q, qd, qdd)) @ (self.faces / self.room[:, None]).T

        def pullback(factors: Floats) -> Floats:
            counted = np.where(ratios > 0, factors, 0.0) / self.room
            return self.gradient(q, qd, qdd, counted @ self.faces)

        return np.maximum(ratios, 0.0), pullback

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        return f"the robot takes {ratio:.3g} of what keeps it from tipping or slipping on its contacts"


def sole(corners: Floats, up: Floats) -> Floats:
    """Four corners (4, 3) of the flat of a foot, in two directions across gravity, of the corners (n, 3) of its shapes.

    Frame: that of the world.
    """
    height = corners @ up
    flat = corners[height <= height.min() + THICK]
    flat = flat - np.outer(flat @ up - height.min(), up)
    across = np.linalg.eigh(np.cov(flat.T, bias=True))[1].T[1:]
    directions = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) @ (
        across / np.maximum(np.ptp(flat @ across.T, axis=0), THICK)[:, None]
    )
    return np.asarray(flat[np.argmax(flat @ directions.T, axis=0)])


def _faces(rays: Floats, axes: Floats) -> Floats | None:
    """Faces (n_faces, 6) of the cone of rays (n, 6), with a force of 1 upwards each; None where it is flat."""
    points = np.hstack([rays[:, :3] @ axes.T, rays[:, 3:] @ axes[:2].T])
    if np.linalg.matrix_rank(points - points.mean(axis=0)) < points.shape[1]:
        return None
    a = np.unique(ConvexHull(points).equations.round(ALIKE), axis=0)  # outwards: a^T x + b <= 0
    return np.hstack([a[:, :3] @ axes, a[:, 3:] @ axes])


def _rays(points: Floats, axes: Floats, friction: float) -> Floats:
    """Wrenches (n, 6) of forces along the edges of friction pyramids at points (n, 3), each 1 upwards."""
    angles = 2 * np.pi * np.arange(EDGES) / EDGES
    f = axes[2] + friction * np.column_stack([np.cos(angles), np.sin(angles)]) @ axes[:2]
    p, f = np.repeat(points, EDGES, axis=0), np.tile(f, (len(points), 1))
    return np.hstack([np.cross(p, f), f])
