"""Positions and velocities of all bodies, over any scalar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nori_dyn.algebra.crossing import Crossing, as_transform
from nori_dyn.algebra.spatial import Transform, cross_motion, matvec, transpose, zeros
from nori_dyn.model.paths import common_ancestor, path
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.typing import Array, Floats


@dataclass(frozen=True, slots=True)
class Kinematics:
    """The state of a robot as the equations of motion need it.

    Attributes:
        tree: the robot.
        X_up: transform iXλ from the parent's to each body's coordinates.
        S: motion subspace of each joint (6, n_i), in body coordinates.
        q: the configuration (nq,).
        qd: the velocity (nv,); empty when only positions were asked for.
        v: spatial velocity of each body (6,), in body coordinates; empty when only positions were asked for.
        c: velocity-product acceleration c_i = cJ_i + v_i x S_i qd_i of each body (6,); empty likewise.
        qdd: accelerations (nv,) that are known without any equation; None where none are.
    """

    tree: KinematicTree
    X_up: tuple[Transform | Crossing, ...]
    S: tuple[Array, ...]
    q: Array
    qd: Array = field(default_factory=lambda: np.zeros(0))
    v: tuple[Array, ...] = ()
    c: tuple[Array, ...] = ()
    qdd: Array | None = None

    @property
    def X_0(self) -> dict[int, Transform]:
        """The transform iX0 from the world's to each body's coordinates, see `world_transforms`."""
        return world_transforms(self.tree, dict(enumerate(self.X_up)))


def positions(tree: KinematicTree, q: Array) -> Kinematics:
    """The transforms and motion subspaces at configurations q (nq, ...) over any scalar.

    Source: RBDA (4.1) and ch. 4.4.
    """
    X_up = link_transforms(tree, q)
    S = [joint.S(q[part]) for joint, part in zip(tree.joints, tree.q_slices, strict=True)]
    return Kinematics(tree, tuple(X_up.values()), tuple(S), q)


def link_transforms(tree: KinematicTree, q: Array, bodies: Iterable[int] | None = None) -> dict[int, Transform]:
    """iXλ, from the parent's to each body's coordinates, at configurations q (nq, ...) over any scalar.

    Args:
        tree: the robot.
        q: the configurations.
        bodies: of which; all when None.

    Source: RBDA (4.1).
    """
    wanted = range(tree.n_links) if bodies is None else bodies
    return {i: tree.joints[i].transform(q[tree.q_slices[i]]) @ tree.X_tree[i] for i in wanted}


def world_transforms(tree: KinematicTree, X_up: Mapping[int, Transform | Crossing]) -> dict[int, Transform]:
    """iX0, from the world's to each body's coordinates, over any scalar; the world's own is among them.

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
    """a_0 = -a_g (6,), by which gravity (3,) [m/s^2] is an acceleration of the world: Nori (3a), RBDA 5.3."""
    return -np.array([0.0, 0.0, 0.0, *gravity])


def resting_acceleration(at: Kinematics, i: int) -> Array:
    """a_0 = -a_g (6, ...) in the coordinates of a body: its spatial acceleration at rest, gravity in it as in (3a)."""
    a: Array = world_acceleration(at.tree.gravity)
    for j in reversed([*path(at.tree.parents, i)]):
        a = at.X_up[j].apply_motion(a)
    return a


def link_motion(at: Kinematics, i: int) -> tuple[Array, Array]:
    """The spatial acceleration, gravity in it as in (3a), and velocity of a body (6,), in its coordinates.

    Velocities and accelerations that are not known are zero.
    """
    a = world_acceleration(at.tree.gravity)
    for j in reversed([*path(at.tree.parents, i)]):
        a = at.X_up[j].apply_motion(a)
        if at.c:
            a = a + at.c[j]
        if at.qdd is not None:
            a = a + matvec(at.S[j], at.qdd[at.tree.v_slices[j]])
    return a, at.v[i] if at.v else zeros((6,), at.q)


def weight_torque(at: Kinematics, i: int) -> Array:
    """Torque or force (n_i, ...) across a joint that holds all that it carries up against gravity, at rest.

    The inertias are the tree's `nominal_I`.

    Source: RBDA table 5.1, without motion.
    """
    tree = at.tree

    def held(j: int, a: Array) -> Array:
        f = matvec(tree.nominal_I[j], a)
        for child in tree.children[j]:
            f = f + at.X_up[child].force_to_parent(held(child, at.X_up[child].apply_motion(a)))
        return f

    return matvec(transpose(at.S[i]), held(i, resting_acceleration(at, i)))


def velocities(tree: KinematicTree, q: Array, qd: Array) -> Kinematics:
    """The positions and velocities at states q (nq, ...), qd (nv, ...) over any scalar."""
    return moving(positions(tree, q), qd)


def moving(at: Kinematics, qd: Array) -> Kinematics:
    """Positions with the velocities that qd (nv, ...) gives them.

    Source: Nori (2); RBDA (5.14)-(5.16).
    """
    tree = at.tree
    v: list[Array] = []
    c: list[Array] = []
    for i, joint in enumerate(tree.joints):
        qdi = qd[tree.v_slices[i]]
        vJ = matvec(at.S[i], qdi)
        c_J = joint.bias(at.q[tree.q_slices[i]], qdi)
        if tree.is_root(i):
            v.append(vJ)
        else:
            v.append(at.X_up[i].apply_motion(v[tree.parents[i]]) + vJ)
        c.append(c_J + cross_motion(v[i], vJ))
    return replace(at, qd=qd, v=tuple(v), c=tuple(c))


def transform_between(at: Kinematics, i: int, j: int) -> Transform:
    """iXj, from body j's to body i's coordinates; either may be the world. Only joints between them count."""
    from_common = {body: _from_ancestor(at, body, common_ancestor(at.tree.parents, i, j)) for body in (i, j)}
    return from_common[i] @ from_common[j].inverse()


def _from_ancestor(at: Kinematics, i: int, ancestor: int) -> Transform:
    """The transform to body i's coordinates from those of a body on its way to the world."""
    X = Transform.identity()
    while i != ancestor:
        X, i = X @ as_transform(at.X_up[i]), at.tree.parents[i]
    return X
