"""The paper's online solver: assemble D and b, then UMFPACK with the planned order and its analysis kept.

Source: Nori, remark 4 and section V-D.
"""

from __future__ import annotations

import numpy as np

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Floats, Solution, relative_residual
from nori_dyn.program.backends.factorisation import Umfpack
from nori_dyn.program.lowering import assembly_program
from nori_dyn.program.python_source import PythonProgram


class UmfpackBackend:
    """Numeric refactorisation by UMFPACK at every state; row pivoting is fresh, so nothing ever falls back.

    Args:
        plan: the plan.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    name = "umfpack"

    def __init__(self, plan: EliminationPlan) -> None:
        self._symbolic = plan.symbolic
        self._assembly = PythonProgram(assembly_program(plan.symbolic))
        self._factorisation = Umfpack(plan, self._assembly)

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        d, residual, rcond = self._solve_assembled(self._assembly.single(q, qd, y))
        return Solution(d, np.asarray(residual), np.asarray(False), np.asarray(rcond))

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats) -> Solution:
        assembled = self._assembly.batch(Q, Qd, Y).T
        d = np.empty((len(Q), self._symbolic.shape[0]))
        residual, rcond = np.empty(len(Q)), np.empty(len(Q))
        for k, state in enumerate(assembled):
            d[k], residual[k], rcond[k] = self._solve_assembled(np.ascontiguousarray(state))
        return Solution(d, residual, np.zeros(len(Q), dtype=bool), rcond)

    def _solve_assembled(self, assembled: Floats) -> tuple[Floats, float, float]:
        nnz = len(self._symbolic.rows)
        values, b = assembled[:nnz], assembled[nnz:]
        d, rcond = self._factorisation.solve(values, b)
        products = values * d[self._symbolic.columns]
        n = self._symbolic.shape[0]
        D_d: Floats = np.bincount(self._symbolic.rows, products, n).astype(float)
        magnitude: Floats = np.bincount(self._symbolic.rows, np.abs(products), n).astype(float)
        return d, float(relative_residual(D_d, magnitude, b)), rcond
