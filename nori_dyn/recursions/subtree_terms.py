"""Subtree quantities of each joint in root coordinates, and the derivatives of the forces across joints.

A body and all that it carries move along a freedom k of its joint as one rigid body. In coordinates that move along,
its velocity and acceleration change, for all bodies j that it carries, by

    Delta_k v_j = psi'_k,                  psi'_k  = v_parent x S_k
    Delta_k a_j = psi''_k + psi'_k x v_j,  psi''_k = a_parent x S_k + v_parent x psi'_k

so that its force changes by 2 B_j psi'_k + I_j psi''_k, with B of `christoffel_factorisation`; more is added where S
depends on q. Sums over a subtree are composites, which need no transforms in the coordinates of the root.

Source: Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms" (2018); Singh, Russell and
Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra" (2022), for joints whose
S is constant; with composites in root coordinates, and for any S, own derivation
(tests/unit/recursions/test_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.rows import combination, mapped
from nori_dyn.algebra.scalars import is_numeric
from nori_dyn.algebra.spatial import (
    add,
    blocks,
    cross_force,
    cross_motion,
    inertia_numbers,
    inertia_of,
    matvec,
    skew,
    spread,
    stack,
    transpose,
    zeros,
)
from nori_dyn.model.kinematics import world_acceleration
from nori_dyn.model.paths import descendants, path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.composites import RootCoordinates, columns, composite, root_coordinates
from nori_dyn.recursions.coriolis import christoffel_factorisation
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.typing import Array, Indices


@dataclass(frozen=True, slots=True, eq=False)
class SubtreeTerms:
    """Subtree quantities of each joint, in root coordinates, independent of the accelerations.

    Attributes:
        tree: the robot.
        at: its bodies.
        own: inertia of each body, as numbers (10, n_links, ...).
        force: velocity and external wrench terms beside I a of each body (6, n_links, ...).
        body: of each freedom the body on its joint (nv,).
        S: axis of each freedom (6, nv, ...).
        I: composite inertia of the subtree of each freedom, as numbers (10, nv, ...).
        B: sum of B(v, I) over the subtree of each freedom, as numbers (12, nv, ...).
        h: I S of each freedom (6, nv, ...).
        on_way: of each freedom those of its joint and of all that carry it.
        beyond: of each freedom those of the joints that its own carries.
    """

    tree: KinematicTree
    at: RootCoordinates
    own: Array
    force: Array
    body: Indices
    S: Array
    I: Array
    B: Array
    h: Array
    on_way: list[Indices]
    beyond: list[Indices]


def subtree_terms(tree: KinematicTree, q: Array, qd: Array, fx: Array) -> SubtreeTerms:
    """Subtree quantities of each joint at q (nq, ...) and qd (nv, ...), under wrenches fx (n_links, 6, ...).

    Inertia that joints do not feel is moved towards the base first, which changes no joint force.

    Raises:
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.
    """
    at = root_coordinates(tree, q, qd, fx, regroup=True)
    own = columns([inertia_numbers(I) for I in at.I])
    moving = mapped(_of_velocity, own, columns(at.v), columns(at.fx))
    body = np.repeat(np.arange(tree.n_links), [joint.nv for joint in tree.joints])
    I, B = (_sums(tree, part)[:, body] for part in (own, moving[6:]))
    S, v = np.concatenate(at.S, axis=1), tree.v_slices
    on_way = [numbers_in(v[j] for j in sorted(path(tree.parents, i))) for i in range(tree.n_links)]
    beyond = [numbers_in(v[j] for j in sorted(below)) for below in descendants(tree.parents)]
    h = mapped(_momentum, I, S)
    return SubtreeTerms(
        tree, at, own, moving[:6], body, S, I, B, h, [on_way[i] for i in body], [beyond[i] for i in body]
    )


def _of_velocity(I: Array, v: Array, fx: Array) -> Array:
    """The velocity and wrench terms of the force on a body (6, ...), and the numbers of B(v, I) (12, ...)."""
    B = christoffel_factorisation(v, inertia_of(I))
    upper, lower = B[:3, :3], B[3:, :3]
    return np.concatenate(
        [matvec(B, v) - fx, upper.reshape(9, *v.shape[1:]), stack(lower[2, 1], lower[0, 2], lower[1, 0])]
    )


def _factorisation_of(numbers: Array) -> Array:
    """B (6, 6, ...) from its numbers: the nonzero ones, a vector for the skew-symmetric part."""
    upper, lower = numbers[:9].reshape(3, 3, *numbers.shape[1:]), skew(numbers[9:])
    return blocks(upper, lower * 0, lower, lower * 0)


def _momentum(I: Array, S: Array) -> Array:
    return matvec(inertia_of(I), S)


def _sums(tree: KinematicTree, numbers: Array) -> Array:
    """For each body the sum (m, n_links, ...) of numbers over its subtree."""
    return columns(composite(tree, tuple(numbers[:, i] for i in range(tree.n_links))))


def inertia_matrix(carried: SubtreeTerms, q: Array) -> Array:
    """The inertia matrix (nv, nv, ...), with the inertia of rotors."""
    J = add(zeros((carried.tree.nv,) * 2, q), joint_terms(carried.tree).J)
    lower = [
        combination(J[k], list(carried.h[:, k]), list(carried.S), on_way[on_way <= k])
        for k, on_way in enumerate(carried.on_way)
    ]
    M = np.stack(lower)
    for k in range(len(M)):
        M[:k, k] = M[k, :k]
    return M


def _accelerations(carried: SubtreeTerms, qd: Array, qdd: Array | None) -> tuple[Array, Array]:
    """The accelerations of all bodies, and of their parents (6, n_links, ...); rates None are zero."""
    tree, at = carried.tree, carried.at
    a_0 = spread(world_acceleration(tree.gravity), (6,), qd.shape[1:])
    a: list[Array] = []
    a_parent: list[Array] = []
    for i, (parent, v) in enumerate(zip(tree.parents, tree.v_slices, strict=True)):
        a_parent.append(at.X_root[i].apply_motion(a_0) if tree.is_root(i) else a[parent])
        fast = matvec(at.S_rate[i], qd[v])
        a.append(a_parent[i] + fast if qdd is None else a_parent[i] + matvec(at.S[i], qdd[v]) + fast)
    return columns(a), columns(a_parent)


def _composite_forces(carried: SubtreeTerms, a: Array) -> Array:
    """The force across each joint (6, n_links, ...) that gives its subtree the accelerations."""
    return _sums(carried.tree, mapped(_of_acceleration, carried.own, a, carried.force))


def _of_acceleration(I: Array, a: Array, force: Array) -> Array:
    return matvec(inertia_of(I), a) + force


def bias_force_at(carried: SubtreeTerms, q: Array, qd: Array) -> Array:
    """The part of tau beside M qdd (nv, ...)."""
    a, _ = _accelerations(carried, qd, None)
    F = _composite_forces(carried, a)
    forces = [matvec(transpose(S), F[:, i]) for i, S in enumerate(carried.at.S)]
    return np.concatenate(forces) + joint_terms(carried.tree).force(q, qd)


def inverse_dynamics_rates(carried: SubtreeTerms, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array]:
    """The derivatives of inverse dynamics by q and qd, pair by pair of a joint and one that carries it."""
    tree, at, body, S, h = carried.tree, carried.at, carried.body, carried.S, carried.h
    a, a_parent = _accelerations(carried, qd, qdd)
    F = _composite_forces(carried, a)
    still = zeros((6,), q)
    v_parent = columns([still if tree.is_root(i) else at.v[parent] for i, parent in enumerate(tree.parents)])
    turning = [_turning(carried, i, q, qd, qdd) for i in range(tree.n_links)]
    turned = (np.concatenate(parts, axis=1) for parts in zip(*(on[:2] for on in turning), strict=True))
    S_rate = np.concatenate(at.S_rate, axis=1)
    moved = mapped(
        _of_freedom, S, S_rate, *turned, v_parent[:, body], a_parent[:, body], carried.I, carried.B, F[:, body]
    )
    by_q, a_by_q, a_by_qd, b, w, p = np.split(moved, (3, 9, 15, 18, 24))
    rates_q, rates_qd = joint_terms(tree).force_rates(q, qd)
    dtau_dq = _pairs(carried, [*h, *b], [*a_by_q, *by_q], w, rates_q)
    dtau_dqd = _pairs(carried, [*h, *b], [*a_by_qd, *S[:3]], p, rates_qd)
    for i, (v, on) in enumerate(zip(tree.v_slices, turning, strict=True)):
        if on.S is not None:
            dtau_dq[v, v] += np.einsum("ilk...,i...->lk...", on.S, F[:, i])
    return dtau_dq, dtau_dqd


def _of_freedom(
    S: Array, S_rate: Array, dv: Array, da: Array, v: Array, a: Array, I: Array, B: Array, F: Array
) -> Array:
    """Derivatives by q and by qd of a freedom, for its subtree and for its ancestors.

    Args:
        S: its axis (6, ...).
        S_rate: the derivative of that.
        dv: derivative of S qd where the axes of the joint move in their frame.
        da: derivative of S qdd + c_J there.
        v: velocity of its parent.
        a: acceleration of its parent.
        I: composite inertia of its subtree, as numbers (10, ...).
        B: sum of B over its subtree, as numbers (12, ...).
        F: force across its joint (6, ...).

    Returns:
        The angular part of psi' (3, ...), psi'' (6, ...), that by qd (6, ...), the angular part of 2 B^T S (3, ...),
        and the derivatives of forces, w by q and p by qd (6, ...).
    """
    I, B = inertia_of(I), _factorisation_of(B)
    psi = cross_motion(v, S) + dv
    a_by_q = cross_motion(a, S) + cross_motion(v, psi) + da
    a_by_qd = psi + S_rate
    b = matvec(transpose(B), 2 * S)[:3]
    w = matvec(B, 2 * psi) + matvec(I, a_by_q) + cross_force(S, F)
    p = matvec(B, 2 * S) + matvec(I, a_by_qd)
    return np.concatenate([psi[:3], a_by_q, a_by_qd, b, w, p])


def _pairs(
    carried: SubtreeTerms, forces: Sequence[Array], changes: Sequence[Array], below: Array, initial: Array
) -> Array:
    """Derivatives (nv, nv, ...): by the freedoms of a row and its ancestors, and by those of its subtree.

    Args:
        carried: the subtree quantities.
        forces: h and 2 B^T S of each freedom, as rows (nv, ...).
        changes: the other factor, of the freedoms of its ancestors.
        below: the factor of S, of the freedoms of its subtree (6, nv, ...).
        initial: an added term (nv, nv, ...).
    """
    none, found = initial[0] * 0, []
    for k, (on_way, beyond) in enumerate(zip(carried.on_way, carried.beyond, strict=True)):
        up = combination(none, [force[k] for force in forces], changes, on_way)
        down = combination(none, list(carried.S[:, k]), list(below), beyond)
        found.append(combination(initial[k], [1.0, 1.0], [up, down]))
    return np.stack(found)


class _Turning(NamedTuple):
    """Derivatives along the freedoms k of a joint whose axes move in its frame, in root coordinates.

    Attributes:
        v: change of S qd (6, n_i, ...).
        a: of S qdd + c_J + v x S qd (6, n_i, ...).
        S: of the columns l of S (6, l, k, ...); None where S is constant.
    """

    v: Array
    a: Array
    S: Array | None


def _turning(carried: SubtreeTerms, i: int, q: Array, qd: Array, qdd: Array) -> _Turning:
    """The derivatives of the axes of a joint."""
    tree, joint = carried.tree, carried.tree.joints[i]
    q, qd, qdd = q[tree.q_slices[i]], qd[tree.v_slices[i]], qdd[tree.v_slices[i]]
    batch = qd.shape[1:]
    units = (spread(unit, (joint.nv,), batch) for unit in np.eye(joint.nv))
    rates = [joint.S_rate(q, unit) for unit in units]
    if all(is_numeric(rate) and not rate.any() for rate in rates):
        none = zeros((6, joint.nv), qd)
        return _Turning(none, none, None)
    back = carried.at.X[i].inverse()
    turned = [back.apply_motion(spread(rate, (6, joint.nv), batch)) for rate in rates]
    bias = back.apply_motion(spread(joint.bias_by_q(q, qd), (6, joint.nv), batch))
    v, a = (columns([matvec(rate, speed) for rate in turned]) for speed in (qd, qdd))
    return _Turning(v, a + bias + cross_motion(carried.at.v[i][:, None], v), np.stack(turned, axis=2))
