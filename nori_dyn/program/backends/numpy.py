"""The planned elimination as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import (
    CHUNK,
    PIVOT_LIMIT,
    RESIDUAL_LIMIT,
    Floats,
    Solution,
    Status,
    copying_ticker,
    equation_starts,
    pivot_ensemble,
    relative_residual,
)
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.lowering import solution_program
from nori_dyn.program.python_source import PythonProgram


class NumpyBackend:
    """Runs the elimination without pivoting, guarded: a state whose pivots shrink is solved by SuperLU afresh.

    Args:
        plan: the plan.
        check_residual: whether a state is also judged by its residual, where there is one.
    """

    name = "numpy"
    sees_bad_input = False

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._symbolic = plan.symbolic
        columns = output_columns(plan.system, plan.outputs)
        checked = check_residual and len(set(columns.tolist())) == plan.system.shape[1]
        self._solution = solution_program(plan, columns.tolist(), checked)
        self._place = np.empty(plan.system.shape[1], dtype=np.intp)
        self._place[columns] = np.arange(len(columns))
        self._program = PythonProgram(self._solution.program)
        self._fallback = Fallback(plan, columns)
        self._equations = equation_starts(plan)
        nnz = len(self._symbolic.rows)
        ones = (np.ones(nnz), (self._symbolic.rows, np.arange(nnz)))
        self._row_sums = sp.csr_array(ones, shape=(self._symbolic.shape[0], nnz))
        first = len(columns)
        ensemble = self._program.batch(*pivot_ensemble(plan))[first : first + self._solution.n_pivots]
        self._limits = PIVOT_LIMIT * np.median(np.abs(ensemble), axis=1)

    def quick(self, q: Any, qd: Any, y: Any) -> None:
        return None

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        try:
            out = self._program.single(q, qd, y)[:, None]
        except (ZeroDivisionError, OverflowError):
            out = np.full((self._program.n_outputs, 1), np.nan)
        one = self._judged(out, q[None], qd[None], y[None])
        return Solution(one.values[0], one.residual[0], one.fell_back[0], one.rcond[0])

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats, threads: int = 1) -> Solution:
        parts = []
        for start in range(0, len(Q), CHUNK):
            state = [values[start : start + CHUNK] for values in (Q, Qd, Y)]
            parts.append(self._judged(self._program.batch(*state), *state))
        return Solution(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.residual for part in parts]),
            np.concatenate([part.fell_back for part in parts]),
            np.concatenate([part.rcond for part in parts]),
        )

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        symbolic = self._symbolic
        return copying_ticker(self, (len(symbolic.q), len(symbolic.qd), len(symbolic.y)), state, values)

    def _judged(self, out: Floats, Q: Floats, Qd: Floats, Y: Floats) -> Solution:
        """Return the solution of the program's outputs (n_outputs, N), suspicious states solved afresh."""
        n, n_pivots, N = len(self._solution.columns), self._solution.n_pivots, out.shape[1]
        values = np.ascontiguousarray(out[:n].T)
        residual, rcond = np.full(N, np.nan), np.ones(N)
        with np.errstate(all="ignore"):
            trusted = np.all(np.abs(out[n : n + n_pivots]) >= self._limits[:, None], axis=0)
            trusted &= np.isfinite(out).all(axis=0)
            if self._solution.checked:
                residual = self._residuals(out[n + n_pivots :], out[self._place])
                trusted &= residual <= RESIDUAL_LIMIT
        for k in np.flatnonzero(~trusted):
            values[k], residual[k], rcond[k] = self._fallback.solve(Q[k], Qd[k], Y[k])
        return Solution(values, residual, ~trusted, rcond)

    def _residuals(self, assembled: Floats, d: Floats) -> Floats:
        """Return the relative residuals (N,) of d (n, N), given the structural nonzeros and b (nnz + rows, N)."""
        nnz = len(self._symbolic.rows)
        products = assembled[:nnz] * d[self._symbolic.columns]
        D_d, magnitude = np.asarray(self._row_sums @ products), np.asarray(self._row_sums @ np.abs(products))
        return relative_residual(D_d, magnitude, assembled[nnz:], self._equations)
