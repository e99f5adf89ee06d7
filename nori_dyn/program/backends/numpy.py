"""The planned elimination as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Floats, Solution, relative_residual
from nori_dyn.program.backends.factorisation import SuperLU
from nori_dyn.program.lowering import assembly_program, solution_program
from nori_dyn.program.python_source import PythonProgram

PIVOT_LIMIT = 1e-7
"""A pivot this much smaller than over the ensemble makes a state suspicious: it is factorised afresh."""

RESIDUAL_LIMIT = 1e-9
"""So does a residual above this."""

ENSEMBLE = 32

CHUNK = 256
"""States run at a time: what is live then fits the processor's cache."""


class NumpyBackend:
    """Runs the elimination without pivoting, guarded: a state whose pivots shrink is solved by SuperLU afresh.

    Args:
        plan: the plan.
    """

    name = "numpy"

    def __init__(self, plan: EliminationPlan) -> None:
        self._plan = plan
        n = plan.system.shape[1]
        columns = output_columns(plan.system, plan.outputs)
        self._solution = solution_program(plan, columns.tolist(), checked=len(columns) == n)
        self._program = PythonProgram(self._solution.program)
        self._pivot_size = self._measured_pivots()

    def _measured_pivots(self) -> Floats:
        """Return the median size of each pivot that is not constant over an ensemble of states."""
        tree = self._plan.system.tree
        rng = np.random.default_rng(self._plan.seed)
        Q = np.array([tree.random_configuration(rng) for _ in range(ENSEMBLE)])
        out = self._program.batch(Q, np.zeros((ENSEMBLE, tree.nv)), np.zeros((ENSEMBLE, self._plan.system.ny)))
        first = len(self._solution.columns)
        return np.asarray(np.median(np.abs(out[first : first + len(self._solution.pivots)]), axis=1))

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        try:
            out = self._program.single(q, qd, y)[:, None]
        except (ZeroDivisionError, OverflowError):
            out = np.full((self._program.n_outputs, 1), np.nan)
        one = self._judged(out, q[None], qd[None], y[None])
        return Solution(one.d[0], one.residual[0], one.fell_back[0], one.rcond[0])

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats) -> Solution:
        parts = []
        for start in range(0, len(Q), CHUNK):
            part = slice(start, start + CHUNK)
            parts.append(self._judged(self._program.batch(Q[part], Qd[part], Y[part]), Q[part], Qd[part], Y[part]))
        return Solution(
            np.concatenate([part.d for part in parts]),
            np.concatenate([part.residual for part in parts]),
            np.concatenate([part.fell_back for part in parts]),
            np.concatenate([part.rcond for part in parts]),
        )

    def _judged(self, out: Floats, Q: Floats, Qd: Floats, Y: Floats) -> Solution:
        """Return the solution of the program's outputs (n_outputs, N), suspicious states solved afresh."""
        n, N = self._plan.system.shape[1], out.shape[1]
        n_d, n_pivots = len(self._solution.columns), len(self._solution.pivots)
        d = np.full((N, n), np.nan)
        d[:, self._solution.columns] = out[:n_d].T
        with np.errstate(all="ignore"):
            pivots = np.abs(out[n_d : n_d + n_pivots])
            trusted = np.all(pivots >= PIVOT_LIMIT * self._pivot_size[:, None], axis=0)
            trusted &= np.isfinite(out).all(axis=0)
            residual = np.full(N, np.nan)
            if self._solution.checked:
                residual = self._residuals(out[n_d + n_pivots :], d)
                trusted &= residual <= RESIDUAL_LIMIT
        rcond = np.ones(N)
        for k in np.flatnonzero(~trusted):
            d[k], residual[k], rcond[k] = self._afresh(Q[k], Qd[k], Y[k])
        return Solution(d, residual, ~trusted, rcond)

    def _residuals(self, assembled: Floats, d: Floats) -> Floats:
        """Return the relative residuals (N,) of d (N, n), given the structural nonzeros and b (nnz + rows, N)."""
        symbolic = self._plan.symbolic
        nnz = len(symbolic.rows)
        products = assembled[:nnz] * d.T[symbolic.columns]
        return relative_residual(self._row_sums @ products, self._row_sums @ np.abs(products), assembled[nnz:])

    @cached_property
    def _row_sums(self) -> Floats:
        import scipy.sparse as sp

        symbolic = self._plan.symbolic
        nnz = len(symbolic.rows)
        ones = (np.ones(nnz), (symbolic.rows, np.arange(nnz)))
        return sp.csr_array(ones, shape=(symbolic.shape[0], nnz))  # type: ignore[return-value]

    def _afresh(self, q: Floats, qd: Floats, y: Floats) -> tuple[Floats, float, float]:
        assembled = self._assembly.single(q, qd, y)
        nnz = len(self._plan.symbolic.rows)
        d, rcond = self._fresh.solve(assembled[:nnz], assembled[nnz:])
        residual = float(self._residuals(assembled[:, None], d[None])[0])
        if not self._solution.checked:
            wanted = np.full_like(d, np.nan)
            wanted[self._solution.columns] = d[self._solution.columns]
            d = wanted
        return d, residual, rcond

    @cached_property
    def _assembly(self) -> PythonProgram:
        return PythonProgram(assembly_program(self._plan.symbolic))

    @cached_property
    def _fresh(self) -> SuperLU:
        return SuperLU(self._plan, self._assembly)
