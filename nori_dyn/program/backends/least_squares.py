"""Weighted least squares with exact rows at one state, by orthogonal factorisations: slow, and right where it can be.

Source: Golub and Van Loan, Matrix Computations, ch. 6.2.2 (the null-space method).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.backends.base import RCOND_LIMIT, Floats


class LeastSquares:
    """Solves a plan's system at one state, unknowns in natural units, with rank-revealing QR.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._system = plan.system
        _, size = natural_scaling(plan.system, plan.symbolic, plan.seed)
        self._size = size[: plan.system.shape[1]]
        self._exact = np.concatenate([np.full(r.slice.stop - r.slice.start, r.is_exact) for r in plan.system.rows])
        self._weight = [k for row in plan.system.rows if not row.is_exact for k in row.weight_of_rows]

    def solve(self, q: Floats, qd: Floats, y: Floats, weights: Floats) -> tuple[Floats, float, float]:
        """Return d (n,), the residual of the exact rows, and the ratio of pivots; d is nan where that is tiny."""
        D, b = self._system.D(q).toarray(), self._system.b(q, qd, y)
        scaled = D * self._size
        A = scaled[self._exact]
        length = np.linalg.norm(A, axis=1)
        Q, R, order = sl.qr((A / length[:, None]).T, pivoting=True)
        m = len(A)
        R = R[:m]
        root = np.sqrt(weights[self._weight])
        B, c = root[:, None] * scaled[~self._exact], root * b[~self._exact]
        first, null_space = Q[:, :m], Q[:, m:]
        rcond = _ratio(R)
        if rcond >= RCOND_LIMIT:
            x = first @ sl.solve_triangular(R, -(b[self._exact] / length)[order], trans="T")
            heavy = np.argsort(-np.abs(B).max(axis=1, initial=0.0), kind="stable")
            q_b, r_b, columns = sl.qr((B @ null_space)[heavy], mode="economic", pivoting=True)
            rcond = min(rcond, _ratio(r_b) if r_b.shape[0] == r_b.shape[1] else 0.0)
        if not rcond >= RCOND_LIMIT:
            return np.full(D.shape[1], np.nan), np.nan, rcond
        z = np.zeros(null_space.shape[1])
        z[columns] = sl.solve_triangular(r_b, -q_b.T @ (c + B @ x)[heavy])
        d = self._size * (x + null_space @ z)
        terms = np.abs(D[self._exact]) @ np.abs(d) + np.abs(b[self._exact])
        error = np.abs(D[self._exact] @ d + b[self._exact])
        return d, float(np.max(error / np.where(terms == 0, 1.0, terms), initial=0.0)), rcond


def _ratio(R: Floats) -> float:
    """Return the smallest of the diagonal of a triangle relative to the largest; 1 of an empty one."""
    size = np.abs(np.diagonal(R))
    return float(size.min() / size.max()) if len(size) and size.max() > 0 else float(not len(size))
