"""The inverse of the joint-space inertia matrix, by its factors or without the matrix, whichever takes less.

By its factors, H = L^T D L: H^-1 = L^-1 D^-1 L^-T, whose rows are combinations of the rows of L^-T, as those of L are
of the rows of H. It takes least where no joint is far from the world.

Without the matrix it is the articulated-body algorithm at rest, for all unit joint forces at once, each of which
reaches only the bodies on its way to the world in the second pass; forces and motions are in the coordinates of the
tree's root, where they need no transform. After the second pass Minv tau is D^-1 u of that algorithm, F tau is pA, and
after the third P tau is a. Line 14 of the listing in the report passes to the parent the term of the joint's motion,
but not the terms from below; pA has both: the correction, and these meanings, are a reader's notes in the margin of the
report as we have it. It takes least on long chains.

Source: RBDA ch. 6.5 for the factors; Carpentier, "Analytical inverse of the joint space inertia matrix" (2018),
algorithm 1, with this correction (tests/unit/recursions/test_minverse.py; docs/errata.md).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import matmul, transpose, zeros
from nori_dyn.model.paths import descendants
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.composites import root_transforms
from nori_dyn.recursions.crba import inertia_factors
from nori_dyn.recursions.factorisation import inverse_of
from nori_dyn.recursions.sparsity import depth_sums, expanded_parents
from nori_dyn.recursions.state import arguments, bodies
from nori_dyn.typing import Array


def minverse(tree: KinematicTree, q: ArrayLike) -> Array:
    """The inverse of the joint-space inertia matrix, that with the inertia of rotors.

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
    return inverse_by_factors(tree, q) if _factors_take_less(tree) else inverse_by_bodies(tree, q)


def _factors_take_less(tree: KinematicTree) -> bool:
    """Whether there are fewer products in factors and their inverses than in the passes over bodies."""
    parents = expanded_parents(tree)
    carried = [1 + len(below) for below in descendants(parents)]
    _, D_2 = depth_sums(parents)
    by_factors = 2 * D_2 + sum(n * (n + 1) // 2 for n in carried)
    return by_factors <= 10 * (sum(carried) + tree.nv * (tree.nv + 1) // 2)


def inverse_by_factors(tree: KinematicTree, q: Array) -> Array:
    """`minverse` as L^-1 D^-1 L^-T."""
    return inverse_of(inertia_factors(tree, q), expanded_parents(tree))


def inverse_by_bodies(tree: KinematicTree, q: Array) -> Array:
    """`minverse` by algorithm 1."""
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
