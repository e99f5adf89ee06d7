"""The same robot for the program's internal use: other link frames, and inertia moved towards the base.

Neither changes an acceleration, a joint force or an external wrench; their changes are undone in the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from nori_dyn.algebra.crossing import Crossing
from nori_dyn.algebra.planar import is_signed_permutation, planar_factors, relabelled_first, snapped, turns_onto_z
from nori_dyn.algebra.spatial import Transform, skew
from nori_dyn.model.joints import Continuous, Fixed, Joint, Revolute
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array, Floats

NEGLIGIBLE = 1e-15
"""Entries of an inertia, or of a position, this much smaller than its largest of the same unit are rounding: zero."""


@dataclass(frozen=True, slots=True, eq=False)
class InternalLink:
    """A link in the frame that the program uses; its origin is that of the link frame.

    Attributes:
        joint: the joint, its axis in the new coordinates.
        r: where the joint sits, in the parent's new coordinates [m].
        rotations: the fixed rotation from the parent's new axes to the joint's, as factors in a plane, first one first.
        C: rotation (3, 3) from link coordinates to the new ones.
        I: the spatial inertia left to the link (6, 6), in the new coordinates.
        J: the spatial inertia moved to the parent (6, 6), likewise.
    """

    joint: Joint
    r: Floats
    rotations: tuple[Floats, ...]
    C: Floats
    I: Floats
    J: Floats

    def crossing(self, q: Array) -> Crossing:
        """The way from the parent's new frame to the link's, at the joint's configuration q (n, ...)."""
        return Crossing.of(self.r, self.rotations, self.joint.transform(q), self.joint.plane)


def internal_links(tree: KinematicTree, regroup: bool) -> tuple[InternalLink, ...]:
    """The links of a robot as the program uses them.

    Args:
        tree: the robot.
        regroup: whether to move inertia across joints.

    Source: the frames are those of Denavit and Hartenberg where a link's own would cost more; moving inertia is the
    regrouping to base parameters of Khalil and Kleinfinger (own derivation; tests/unit/model/test_internal_frames.py).
    """
    links: list[InternalLink] = []
    for i, (joint, X) in enumerate(zip(tree.joints, tree.X_tree, strict=True)):
        C_parent = np.eye(3) if tree.is_root(i) else links[tree.parents[i]].C
        E = snapped(X.E @ C_parent.T)
        joint, rotations, C = _chosen_frame(joint, E)
        I = _turned(tree.I[i], C)
        links.append(InternalLink(joint, _without_rounding(C_parent @ X.r), rotations, C, I, np.zeros((6, 6))))
    if regroup:
        for i in reversed(range(tree.n_links)):
            if not tree.is_root(i):
                parent = tree.parents[i]
                J = _movable(links[i].joint, links[i].I)
                E = reduce(lambda product, factor: factor @ product, links[i].rotations, np.eye(3))
                on_parent = Transform(E, links[i].r).inertia_to_parent(J)
                links[i] = replace(links[i], I=_cleaned(links[i].I - J), J=J)
                links[parent] = replace(links[parent], I=_cleaned(links[parent].I + on_parent))
    return tuple(links)


def _chosen_frame(joint: Joint, E: Floats) -> tuple[Joint, tuple[Floats, ...], Floats]:
    """A joint in its new frame, the fixed rotation to it as factors, and the rotation from the link's frame.

    The frame is the link's own where the axis is a coordinate axis and one turn in a plane leads there; otherwise the
    axis becomes z, by two turns. On a fixed joint it has the parent's axes: no turn is needed. What relabels axes comes
    first: it then is one step with the shift, and mirrored limbs have as many steps.
    """
    if isinstance(joint, Fixed):
        return joint, (), E.T
    rotations = planar_factors(E)
    axis = getattr(joint, "axis", None)
    if axis is None or (np.count_nonzero(axis) == 1 and sum(not is_signed_permutation(F) for F in rotations) <= 1):
        return joint, relabelled_first(rotations), np.eye(3)
    rotations = turns_onto_z(snapped(E.T @ axis))
    C = reduce(lambda product, factor: factor @ product, rotations, np.eye(3)) @ E.T
    return replace(joint, axis=(0.0, 0.0, 1.0)), relabelled_first(rotations), snapped(C)  # type: ignore[type-var]


def _movable(joint: Joint, I: Floats) -> Floats:
    """The part of a link's inertia that its joint does not feel.

    All of it on a fixed joint; a rod of any mass along a revolute's axis.
    """
    if isinstance(joint, Fixed):
        return I
    if not isinstance(joint, Revolute | Continuous):
        return np.zeros((6, 6))
    u = np.asarray(joint.axis)
    first_moment = np.array([I[2, 4], I[0, 5], I[1, 3]]) * np.abs(u)
    across = int(np.argmin(np.abs(u)))
    J = np.zeros((6, 6))
    J[:3, :3] = I[across, across] * (np.eye(3) - np.outer(u, u))
    J[:3, 3:], J[3:, :3] = skew(first_moment), -skew(first_moment)
    J[3:, 3:] = I[3, 3] * np.eye(3)
    return J


def _turned(I: Floats, C: Floats) -> Floats:
    if np.array_equal(C, np.eye(3)):
        return I
    return _cleaned(Transform(C.T, np.zeros(3)).inertia_to_parent(I))


def _cleaned(I: Floats) -> Floats:
    """An inertia exactly symmetric, without entries that are nothing but rounding."""
    I = (I + I.T) / 2
    for rows in (slice(0, 3), slice(3, 6)):
        for columns in (slice(0, 3), slice(3, 6)):
            I[rows, columns] = _without_rounding(I[rows, columns])
    return I


def _without_rounding(x: Floats) -> Floats:
    return np.where(np.abs(x) <= NEGLIGIBLE * np.abs(x).max(), 0.0, x)
