"""Christoffel symbols of the first kind of the inertia matrix, in O(N d^2).

Source: Echeandia and Wensing (2021), algorithm 2, in root coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import force_cross_matrix, matvec, transpose, zeros
from nori_dyn.errors import ModelError
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.composites import composite, root_coordinates
from nori_dyn.recursions.coriolis import christoffel_factorisation
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array


def christoffel(tree: KinematicTree, q: ArrayLike) -> Array:
    """The Christoffel symbols of the first kind of the inertia matrix M.

    Gamma_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2, so that C_ij = sum_k Gamma_ijk qd_k.

    Args:
        tree: the robot, all of whose joints have one freedom, or none.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.

    Returns:
        Gamma (nv, nv, nv, ...), symmetric in its last two indices.

    Raises:
        ModelError: a joint of several freedoms: its velocity is no derivative of coordinates; names it.
        InputError: a wrong shape, or a number that is not finite.

    Source: Echeandia and Wensing (37)-(40), algorithm 2.

    Example:
        >>> arm, q, qd = nd.autotree(2), np.array([0.0, 0.5]), np.ones(2)
        >>> Gamma = nd.christoffel(arm, q)
        >>> Gamma.shape, np.allclose(Gamma @ qd, nd.coriolis(arm, q, qd).C)
        ((2, 2, 2), True)
    """
    for name, joint in zip(tree.joint_names, tree.joints, strict=True):
        if joint.nv > 1:
            raise ModelError(
                f"joint '{name}' is {joint.kind}, of {joint.nv} freedoms: Christoffel symbols are those of joints of "
                "one freedom. For a floating base, take `coriolis`."
            )
    (q,) = arguments(tree, q=q)
    at = root_coordinates(tree, q)
    moving = [i for i, joint in enumerate(tree.joints) if joint.nv]
    freedom = {body: k for k, body in enumerate(moving)}
    S = [at.S[i][:, 0] for i in moving]
    composites = composite(tree, at.I)
    I_c = [composites[i] for i in moving]
    gamma = zeros((tree.nv,) * 3, q)
    for k in range(tree.nv):
        B = christoffel_factorisation(S[k], I_c[k])
        D = force_cross_matrix(matvec(I_c[k], S[k])) - B
        above = [freedom[i] for i in path(tree.parents, moving[k]) if i in freedom]
        for place, j in enumerate(above):
            F_1, F_2, F_3 = matvec(B, S[j]), matvec(transpose(B), S[j]), matvec(D, S[j])
            for i in above[place:]:
                gamma[i, j, k] = gamma[i, k, j] = np.einsum("i...,i...->...", S[i], F_1)
                gamma[j, i, k] = gamma[j, k, i] = np.einsum("i...,i...->...", S[i], F_2)
                gamma[k, i, j] = gamma[k, j, i] = np.einsum("i...,i...->...", S[i], F_3)
    return gamma
