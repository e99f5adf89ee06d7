"""The derivatives of inverse and of forward dynamics, analytical: no difference, and no expression is derived.

A body and all that it carries move along a freedom k of its joint as one rigid body. In coordinates that move along,
its velocity and acceleration change, for all bodies j that it carries, by

    Delta_k v_j = psi'_k,                  psi'_k  = v_parent x S_k
    Delta_k a_j = psi''_k + psi'_k x v_j,  psi''_k = a_parent x S_k + v_parent x psi'_k

so that its force changes by 2 B_j psi'_k + I_j psi''_k, with B of `christoffel_factorisation`; more is added where S
depends on q. Sums over what a joint carries are composites, which need no transforms in the coordinates of the root.

Source: Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms" (2018); Singh, Russell and
Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra" (2022), for joints whose
S is constant; with composites in root coordinates, and for any S, own derivation
(tests/unit/recursions/test_derivatives.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.algebra.scalars import is_numeric
from nori_dyn.algebra.spatial import add, cross_force, cross_motion, matmul, matvec, spread, transpose, zeros
from nori_dyn.model.kinematics import world_acceleration
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.composites import RootCoordinates, composite, root_coordinates
from nori_dyn.recursions.coriolis import christoffel_factorisation
from nori_dyn.recursions.crba import factorised
from nori_dyn.recursions.factorisation import solve_ltdl
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array


class InverseDynamicsDerivatives(NamedTuple):
    """The derivatives of tau, the joint forces that a motion needs.

    Attributes:
        dtau_dq: by the configuration, along the freedoms, whose directions are those of qd (nv, nv, ...).
        dtau_dqd: by the velocity (nv, nv, ...).
        M: by the acceleration (nv, nv, ...): the inertia matrix, with the inertia of rotors.
    """

    dtau_dq: Array
    dtau_dqd: Array
    M: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """The derivatives of qdd, the accelerations that joint forces cause.

    Attributes:
        dqdd_dq: by the configuration, along the freedoms, whose directions are those of qd (nv, nv, ...).
        dqdd_dqd: by the velocity (nv, nv, ...).
        Minv: by the joint forces (nv, nv, ...): the inverse of the inertia matrix, with the inertia of rotors.
    """

    dqdd_dq: Array
    dqdd_dqd: Array
    Minv: Array


def rnea_derivatives(tree: KinematicTree, q: Any, qd: Any, qdd: Any, fx: Any = None) -> InverseDynamicsDerivatives:
    """Return the derivatives of inverse dynamics, `rnea`, by configuration, velocity and acceleration, in O(N d).

    What friction and springs take is in them; external wrenches stay as they are in link coordinates.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        qdd: acceleration (nv, ...) [rad/s^2, m/s^2].
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: Singh, Russell and Wensing (2022) for the two cases of each pair of joints; see the top of the module.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> dtau_dq, dtau_dqd, M = nd.rnea_derivatives(arm, np.array([0.0, 0.5]), np.ones(2), np.zeros(2))
        >>> np.allclose(M, nd.crba(arm, np.array([0.0, 0.5])))
        True
    """
    q, qd, qdd, fx = arguments(tree, q=q, qd=qd, qdd=qdd, fx=fx)
    carried = _carried(tree, q, qd, fx)
    return _of_inverse_dynamics(carried, q, qd, qdd, _inertia(carried, q))


def aba_derivatives(tree: KinematicTree, q: Any, qd: Any, tau: Any, fx: Any = None) -> ForwardDynamicsDerivatives:
    """Return the derivatives of forward dynamics, `aba`, by configuration, velocity and joint forces.

    dqdd = M^-1 (dtau - dID), with the derivatives of inverse dynamics at the acceleration that the forces cause, and
    M = L^T D L, whose factors keep the zeros of the tree.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        tau: joint forces (nv, ...) [N m, N].
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.

    Raises:
        InputError: a wrong shape, or a number that is not finite.
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Source: Carpentier and Mansard (2018), for dqdd = -M^-1 dID; by the factors, own derivation, tested with the rest.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> dqdd_dq, dqdd_dqd, Minv = nd.aba_derivatives(arm, np.array([0.0, 0.5]), np.ones(2), np.zeros(2))
        >>> np.allclose(Minv, nd.minverse(arm, np.array([0.0, 0.5])))
        True
    """
    q, qd, tau, fx = arguments(tree, q=q, qd=qd, tau=tau, fx=fx)
    carried, parents = _carried(tree, q, qd, fx), expanded_parents(tree)
    M = _inertia(carried, q)
    qdd = solve_ltdl(factorised(tree, M), parents, tau - _bias_force(carried, q, qd))
    by_q, by_qd, _ = _of_inverse_dynamics(carried, q, qd, qdd, M)
    factors = factorised(tree, M, columns=True)
    columns = (-by_q, -by_qd, add(zeros(M.shape[:2], q), np.eye(tree.nv)))
    return ForwardDynamicsDerivatives(*(solve_ltdl(factors, parents, right) for right in columns))


@dataclass(frozen=True, slots=True, eq=False)
class _Carried:
    """What each joint carries, in root coordinates, whatever the accelerations.

    Attributes:
        tree: the robot.
        at: its bodies.
        force: what each body's velocity and external wrench add to I a (6, ...).
        I: inertia of what each joint carries (6, 6, ...).
        B: sum of B(v, I) over what each joint carries (6, 6, ...).
        h: I S of each joint (6, n_i, ...).
    """

    tree: KinematicTree
    at: RootCoordinates
    force: tuple[Array, ...]
    I: list[Array]
    B: list[Array]
    h: list[Array]


def _carried(tree: KinematicTree, q: Array, qd: Array, fx: Array) -> _Carried:
    at = root_coordinates(tree, q, qd, fx, regroup=True)
    B = tuple(christoffel_factorisation(v, I) for v, I in zip(at.v, at.I, strict=True))
    force = tuple(matvec(B_i, v) - wrench for B_i, v, wrench in zip(B, at.v, at.fx, strict=True))
    I_c = composite(tree, at.I)
    h = [matmul(I, S) for I, S in zip(I_c, at.S, strict=True)]
    return _Carried(tree, at, force, I_c, composite(tree, B), h)


def _inertia(carried: _Carried, q: Array) -> Array:
    """Return the inertia matrix (nv, nv, ...), with the inertia of rotors."""
    tree, S = carried.tree, carried.at.S
    M = zeros((tree.nv, tree.nv), q)
    for j, v_j in enumerate(tree.v_slices):
        for i in path(tree.parents, j):
            v_i = tree.v_slices[i]
            M[v_i, v_j] = matmul(transpose(S[i]), carried.h[j])
            M[v_j, v_i] = transpose(M[v_i, v_j])
    return joint_terms(tree).with_rotors(M)


def _accelerations(carried: _Carried, qd: Array, qdd: Array | None) -> tuple[list[Array], list[Array]]:
    """Return the accelerations of all bodies (6, ...), and those of what carries them; rates qdd of None are zero."""
    tree, at = carried.tree, carried.at
    a_0 = spread(world_acceleration(tree.gravity), (6,), qd.shape[1:])
    a: list[Array] = []
    a_parent: list[Array] = []
    for i, (parent, v) in enumerate(zip(tree.parents, tree.v_slices, strict=True)):
        a_parent.append(at.X_root[i].apply_motion(a_0) if tree.is_root(i) else a[parent])
        fast = matvec(at.S_rate[i], qd[v])
        a.append(a_parent[i] + fast if qdd is None else a_parent[i] + matvec(at.S[i], qdd[v]) + fast)
    return a, a_parent


def _composite_forces(carried: _Carried, a: list[Array]) -> list[Array]:
    """Return the force across each joint (6, ...) that gives what it carries their accelerations."""
    parts = zip(carried.at.I, a, carried.force, strict=True)
    return composite(carried.tree, tuple(matvec(I, a_i) + force for I, a_i, force in parts))


def _bias_force(carried: _Carried, q: Array, qd: Array) -> Array:
    """Return what tau is beside M qdd (nv, ...)."""
    a, _ = _accelerations(carried, qd, None)
    forces = zip(carried.at.S, _composite_forces(carried, a), strict=True)
    return np.concatenate([matvec(transpose(S), F) for S, F in forces]) + joint_terms(carried.tree).force(q, qd)


def _of_inverse_dynamics(carried: _Carried, q: Array, qd: Array, qdd: Array, M: Array) -> InverseDynamicsDerivatives:
    """Return the derivatives of inverse dynamics, pair by pair of a joint and one that carries it."""
    tree, at, terms = carried.tree, carried.at, joint_terms(carried.tree)
    a, a_parent = _accelerations(carried, qd, qdd)
    forces = _composite_forces(carried, a)
    changes = [_changes(carried, i, a_parent[i], q, qd, qdd) for i in range(tree.n_links)]
    dtau_dq, dtau_dqd = (add(zeros(M.shape[:2], q), rate) for rate in terms.force_rates(q, qd))
    for j, v_j in enumerate(tree.v_slices):
        own, S, h_T = changes[j], at.S[j], transpose(carried.h[j])
        b_T = 2 * matmul(transpose(S), carried.B[j])
        w = matmul(carried.B[j], 2 * own.v) + matmul(carried.I[j], own.a) + cross_force(S, forces[j][:, None])
        p = matmul(carried.B[j], 2 * S) + matmul(carried.I[j], own.a_by_qd)
        for i in path(tree.parents, j):
            v_i, S_T, on = tree.v_slices[i], transpose(at.S[i]), changes[i]
            dtau_dq[v_j, v_i] += matmul(h_T, on.a) + matmul(b_T, on.v)
            dtau_dqd[v_j, v_i] += matmul(h_T, on.a_by_qd) + matmul(b_T, at.S[i])
            if i != j:
                dtau_dq[v_i, v_j] += matmul(S_T, w)
                dtau_dqd[v_i, v_j] += matmul(S_T, p)
        if own.S is not None:
            dtau_dq[v_j, v_j] += np.einsum("ilk...,i...->lk...", own.S, forces[j])
    return InverseDynamicsDerivatives(dtau_dq, dtau_dqd, M)


class _Changes(NamedTuple):
    """What changes along the freedoms k of a joint, for the bodies that it carries, in coordinates that move along.

    Attributes:
        v: psi', the change of all velocities by q (6, n_i, ...).
        a: psi'', of all accelerations by q, but for psi' x v of each body (6, n_i, ...).
        a_by_qd: of all accelerations by qd, but for S_k x v of each body (6, n_i, ...).
        S: of the columns l of the joint's own S (6, l, k, ...); None where S is constant.
    """

    v: Array
    a: Array
    a_by_qd: Array
    S: Array | None


def _changes(carried: _Carried, i: int, a_parent: Array, q: Array, qd: Array, qdd: Array) -> _Changes:
    """Return what changes along the freedoms of a joint, on a body of acceleration a_parent (6, ...)."""
    tree, at, S = carried.tree, carried.at, carried.at.S[i]
    v_parent = zeros((6,), q) if tree.is_root(i) else at.v[tree.parents[i]]
    by_q = cross_motion(v_parent[:, None], S)
    by_qd = by_q + at.S_rate[i]
    a = cross_motion(a_parent[:, None], S)
    own = _turning(carried, i, q, qd, qdd)
    if own is None:
        return _Changes(by_q, a + cross_motion(v_parent[:, None], by_q), by_qd, None)
    by_q = by_q + own.v
    a = a + cross_motion(v_parent[:, None], by_q) + cross_motion(at.v[i][:, None], own.v) + own.a
    return _Changes(by_q, a, by_qd + own.v, own.S)


def _turning(carried: _Carried, i: int, q: Array, qd: Array, qdd: Array) -> _Changes | None:
    """Return what is added where the axes of a joint move in their own frame: by S qd, by S qdd + c_J, and S itself."""
    tree, joint = carried.tree, carried.tree.joints[i]
    q, qd, qdd = q[tree.q_slices[i]], qd[tree.v_slices[i]], qdd[tree.v_slices[i]]
    batch = q.shape[1:]
    units = (spread(unit, (joint.nv,), batch) for unit in np.eye(joint.nv))
    rates = [joint.S_rate(q, unit) for unit in units]
    if all(is_numeric(rate) and not rate.any() for rate in rates):
        return None
    back = carried.at.X[i].inverse()
    turned = [back.apply_motion(spread(rate, (6, joint.nv), batch)) for rate in rates]
    bias = back.apply_motion(spread(joint.bias_by_q(q, qd), (6, joint.nv), batch))
    v, a = (np.stack([matvec(rate, speed) for rate in turned], axis=1) for speed in (qd, qdd))
    return _Changes(v, a + bias, v, np.stack(turned, axis=2))
