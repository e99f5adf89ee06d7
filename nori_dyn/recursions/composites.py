"""Composite bodies in the coordinates of the root of their tree, in which no sum over bodies needs a transform.

They stay small wherever a floating base is, as coordinates of the world would not.

Source: Echeandia and Wensing (15), (16).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.crossing import as_transform
from nori_dyn.algebra.rows import mapped
from nori_dyn.algebra.spatial import Transform, cross_motion, inertia_numbers, inertia_of, matvec, spread
from nori_dyn.model.kinematics import Kinematics, world_transforms
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.state import bodies
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class RootCoordinates:
    """The bodies of a tree, each in the coordinates of the root link that carries it.

    Attributes:
        S: motion subspace of each joint (6, n_i, ...).
        I: inertia of each body (6, 6, ...).
        v: velocity of each body (6, ...); empty when only positions were asked for.
        S_rate: derivative of S (6, n_i, ...), by the motion and by axes that move in their own frame; empty likewise.
        X: transform from these coordinates to each body's own.
        X_root: transform from the coordinates of the world to those of each body's root.
        fx: external wrench on each body (6, ...); empty when none were given.
    """

    S: tuple[Array, ...]
    I: tuple[Array, ...]
    v: tuple[Array, ...]
    S_rate: tuple[Array, ...]
    X: tuple[Transform, ...]
    X_root: tuple[Transform, ...]
    fx: tuple[Array, ...]


def root_coordinates(
    tree: KinematicTree, q: Array, qd: Array | None = None, fx: Array | None = None, regroup: bool = False
) -> RootCoordinates:
    """The bodies at a configuration q (nq, ...), and a velocity qd (nv, ...) where it is given.

    Wrenches fx and `regroup` are those of `bodies`.
    """
    at, inertias, turned = bodies(tree, q, fx=fx, regroup=regroup)
    X = root_transforms(at)
    X_root: list[Transform] = []
    S: list[Array] = []
    v: list[Array] = []
    S_rate: list[Array] = []
    wrenches = [X[i].force_to_parent(wrench) for i, wrench in enumerate(turned)]
    for i, (joint, parent) in enumerate(zip(tree.joints, tree.parents, strict=True)):
        root = tree.is_root(i)
        X_root.append(as_transform(at.X_up[i]) if root else X_root[parent])
        back = X[i].inverse()
        S.append(at.S[i] if root else back.apply_motion(at.S[i]))
        if qd is not None:
            part = qd[tree.v_slices[i]]
            v_J = matvec(S[i], part)
            v.append(v_J if root else v[parent] + v_J)
            turning = spread(joint.S_rate(q[tree.q_slices[i]], part), (6, joint.nv), q.shape[1:])
            S_rate.append(cross_motion(v[i][:, None], S[i]) + (turning if root else back.apply_motion(turning)))
    batch = q.shape[1:]
    E = columns([spread(X_i.E, (3, 3), batch).reshape(9, *batch) for X_i in X])
    r = columns([spread(X_i.r, (3,), batch) for X_i in X])
    I = mapped(_inertia_to_root, E, r, columns([inertia_numbers(I_i) for I_i in inertias]))
    return RootCoordinates(
        tuple(S),
        tuple(inertia_of(I[:, i]) for i in range(tree.n_links)),
        tuple(v),
        tuple(S_rate),
        tuple(X),
        tuple(X_root),
        tuple(wrenches),
    )


def _inertia_to_root(E: Array, r: Array, I: Array) -> Array:
    """The numbers of an inertia in root coordinates (10, ...), from those in body coordinates and the transform."""
    return inertia_numbers(Transform(E.reshape(3, 3, *E.shape[1:]), r).inertia_to_parent(inertia_of(I)))


def columns(parts: Sequence[Array]) -> Array:
    """Vectors (m, ...) as the columns of an array (m, n, ...)."""
    return np.stack(parts, axis=1)


def root_transforms(at: Kinematics) -> list[Transform]:
    """The transform from the coordinates of its root link to each body's, the identity for a root."""
    X_up = {i: Transform.identity() if at.tree.is_root(i) else X for i, X in enumerate(at.X_up)}
    X = world_transforms(at.tree, X_up)
    return [X[i] for i in range(at.tree.n_links)]


def composite(tree: KinematicTree, M: tuple[Array, ...]) -> list[Array]:
    """For each body the sum of a matrix or vector over its subtree, in root coordinates."""
    sums = list(M)
    for i in reversed(range(tree.n_links)):
        if not tree.is_root(i):
            sums[tree.parents[i]] = sums[tree.parents[i]] + sums[i]
    return sums
