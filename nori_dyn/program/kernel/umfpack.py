"""The paper's online solver: assemble D and b, then UMFPACK with the planned order and its analysis kept.

Source: Nori, remark 4 and section V-D.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.planning.orderings.umfpack import umfpack_module
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.guards import equation_starts
from nori_dyn.program.kernel.base import Outcome
from nori_dyn.program.kernel.numpy import NumpyKernel, Residual, are_comparable
from nori_dyn.program.limits import RESIDUAL_LIMIT, STEP_LIMIT
from nori_dyn.program.program import Program
from nori_dyn.program.silence import silent_stdout
from nori_dyn.typing import Floats


class Umfpack:
    """UMFPACK with the planned column order and its symbolic analysis fixed: each state is only re-factorised.

    What is factorised is the scaled matrix P D Q in compressed columns, its pattern fixed.

    Args:
        plan: the plan.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        symbolic, n = plan.symbolic, plan.symbolic.shape[0]
        self._module, self._permutations = umfpack_module(), (plan.row_permutation, plan.column_permutation)
        self._r, self._c = r, c = natural_scaling(plan.system, symbolic, plan.seed)
        rows, columns = (
            np.argsort(order)[place]
            for order, place in zip(self._permutations, (symbolic.rows, symbolic.columns), strict=True)
        )
        self._order = np.lexsort((rows, columns))
        self._scale = (r[symbolic.rows] * c[symbolic.columns])[self._order]
        indptr = np.searchsorted(columns[self._order], np.arange(n + 1))
        parts = (self._scale.copy(), rows[self._order].astype(np.int32), indptr.astype(np.int32))
        self._matrix = sp.csc_matrix(parts, shape=(n, n))
        self._context = self._module.UmfpackContext("di")
        control = self._context.control
        control[self._module.UMFPACK_SCALE] = self._module.UMFPACK_SCALE_NONE
        control[self._module.UMFPACK_STRATEGY] = self._module.UMFPACK_STRATEGY_UNSYMMETRIC
        control[self._module.UMFPACK_ORDERING] = self._module.UMFPACK_ORDERING_NONE
        control[self._module.UMFPACK_FIXQ] = 1
        with silent_stdout():
            self._context.symbolic(self._matrix)

    def factorise(self, values: Floats) -> float:
        """Factorise the matrix with these structural nonzeros (nnz); return the ratio of least to largest pivot."""
        self._matrix.data[:] = values[self._order] * self._scale
        with warnings.catch_warnings():  # a singular matrix shows in its pivots
            warnings.simplefilter("ignore")
            self._context.numeric(self._matrix)
        return float(self._context.info[self._module.UMFPACK_RCOND])

    def solve(self, b: Floats) -> Floats:
        """The solution d (n,) of D d + b = 0, of the matrix factorised last."""
        P, Q = self._permutations
        d = np.empty(len(b))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            d[Q] = self._context.solve(self._module.UMFPACK_A, self._matrix, -(self._r * b)[P])
        return self._c * d


SMALL_PIVOT = 1e-10
"""Ratio of pivots below which a state is suspicious: it is re-factorised with pivoting, where its condition decides."""


class UmfpackKernel(NumpyKernel):
    """Numeric refactorisation by UMFPACK at every state; D and b come from NumPy.

    Columns and rows with one entry left come first. The rest goes in the planned Q; its rows are chosen anew at
    each state.

    A state with small pivots or a large residual is not trusted; of weighed rows, one whose step of refinement is not
    small.

    Args:
        plan: the plan.
        check_residual: whether the residual is reported.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    name = "umfpack"

    def __init__(self, plan: EliminationPlan, check_residual: bool) -> None:
        system, symbolic = plan.system, plan.symbolic
        self._plan, self._n = plan, system.shape[1]
        self._columns = output_columns(system, plan.outputs)
        self._weighed = plan.refined.original_weighed
        readings = [x for row in self._weighed for x in (row.b, row.weight, *row.entries.values())]
        super().__init__(
            Program(
                inputs=symbolic.inputs,
                outputs=(*symbolic.entries, *symbolic.b, *readings),
                quaternions=tuple(part.start for part in system.tree.quaternions),
            )
        )
        self.has_residual, self.has_single = check_residual, False
        self._sizes = np.cumsum([len(symbolic.entries), len(symbolic.b)])
        self._factorisation = Umfpack(plan)
        self._residual_at = Residual(symbolic.rows, symbolic.columns, equation_starts(plan), len(symbolic.b))
        self._usual = natural_scaling(system, symbolic, plan.seed)[1][: self._n]
        self._is_given = (symbolic.rows >= self._n) | (symbolic.columns >= self._n)

    def _judged(self, rows: Floats, states: Sequence[Floats]) -> tuple[Floats, NDArray[np.int32], Floats]:
        N = rows.shape[1]
        values, outcomes, residuals = np.empty((N, len(self._columns))), np.zeros(N, dtype=np.int32), np.full(N, np.nan)
        for k, assembled in enumerate(rows.T):
            weights = states[-1][k] if self._plan.system.is_weighted else np.ones(1)
            outcomes[k], d, residual = self._solved(np.ascontiguousarray(assembled), weights)
            values[k] = d[self._columns]
            if self.has_residual:
                residuals[k] = residual
        return values, outcomes, residuals

    def _solved(self, assembled: Floats, weights: Floats) -> tuple[Outcome, Floats, float]:
        """How a state went, its unknowns, and their residual."""
        values, b, readings = np.split(assembled, self._sizes)
        nothing = np.full(self._n, np.nan)
        if not np.isfinite(assembled).all():
            return Outcome.OUTPUT_NOT_FINITE, nothing, np.nan
        if not (weights >= 0).all():
            return Outcome.NEGATIVE_WEIGHT, nothing, np.nan
        if not are_comparable(weights, self._plan.system.n_noise_weights):
            return Outcome.WEIGHT_SPREAD, nothing, np.nan
        pivots = self._factorisation.factorise(values)
        if not pivots > 0:
            return Outcome.SMALL_PIVOT, nothing, np.nan
        d, outcome = self._factorisation.solve(b), Outcome.OK
        if self._plan.system.is_weighted:  # of conditions of optimality the step decides
            step = self._factorisation.solve(self._left(values, b, readings, d))
            d = d + step
            with np.errstate(invalid="ignore"):
                allowed = STEP_LIMIT * (np.abs(d[: self._n]) + self._usual)
                if not np.all(np.abs(step[: self._n]) <= allowed):
                    outcome = Outcome.INACCURATE
        residual = float(self._residual_at.of(b, values, d))
        if not self._plan.system.is_weighted:
            if not pivots >= SMALL_PIVOT:
                outcome = Outcome.SMALL_PIVOT
            elif not residual <= RESIDUAL_LIMIT:
                outcome = Outcome.LARGE_RESIDUAL
        return outcome if np.isfinite(d).all() else Outcome.OUTPUT_NOT_FINITE, d, residual

    def _left(self, values: Floats, b: Floats, readings: Floats, x: Floats) -> Floats:
        """The residual of each optimality condition (n,) at x: weighed rows are weighed before they are added up."""
        symbolic, n = self._plan.symbolic, self._n
        given = self._is_given
        left = np.where(np.arange(len(b)) < n, 0.0, b)
        np.add.at(left, symbolic.rows[given], values[given] * x[symbolic.columns[given]])
        place = 0
        for row in self._weighed:
            columns = list(row.entries)
            offset, weight, *entries = readings[place : place + 2 + len(columns)]
            left[columns] += np.array(entries) * (weight * (offset + np.dot(entries, x[columns])))
            place += 2 + len(columns)
        return left
