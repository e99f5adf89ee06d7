"""Weighted least squares with hard constraints in extended precision: dense, by orthogonal matrices, and slow.

    minimise sum_k w_k (Y d + c)_k^2  subject to  D d + b = 0

By the null-space method: D^T = Q R gives every d that obeys the constraints as d_0 + N z, with N the last columns of Q,
and a second QR, of sqrt(W) Y N, gives z. Nothing is squared: no normal equations and no KKT matrix, so that neither the
weights' range nor the condition of Y enters twice. Columns are taken in the order that a pivoted QR in double precision
chooses, and heavy rows come first, which keeps rows of very different weight accurate one by one.

Source: Björck, Numerical Methods for Least Squares Problems, ch. 5.1.3 (null-space method) and 4.4 (weights, order of
rows and columns); Golub and Van Loan, Matrix Computations, 4th ed., ch. 5.2.3 (blocks of reflectors) and 6.2.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

Extended = NDArray[np.longdouble]

PANEL = 32
"""Columns that are reflected together; the rest of the matrix is then updated by products."""


@dataclass(frozen=True)
class OrthogonalFactors:
    """A P = Q R of a matrix A (m, n), m >= n: Q (m, m) as blocks I - V T V^T of reflectors, and a permutation P."""

    panels: tuple[tuple[int, Extended, Extended], ...]
    R: Extended
    order: NDArray[np.intp]

    def Q_times(self, X: Extended) -> Extended:
        """Q X for X (m, k)."""
        X = X.copy()
        for start, V, T in reversed(self.panels):
            X[start:] -= V @ (T @ (V.T @ X[start:]))
        return X

    def QT_times(self, X: Extended) -> Extended:
        """Q^T X for X (m, k)."""
        X = X.copy()
        for start, V, T in self.panels:
            X[start:] -= V @ (T.T @ (V.T @ X[start:]))
        return X

    @property
    def rank(self) -> int:
        """The number of pivots that are above rounding of double precision."""
        pivots = np.abs(np.diagonal(self.R))
        return int(np.sum(pivots > 1e-14 * pivots.max())) if pivots.size else 0


def orthogonal_factors(A: ArrayLike) -> OrthogonalFactors:
    """A P = Q R of a matrix (m, n), m >= n, in extended precision: Golub and Van Loan, algorithm 5.2.2.

    P is the order of columns that a pivoted QR chooses in double precision, whose rounding it survives: any order is
    correct, and this one shows the rank.
    """
    A = np.array(A, dtype=np.longdouble)
    m, n = A.shape
    order = np.arange(n)
    if n:
        order = la.qr(A.astype(float), mode="r", pivoting=True)[1].astype(np.intp)
    A = A[:, order]
    panels = []
    for k in range(0, n, PANEL):
        width = min(PANEL, n - k)
        panel = A[k:, k : k + width]
        V, T = np.zeros((m - k, width), np.longdouble), np.zeros((width, width), np.longdouble)
        for j in range(width):
            v = panel[j:, j].copy()
            v[0] += np.copysign(np.sqrt(v @ v), v[0])
            square = v @ v
            beta = 2 / square if square > 0 else square
            panel[j:, j:] -= np.outer(beta * v, v @ panel[j:, j:])
            T[:j, j] = -beta * (T[:j, :j] @ (V[j:, :j].T @ v))
            T[j, j], V[j:, j] = beta, v
        rest = A[k:, k + width :]
        rest -= V @ (T.T @ (V.T @ rest))
        panels.append((k, V, T))
    return OrthogonalFactors(tuple(panels), np.triu(A[:n]), order)


def solve_upper(R: Extended, X: Extended) -> Extended:
    """The solution of R Z = X for an upper triangular R (n, n) and X (n, ...)."""
    Z = X.copy()
    for k in reversed(range(len(R))):
        Z[k] /= R[k, k]
        Z[:k] -= np.multiply.outer(R[:k, k], Z[k])
    return Z


def solve_upper_transposed(R: Extended, X: Extended) -> Extended:
    """The solution of R^T Z = X for an upper triangular R (n, n) and X (n, ...)."""
    return solve_upper(R.T[::-1, ::-1], X[::-1])[::-1]


@dataclass(frozen=True)
class WeightedSolution:
    """The minimiser, and what it came from.

    Attributes:
        d: the minimiser (n,).
        N: an orthonormal basis of the null space of D (n, n - rows of D).
        multipliers: of the constraints (rows of D,): D^T multipliers + Y^T W (Y d + c) = 0.
        residual: Y d + c (rows of Y,).
        factors: of sqrt(W) Y N.
    """

    d: Extended
    N: Extended
    multipliers: Extended
    residual: Extended
    factors: OrthogonalFactors

    @cached_property
    def covariance(self) -> Extended:
        """P = N (N^T Y^T W Y N)^-1 N^T (n, n): of the estimate, where the w are 1 / sigma^2."""
        root = solve_upper_transposed(self.factors.R, self.N[:, self.factors.order].T.copy())
        return root.T @ root


def constrained_least_squares(
    D: ArrayLike | Any, b: ArrayLike, Y: ArrayLike | Any, c: ArrayLike, w: ArrayLike
) -> WeightedSolution:
    """The d that minimises sum_k w_k (Y d + c)_k^2 subject to D d + b = 0.

    Args:
        D: constraints (m, n), dense or sparse; m may be 0.
        b: (m,).
        Y: weighed rows (k, n), dense or sparse.
        c: (k,).
        w: weights (k,), positive.

    Raises:
        numpy.linalg.LinAlgError: constraints that depend on each other, or a d that is not determined.
    """
    D, Y = _dense(D), _dense(Y)
    b, c, w = (np.asarray(x, dtype=np.longdouble) for x in (b, c, w))
    m, n = D.shape

    D_scale = 1 / np.sqrt(np.sum(D * D, axis=1))
    constraints = orthogonal_factors((D * D_scale[:, None]).T)
    if constraints.rank < m:
        raise np.linalg.LinAlgError(f"{m} constraints of rank {constraints.rank}")
    start = np.zeros((n, 1), np.longdouble)
    start[:m, 0] = solve_upper_transposed(constraints.R, -(D_scale * b)[constraints.order])
    d_0 = constraints.Q_times(start)[:, 0]
    N = constraints.Q_times(np.eye(n, dtype=np.longdouble)[:, m:])

    root = np.sqrt(w)
    A, r = root[:, None] * (Y @ N), root * (Y @ d_0 + c)
    heavy_first = np.argsort(-np.abs(A).max(axis=1, initial=0), kind="stable")
    if len(A) < n - m:
        raise np.linalg.LinAlgError(f"{len(A)} weighed rows for {n - m} unknowns that the constraints leave")
    factors = orthogonal_factors(A[heavy_first])
    if factors.rank < n - m:
        raise np.linalg.LinAlgError(f"the rows determine {factors.rank} of the {n - m} that the constraints leave")
    z = np.empty(n - m, np.longdouble)
    z[factors.order] = solve_upper(factors.R, -factors.QT_times(r[heavy_first, None])[: n - m, 0])
    d = d_0 + N @ z

    residual = Y @ d + c
    gradient = constraints.QT_times((Y.T @ (w * residual))[:, None])[:m, 0]
    multipliers = np.empty(m, np.longdouble)
    multipliers[constraints.order] = -solve_upper(constraints.R, gradient)
    return WeightedSolution(d, N, multipliers * D_scale, residual, factors)


def _dense(A: Any) -> Extended:
    return np.array(A.toarray() if hasattr(A, "toarray") else A, dtype=np.longdouble)
