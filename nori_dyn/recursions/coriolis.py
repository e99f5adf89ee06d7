"""The Coriolis matrix, with the inertia matrix and its derivative, in one pass of O(N d).

A factorisation of the body's own v x* I v as B(v, I) v leads to one of the robot's, C qd; which one is chosen by name.

Source: Echeandia and Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
systems" (2021), algorithm 1, in root coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.ranges import numbers_in, width
from nori_dyn.algebra.rows import combination
from nori_dyn.algebra.spatial import (
    blocks,
    cross,
    cross_force_matrix,
    matmul,
    matvec,
    rigid_parts,
    scaled,
    skew,
    transpose,
    zeros,
)
from nori_dyn.errors import UnknownNameError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.composites import composite, root_coordinates
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array

BodyFactorisation: TypeAlias = Callable[[Array, Array], Array]
"""B (6, 6, ...) of a velocity v (6, ...) and an inertia I (6, 6, ...). Laws, tested over the registry in
tests/unit/recursions/test_coriolis.py: B v = v x* I v, and B + B^T is the derivative of I, v x* I - I v x."""


class Coriolis(NamedTuple):
    """The matrices of the equation of motion, M qdd + C qd + g + h = tau, with h of friction and springs.

    Attributes:
        M: inertia matrix (nv, nv, ...), with the inertia of rotors, which changes neither of the others.
        Mdot: its derivative along qd (nv, nv, ...), made as such: that it is C + C^T is a check on both.
        C: Coriolis matrix (nv, nv, ...).
    """

    M: Array
    Mdot: Array
    C: Array


def cross_factorisation(v: Array, I: Array) -> Array:
    """B = (v x*) I: Echeandia and Wensing (9)."""
    return matmul(cross_force_matrix(v), I)


def christoffel_factorisation(v: Array, I: Array) -> Array:
    """B = ((v x*) I + (I v) x-bar* - I (v x)) / 2, by which C is that of the Christoffel symbols.

    All its right half is zero, and the left one needs few operations: with I = [[J, h x], [-h x, m 1]] and v = (w, u),
    B = [[w x (J - tr(J)/2) + (h . u) 1 - u h^T, 0], [-(m u + w x h) x, 0]].

    Source: Niemeyer and Slotine, Echeandia and Wensing (10); the blocks are our own derivation
    (tests/unit/recursions/test_coriolis.py).
    """
    w, u = v[:3], v[3:]
    J, h, m = rigid_parts(I)
    eye = np.eye(3).reshape((3, 3) + (1,) * (J.ndim - 2))
    half_trace = (J[0, 0] + J[1, 1] + J[2, 2]) / 2
    power = h[0] * u[0] + h[1] * u[1] + h[2] * u[2]
    upper = matmul(skew(w), J - scaled(half_trace, eye)) + scaled(power, eye) - u[:, None] * h
    lower = -skew(scaled(m, u) + cross(w, h))
    return blocks(upper, lower * 0, lower, lower * 0)


FACTORISATIONS: dict[str, BodyFactorisation] = {
    "christoffel": christoffel_factorisation,
    "cross": cross_factorisation,
}
"""The factorisations of a body's velocity force, by name."""


def coriolis(tree: KinematicTree, q: ArrayLike, qd: ArrayLike, factorisation: str = "christoffel") -> Coriolis:
    """The inertia matrix, its derivative, and a Coriolis matrix for which Mdot - 2 C is skew-symmetric.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        factorisation: of the body's own force: "christoffel", which for joints of one freedom makes
            C_ij = sum_k Gamma_ijk qd_k, or "cross".

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        UnknownNameError: there is no such factorisation.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: Echeandia and Wensing (19)-(21), algorithm 1, proposition 1.

    Example:
        >>> M, Mdot, C = nd.coriolis(nd.autotree(2), np.array([0.0, 0.5]), np.ones(2))
        >>> skew = Mdot - 2 * C
        >>> np.allclose(skew, -skew.T)
        True
    """
    B_of = _factorisation(factorisation)
    q, qd = arguments(tree, q=q, qd=qd)

    # Pass 1: velocities, and B of each body.
    at = root_coordinates(tree, q, qd)
    B = tuple(B_of(v, I) for v, I in zip(at.v, at.I, strict=True))

    # Pass 2: composites from the leaves to the root, and their forces on every joint below.
    I_c, B_c = composite(tree, at.I), composite(tree, B)
    joints = range(tree.n_links)
    F_1 = _columns(matmul(I_c[j], at.S_rate[j]) + matmul(B_c[j], at.S[j]) for j in joints)
    F_2 = _columns(matmul(I_c[j], at.S[j]) for j in joints)
    F_3 = _columns(matmul(transpose(B_c[j]), at.S[j]) for j in joints)
    F_13 = F_1 + F_3

    # What each joint feels of them, as rows over the joints that it carries.
    M, Mdot, C = (zeros((tree.nv, tree.nv), q) for _ in range(3))
    for i, v in enumerate(tree.v_slices):
        carried = numbers_in(tree.v_slices[j] for j in tree.subtree(i))
        beyond = carried[width(v) :]
        for k in range(v.start, v.stop):
            S, S_rate = at.S[i][:, k - v.start], at.S_rate[i][:, k - v.start]
            none = zeros((tree.nv,), q)
            turning = combination(none, S_rate, F_2, carried)
            C[k, carried] = combination(none, S, F_1, carried)[carried]
            C[beyond, k] = combination(turning, S, F_3, beyond)[beyond]
            M[k, carried] = M[carried, k] = combination(none, S, F_2, carried)[carried]
            Mdot[k, carried] = Mdot[carried, k] = combination(turning, S, F_13, carried)[carried]
    return Coriolis(joint_terms(tree).with_rotors(M), Mdot, C)


def _columns(parts: Iterable[Array]) -> Array:
    return np.concatenate(list(parts), axis=1)


def times_C(
    tree: KinematicTree, q: ArrayLike, qd: ArrayLike, qd_r: ArrayLike, factorisation: str = "christoffel"
) -> Array:
    """C(q, qd) qd_r (nv, ...) in O(N), without the matrix: the term of passivity-based controllers.

    With qd_r = qd it is the Coriolis and centrifugal force. It is Newton and Euler's recursion with two velocities: a
    second one carried out with qd_r, and B(v, I) of each body times it.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        qd_r: the other velocity (nv, ...) [rad/s, m/s].
        factorisation: that of `coriolis`.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        UnknownNameError: there is no such factorisation.

    Source: Echeandia and Wensing (30), as a sum over bodies from the leaves; remark 2, after Niemeyer and Slotine.
    """
    q, qd, qd_r = arguments(tree, q=q, qd=qd, qd_r=qd_r)
    B = _factorisation(factorisation)
    at = root_coordinates(tree, q, qd)

    # Pass 1: the second velocity, its acceleration, and the force that they take.
    v_r: list[Array] = []
    a_r: list[Array] = []
    f: list[Array] = []
    for i, parent in enumerate(tree.parents):
        part = qd_r[tree.v_slices[i]]
        v, a = matvec(at.S[i], part), matvec(at.S_rate[i], part)
        v_r.append(v if tree.is_root(i) else v_r[parent] + v)
        a_r.append(a if tree.is_root(i) else a_r[parent] + a)
        f.append(matvec(B(at.v[i], at.I[i]), v_r[i]) + matvec(at.I[i], a_r[i]))

    # Pass 2: forces from the leaves to the root, and on each joint.
    forces = composite(tree, tuple(f))
    return np.concatenate([matvec(transpose(S), force) for S, force in zip(at.S, forces, strict=True)])


def _factorisation(name: str) -> BodyFactorisation:
    if str(name) not in FACTORISATIONS:
        raise UnknownNameError("factorisation", str(name), FACTORISATIONS)
    return FACTORISATIONS[str(name)]
