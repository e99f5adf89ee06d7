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
from nori_dyn.program.c_source import CSource, Job, Row, c_source
from nori_dyn.program.compiled import Compiled, identity, recall, remember
from nori_dyn.program.compiler import CompilerError, cached_library, find_compiler, library_key, load_library
from nori_dyn.program.lowering import solution_program

SINGLE = """
typedef struct { double *in, *w, *out; const double *limits; double residual_limit, residual; } state;
int run(const state *at);
int solve(state *at);
"""
BATCH = """
void run_batch(ptrdiff_t n, const double *const *in, const ptrdiff_t *n_in, double *w, double *out,
               const double *limits, int *small, double *residuals);
"""

ALIGNMENT = 64
"""Bytes of the widest vector."""

DOUBLE = np.dtype(np.float64)


class NativeBackend:
    """Runs the elimination without pivoting, guarded: a state whose pivots shrink is solved by SuperLU afresh.

    Args:
        plan: the plan.
        check_residual: whether `solve` and `solve_batch` also judge a state by its residual, where there is one.

    Raises:
        CompilerError: there is no C compiler, or it fails.
    """

    name = "native"
    sees_bad_input = True

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        compiler = find_compiler()
        if compiler is None:
            raise CompilerError(
                "the native backend needs a C compiler, and there is none: install gcc or clang, or "
                "pip install 'nori_dyn[compiler]'."
            )
        self._plan, self._compiler = plan, compiler
        self._columns = output_columns(plan.system, plan.outputs)
        self._n_outputs = len(self._columns)
        self._checked = check_residual and len(set(self._columns.tolist())) == plan.system.shape[1]
        self._sizes = (plan.system.tree.nq, plan.system.tree.nv, plan.system.ny)
        self._fallback = Fallback(plan, self._columns)
        self._ffi = cffi.FFI()
        self._ffi.cdef(SINGLE)
        self._load()
        self._state, self._values = _aligned(sum(self._sizes)), _aligned(self._n_outputs)
        self._inputs = np.split(self._state, np.cumsum(self._sizes)[:2])
        self._shapes = tuple((size,) for size in self._sizes)
        self._at, self._solve = self._place(self._state, self._values), self._single.solve

    def _load(self) -> None:
        """Take the compiled plan from the cache, or compile it."""
        key = identity(self._plan, self._compiler, self._checked)
        record = recall(key)
        library = None if record is None else cached_library(self._ffi, record.single)
        if record is None or library is None:
            source = self._source
            library = load_library(self._ffi, source.single, self._compiler)
            record = Compiled(
                n_work=source.n_work,
                limits=self._measured_limits(library, source),
                single=library_key(source.single, self._compiler),
                batch=library_key(source.batch, self._compiler),
            )
            remember(key, record)
        self._single, self._record = library, record
        self._limits = np.array([*record.limits, 0.0])
        self._work = _aligned(record.n_work)

    @cached_property
    def _source(self) -> CSource:
        return c_source(_job(self._plan, self._columns, self._checked), self._compiler.lanes)

    def _measured_limits(self, library: Any, source: CSource) -> list[float]:
        """Return PIVOT_LIMIT of the median size of each pivot over an ensemble of states."""
        if not source.n_pivots:
            return []
        self._limits, self._work = np.zeros(source.n_pivots), _aligned(source.n_work)
        state, values = _aligned(sum(self._sizes)), _aligned(self._n_outputs)
        at = self._place(state, values)
        sizes = []
        for parts in zip(*pivot_ensemble(self._plan), strict=True):
            np.concatenate(parts, out=state)
            library.run(at)
            sizes.append(np.abs(self._work[source.first_pivot : source.first_pivot + source.n_pivots]))
        return [float(x) for x in PIVOT_LIMIT * np.median(sizes, axis=0)]

    def _place(self, state: Floats, values: Floats) -> Any:
        """Return the C struct that says where inputs and outputs are; it keeps neither alive."""
        at = self._pointer
        parts = (at(state), at(self._work), at(values), at(self._limits), RESIDUAL_LIMIT, np.nan)
        return self._ffi.new("state *", parts)

    def quick(self, q: Any, qd: Any, y: Any) -> tuple[Floats, float] | None:
        """Return the unknowns of one state and their residual in one foreign call, with all checks.

        None where anything is out of the ordinary: the caller then goes the long way, which says what.
        """
        to_q, to_qd, to_y = self._inputs
        of_q, of_qd, of_y = self._shapes
        if not (
            type(q) is type(qd) is type(y) is np.ndarray
            and q.dtype is qd.dtype is y.dtype is DOUBLE
            and q.shape == of_q
            and qd.shape == of_qd
            and y.shape == of_y
        ):
            return None
        to_q[:], to_qd[:], to_y[:] = q, qd, y
        if self._solve(self._at):
            return None
        return self._values.copy(), self._at.residual

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        found = self.quick(q, qd, y)
        if found is not None:
            return Solution(found[0], np.asarray(found[1]), np.asarray(False), np.asarray(1.0))
        values, residual, rcond = self._fallback.solve(q, qd, y)
        return Solution(values, np.asarray(residual), np.asarray(True), np.asarray(rcond))

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
        suspicious = small > 0
        if self._checked:
            suspicious |= ~(residual <= RESIDUAL_LIMIT)
        else:
            residual[:] = np.nan
        rcond = np.ones(N)
        for k in np.flatnonzero(suspicious):
            values[k], residual[k], rcond[k] = self._fallback.solve(Q[k], Qd[k], Y[k])
        return Solution(values, residual, suspicious, rcond)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        at, run, good = self._place(state, values), self._single.run, Status()
        kept, q, qd, y = (state, values), *np.split(state, np.cumsum(self._sizes)[:2])  # C keeps nothing alive

        def tick() -> Status:
            if not run(at):
                return good
            kept[1][:], residual, rcond = self._fallback.solve(q, qd, y)
            return Status.of(Solution(values, np.asarray(residual), np.asarray(True), np.asarray(rcond)))

        return tick

    @cached_property
    def _batch(self) -> Any:
        """The library of the batch entry, compiled when it is first needed."""
        self._ffi.cdef(BATCH)
        library = cached_library(self._ffi, self._record.batch)
        return load_library(self._ffi, self._source.batch, self._compiler) if library is None else library

    def _batch_call(self, inputs: list[Floats], values: Floats, small: NDArray[np.int32], residual: Floats) -> None:
        ffi, at = self._ffi, self._pointer
        library = self._batch
        inputs = [np.ascontiguousarray(X) for X in inputs]
        work = _aligned(self._record.n_work * self._compiler.lanes)
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


def _job(plan: EliminationPlan, columns: NDArray[np.intp], checked: bool) -> Job:
    """Return what the C is to compute: the unknowns, the guarded pivots, and the residual where it is checked."""
    symbolic = plan.symbolic
    solution = solution_program(plan, columns.tolist(), checked=False)
    n = len(columns)
    outputs = solution.program.outputs
    equations: tuple[tuple[Row, ...], ...] = ()
    if checked:
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
        quaternions=tuple(part.start for part in plan.system.tree.quaternions),
    )


def _aligned(size: int) -> Floats:
    """Return zeros (size,) whose address fits the widest vector."""
    room = np.zeros(size + ALIGNMENT // 8)
    start = (-room.ctypes.data % ALIGNMENT) // 8
    return room[start : start + size]
