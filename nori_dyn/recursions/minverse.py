"""The inverse of the joint-space inertia matrix, without the matrix.

It is the articulated-body algorithm at rest, for all unit joint forces at once, each of which reaches only the bodies
on its way to the world in the second pass; forces and motions are in the coordinates of the tree's root, where they
need no transform. After the second pass Minv tau is D^-1 u of that algorithm, F tau is pA, and after the third P tau is
a. Line 14 of the listing in the report passes to the parent what the joint's motion adds, but not what came from below,
as pA has both: the correction, and these meanings, are a reader's notes in the margin of the report as we have it.

Source: Carpentier, "Analytical inverse of the joint space inertia matrix" (2018), algorithm 1, corrected as said
(tests/unit/recursions/test_minverse.py; docs/errata.md).
"""

from __future__ import annotations

from typing import Any

from nori_dyn.algebra.spatial import matmul, transpose, zeros
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.composites import root_transforms
from nori_dyn.recursions.state import arguments, bodies
from nori_dyn.typing import Array


def minverse(tree: KinematicTree, q: Any) -> Array:
    """Return the inverse of the joint-space inertia matrix, that with the inertia of rotors.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.

    Returns:
        H^-1 (nv, nv, ...), symmetric.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Example:
        >>> print(np.round(nd.minverse(nd.autotree(2), np.zeros(2)), 2))
        [[ 1.7  -4.25]
         [-4.25 13.58]]
    """
    (q,) = arguments(tree, q=q)

    # Pass 1: positions.
    at, I, _ = bodies(tree, q)
    v = tree.v_slices
    Minv = zeros((tree.nv, tree.nv), q)

    # Pass 2: articulated-body inertias, and for each unit force the force F that a body passes on to its parent.
    body = articulated_bodies(at, I)
    X = root_transforms(at)
    S = [X_i.inverse().apply_motion(S_i) for X_i, S_i in zip(X, at.S, strict=True)]
    U = [X_i.force_to_parent(U_i) for X_i, U_i in zip(X, body.U, strict=True)]
    subtree: list[list[int]] = [list(range(s.start, s.stop)) for s in v]
    F = [zeros((6, tree.nv), q) for _ in range(tree.n_links)]
    for i in reversed(range(tree.n_links)):
        Minv[v[i], subtree[i]] = -matmul(body.D_inverse[i], matmul(transpose(S[i]), F[i][:, subtree[i]]))
        Minv[v[i], v[i]] = body.D_inverse[i]
        if not tree.is_root(i):
            parent = tree.parents[i]
            F[parent][:, subtree[i]] = F[i][:, subtree[i]] + matmul(U[i], Minv[v[i], subtree[i]])
            subtree[parent].extend(subtree[i])

    # Pass 3: the accelerations P of each body for the unit forces of its own joint and all later ones.
    P = [zeros((6, tree.nv), q) for _ in range(tree.n_links)]
    for i, parent in enumerate(tree.parents):
        later = slice(v[i].start, tree.nv)
        if not tree.is_root(i):
            P[i][:, later] = P[parent][:, later]
            Minv[v[i], later] = Minv[v[i], later] - matmul(body.D_inverse[i], matmul(transpose(U[i]), P[i][:, later]))
        P[i][:, later] = P[i][:, later] + matmul(S[i], Minv[v[i], later])
    for i in range(tree.n_links):
        rest = slice(v[i].stop, tree.nv)
        Minv[rest, v[i]] = transpose(Minv[v[i], rest])
    return Minv
