"""Freshly pivoted sparse LU of the system in natural units, by SuperLU or UMFPACK.

Rows and columns are scaled once, by powers of two, to the size that unknowns and equations have over an ensemble of
states: so a robot with links from grams to tonnes is not taken for a singular one, and the ratio of the pivots says
how near to singular a state is.
"""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from nori_dyn.planning.orderings.umfpack import umfpack_module
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.backends.base import RCOND_LIMIT, Floats
from nori_dyn.program.silence import silent_stdout


class PlannedMatrix:
    """The scaled matrix P D Q of a plan in compressed columns, ready to take new values.

    Attributes:
        matrix: the sparse matrix, its pattern fixed.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        symbolic = plan.symbolic
        n = symbolic.shape[0]
        r, c = natural_scaling(plan.system, symbolic, plan.seed)
        place = np.empty(n, dtype=np.intp)
        place[plan.row_permutation] = np.arange(n)
        rows = place[symbolic.rows]
        place[plan.column_permutation] = np.arange(n)
        columns = place[symbolic.columns]
        self._order = np.lexsort((rows, columns))
        self._scale = (r[symbolic.rows] * c[symbolic.columns])[self._order]
        indptr = np.searchsorted(columns[self._order], np.arange(n + 1))
        parts = (self._scale.copy(), rows[self._order].astype(np.int32), indptr.astype(np.int32))
        self.matrix = sp.csc_matrix(parts, shape=(n, n))
        self._row_scale = r[plan.row_permutation]
        self._column_scale = c[plan.column_permutation]
        self._rows, self._columns = plan.row_permutation, plan.column_permutation

    def fill(self, values: Floats, b: Floats) -> Floats:
        """Put the structural nonzeros (nnz) of a state into the matrix; return the scaled right-hand side."""
        self.matrix.data[:] = values[self._order] * self._scale
        return np.asarray(-b[self._rows] * self._row_scale)

    def unscale(self, x: Floats) -> Floats:
        """Return d (n,) from the solution of the scaled and permuted system."""
        d = np.empty_like(x)
        d[self._columns] = x * self._column_scale
        return d


class Factorisation(Protocol):
    """A sparse LU that pivots anew for each state."""

    def solve(self, values: Floats, b: Floats) -> tuple[Floats, float]:
        """Return d (n,), and the ratio of the smallest pivot to the largest; d is nan where that is below the limit.

        Args:
            values: structural nonzeros of D (nnz).
            b: right-hand side b (n,) of D d + b = 0.
        """


class SuperLU(Factorisation):
    """SciPy's SuperLU, in the planned column order. Always available.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._planned = PlannedMatrix(plan)

    def solve(self, values: Floats, b: Floats) -> tuple[Floats, float]:
        right = self._planned.fill(values, b)
        try:
            lu = spla.splu(self._planned.matrix, permc_spec="NATURAL", diag_pivot_thresh=0.1)
        except RuntimeError:  # "Factor is exactly singular"
            return np.full_like(b, np.nan), 0.0
        pivots = np.abs(lu.U.diagonal())
        rcond = float(pivots.min() / pivots.max())
        if not rcond >= RCOND_LIMIT:
            return np.full_like(b, np.nan), rcond
        return self._planned.unscale(lu.solve(right)), rcond


class Umfpack(Factorisation):
    """UMFPACK with the planned column order fixed and its symbolic analysis kept: each state is refactorised only.

    Args:
        plan: the plan.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._module = umfpack_module()
        self._planned = PlannedMatrix(plan)
        self._context = self._module.UmfpackContext("di")
        control = self._context.control
        control[self._module.UMFPACK_SCALE] = self._module.UMFPACK_SCALE_NONE
        control[self._module.UMFPACK_STRATEGY] = self._module.UMFPACK_STRATEGY_UNSYMMETRIC
        control[self._module.UMFPACK_ORDERING] = self._module.UMFPACK_ORDERING_NONE
        control[self._module.UMFPACK_FIXQ] = 1
        with silent_stdout():
            self._context.symbolic(self._planned.matrix)

    def solve(self, values: Floats, b: Floats) -> tuple[Floats, float]:
        right = self._planned.fill(values, b)
        with warnings.catch_warnings():  # a singular matrix is told by its rcond
            warnings.simplefilter("ignore")
            self._context.numeric(self._planned.matrix)
            rcond = float(self._context.info[self._module.UMFPACK_RCOND])
            if not rcond >= RCOND_LIMIT:
                return np.full_like(b, np.nan), rcond
            x = self._context.solve(self._module.UMFPACK_A, self._planned.matrix, right)
        return self._planned.unscale(x), rcond
