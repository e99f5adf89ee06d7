"""The articulated-body algorithm, for forward dynamics and for hybrid dynamics.

Source: Nori V-A; RBDA tables 7.1 and 9.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import cross_force, matvec, spread, transpose
from nori_dyn.model.kinematics import world_acceleration
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.articulated import articulated_bodies
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.recursions.state import arguments, bodies
from nori_dyn.typing import Array


class HybridDynamics(NamedTuple):
    """Result of hybrid dynamics: the joint force and acceleration of every joint, given and computed.

    Attributes:
        tau: joint forces (nv, ...) [N m, N].
        qdd: accelerations (nv, ...) [rad/s^2, m/s^2].
    """

    tau: Array
    qdd: Array


def aba(tree: KinematicTree, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, fx: ArrayLike | None = None) -> Array:
    """The joint accelerations under joint forces of the motors, with rotors, friction and springs.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        tau: joint forces (nv, ...) [N m, N].
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Returns:
        qdd (nv, ...) [rad/s^2, m/s^2].

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: Nori (12), (13); RBDA table 7.1.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> print(np.round(nd.aba(arm, np.zeros(2), np.zeros(2), np.zeros(2)), 1))  # how it begins to fall
        [-12.6  16.7]
    """
    return hybrid_dynamics(tree, q, qd, tau, None, (), fx).qdd


def hybrid_dynamics(
    tree: KinematicTree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    qdd: ArrayLike | None,
    accelerated: Collection[str] | str,
    fx: ArrayLike | None = None,
) -> HybridDynamics:
    """The joint forces and accelerations of a robot of which some joints follow given accelerations.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        tau: joint forces (nv, ...) [N m, N]; those of accelerated joints are not read.
        qdd: accelerations (nv, ...) [rad/s^2, m/s^2]; those of the other joints are not read.
        accelerated: names of the joints whose acceleration is given, or one name; the others' force is.
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Raises:
        UnknownModelNameError: no joint has one of the names.
        InputError: a wrong shape, or a number that is not finite.
        SingularSystemError: a joint whose force is given moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: RBDA ch. 9.2, table 9.1.
    """
    led = {tree.joint(name) for name in ((accelerated,) if isinstance(accelerated, str) else accelerated)}
    q, qd, tau, qdd, fx = arguments(tree, q=q, qd=qd, tau=tau, qdd=qdd, fx=fx)

    # Pass 1: velocities.
    at, I, fx_at = bodies(tree, q, qd, fx)
    v = tree.v_slices
    terms = joint_terms(tree)
    h = terms.force(q, qd)

    # Pass 2: articulated-body inertias and bias forces from the leaves to the root (12).
    body = articulated_bodies(at, I, led)
    pA = [cross_force(at.v[i], matvec(I[i], at.v[i])) - fx_at[i] for i in range(tree.n_links)]
    u: list[Array] = [tau] * tree.n_links
    for i in reversed(range(tree.n_links)):
        pa = pA[i] + matvec(body.Ia[i], at.c[i])
        if i in led:
            pa = pa + matvec(body.U[i], qdd[v[i]])
        else:
            u[i] = tau[v[i]] - h[v[i]] - matvec(transpose(at.S[i]), pA[i])
            pa = pa + matvec(body.U[i], matvec(body.D_inverse[i], u[i]))
        if not tree.is_root(i):
            pA[tree.parents[i]] = pA[tree.parents[i]] + at.X_up[i].force_to_parent(pa)

    # Pass 3: accelerations from the root to the leaves (13), and the forces of the accelerated joints.
    a_0 = spread(world_acceleration(tree.gravity), (6,), q.shape[1:])
    a: list[Array] = []
    forces, rates = [], []
    for i, parent in enumerate(tree.parents):
        carried = at.X_up[i].apply_motion(a_0 if tree.is_root(i) else a[parent]) + at.c[i]
        if i in led:
            rate = qdd[v[i]]
        else:
            rate = matvec(body.D_inverse[i], u[i] - matvec(transpose(body.U[i]), carried))
        a.append(carried + matvec(at.S[i], rate))
        rates.append(rate)
        if i in led:
            load = matvec(transpose(at.S[i]), matvec(body.IA[i], a[i]) + pA[i])
            forces.append(load + matvec(terms.J[v[i], v[i]], rate) + h[v[i]])
        else:
            forces.append(tau[v[i]])
    return HybridDynamics(np.concatenate(forces), np.concatenate(rates))
