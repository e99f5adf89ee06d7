"""The planned elimination as native code: one foreign call a tick, vectors of states in a batch.

Source: DESIGN 4.7.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import (
    PIVOT_LIMIT,
    RESIDUAL_LIMIT,
    Floats,
    Solution,
    Status,
    pivot_ensemble,
)
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.c_source import Job, Row, c_source
from nori_dyn.program.compiler import CompilerError, find_compiler, load_library
from nori_dyn.program.lowering import solution_program

SINGLE = """
int run(const double *in, double *w, double *out, const double *limits);
double residual(const double *in, const double *w, const double *out);
"""
BATCH = """
void run_batch(ptrdiff_t n, const double *const *in, const ptrdiff_t *n_in, double *w, double *out,
               const double *limits, int *small, double *residuals);
"""

ALIGNMENT = 64
"""Bytes of the widest vector."""


class NativeBackend:
    """Runs the elimination without pivoting, guarded: a state whose pivots shrink is solved by SuperLU afresh.

    Args:
        plan: the plan.

    Raises:
        CompilerError: there is no C compiler, or it fails.
    """

    name = "native"

    def __init__(self, plan: EliminationPlan) -> None:
        compiler = find_compiler()
        if compiler is None:
            raise CompilerError(
                "the native backend needs a C compiler, and there is none: install gcc or clang, or "
                "pip install 'nori_dyn[compiler]'."
            )
        self._compiler = compiler
        columns = output_columns(plan.system, plan.outputs)
        job = _job(plan, columns)
        self._sizes = tuple(map(len, (plan.symbolic.q, plan.symbolic.qd, plan.symbolic.y)))
        self._n_outputs, self._checked = len(columns), bool(job.equations)
        self._source = c_source(job, compiler.lanes)
        self._fallback = Fallback(plan, columns)
        self._ffi = cffi.FFI()
        self._ffi.cdef(SINGLE)
        self._single = load_library(self._ffi, self._source.single, compiler)
        self._state, self._work = _aligned(sum(self._sizes)), _aligned(self._source.n_work)
        self._values = _aligned(self._n_outputs)
        self._limits = np.zeros(max(len(job.pivots), 1))
        self._arguments = [self._pointer(array) for array in (self._state, self._work, self._values, self._limits)]
        self._limits[:] = PIVOT_LIMIT * self._pivot_sizes(plan, len(job.pivots))

    def _pivot_sizes(self, plan: EliminationPlan, n_pivots: int) -> Floats | float:
        """Return the median size of each pivot over an ensemble of states."""
        if not n_pivots:
            return 0.0
        first = self._source.first_pivot
        sizes = []
        for q, qd, y in zip(*pivot_ensemble(plan), strict=True):
            self._call(q, qd, y)
            sizes.append(np.abs(self._work[first : first + n_pivots]))
        return np.asarray(np.median(sizes, axis=0))

    def _call(self, q: Floats, qd: Floats, y: Floats) -> int:
        np.concatenate([q, qd, y], out=self._state)
        return int(self._single.run(*self._arguments))

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        small = self._call(q, qd, y)
        values, residual, rcond = self._values.copy(), np.nan, 1.0
        if self._checked:
            residual = self._single.residual(*self._arguments[:3])
        fell_back = bool(small) or (self._checked and not residual <= RESIDUAL_LIMIT) or not np.isfinite(values).all()
        if fell_back:
            values, residual, rcond = self._fallback.solve(q, qd, y)
        return Solution(values, np.asarray(residual), np.asarray(fell_back), np.asarray(rcond))

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats, threads: int = 1) -> Solution:
        N = len(Q)
        values = np.empty((N, self._n_outputs))
        small, residual = np.empty(N, dtype=np.int32), np.empty(N)

        def run(part: slice) -> None:
            self._batch_call([X[part] for X in (Q, Qd, Y)], values[part], small[part], residual[part])

        if 1 < threads < N:
            edges = np.linspace(0, N, threads + 1).astype(int)
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, [slice(a, b) for a, b in pairwise(edges)]))
        else:
            run(slice(0, N))
        suspicious = (small > 0) | ~np.isfinite(values).all(axis=1)
        if self._checked:
            suspicious |= ~(residual <= RESIDUAL_LIMIT)
        else:
            residual[:] = np.nan
        rcond = np.ones(N)
        for k in np.flatnonzero(suspicious):
            values[k], residual[k], rcond[k] = self._fallback.solve(Q[k], Qd[k], Y[k])
        return Solution(values, residual, suspicious, rcond)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        arguments = [self._pointer(array) for array in (state, self._work, values, self._limits)]
        kept = (state, values)  # the pointers keep nothing alive
        q, qd, y = np.split(state, np.cumsum(self._sizes)[:2])
        run, good, fallback = self._single.run, Status(), self._fallback

        def tick() -> Status:
            if not run(*arguments):
                return good
            kept[1][:], residual, rcond = fallback.solve(q, qd, y)
            return Status.of(Solution(values, np.asarray(residual), np.asarray(True), np.asarray(rcond)))

        return tick

    @cached_property
    def _batch(self) -> Any:
        """The library of the batch entry, compiled when it is first needed."""
        self._ffi.cdef(BATCH)
        return load_library(self._ffi, self._source.batch, self._compiler)

    def _batch_call(self, inputs: list[Floats], values: Floats, small: NDArray[np.int32], residual: Floats) -> None:
        ffi, at = self._ffi, self._pointer
        library = self._batch
        inputs = [np.ascontiguousarray(X) for X in inputs]
        work = _aligned(self._source.n_work * self._compiler.lanes)
        starts = ffi.new("double *[3]", [at(X) for X in inputs])
        sizes = ffi.new("ptrdiff_t[3]", [X.shape[1] for X in inputs])
        library.run_batch(
            len(values),
            starts,
            sizes,
            at(work),
            at(values),
            at(self._limits),
            ffi.cast("int *", small.ctypes.data),
            at(residual),
        )

    def _pointer(self, array: Floats) -> Any:
        return self._ffi.cast("double *", array.ctypes.data)


def _job(plan: EliminationPlan, columns: NDArray[np.intp]) -> Job:
    """Return what the C is to compute: the unknowns, the guarded pivots, and the residual when all are computed."""
    symbolic = plan.symbolic
    solution = solution_program(plan, columns.tolist(), checked=False)
    n = len(columns)
    outputs = solution.program.outputs
    equations: tuple[tuple[Row, ...], ...] = ()
    if len(set(columns.tolist())) == symbolic.shape[1]:
        place = {int(column): k for k, column in enumerate(columns)}
        terms: list[list[tuple[Expr, int]]] = [[] for _ in range(symbolic.shape[0])]
        for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
            if not outputs[place[column]].is_zero:
                terms[row].append((entry, place[column]))
        rows = [(b, tuple(row)) for b, row in zip(symbolic.b, terms, strict=True)]
        equations = tuple(tuple(rows[block.slice]) for block in plan.system.rows)
    return Job(
        graph=symbolic.graph,
        inputs=(*symbolic.q, *symbolic.qd, *symbolic.y),
        outputs=outputs[:n],
        pivots=outputs[n:],
        equations=equations,
    )


def _aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
