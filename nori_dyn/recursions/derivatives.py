"""The derivatives of inverse, forward and hybrid dynamics, analytical: no finite difference, no derived expression.

Source: Carpentier and Mansard, "Analytical derivatives of rigid body dynamics algorithms" (2018); Singh, Russell and
Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra" (2022); see `carried`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.algebra.rows import combination
from nori_dyn.algebra.spatial import matvec, transpose
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.crba import factorised
from nori_dyn.recursions.factorisation import LTDL, inverse_of, solve_ltdl, solve_rows
from nori_dyn.recursions.jacobian import jacobian
from nori_dyn.recursions.sparsity import expanded_parents, parents_among
from nori_dyn.recursions.state import arguments
from nori_dyn.recursions.subtree_terms import bias_force_at, inertia_matrix, inverse_dynamics_rates, subtree_terms
from nori_dyn.typing import Array, Indices


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


class HybridDynamicsDerivatives(NamedTuple):
    """Derivatives of the unknown of each freedom, its joint force or its acceleration.

    Attributes:
        by_q: by the configuration, along the freedoms, whose directions are those of qd (nv, nv, ...).
        by_qd: by the velocity (nv, nv, ...).
        by_given: by the accelerations and joint forces that are given (nv, nv, ...).
        by_fx: by the wrenches on links (nv, n_links, 6, ...); None where they were not asked for.
        pivots: of each freedom whose force is given the divisor, D of M = L^T D L, and its entry of M.
    """

    by_q: Array
    by_qd: Array
    by_given: Array
    by_fx: Array | None
    pivots: tuple[Array, Array]


def rnea_derivatives(
    tree: KinematicTree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike | None, fx: ArrayLike | None = None
) -> InverseDynamicsDerivatives:
    """The derivatives of inverse dynamics, `rnea`, by configuration, velocity and acceleration, in O(N d).

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

    Source: Singh, Russell and Wensing (2022) for the two cases of each pair of joints; see `carried`.

    Example:
        >>> arm = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
        >>> dtau_dq, dtau_dqd, M = nd.recursions.rnea_derivatives(arm, np.array([0.0, 0.5]), np.ones(2), np.zeros(2))
        >>> np.allclose(M, nd.crba(arm, np.array([0.0, 0.5])))
        True
    """
    found = hybrid_dynamics_derivatives(tree, q, qd, None, qdd, tree.joint_names, fx)
    return InverseDynamicsDerivatives(found.by_q, found.by_qd, found.by_given)


def aba_derivatives(
    tree: KinematicTree, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, fx: ArrayLike | None = None
) -> ForwardDynamicsDerivatives:
    """The derivatives of forward dynamics, `aba`, by configuration, velocity and joint forces.

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
        >>> dqdd_dq, dqdd_dqd, Minv = nd.recursions.aba_derivatives(arm, np.array([0.0, 0.5]), np.ones(2), np.zeros(2))
        >>> np.allclose(Minv, nd.minverse(arm, np.array([0.0, 0.5])))
        True
    """
    found = hybrid_dynamics_derivatives(tree, q, qd, tau, None, (), fx)
    return ForwardDynamicsDerivatives(found.by_q, found.by_qd, found.by_given)


def hybrid_dynamics_derivatives(
    tree: KinematicTree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike | None,
    qdd: ArrayLike | None,
    accelerated: Collection[str],
    fx: ArrayLike | None = None,
    with_fx: bool = False,
) -> HybridDynamicsDerivatives:
    """The derivatives of hybrid dynamics: some joints follow given accelerations, the others given forces.

    With a the freedoms of the former and t those of the latter, dqdd_t = M_tt^-1 (dtau_t - dID_t - M_ta dqdd_a) and
    dtau_a = dID_a + M_at dqdd_t + M_aa dqdd_a, with the derivatives of inverse dynamics at the accelerations of all.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        tau: joint forces (nv, ...) [N m, N]; those of accelerated joints are not read.
        qdd: accelerations (nv, ...) [rad/s^2, m/s^2]; those of the other joints are not read.
        accelerated: names of the joints whose acceleration is given; the others' force is.
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N]; none when None.
        with_fx: whether to return the derivatives by wrenches.

    Raises:
        UnknownModelNameError: no joint has one of the names.
        InputError, SingularSystemError, UnsupportedComponentError: as `aba_derivatives`.

    Source: RBDA ch. 9.2 for hybrid dynamics; by factors of M_tt, which have the zeros of the tree, own derivation.
    """
    q, qd, tau, qdd, fx = arguments(tree, q=q, qd=qd, tau=tau, qdd=qdd, fx=fx)
    led = numbers_in(tree.v_slices[tree.joint(name)] for name in accelerated)
    forced = np.setdiff1d(np.arange(tree.nv), led)
    carried = subtree_terms(tree, q, qd, fx)
    split = _Split.of(tree, inertia_matrix(carried, q), forced)
    if len(forced):
        qdd = split.accelerations(qdd, tau - bias_force_at(carried, q, qd))
    by_q, by_qd = (split.moved(by) for by in inverse_dynamics_rates(carried, q, qd, qdd))
    by_fx = None
    if with_fx:
        lever = of_wrenches(tree, q)
        by_fx = split.moved(-lever.reshape(tree.nv, -1, *lever.shape[3:])).reshape(lever.shape)
    return HybridDynamicsDerivatives(by_q, by_qd, split.by_given(), by_fx, split.pivots)


def of_wrenches(tree: KinematicTree, q: Array) -> Array:
    """The joint forces of unit wrenches on the links (nv, n_links, 6, ...), as `rnea` and `aba` are given them.

    Arguments and errors are those of `crba`.
    """
    return np.stack([transpose(jacobian(tree, q, name)) for name in tree.names], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """The inertia matrix, parted by which joint forces are given.

    Attributes:
        M: the inertia matrix (nv, nv, ...), with the inertia of rotors.
        forced: the freedoms whose force is given (n_t,), at least one.
        others: those whose acceleration is given.
        factors: those of M_tt.
        parents: of each forced freedom the next one on the way to the world, among themselves.
    """

    M: Array
    forced: Indices
    others: Indices
    factors: LTDL
    parents: tuple[int, ...]

    @staticmethod
    def of(tree: KinematicTree, M: Array, forced: Indices) -> _Split:
        others = np.setdiff1d(np.arange(tree.nv), forced)
        parents = parents_among(expanded_parents(tree), forced.tolist())
        return _Split(M, forced, others, factorised(tree, M[np.ix_(forced, forced)], forced.tolist()), parents)

    @property
    def pivots(self) -> tuple[Array, Array]:
        """D, and the corresponding entries of M."""
        return self.factors.D, self.M[self.forced, self.forced]

    def accelerations(self, given: Array, left: Array) -> Array:
        """All accelerations (nv, ...), those that are not given by M_tt qdd_t = left_t - M_ta qdd_a."""
        t, a, found = self.forced, self.others, np.array(given)
        found[t] = solve_ltdl(self.factors, self.parents, left[t] - matvec(self.M[np.ix_(t, a)], given[a]))
        return found

    def moved(self, of_inverse_dynamics: Array) -> Array:
        """Derivatives of the unknowns (nv, m, ...), from those of inverse dynamics."""
        if not len(self.forced):
            return of_inverse_dynamics
        rows = list(of_inverse_dynamics)
        solved = solve_rows(LTDL(self.factors.L, -self.factors.D), self.parents, of_inverse_dynamics[self.forced])
        for k, row in zip(self.forced, solved, strict=True):
            rows[k] = row
        for k in self.others:
            rows[k] = combination(rows[k], self.M[k, self.forced], solved)
        return np.stack(rows)

    def by_given(self) -> Array:
        """Derivatives of the unknowns by the given values (nv, nv, ...)."""
        t, a = self.forced, self.others
        if not len(t):
            return self.M
        Minv = inverse_of(self.factors, self.parents)
        if not len(a):
            return Minv
        by = np.array(self.M)
        by[:, t] = 0
        by = self.moved(by)
        by[np.ix_(t, t)] = Minv
        by[np.ix_(a, t)] = -transpose(by[np.ix_(t, a)])
        return by
