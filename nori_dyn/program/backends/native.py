"""The planned elimination as native code: one foreign call a tick, vectors of states in a batch.

Source: docs/design.md, 4.8 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.algebra.expressions import Expr
from nori_dyn.errors import CompilerError
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import (
    RESIDUAL_LIMIT,
    STEP_LIMIT,
    WEIGHT_SPREAD,
    Found,
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
from nori_dyn.program.backends.usual import any_limits, unusual_limits, usual_limits
from nori_dyn.program.c_source import CSource, c_source
from nori_dyn.program.cache_files import cache_root
from nori_dyn.program.compiled import Compiled, identity, recall, remember
from nori_dyn.program.compiler import cached_library, cached_spills, library_key, load_library, needed_compiler
from nori_dyn.program.job import Job
from nori_dyn.program.kernel.base import REFUSED
from nori_dyn.program.kernel.caller import LONG
from nori_dyn.program.kernel.choice import NATIVE
from nori_dyn.program.kernel.native import NativeKernel, interface
from nori_dyn.program.kernel.single import ALL, MISFITS, Single
from nori_dyn.program.lowering import SolutionProgram, solution_program
from nori_dyn.program.residual import Row
from nori_dyn.program.spills import Spills
from nori_dyn.system.limbs import corresponding_inputs
from nori_dyn.typing import Floats


class NativeBackend:
    """Runs the elimination without pivoting, guarded: what its guards find suspicious is solved afresh, see `fresh`.

    Args:
        plan: the plan.
        check_residual: whether `solve` and `solve_batch` also judge a state by its residual, where there is one.

    Raises:
        CompilerError: there is no C compiler, or it fails.
    """

    name = NATIVE

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._plan, self._compiler = plan, needed_compiler("the native backend")
        self._columns = output_columns(plan.system, plan.outputs)
        self._checked = check_residual and computes_residual(plan, self._columns)
        self._fallback = Fallback(plan, self._columns)
        self._kernel = self._loaded()
        self._single = self._alone(self._kernel)
        self._usual = self._alone(self._kernel)  # its weights stay as the sensors have them
        self.quick, self.quick_batch = self._quick(), self._quick_batch()

    def _loaded(self) -> NativeKernel:
        """Take the compiled plan from the cache, or compile it."""
        key = identity(self._plan, self._compiler, self._checked)
        record = recall(key)
        library = None if record is None else cached_library(interface(), record.single)
        if record is None or library is None:
            source = self._source
            library = load_library(interface(), source.single, self._compiler)
            record = Compiled(
                n_work=source.n_work,
                limits=self._measured_limits(library, source),
                guards=[guarded_name(self._plan, guard) for guard in self._solution.guards],
                first_pivot=source.first_pivot,
                single=library_key(source.single, self._compiler),
                batch=library_key(source.batch, self._compiler),
                packed=source.packed,
            )
            remember(key, record)
        self._record = record
        return self._kernel_of(library, record.n_work, record.limits, record.batch)

    def _kernel_of(self, library: Any, n_work: int, limits: Sequence[float], batch: str | None) -> NativeKernel:
        def open_batch() -> Any:
            found = None if batch is None else cached_library(interface(), batch)
            if found is not None:
                return found
            source = self._source
            if source.n_work > n_work:  # or it would write beyond the workspace
                raise CompilerError(f"the cached program is of another trace of the plan: remove '{cache_root()}'.")
            return load_library(interface(), source.batch, self._compiler)

        limiting = limits, RESIDUAL_LIMIT, STEP_LIMIT, self._checked
        return NativeKernel(library, open_batch, self._compiler, n_work, *limiting, self._plan.cost.total > LONG)

    @property
    def kernel(self) -> NativeKernel:
        """What runs the program, guards of pivots included."""
        return self._kernel

    @property
    def spills(self) -> Spills | None:
        """What the code of a tick puts on the stack; None where that is not known."""
        return cached_spills(self._record.single)

    @property
    def packed(self) -> Mapping[int, int]:
        """How many operations of a tick isomorphic limbs do together: two at a time, four and so on."""
        return self._record.packed

    def _alone(self, kernel: NativeKernel) -> Single:
        return Single(kernel, ((size,) for size in self._plan.system.input_sizes.values()), len(self._columns))

    @cached_property
    def _traced(self) -> tuple[EliminationPlan, SolutionProgram]:
        """The plan and its program, over expressions of their own: what is cached of it was made of the very same."""
        plan = self._plan.untouched()
        return plan, solution_program(plan, self._columns.tolist(), checked=False)

    @property
    def _solution(self) -> SolutionProgram:
        return self._traced[1]

    @cached_property
    def _source(self) -> CSource:
        with collector_at_rest():
            return c_source(_job(*self._traced, self._checked), self._compiler.lanes)

    def _measured_limits(self, library: Any, source: CSource) -> list[float]:
        """Return what states are held against, by an ensemble of states: see `guard_limits` and `usual_limits`."""
        plan, solution = self._plan, self._solution
        n_pivots, n_steps = len(solution.guards), len(self._columns) * solution.refines
        first, n_watched = source.first_pivot, len(solution.watched)

        def runner(usual: Floats) -> Callable[[Sequence[Floats]], tuple[Floats, Floats, Floats]]:
            kernel = self._kernel_of(library, source.n_work, [0.0] * (n_pivots + n_steps) + usual.tolist(), None)
            single = self._alone(kernel)

            def run(state: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
                np.concatenate(state, out=single.state)
                kernel.run(single.at)
                after = kernel.work[first + n_pivots :]
                return np.abs(kernel.work[first : first + n_pivots]), single.values, after[: max(n_steps, n_watched)]

            return run

        no_state = unusual_limits(plan, solution) if solution.refines else np.zeros(0)
        run = runner(no_state)
        sizes = [run(parts)[0] for parts in zip(*pivot_ensemble(plan), strict=True)] if n_pivots else []
        limits = guard_limits(plan, solution, np.array(sizes))
        if not solution.refines:
            return [float(x) for x in limits]
        run_first = runner(any_limits(plan, solution))

        def refined(state: Sequence[Floats]) -> tuple[Floats, Floats]:
            _, values, steps = run(state)
            return values, steps[:n_steps]

        def watched(state: Sequence[Floats]) -> Floats:
            return run_first(state)[2][:n_watched]

        usual = usual_limits(plan, solution, limits[n_pivots:], refined, watched)
        return [float(x) for x in (*limits, *usual)]

    def _quick(self) -> Callable[[Any, Any, Any], Found | None]:
        """Return `quick`, all that it uses at hand: looking it up on the backend takes a tenth of the time."""
        put_q, put_qd, put_y, *weights = self._usual.slots
        for slot in weights:
            slot[ALL] = self._plan.system.weights
        run, at, inputs, copy = self._usual.run, self._usual.at, self._usual.inputs, self._usual.values.copy
        is_checked, fallback = self._checked, self._fallback

        def quick(q: Any, qd: Any, y: Any) -> Found | None:
            if not type(q) is type(qd) is type(y) is ndarray:
                return None
            try:
                put_q[ALL] = q
                put_qd[ALL] = qd
                put_y[ALL] = y
            except MISFITS:
                return None
            wrong = run()
            if wrong:
                return None if wrong == REFUSED else _afresh(fallback, inputs)
            return copy(), at.residual if is_checked else nan, False, 1.0

        return quick

    def solve(self, *state: Floats) -> Solution:
        single = self._single
        if single.solve(state):
            return _afresh(self._fallback, state)
        return Solution(single.values.copy(), single.at.residual, False, 1.0)

    def _quick_batch(self) -> Callable[..., Found | None]:
        """Return `quick_batch`, all that it uses at hand."""
        sizes, n_out = self._plan.system.input_sizes.values(), len(self._columns)
        weights = (self._plan.system.weights,) if self._plan.system.is_weighted else ()
        run, judged = self._kernel.batches((*sizes, n_out), 1, 3), self._judged

        def quick_batch(Q: Any, Qd: Any, Y: Any, threads: Any, out: Any) -> Found | None:
            if type(Q) is not ndarray or Q.ndim != 2 or type(threads) is not int or threads < 1:
                return None
            N, values = len(Q), out
            if out is None:  # they lie as the states do
                values = empty((N, n_out), order="F") if Q.flags.fnc else empty((N, n_out))
            found = run((Q, Qd, Y, *weights, values) if weights else (Q, Qd, Y, values), N, threads)
            if found is None:
                return None
            wrong, residual = found
            if wrong is None:
                return values, nan if residual is None else residual, False, 1.0
            return judged((Q, Qd, Y, *weights), values, wrong, residual)

        return quick_batch

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        values = np.empty((len(states[0]), len(self._columns))) if out is None else out
        wrong, residual = self._kernel.batch(states, (values,), threads)
        if wrong is None:
            return Solution(values, nan if residual is None else residual, False, 1.0)
        return self._judged(states, values, wrong, residual)

    def _judged(
        self, states: Sequence[Floats], values: Floats, wrong: NDArray[np.int32], residual: Floats | None
    ) -> Solution:
        """Return the solution of N states, of which some are solved afresh, and some are none."""
        residual = np.full(len(wrong), nan) if residual is None else residual
        rcond = np.ones(len(wrong))
        refused = wrong == REFUSED
        values[refused] = residual[refused] = rcond[refused] = nan
        for k in np.flatnonzero(wrong > 0):
            q, *others = (array[k] if array.ndim > 1 else array for array in states)
            values[k], residual[k], rcond[k] = self._fallback.solve(self._plan.system.tree.normalised(q), *others)
        return Solution(values, residual, wrong != 0, rcond)

    def _find_cause(self, parts: list[Floats], values: Floats) -> str:
        """Return what `run` found wrong with a state and with what it left in `values` and in the workspace."""
        wrong = find_wrong_input(self._plan.system, parts)
        if wrong:
            return wrong
        record, n = self._record, len(self._record.guards)
        n_steps = len(values) * self._plan.system.is_weighted
        pivots, limits = np.abs(self._kernel.work[record.first_pivot :][:n]), np.array(record.limits)[: n + n_steps]
        small = np.flatnonzero(~(pivots >= limits[:n]))
        if len(small):
            k = int(small[0])
            return f"the pivot of '{record.guards[k]}' is {pivots[k]:.2g}, below its limit {limits[k]:.2g}"
        if self._plan.system.is_weighted and not are_comparable(self._plan.system, parts[-1]):
            return f"the weights span a ratio of more than {WEIGHT_SPREAD:.0e}"
        if len(limits) == n or not np.isfinite(values).all():
            return "the planned order gives numbers that are not finite"
        steps = np.abs(self._kernel.work[record.first_pivot + n + len(values) :][: len(values)])
        shares = steps / (np.abs(values) + limits[n:])
        k = int(np.argmax(shares))
        name = self._plan.system.variable_names[self._columns[k]]
        return f"refinement still changes '{name}' by a share of {shares[k]:.2g} of it, above {STEP_LIMIT:g}"

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        parts = state_parts(self._plan, state)

        def afresh() -> Status:
            cause = self._find_cause(parts, values)
            solution = _afresh(self._fallback, parts)
            values[:] = solution.values
            return Status.of(solution, cause)

        return self._kernel.bound(self._kernel.place(state, values), judged=(Status(), afresh))


def is_compiled(plan: EliminationPlan, check_residual: bool = True) -> bool:
    """Return whether the cache has what the backend would compile, so that it is there at once."""
    columns = output_columns(plan.system, plan.outputs)
    compiler = needed_compiler("the native backend")
    record = recall(identity(plan, compiler, check_residual and computes_residual(plan, columns)))
    return record is not None and cached_library(interface(), record.single) is not None


def _afresh(fallback: Fallback, state: Sequence[Floats]) -> Solution:
    values, residual, rcond = fallback.solve(*state)
    return Solution(values, residual, True, rcond)


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
        first=solution.first if solution.refines else (),
        watched=solution.watched,
        steps=steps,
        again=(again[0], again[1]),
        equations=equations,
        quaternions=tuple(part.start for part in plan.system.tree.quaternions),
        n_arrays=len(symbolic.inputs),
        limbs=corresponding_inputs(plan.system),
        n_weights=len(symbolic.weights),
        n_noise_weights=plan.system.n_noise_weights,
        weight_spread=WEIGHT_SPREAD,
    )
