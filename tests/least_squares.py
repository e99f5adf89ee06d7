"""Weighted least squares with hard constraints in extended precision, at many states: dense, by orthogonal matrices.

    minimise sum_k w_k (Y d + c)_k^2  subject to  D d + b = 0

By the null-space method: D^T = Q R gives every d that obeys the constraints as d_0 + N z, with N the last columns of Q,
and a second QR, of sqrt(W) Y N, gives z. Nothing is squared: no normal equations and no KKT matrix, so that neither the
weights' range nor the condition of Y enters twice. Columns are pivoted, and heavy rows come first, which keeps rows of
very different weight accurate one by one.

Source: Björck, Numerical Methods for Least Squares Problems, ch. 5.1.3 (null-space method) and 4.4 (weights, order of
rows and columns); Golub and Van Loan, Matrix Computations, 4th ed., ch. 5.4.2 and 6.2.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

Extended = NDArray[np.longdouble]


class WeightedSolution(NamedTuple):
    """The minimiser of one state.

    Attributes:
        d: the minimiser (n,).
        residual: Y d + c (rows of Y,).
        covariance: P = N (N^T Y^T W Y N)^-1 N^T (n, n): of the estimate, where the w are 1 / sigma^2.
    """

    d: Extended
    residual: Extended
    covariance: Extended


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
    D, Y = (np.array(A.toarray() if hasattr(A, "toarray") else A, dtype=np.longdouble) for A in (D, Y))
    b, c, w = (np.asarray(x, dtype=np.longdouble) for x in (b, c, w))
    if len(D) + len(Y) < D.shape[1]:
        raise np.linalg.LinAlgError(f"{len(D)} constraints and {len(Y)} weighed rows for {D.shape[1]} unknowns")
    (d,), (root,), (pivots,) = minimised(D[None], b[None], Y[None], c[None], w[None])
    if len(pivots) and not pivots.min() > 1e-14:
        raise np.linalg.LinAlgError(f"the rows do not determine {np.sum(~(pivots > 1e-14))} of {D.shape[1]} unknowns")
    return WeightedSolution(d, Y @ d + c, root @ root.T)


def minimised(D: Extended, b: Extended, Y: Extended, c: Extended, w: Extended) -> tuple[Extended, Extended, Extended]:
    """The minimisers at N states, and what is known of them.

    Args:
        D, b: constraints (N, m, n) and (N, m).
        Y, c, w: weighed rows (N, k, n), (N, k), and their weights (N, k).

    Returns:
        d: (N, n).
        root: of the covariance (N, n, n - m), which is root root^T.
        pivots: of both factorisations over the largest of each (N, n): next to nothing where d is not determined.
    """
    N, m, n = D.shape
    basis = np.broadcast_to(np.eye(n, dtype=np.longdouble), (N, n, n))
    length = _or_one(np.sqrt(np.sum(D * D, axis=2)))
    R, Q, order = _qr(np.swapaxes(D / length[..., None], 1, 2), basis)
    first = _forward(R, np.take_along_axis(-b / length, order, axis=1)[..., None])
    d = (Q[:, :, :m] @ first)[..., 0]
    basis = Q[:, :, m:]
    root = np.sqrt(w)
    A, r = root[..., None] * (Y @ basis), root * (c + (Y @ d[..., None])[..., 0])
    heavy = np.argsort(-np.abs(A).max(axis=2, initial=0), axis=1, kind="stable")
    A, r = np.take_along_axis(A, heavy[..., None], axis=1), np.take_along_axis(r, heavy, axis=1)
    scale = _or_one(np.sqrt(np.sum(A * A, axis=1)))
    R_z, QTr, order = _qr(A / scale[:, None, :], -r[..., None], transpose=True)
    along = np.take_along_axis(basis / scale[:, None, :], order[:, None, :], axis=2)
    d = d + (along @ _backward(R_z, QTr[:, : n - m]))[..., 0]
    diagonals = [np.abs(np.diagonal(each, axis1=1, axis2=2)) for each in (R, R_z)]
    pivots = [each / _or_one(each.max(axis=1, keepdims=True)) for each in diagonals if each.size]
    spread = np.swapaxes(_forward(R_z, np.swapaxes(along, 1, 2)), 1, 2)
    return d, spread, np.concatenate([np.zeros((N, 0), np.longdouble), *pivots], axis=1)


def _or_one(size: Extended) -> Extended:
    return np.where(size > 0, size, 1)


def _qr(A: Extended, X: Extended, transpose: bool = False) -> tuple[Extended, Extended, NDArray[np.intp]]:
    """R of A P = Q R (N, m, n), X Q or, transposed, Q^T X, and P as the order of the columns.

    P is that of a pivoted QR in double precision: any order is correct, and this one shows the rank.
    """
    m, n = A.shape[1:]
    order = np.zeros((len(A), n), np.intp)
    for place, each in zip(order, A, strict=True) if A.size else ():
        place[:] = la.qr(each.astype(float), mode="r", pivoting=True)[1]
    A, X = np.take_along_axis(A, order[:, None, :], axis=2), X.copy()
    for k in range(min(m, n)):
        v = A[:, k:, k].copy()
        size = np.sqrt(np.sum(v * v, axis=1))
        v[:, 0] += np.where(v[:, 0] < 0, -size, size)
        square = np.sum(v * v, axis=1)
        along = (np.where(square > 0, 2 / _or_one(square), 0)[:, None] * v)[..., None]
        A[:, k:, k:] -= along * (v[:, None, :] @ A[:, k:, k:])
        if transpose:
            X[:, k:] -= along * (v[:, None, :] @ X[:, k:])
        else:
            X[:, :, k:] -= (X[:, :, k:] @ v[..., None]) * np.swapaxes(along, 1, 2)
    return A[:, :n], X, order


def _backward(R: Extended, b: Extended) -> Extended:
    """The solution of R x = b for b (N, n, k)."""
    x = b.copy()
    with np.errstate(all="ignore"):
        for k in reversed(range(b.shape[1])):
            x[:, k] /= R[:, k, k, None]
            x[:, :k] -= R[:, :k, k, None] * x[:, k, None]
    return x


def _forward(R: Extended, b: Extended) -> Extended:
    """The solution of R^T x = b for b (N, n, k)."""
    return _backward(np.swapaxes(R, 1, 2)[:, ::-1, ::-1], b[:, ::-1])[:, ::-1]


def null_space(A: ArrayLike, tolerance: float) -> NDArray[np.float64]:
    """What rows (m, n) leave open (n, dimension), each unknown in units of its own size, by singular values."""
    A = np.array(A, dtype=float)
    for _ in range(8):  # natural units
        A /= np.sqrt(np.maximum(np.abs(A).max(axis=1, keepdims=True), 1e-300))
        A /= np.sqrt(np.maximum(np.abs(A).max(axis=0), 1e-300))
    _, values, V = la.svd(A)
    return np.asarray(V[int(np.sum(values > tolerance * values[0])) :].T)
