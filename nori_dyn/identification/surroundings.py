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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from nori_dyn.descriptions.surfaces import solids
from nori_dyn.errors import InputError, MissingExtraError
from nori_dyn.identification.clearance import Clearance, level_axes
from nori_dyn.identification.motion_function import MotionFunction, Pullback
from nori_dyn.identification.moving_joints import Hold, MovingJoints
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.tables import listed
from nori_dyn.typing import Array, Floats

SHARE = 0.9
"""How much of soles, from their middle, and of friction is used."""

THICK = 0.005
"""How far above its lowest point a sole is flat [m]."""

EDGES = 4
"""Edges of the pyramid that stands for a friction cone."""

ALIKE = 9
"""Decimals by which faces differ."""


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

    def __post_init__(self) -> None:
        if self.floor is not None and (self.shapes is None or not np.isfinite(self.floor)):
            raise InputError("a floor is a height [m], for a robot whose `shapes` are known: name its file there.")
        if not 0 <= self.apart < np.inf:
            raise InputError(f"apart is {self.apart:g}: give a distance [m] that is not below zero.")
        if self.ground_friction is not None and not 0 < self.ground_friction < np.inf:
            raise InputError(f"ground_friction is {self.ground_friction:g}: give a positive coefficient, or None.")

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


def ground_wrench(tree: KinematicTree, q: Array, qd: Array, qdd: Array) -> Array:
    """Wrench (6, ...) of the ground on a robot on a free joint, about the origin of the world, over any scalar."""
    X_0 = positions(tree, q).X_0[0]
    return np.asarray(X_0.force_to_parent(rnea(tree, q, qd, qdd)[tree.v_slices[0]]))


@dataclass(frozen=True, eq=False)
class Balance:
    """How near the wrench of the ground gets to what contacts cannot give.

    Attributes:
        wrench: of the ground (6,).
        faces: of the cone (n_faces, 6): its product with a wrench is not positive.
        room: what each face leaves to the weight in the middle of the cone (n_faces,).
    """

    wrench: MotionFunction
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
        wrench = MotionFunction.of(traced(ground_wrench, tree, ("q", "qd", "qdd")), joints.moved)
        return Balance(wrench, faces, -faces @ rays.mean(axis=0) * weight)

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """The ratios (N, n_faces), none below 0, and their derivatives."""
        ratios = 1.0 + self.wrench(q, qd, qdd) @ (self.faces / self.room[:, None]).T

        def pullback(factors: Floats) -> Floats:
            counted = np.where(ratios > 0, factors, 0.0) / self.room
            return self.wrench.pullback(q, qd, qdd, counted @ self.faces)

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
