"""What to do with a state that the planned order does not handle: factorise it afresh, with pivoting."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Floats, equation_starts, relative_residual
from nori_dyn.program.backends.factorisation import SuperLU
from nori_dyn.program.backends.least_squares import LeastSquares
from nori_dyn.program.lowering import assembly_program
from nori_dyn.program.python_source import PythonProgram


class Fallback:
    """SuperLU on the assembled system, or least squares by QR where rows are weighed; made when it is first needed.

    Args:
        plan: the plan.
        columns: the unknowns wanted, in this order.
    """

    def __init__(self, plan: EliminationPlan, columns: NDArray[np.intp]) -> None:
        self._plan = plan
        self._columns = columns

    @cached_property
    def _assembly(self) -> PythonProgram:
        return PythonProgram(assembly_program(self._plan.symbolic))

    @cached_property
    def _factorisation(self) -> SuperLU:
        return SuperLU(self._plan)

    @cached_property
    def _least_squares(self) -> LeastSquares:
        return LeastSquares(self._plan)

    def solve(self, *state: Floats) -> tuple[Floats, float, float]:
        """Return the unknowns of one state, its relative residual and rcond; nan for a state that is not finite."""
        if not all(np.isfinite(x).all() for x in state):
            return np.full(len(self._columns), np.nan), np.nan, np.nan
        if self._plan.system.is_weighted:
            d, residual, rcond = self._least_squares.solve(*state)
            return d[self._columns], residual, rcond
        assembled = self._assembly.single(*state)
        nnz = len(self._plan.symbolic.rows)
        values, b = assembled[:nnz], assembled[nnz:]
        d, rcond = self._factorisation.solve(values, b)
        return d[self._columns], sparse_residual(self._plan, values, b, d), rcond


def sparse_residual(plan: EliminationPlan, values: Floats, b: Floats, d: Floats) -> float:
    """Return the relative residual of D d + b for one state, D given by its structural nonzeros (nnz)."""
    rows = plan.symbolic.rows
    products = values * d[plan.symbolic.columns]
    D_d = np.bincount(rows, products, len(b)).astype(float)
    magnitude = np.bincount(rows, np.abs(products), len(b)).astype(float)
    return float(relative_residual(D_d, magnitude, b, equation_starts(plan)))
