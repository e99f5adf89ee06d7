"""The equation of motion in other coordinates or generalised speeds, and in those of the centre of mass.

With qd = A nu, where A is the derivative of the old coordinates by the new ones, or of qd by generalised speeds nu, the
equation M qdd + C qd + g = tau becomes one of the same form in nu.

Source: Echeandia and Wensing (2021), section 3.3, remarks 5 and 6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import cross, matmul, matvec, spread, transpose, zeros
from nori_dyn.errors import InputError, ModelError
from nori_dyn.model.centroid import mass_of
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.composites import composite, root_coordinates
from nori_dyn.recursions.coriolis import christoffel_factorisation
from nori_dyn.recursions.state import arguments, scalars
from nori_dyn.typing import Array


class CoordinateChange(NamedTuple):
    """The velocities qd = A nu of new speeds nu, and how A changes.

    Attributes:
        A: (nv, n, ...).
        A_rate: its derivative in time (nv, n, ...).
    """

    A: Array
    A_rate: Array

    def inertia(self, M: Any) -> Array:
        """A^T M A (n, n, ...) for M (nv, nv, ...): (23)."""
        return self._form(self._checked("M", M, 2))

    def coriolis(self, M: Any, C: Any) -> Array:
        """A^T C A + A^T M dA/dt (n, n, ...) for M and C (nv, nv, ...): (24), (27).

        An admissible C, for which Mdot - 2 C is skew-symmetric, stays one, and that of Christoffel symbols stays that.
        """
        M, C = self._checked("M", M, 2), self._checked("C", C, 2)
        return self._form(C) + matmul(matmul(transpose(self.A), M), self.A_rate)

    def force(self, tau: ArrayLike) -> Array:
        """A^T tau (n, ...) for joint forces or gravity (nv, ...): (25), (26)."""
        return matvec(transpose(self.A), self._checked("tau", tau, 1))

    def _form(self, M: Array) -> Array:
        return matmul(matmul(transpose(self.A), M), self.A)

    def _checked(self, name: str, value: Any, axes: int) -> Array:
        return scalars(name, value, (len(self.A),) * axes)


def coordinate_change(A: Any, A_rate: Any) -> CoordinateChange:
    """The change to speeds nu with qd = A nu.

    Args:
        A: (nv, n, ...), over any scalar.
        A_rate: its derivative in time (nv, n, ...).

    Raises:
        InputError: the two are not matrices of one shape, or not finite.

    Source: Echeandia and Wensing (22)-(27).
    """
    A, A_rate = scalars("A", A, ()), scalars("A_rate", A_rate, ())
    if A.ndim < 2 or A.shape[:2] != A_rate.shape[:2]:
        raise InputError(f"A has shape {A.shape} and A_rate {A_rate.shape}: expected two of (nv, n).")
    return CoordinateChange(A, A_rate)


def com_coordinates(tree: KinematicTree, q: ArrayLike, qd: ArrayLike) -> CoordinateChange:
    """The change to speeds in which the centre of mass moves apart from all else.

    nu = (velocity of the centre of mass in world axes, angular velocity of the base in base axes, speeds of the other
    joints). In it M is [[m 1, 0], [0, M_22]] and C, by the "christoffel" factorisation, [[0, 0], [0, C_22]].

    Args:
        tree: a robot with a floating base: one root, on a free joint.
        q: configuration (nq, ...) [m, rad], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].

    Raises:
        ModelError: the robot has no floating base, or no mass.
        InputError: a wrong shape, or a number that is not finite.

    Source: Echeandia and Wensing, remark 6, (32); own derivation of A (tests/unit/recursions/test_coordinates.py).
    """
    if [tree.joints[i].kind for i in range(tree.n_links) if tree.is_root(i)] != ["free"]:
        raise ModelError(f"robot '{tree.name}' has no floating base: its one root must be on a free joint.")
    mass = mass_of(tree)
    q, qd = arguments(tree, q=q, qd=qd)
    at = root_coordinates(tree, q, qd)
    I_c = composite(tree, at.I)
    B_c = composite(tree, tuple(christoffel_factorisation(v, I) for v, I in zip(at.v, at.I, strict=True)))

    # The centre's velocity in base axes is P qd, momentum by mass; in those axes P changes less than in space.
    P = np.concatenate([matmul(I_c[j], at.S[j])[3:] for j in range(tree.n_links)], axis=1) / mass
    change = [matmul(I_c[j], at.S_rate[j]) + matmul(B_c[j] + transpose(B_c[j]), at.S[j]) for j in range(tree.n_links)]
    w = at.v[0][:3, None]
    P_rate = np.concatenate([force[3:] for force in change], axis=1) / mass - cross(w, P)

    E = spread(at.X_root[0].E, (3, 3), q.shape[1:])
    A, A_rate = (zeros((tree.nv, tree.nv), q) for _ in range(2))
    A[:] = spread(np.eye(tree.nv), A.shape[:2], q.shape[1:])
    order = [*range(3, 6), *range(3), *range(6, tree.nv)]  # nu begins with the linear speeds, qd with the angular ones
    A, rest = A[:, order], [*range(3), *range(6, tree.nv)]
    A[3:6, :3], A_rate[3:6, :3] = E, -cross(w, E)
    A[3:6, 3:], A_rate[3:6, 3:] = -P[:, rest], -P_rate[:, rest]
    return CoordinateChange(A, A_rate)
