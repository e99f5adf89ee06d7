"""Balance of a robot that stands: the wrench of the ground stays in the cone of what its contacts can give.

The corners p of soles, and points on which a robot stands, give forces f within friction cones, here pyramids inside
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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from nori_dyn.identification.clearance import level_axes
from nori_dyn.identification.dependent_joints import MovingJoints
from nori_dyn.identification.motion_gradient import MotionGradient, Pullback
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Array, Floats

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
