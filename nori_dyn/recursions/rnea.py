"""The recursive Newton-Euler algorithm, and the separate parts of tau.

    tau = H qdd + C(q, qd) qd + g(q) + h(q, qd)

H has the inertia of rotors, h has friction and springs: `joint_terms`.

Source: Nori IV-A; RBDA table 5.1, (6.2)-(6.4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import cross_force, matvec, spread, transpose
from nori_dyn.model.kinematics import world_acceleration
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.recursions.state import arguments, bodies
from nori_dyn.typing import Array

WEIGHTLESS = (0.0, 0.0, 0.0)


def rnea(tree: KinematicTree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike | None, fx: ArrayLike | None = None) -> Array:
    """The joint forces of the motors for a motion, rotors, friction and springs included.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        qdd: acceleration (nv, ...) [rad/s^2, m/s^2].
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Returns:
        tau (nv, ...) [N m, N].

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: Nori (3); RBDA table 5.1.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> print(np.round(nd.rnea(arm, np.zeros(2), np.zeros(2), np.zeros(2)), 1))  # the torques that hold the arm up
        [19.6  4.9]
    """
    q, qd, qdd, fx = arguments(tree, q=q, qd=qd, qdd=qdd, fx=fx)
    terms = joint_terms(tree)
    rigid = _newton_euler(tree, q, qd, qdd, fx, tree.gravity)
    return rigid + matvec(terms.J, qdd) + terms.force(q, qd)


def bias_force(tree: KinematicTree, q: ArrayLike, qd: ArrayLike, fx: ArrayLike | None = None) -> Array:
    """The part of tau beside H qdd (nv, ...): C qd + g + h, less the effect of external wrenches.

    With qd None, the static torques, against its weight and its springs.

    Source: RBDA (6.2).
    """
    return rnea(tree, q, qd, None, fx)


def gravity_force(tree: KinematicTree, q: ArrayLike) -> Array:
    """g(q) (nv, ...), the joint forces that hold up the weight of a robot, springs left out."""
    q, qd, qdd, fx = arguments(tree, q=q, qd=None, qdd=None, fx=None)
    return _newton_euler(tree, q, qd, qdd, fx, tree.gravity)


def coriolis_force(tree: KinematicTree, q: ArrayLike, qd: ArrayLike) -> Array:
    """The joint forces C(q, qd) qd (nv, ...) that velocities need, friction left out."""
    q, qd, qdd, fx = arguments(tree, q=q, qd=qd, qdd=None, fx=None)
    return _newton_euler(tree, q, qd, qdd, fx, WEIGHTLESS)


def inertial_force(tree: KinematicTree, q: ArrayLike, qdd: ArrayLike | None) -> Array:
    """H qdd (nv, ...), rotors included: differential inverse dynamics ID_delta.

    Source: RBDA (6.4), table 6.1.
    """
    q, qd, qdd, fx = arguments(tree, q=q, qd=None, qdd=qdd, fx=None)
    return _newton_euler(tree, q, qd, qdd, fx, WEIGHTLESS) + matvec(joint_terms(tree).J, qdd)


def _newton_euler(
    tree: KinematicTree,
    q: Array,
    qd: Array,
    qdd: Array,
    fx: Array,
    gravity: tuple[float, float, float],
) -> Array:
    """The joint forces of rigid bodies (nv, ...)."""
    at, I, fx_at = bodies(tree, q, qd, fx)

    # Pass 1: accelerations from the root to the leaves, and each body's own force (3a), (3f).
    a_0 = spread(world_acceleration(gravity), (6,), q.shape[1:])
    a: list[Array] = []
    f: list[Array] = []
    for i, parent in enumerate(tree.parents):
        a_parent = a_0 if tree.is_root(i) else a[parent]
        a.append(at.X_up[i].apply_motion(a_parent) + matvec(at.S[i], qdd[tree.v_slices[i]]) + at.c[i])
        f.append(matvec(I[i], a[i]) + cross_force(at.v[i], matvec(I[i], at.v[i])) - fx_at[i])

    # Pass 2: forces from the leaves to the root, and joint forces S^T f (3tau).
    tau: list[Array] = []
    for i in reversed(range(tree.n_links)):
        tau.append(matvec(transpose(at.S[i]), f[i]))
        if not tree.is_root(i):
            f[tree.parents[i]] = f[tree.parents[i]] + at.X_up[i].force_to_parent(f[i])
    return np.concatenate(tau[::-1])
