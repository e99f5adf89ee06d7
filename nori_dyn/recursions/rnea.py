"""The recursive Newton-Euler algorithm: Nori IV-A; RBDA table 5.1."""

from __future__ import annotations

import numpy as np

from nori_dyn.algebra.spatial import Array, cross_force, matvec
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import KinematicTree


def rnea(tree: KinematicTree, q: Array, qd: Array, qdd: Array, fx: Array | None = None) -> Array:
    """Return the joint torques that a motion needs.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        qdd: acceleration (nv, ...) [rad/s^2, m/s^2].
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Returns:
        tau (nv, ...) [N m, N].
    """
    at = velocities(tree, q, qd)

    # Pass 1: accelerations from the root to the leaves, and each body's own force (3a), (3f).
    a: list[Array] = []
    f: list[Array] = []
    a_0 = -np.array([0.0, 0.0, 0.0, *tree.gravity])
    for i, parent in enumerate(tree.parents):
        a_parent = a_0 if tree.is_root(i) else a[parent]
        a.append(at.X_up[i].apply_motion(a_parent) + matvec(at.S[i], qdd[tree.v_slices[i]]) + at.c[i])
        force = matvec(tree.I[i], a[i]) + cross_force(at.v[i], matvec(tree.I[i], at.v[i]))
        f.append(force if fx is None else force - fx[i])

    # Pass 2: forces from the leaves to the root, and torques (3tau).
    tau: list[Array] = [f[0]] * tree.n_links
    for i in reversed(range(tree.n_links)):
        tau[i] = matvec(np.swapaxes(at.S[i], 0, 1), f[i])
        if not tree.is_root(i):
            parent = tree.parents[i]
            f[parent] = f[parent] + matvec(np.swapaxes(at.X_up[i].motion_matrix(), 0, 1), f[i])
    return np.concatenate(tau)
