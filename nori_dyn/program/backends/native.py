"""The planned elimination as native code: one foreign call a tick, vectors of states in a batch.

Source: docs/design.md, 4.8 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.errors import CompilerError
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import (
    RESIDUAL_LIMIT,
    STEP_LIMIT,
    WEIGHT_SPREAD,
    Solution,
    Status,
    are_comparable,
    computes_residual,
    find_wrong_input,
    guard_limits,
    guarded_name,
    pivot_ensemble,
    state_parts,
)
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.c_source import CSource, Job, Row, c_source
from nori_dyn.program.compiled import Compiled, identity, recall, remember
from nori_dyn.program.compiler import NO_COMPILER, cached_library, find_compiler, library_key, load_library
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.native_code import NativeCode, aligned, interface
from nori_dyn.typing import Floats

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
            raise CompilerError(NO_COMPILER.format("the native backend"))
        self._plan, self._compiler = plan, compiler
        self._columns = output_columns(plan.system, plan.outputs)
        self._n_outputs = len(self._columns)
        self._checked = check_residual and computes_residual(plan, self._columns)
        self._sizes = tuple(plan.system.input_sizes.values())
        self._fallback = Fallback(plan, self._columns)
        self._ffi = interface()
        self._code = self._loaded()
        self._state, self._values = aligned(sum(self._sizes)), aligned(self._n_outputs)
        self._inputs = state_parts(plan, self._state)
        self._shapes = [(size,) for size in self._sizes]
        self._at, self._solve = self._code.place(self._state, self._values, RESIDUAL_LIMIT), self._code.solve

    def _loaded(self) -> NativeCode:
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
                guards=[guarded_name(self._plan, guard) for guard in self._solution.guards],
                first_pivot=source.first_pivot,
                single=library_key(source.single, self._compiler),
                batch=library_key(source.batch, self._compiler),
            )
            remember(key, record)
        self._record = record
        return self._code_of(library, record.n_work, record.limits, record.batch)

    def _code_of(self, library: Any, n_work: int, limits: Sequence[float], batch: str | None) -> NativeCode:
        def open_batch() -> Any:
            found = None if batch is None else cached_library(self._ffi, batch)
            return load_library(self._ffi, self._source.batch, self._compiler) if found is None else found

        return NativeCode(self._ffi, library, open_batch, self._compiler, n_work, limits, STEP_LIMIT)

    @cached_property
    def _solution(self) -> SolutionProgram:
        return solution_program(self._plan, self._columns.tolist(), checked=False)

    @cached_property
    def _source(self) -> CSource:
        return c_source(_job(self._plan, self._solution, self._checked), self._compiler.lanes)

    def _measured_limits(self, library: Any, source: CSource) -> list[float]:
        """Return what each pivot and each step is held against, pivots by their sizes over an ensemble of states."""
        n_pivots, sizes = len(self._solution.guards), []
        if n_pivots:
            code = self._code_of(library, source.n_work, np.zeros(n_pivots).tolist(), None)
            state, values = aligned(sum(self._sizes)), aligned(self._n_outputs)
            at = code.place(state, values, RESIDUAL_LIMIT)
            for parts in zip(*pivot_ensemble(self._plan), strict=True):
                np.concatenate(parts, out=state)
                code.run(at)
                sizes.append(np.abs(code.work[source.first_pivot : source.first_pivot + n_pivots]))
        return [float(x) for x in guard_limits(self._plan, self._solution, np.array(sizes))]

    def quick(self, *state: Any) -> tuple[Floats, float] | None:
        """Return the unknowns of one state and their residual in one foreign call, with all checks.

        None where anything is out of the ordinary: the caller then goes the long way, which says what.
        """
        for given, to, shape in zip(state, self._inputs, self._shapes, strict=True):
            if type(given) is not np.ndarray or given.dtype is not DOUBLE or given.shape != shape:
                return None
            to[:] = given
        if self._solve(self._at):
            return None
        return self._values.copy(), self._at.residual

    def solve(self, *state: Floats) -> Solution:
        found = self.quick(*state)
        if found is not None:
            return Solution(found[0], np.asarray(found[1]), np.asarray(False), np.asarray(1.0))
        values, residual, rcond = self._fallback.solve(*state)
        return Solution(values, np.asarray(residual), np.asarray(True), np.asarray(rcond))

    def solve_batch(self, *states: Floats, threads: int = 1) -> Solution:
        N = len(states[0])
        values = np.empty((N, self._n_outputs))
        wrong, residual = self._code.batch(states, values, threads)
        suspicious = wrong > 0
        if self._checked:
            suspicious |= ~(residual <= RESIDUAL_LIMIT)
        else:
            residual[:] = np.nan
        rcond = np.ones(N)
        for k in np.flatnonzero(suspicious):
            values[k], residual[k], rcond[k] = self._fallback.solve(*(array[k] for array in states))
        return Solution(values, residual, suspicious, rcond)

    def _find_cause(self, parts: list[Floats], values: Floats) -> str:
        """Return what `run` found wrong with a state and with what it left in `values` and in the workspace."""
        wrong = find_wrong_input(self._plan.system, parts)
        if wrong:
            return wrong
        record, n = self._record, len(self._record.guards)
        pivots, limits = np.abs(self._code.work[record.first_pivot :][:n]), np.array(record.limits)
        small = np.flatnonzero(~(pivots >= limits[:n]))
        if len(small):
            k = int(small[0])
            return f"the pivot of '{record.guards[k]}' is {pivots[k]:.2g}, below its limit {limits[k]:.2g}"
        if self._plan.system.is_weighted and not are_comparable(self._plan.system, parts[-1]):
            return f"the weights span a ratio of more than {WEIGHT_SPREAD:.0e}"
        if len(limits) == n or not np.isfinite(values).all():
            return "the planned order gives numbers that are not finite"
        steps = np.abs(self._code.work[record.first_pivot + n + len(values) :][: len(values)])
        shares = steps / (np.abs(values) + limits[n:])
        k = int(np.argmax(shares))
        name = self._plan.system.variable_names[self._columns[k]]
        return f"refinement still changes '{name}' by a share of {shares[k]:.2g} of it, above {STEP_LIMIT:g}"

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        at, run, good = self._code.place(state, values, RESIDUAL_LIMIT), self._code.run, Status()
        kept, parts = (state, values), state_parts(self._plan, state)  # C keeps nothing alive

        def tick() -> Status:
            if not run(at):
                return good
            cause = self._find_cause(parts, values)
            kept[1][:], residual, rcond = self._fallback.solve(*parts)
            return Status.of(Solution(values, np.asarray(residual), np.asarray(True), np.asarray(rcond)), cause)

        return tick


def _job(plan: EliminationPlan, solution: SolutionProgram, checked: bool) -> Job:
    """Return what the C is to compute: the unknowns, what is guarded, and the residual where it is checked."""
    symbolic = plan.symbolic
    unknowns, pivots, steps, *again, _ = solution.parts
    equations: tuple[tuple[Row, ...], ...] = ()
    if checked:
        place = {int(column): k for k, column in enumerate(solution.columns)}
        terms: list[list[tuple[Expr, int]]] = [[] for _ in range(symbolic.shape[0])]
        for row, column, entry in zip(symbolic.rows.tolist(), symbolic.columns.tolist(), symbolic.entries, strict=True):
            if not unknowns[place[column]].is_zero:
                terms[row].append((entry, place[column]))
        rows = [(b, tuple(row)) for b, row in zip(symbolic.b, terms, strict=True)]
        equations = tuple(tuple(rows[block.slice]) for block in plan.system.rows)
    return Job(
        graph=symbolic.graph,
        inputs=tuple(x for scalars in symbolic.inputs.values() for x in scalars),
        outputs=unknowns,
        pivots=pivots,
        steps=steps,
        again=(again[0], again[1]),
        equations=equations,
        quaternions=tuple(part.start for part in plan.system.tree.quaternions),
        n_arrays=len(symbolic.inputs),
        n_weights=len(symbolic.weights),
        n_noise_weights=plan.system.n_noise_weights,
        weight_spread=WEIGHT_SPREAD,
    )
