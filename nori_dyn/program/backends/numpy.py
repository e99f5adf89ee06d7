"""The planned elimination as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import (
    RESIDUAL_LIMIT,
    STEP_LIMIT,
    Solution,
    Status,
    are_comparable,
    computes_residual,
    copying_ticker,
    equation_starts,
    guard_limits,
    pivot_ensemble,
    relative_residual,
)
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.kernel.choice import NUMPY
from nori_dyn.program.kernel.numpy import NumpyKernel
from nori_dyn.program.lowering import solution_program
from nori_dyn.typing import Booleans, Floats


class NumpyBackend:
    """Runs the elimination without pivoting, guarded: a state whose pivots shrink is solved by SuperLU afresh.

    Args:
        plan: the plan.
        check_residual: whether a state is also judged by its residual, where there is one.
    """

    name = NUMPY

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._plan, self._symbolic = plan, plan.symbolic
        columns = output_columns(plan.system, plan.outputs)
        checked = check_residual and computes_residual(plan, columns)
        self._solution = solution_program(plan, columns.tolist(), checked)
        self._place = np.empty(plan.system.shape[1], dtype=np.intp)
        self._place[columns] = np.arange(len(columns))
        self._kernel = NumpyKernel(self._solution.program)
        self._fallback = Fallback(plan, columns)
        self._equations = equation_starts(plan)
        nnz = len(self._symbolic.rows)
        ones = (np.ones(nnz), (self._symbolic.rows, np.arange(nnz)))
        self._row_sums = sp.csr_array(ones, shape=(self._symbolic.shape[0], nnz))
        first, n_guards = len(columns), len(self._solution.guards)
        ((_, ensemble),) = self._kernel.chunks(*pivot_ensemble(plan))
        limits = guard_limits(plan, self._solution, np.abs(ensemble[first : first + n_guards]).T)
        self._least, self._usual = limits[:n_guards, None], limits[n_guards:, None]
        self._ends = np.cumsum([len(part) for part in self._solution.parts])[:-1]

    def quick(self, q: Any, qd: Any, y: Any) -> None:
        return None

    def quick_batch(self, Q: Any, Qd: Any, Y: Any, threads: Any, out: Any) -> None:
        return None

    def solve(self, *state: Floats) -> Solution:
        one = self._judged(self._kernel.single(*state)[:, None], [array[None] for array in state])
        return Solution(*(np.asarray(field)[0] for field in one))

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        parts = [self._judged(rows, [array[part] for array in states]) for part, rows in self._kernel.chunks(*states)]
        values, *others = zip(*parts, strict=True)
        return Solution(np.concatenate(values, out=out), *(np.concatenate(fields) for fields in others))

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        return copying_ticker(self, self._plan, state, values)

    def _judged(self, out: Floats, states: Sequence[Floats]) -> Solution:
        """Return the solution of the program's outputs (n_outputs, N), suspicious states solved afresh."""
        N = out.shape[1]
        unknowns, pivots, steps, better, further, assembled = np.split(out, self._ends)
        residual, rcond = np.full(N, np.nan), np.ones(N)
        with np.errstate(all="ignore"):
            trusted = np.all(np.abs(pivots) >= self._least, axis=0)
            if self._solution.refines:
                is_near = self._are_small(steps, unknowns)
                unknowns = np.where(is_near, unknowns, better)
                trusted &= is_near | self._are_small(further, better)
                trusted &= np.all(states[-1] >= 0, axis=1) & are_comparable(self._plan.system, states[-1])
            trusted &= np.isfinite(unknowns).all(axis=0)
            values = np.ascontiguousarray(unknowns.T)
            if self._solution.checked:
                residual = self._residuals(assembled, out[self._place])
                trusted &= residual <= RESIDUAL_LIMIT
        for k in np.flatnonzero(~trusted):
            values[k], residual[k], rcond[k] = self._fallback.solve(*(array[k] for array in states))
        return Solution(values, residual, ~trusted, rcond)

    def _are_small(self, steps: Floats, unknowns: Floats) -> Booleans:
        """Return whether all steps (n, N) of a state (N,) are small beside what they lead to."""
        near: Booleans = np.all(np.abs(steps) <= STEP_LIMIT * (np.abs(unknowns) + self._usual), axis=0)
        return near

    def _residuals(self, assembled: Floats, d: Floats) -> Floats:
        """Return the relative residuals (N,) of d (n, N), given the structural nonzeros and b (nnz + rows, N)."""
        nnz = len(self._symbolic.rows)
        products = assembled[:nnz] * d[self._symbolic.columns]
        D_d, magnitude = np.asarray(self._row_sums @ products), np.asarray(self._row_sums @ np.abs(products))
        return relative_residual(D_d, magnitude, assembled[nnz:], self._equations)
