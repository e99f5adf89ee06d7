"""The inverse of the joint-space inertia matrix, without the matrix.

It is the articulated-body algorithm at rest, for all unit joint forces at once, each of which reaches only the subtree
of its joint in the first pass. The listing in the report carries the force set to the parent without the part that
crosses the joint being added to it first; here it is, as the algorithm's own pa asks for.

Source: Carpentier, "Analytical inverse of the joint space inertia matrix" (2018), algorithm 1, corrected: own
derivation (tests/unit/recursions/test_minverse.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nori_dyn.algebra.spatial import Array, matmul, transpose, zeros
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.state import arguments, bodies


def minverse(tree: KinematicTree, q: Any) -> Array:
    """Return the inverse of the joint-space inertia matrix.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.

    Returns:
        H^-1 (nv, nv, ...), symmetric.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        SingularSystemError: a joint moves no inertia: names it.
    """
    (q,) = arguments(tree, q=q)

    # Pass 1: positions.
    at, I, _ = bodies(tree, q)
    v = tree.v_slices
    own = [np.arange(s.start, s.stop) for s in v]
    Minv = zeros((tree.nv, tree.nv), q)

    # Pass 2: articulated-body inertias, and for each unit force the force F that a body's subtree passes on.
    body = articulated_bodies(at, I)
    carried: list[list[int]] = [[] for _ in range(tree.n_links)]
    F = [zeros((6, tree.nv), q) for _ in range(tree.n_links)]
    for i in reversed(range(tree.n_links)):
        Minv[v[i], v[i]] = body.D_inverse[i]
        below = carried[i]
        if below:
            Minv[v[i], below] = -matmul(body.D_inverse[i], matmul(transpose(at.S[i]), F[i][:, below]))
        if not tree.is_root(i):
            parent, subtree = tree.parents[i], [*own[i].tolist(), *below]
            across = F[i][:, subtree] + matmul(body.U[i], Minv[v[i], subtree])
            F[parent][:, subtree] = at.X_up[i].force_to_parent(across)
            carried[parent].extend(subtree)

    # Pass 3: the accelerations P of each body for the unit forces of its own joint and all later ones.
    P: list[Array] = []
    for i, parent in enumerate(tree.parents):
        later = slice(v[i].start, tree.nv)
        if tree.is_root(i):
            P.append(zeros((6, tree.nv), q))
        else:
            moved = at.X_up[i].apply_motion(P[parent][:, later])
            Minv[v[i], later] = Minv[v[i], later] - matmul(matmul(body.D_inverse[i], transpose(body.U[i])), moved)
            P.append(zeros((6, tree.nv), q))
            P[i][:, later] = moved
        P[i][:, later] = P[i][:, later] + matmul(at.S[i], Minv[v[i], later])
    for i in range(tree.n_links):
        rest = slice(v[i].stop, tree.nv)
        Minv[rest, v[i]] = transpose(Minv[v[i], rest])
    return Minv
