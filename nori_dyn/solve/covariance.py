"""The covariance of an estimate at one state, by orthogonal factorisations: slow, and right where a program is not.

Where sensors have no weight, or the rank is lost, pivots of an elimination are zero; here the rank is found first. Rows
that hold exactly restrict the sources s to s = s_0 + Z z, with Z the null space of E; of the rest, the weighed rows
that are believed see z = V_1 z_1 and not V_2 z_2, and sqrt(W) A V_1 = Q R gives the covariance R^-1 R^-T of z_1.

Source: Bjoerck, Numerical Methods for Least Squares Problems, ch. 5.1.3 for the null-space method, 4.4 for the order of
rows and columns; own derivation of the rest (tests/regressions/test_monitor_without_sensors.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg as la

from nori_dyn.system.builder import System
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes, over_sources
from nori_dyn.typing import Floats

MOVED = 1e-7
"""Share of a direction in the null space above which it is undetermined."""


class StateUncertainty(NamedTuple):
    """The uncertainty of an estimate.

    Attributes:
        variances: of the estimate along each direction; infinite where it is not determined.
        explained: the same along each weighed row.
        residuals: of each weighed row, its reading less the reading predicted by the estimate.
        needed: how many readings the estimate needs.
    """

    variances: Floats
    explained: Floats
    residuals: Floats
    needed: int


class Covariance:
    """Factorises a system at each state.

    Args:
        system: a system with weighed rows and exact equations of motion.
        directions: sums of unknowns whose variance is wanted (n_directions, n).
    """

    def __init__(self, system: System, directions: Floats) -> None:
        self._system, self._directions = system, directions
        self._sizes = natural_sizes(system)
        self._exact = np.concatenate([np.full(row.slice.stop - row.slice.start, row.is_exact) for row in system.rows])

    def at(self, q: Floats, qd: Floats, y: Floats, weights: Floats) -> StateUncertainty:
        """The uncertainty of the estimate at a state.

        Args:
            q: configuration (nq,), quaternions of unit length.
            qd: velocity (nv,).
            y: readings (ny,).
            weights: 1 / sigma^2 of each weighed row; where it is 0, the row has no part in the estimate.
        """
        at = over_sources(self._system, self._sizes, self._system.D(q, qd, y), self._system.b(q, qd, y))
        exact = self._exact[at.rows]
        U, values, V, Z = _split(at.M[exact])
        start = -V @ (U.T @ at.m[exact] / values)
        A, off = at.M[~exact] @ Z, at.m[~exact] + at.M[~exact] @ start
        size = self._sizes.rows[at.rows[~exact]]
        _, _, observed, null_space = _split(A[weights > 0])
        z, factor = _weighed(A @ observed, off, np.sqrt(weights) * size)
        along = self._directions @ at.X @ Z
        return StateUncertainty(
            variances=_variances(along, observed @ factor, null_space),
            explained=size**2 * _variances(A, observed @ factor, null_space),
            residuals=-size * (A @ observed @ z + off),
            needed=observed.shape[1],
        )


def _split(A: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return U_1, the singular values that are not zero, V_1 and V_2 of a matrix A: V_2 is its null space."""
    if not A.size:
        return np.zeros((len(A), 0)), np.zeros(0), np.zeros((A.shape[1], 0)), np.eye(A.shape[1])
    U, values, V = la.svd(A, full_matrices=A.shape[0] < A.shape[1])
    rank = int(np.sum(values > NULL_TOLERANCE * values.max(initial=0.0)))
    return U[:, :rank], values[:rank], V[:rank].T, V[rank:].T


def _weighed(A: Floats, off: Floats, roots: Floats) -> tuple[Floats, Floats]:
    """Return the z that makes roots * (A z + off) smallest, and a factor F of its covariance F F^T.

    Args:
        A: of full column rank where `roots` is not zero.
        off: the constant term of the rows.
        roots: 1 / sigma of each row, or 0.
    """
    if not A.shape[1]:
        return np.zeros(0), np.zeros((0, 0))
    B, c = roots[:, None] * A, roots * off
    heavy = np.argsort(-np.abs(B).max(axis=1, initial=0.0), kind="stable")
    Q, R, order = la.qr(B[heavy], mode="economic", pivoting=True)
    factor = np.empty(R.shape)
    factor[order] = la.solve_triangular(R, np.eye(len(R)))
    return np.asarray(-factor @ (Q.T @ c[heavy])), factor


def _variances(rows: Floats, factor: Floats, null_space: Floats) -> Floats:
    """The variance along each of some rows; infinite along those that the null space reaches."""
    size = np.linalg.norm(rows, axis=1)
    moved = np.linalg.norm(rows @ null_space, axis=1) > MOVED * size
    return np.asarray(np.where(moved, np.inf, np.sum((rows @ factor) ** 2, axis=1)))
