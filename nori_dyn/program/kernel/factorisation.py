"""Sparse LU of the system by UMFPACK, in the planned order and in natural units.

Rows and columns are scaled once, by powers of two, to the size that unknowns and equations have over an ensemble of
states, so that a robot with links from grams to tonnes is not badly scaled.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from nori_dyn.planning.orderings.umfpack import umfpack_module
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.silence import silent_stdout
from nori_dyn.typing import Floats


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

    def fill(self, values: Floats) -> None:
        """Put the structural nonzeros (nnz) of a state into the matrix."""
        self.matrix.data[:] = values[self._order] * self._scale

    def scale(self, b: Floats) -> Floats:
        """Return the right-hand side of the scaled and permuted system, for -b (n,)."""
        return np.asarray(-b[self._rows] * self._row_scale)

    def unscale(self, x: Floats) -> Floats:
        """Return d (n,) from the solution of the scaled and permuted system."""
        d = np.empty_like(x)
        d[self._columns] = x * self._column_scale
        return d


class Umfpack:
    """UMFPACK with the planned column order and its symbolic analysis fixed: each state is only re-factorised.

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

    def factorise(self, values: Floats) -> float:
        """Factorise the matrix with these structural nonzeros (nnz); return the ratio of least to largest pivot."""
        self._planned.fill(values)
        with warnings.catch_warnings():  # a singular matrix shows in its pivots
            warnings.simplefilter("ignore")
            self._context.numeric(self._planned.matrix)
        return float(self._context.info[self._module.UMFPACK_RCOND])

    def solve(self, b: Floats) -> Floats:
        """Return d (n,) of D d + b = 0, of the matrix factorised last."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = self._planned.scale(b)
            return self._planned.unscale(self._context.solve(self._module.UMFPACK_A, self._planned.matrix, right))
