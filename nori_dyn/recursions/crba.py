"""The joint-space inertia matrix: the composite-rigid-body algorithm, and by columns; and forward dynamics with it.

Source: RBDA ch. 6.1, 6.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import matmul, transpose, zeros
from nori_dyn.errors import NotPositiveDefiniteError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.articulated import no_inertia
from nori_dyn.recursions.factorisation import LTDL, ltdl, solve_ltdl
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.recursions.rnea import bias_force
from nori_dyn.recursions.sparsity import expanded_parents, parents_among
from nori_dyn.recursions.state import arguments, bodies
from nori_dyn.typing import Array


def crba(tree: KinematicTree, q: ArrayLike) -> Array:
    """The joint-space inertia matrix H by the composite-rigid-body algorithm in body coordinates.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.

    Returns:
        H (nv, nv, ...), symmetric [kg m^2, kg m, kg]; the inertia of rotors is on its diagonal.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: RBDA (6.17), (6.19), (6.20), table 6.2.

    Example:
        >>> print(np.round(nd.crba(nd.autotree(2), np.zeros(2)), 2))
        [[2.67 0.83]
         [0.83 0.33]]
    """
    (q,) = arguments(tree, q=q)
    at, I_c, _ = bodies(tree, q)
    H = zeros((tree.nv, tree.nv), q)
    v = tree.v_slices
    for i in reversed(range(tree.n_links)):
        F = matmul(I_c[i], at.S[i])
        H[v[i], v[i]] = matmul(transpose(at.S[i]), F)
        j = i
        while not tree.is_root(j):
            F = at.X_up[j].force_to_parent(F)
            j = tree.parents[j]
            H[v[j], v[i]] = matmul(transpose(at.S[j]), F)
            H[v[i], v[j]] = transpose(H[v[j], v[i]])
        if not tree.is_root(i):
            I_c[tree.parents[i]] = I_c[tree.parents[i]] + at.X_up[i].inertia_to_parent(I_c[i])
    return joint_terms(tree).with_rotors(H)


def inertia_forward_dynamics(
    tree: KinematicTree, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, fx: ArrayLike | None = None
) -> Array:
    """The accelerations qdd (nv, ...) from H qdd = tau - C, by the factorisation of H; arguments are those of `aba`.

    Source: RBDA ch. 6.1, algorithm of three steps.
    """
    q, qd, tau, fx = arguments(tree, q=q, qd=qd, tau=tau, fx=fx)
    return solve_ltdl(inertia_factors(tree, q), expanded_parents(tree), tau - bias_force(tree, q, qd, fx))


def inertia_factors(tree: KinematicTree, q: ArrayLike) -> LTDL:
    """L and D of H = L^T D L at a configuration q (nq, ...).

    Raises:
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.
    """
    return factorised(tree, crba(tree, q))


def factorised(tree: KinematicTree, H: Array, freedoms: Sequence[int] | None = None) -> LTDL:
    """L and D of the inertia matrix H (nv, nv, ...) of a robot, or of its part of some freedoms, in order.

    Raises:
        SingularSystemError: a joint moves no inertia: names it.
    """
    freedoms = range(tree.nv) if freedoms is None else freedoms
    try:
        return ltdl(H, parents_among(expanded_parents(tree), freedoms))
    except NotPositiveDefiniteError as error:
        joint = next(i for i, v in enumerate(tree.v_slices) if freedoms[error.freedom] < v.stop)
        raise no_inertia(tree.joint_names[joint], error.pivot) from None
