"""Positions and velocities of all bodies, over any scalar."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nori_dyn.algebra.crossing import Crossing
from nori_dyn.algebra.spatial import Transform, cross_motion, matvec
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


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


def positions(tree: KinematicTree, q: Array) -> Kinematics:
    """Return the transforms and motion subspaces at configurations q (nq, ...) over any scalar.

    Source: RBDA (4.1) and ch. 4.4.
    """
    parts = [q[s] for s in tree.q_slices]
    X_up = [joint.transform(qi) @ X for joint, qi, X in zip(tree.joints, parts, tree.X_tree, strict=True)]
    S = [joint.S(qi) for joint, qi in zip(tree.joints, parts, strict=True)]
    return Kinematics(tree, tuple(X_up), tuple(S))


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
