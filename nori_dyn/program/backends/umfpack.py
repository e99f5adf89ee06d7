"""The paper's online solver: assemble D and b, then UMFPACK with the planned order and its analysis kept.

Source: Nori, remark 4 and section V-D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import CHUNK, Floats, Solution, Status, copying_ticker
from nori_dyn.program.backends.factorisation import Umfpack
from nori_dyn.program.backends.fallback import sparse_residual
from nori_dyn.program.lowering import assembly_program
from nori_dyn.program.python_source import PythonProgram


class UmfpackBackend:
    """Numeric refactorisation by UMFPACK at every state; row pivoting is fresh, so nothing ever falls back.

    Args:
        plan: the plan.
        check_residual: whether the residual is computed, for the estimate.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    name = "umfpack"
    sees_bad_input = False

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._plan = plan
        self._checked = check_residual
        self._columns = output_columns(plan.system, plan.outputs)
        self._assembly = PythonProgram(assembly_program(plan.symbolic))
        self._factorisation = Umfpack(plan)

    def quick(self, *state: Any) -> None:
        return None

    def solve(self, *state: Floats) -> Solution:
        try:
            assembled = self._assembly.single(*state)
        except ZeroDivisionError:  # an equation of motion whose weight is zero
            return Solution(np.full(len(self._columns), np.nan), np.asarray(np.nan), np.asarray(False), np.asarray(0.0))
        values, residual, rcond = self._solve_assembled(assembled)
        return Solution(values, np.asarray(residual), np.asarray(False), np.asarray(rcond))

    def solve_batch(self, *states: Floats, threads: int = 1) -> Solution:
        N = len(states[0])
        values = np.empty((N, len(self._columns)))
        residual, rcond = np.empty(N), np.empty(N)
        for start in range(0, N, CHUNK):
            part = [array[start : start + CHUNK] for array in states]
            for k, state in enumerate(self._assembly.batch(*part).T, start):
                values[k], residual[k], rcond[k] = self._solve_assembled(np.ascontiguousarray(state))
        return Solution(values, residual, np.zeros(N, dtype=bool), rcond)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        return copying_ticker(self, self._plan, state, values)

    def _solve_assembled(self, assembled: Floats) -> tuple[Floats, float, float]:
        nnz = len(self._plan.symbolic.rows)
        values, b = assembled[:nnz], assembled[nnz:]
        d, rcond = self._factorisation.solve(values, b)
        residual = sparse_residual(self._plan, values, b, d) if self._checked else np.nan
        return d[self._columns], residual, rcond
