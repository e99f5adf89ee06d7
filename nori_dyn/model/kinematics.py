"""Positions and velocities of all bodies, over any scalar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.algebra.crossing import Crossing, as_transform
from nori_dyn.algebra.spatial import Transform, cross_motion, matvec
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.typing import Array, Floats


@dataclass(frozen=True, slots=True)
class Kinematics:
    """What the equations of motion need to know of a state.

    Attributes:
        tree: the robot.
        X_up: transform iXλ from the parent's to each body's coordinates.
        S: motion subspace of each joint (6, n_i), in body coordinates.
        v: spatial velocity of each body (6,), in body coordinates; empty when only positions were asked for.
        c: velocity-product acceleration c_i = cJ_i + v_i x S_i qd_i of each body (6,); empty likewise.
    """

    tree: KinematicTree
    X_up: tuple[Transform | Crossing, ...]
    S: tuple[Array, ...]
    v: tuple[Array, ...] = ()
    c: tuple[Array, ...] = ()

    @property
    def X_0(self) -> dict[int, Transform]:
        """The transform iX0 from the world's to each body's coordinates, see `world_transforms`."""
        return world_transforms(self.tree, dict(enumerate(self.X_up)))


def positions(tree: KinematicTree, q: Array) -> Kinematics:
    """Return the transforms and motion subspaces at configurations q (nq, ...) over any scalar.

    Source: RBDA (4.1) and ch. 4.4.
    """
    X_up = link_transforms(tree, q)
    S = [joint.S(q[part]) for joint, part in zip(tree.joints, tree.q_slices, strict=True)]
    return Kinematics(tree, tuple(X_up.values()), tuple(S))


def link_transforms(tree: KinematicTree, q: Array, bodies: Iterable[int] | None = None) -> dict[int, Transform]:
    """Return iXλ, from the parent's to each body's coordinates, at configurations q (nq, ...) over any scalar.

    Args:
        tree: the robot.
        q: the configurations.
        bodies: of which; all when None.

    Source: RBDA (4.1).
    """
    wanted = range(tree.n_links) if bodies is None else bodies
    return {i: tree.joints[i].transform(q[tree.q_slices[i]]) @ tree.X_tree[i] for i in wanted}


def world_transforms(tree: KinematicTree, X_up: Mapping[int, Transform | Crossing]) -> dict[int, Transform]:
    """Return iX0, from the world's to each body's coordinates, over any scalar; the world's own is among them.

    Args:
        tree: the robot.
        X_up: iXλ of the bodies, and of all that carry them.
    """
    X_0 = {WORLD: Transform.identity()}
    for i in sorted(X_up):
        X = as_transform(X_up[i])
        X_0[i] = X if tree.is_root(i) else X @ X_0[tree.parents[i]]
    return X_0


def world_acceleration(gravity: Sequence[float]) -> Floats:
    """Return a_0 = -a_g (6,), by which gravity (3,) [m/s^2] is an acceleration of the world: Nori (3a), RBDA 5.3."""
    return -np.array([0.0, 0.0, 0.0, *gravity])


def velocities(tree: KinematicTree, q: Array, qd: Array) -> Kinematics:
    """Return the positions and velocities at states q (nq, ...), qd (nv, ...) over any scalar."""
    return moving(positions(tree, q), q, qd)


def moving(at: Kinematics, q: Array, qd: Array) -> Kinematics:
    """Return positions with the velocities that qd (nv, ...) gives them.

    Source: Nori (2); RBDA (5.14)-(5.16).
    """
    tree = at.tree
    v: list[Array] = []
    c: list[Array] = []
    for i, joint in enumerate(tree.joints):
        qdi = qd[tree.v_slices[i]]
        vJ = matvec(at.S[i], qdi)
        c_J = joint.bias(q[tree.q_slices[i]], qdi)
        if tree.is_root(i):
            v.append(vJ)
        else:
            v.append(at.X_up[i].apply_motion(v[tree.parents[i]]) + vJ)
        c.append(c_J + cross_motion(v[i], vJ))
    return replace(at, v=tuple(v), c=tuple(c))
