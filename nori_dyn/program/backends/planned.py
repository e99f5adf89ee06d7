"""The planned elimination on a kernel: what its guards do not trust is solved afresh."""

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy import empty, ndarray
from numpy.typing import NDArray

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import Found, Solution, Status, computes_residual, find_wrong_input, state_parts
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.kernel.base import Kernel, Outcome, is_refused
from nori_dyn.program.kernel.single import ALL, MISFITS, Single
from nori_dyn.program.limits import STEP_LIMIT, WEIGHT_SPREAD
from nori_dyn.typing import Floats


class PlannedBackend:
    """Runs the elimination without pivoting, guarded: what its guards find suspicious is solved afresh, see `fresh`.

    Attributes:
        guards: the unknown that each guarded pivot is of.
        kernel: what runs the program, guards included.

    Args:
        plan: the plan.
        check_residual: whether `solve` and `solve_batch` also judge a state by its residual, where there is one.
    """

    guards: Sequence[str]
    kernel: Kernel

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._plan, self._columns = plan, output_columns(plan.system, plan.outputs)
        self._checked = check_residual and computes_residual(plan, self._columns)
        self._fallback = Fallback(plan, self._columns)
        self._prepare()
        sizes = [*plan.system.input_sizes.values()]
        self._single, self._usual = (Single(self.kernel, ((n,) for n in sizes), len(self._columns)) for _ in range(2))
        self.quick, self.quick_batch = self._quick(), self._quick_batch()

    def _prepare(self) -> None:
        """Make the kernel, and know its guards."""
        raise NotImplementedError

    def _quick(self) -> Callable[[Any, Any, Any], Found | None]:
        """Return `quick`, all that it uses at hand: looking it up on the backend takes a tenth of the time."""
        put_q, put_qd, put_y, *weights = self._usual.slots
        for slot in weights:
            slot[ALL] = self._plan.system.weights  # they stay as the sensors have them
        run, at, inputs, copy = self._usual.run, self._usual.at, self._usual.inputs, self._usual.values.copy
        is_checked, afresh = self._checked, self._afresh

        def quick(q: Any, qd: Any, y: Any) -> Found | None:
            if not type(q) is type(qd) is type(y) is ndarray:
                return None
            try:
                put_q[ALL] = q
                put_qd[ALL] = qd
                put_y[ALL] = y
            except MISFITS:
                return None
            outcome = run()
            if outcome:
                return None if is_refused(outcome) else afresh(inputs)
            return copy(), at.residual if is_checked else nan, False, 1.0

        return quick

    def solve(self, *state: Floats) -> Solution:
        single = self._single
        if single.solve(state):
            return self._afresh(state)
        return Solution(single.values.copy(), single.at.residual if self._checked else nan, False, 1.0)

    def _afresh(self, state: Sequence[Floats]) -> Solution:
        """Return the solution of a state by pivots of its own."""
        q, *others = state
        values, residual, rcond = self._fallback.solve(_at_unit_length(self._plan, q), *others)
        return Solution(values, residual, True, rcond)

    def _quick_batch(self) -> Callable[..., Found | None]:
        """Return `quick_batch`, all that it uses at hand."""
        sizes, n_out = self._plan.system.input_sizes.values(), len(self._columns)
        weights = (self._plan.system.weights,) if self._plan.system.is_weighted else ()
        run, judged = self.kernel.batches((*sizes, n_out), 1, 3), self._judged

        def quick_batch(Q: Any, Qd: Any, Y: Any, threads: Any, out: Any) -> Found | None:
            if type(Q) is not ndarray or Q.ndim != 2 or type(threads) is not int or threads < 1:
                return None
            N, values = len(Q), out
            if out is None:  # they lie as the states do
                values = empty((N, n_out), order="F") if Q.flags.fnc else empty((N, n_out))
            found = run((Q, Qd, Y, *weights, values) if weights else (Q, Qd, Y, values), N, threads)
            if found is None:
                return None
            outcomes, residual = found
            if outcomes is None:
                return values, nan if residual is None else residual, False, 1.0
            return judged((Q, Qd, Y, *weights), values, outcomes, residual)

        return quick_batch

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        values = np.empty((len(states[0]), len(self._columns))) if out is None else out
        outcomes, residual = self.kernel.batch(states, (values,), threads)
        if outcomes is None:
            return Solution(values, nan if residual is None else residual, False, 1.0)
        return self._judged(states, values, outcomes, residual)

    def _judged(
        self, states: Sequence[Floats], values: Floats, outcomes: NDArray[np.int32], residual: Floats | None
    ) -> Solution:
        """Return the solution of N states, of which some are solved afresh, and some are none."""
        residual = np.full(len(outcomes), nan) if residual is None else residual
        rcond, refused = np.ones(len(outcomes)), is_refused(outcomes)
        values[refused] = residual[refused] = rcond[refused] = nan
        for k in np.flatnonzero((outcomes != Outcome.OK) & ~refused):
            found = self._afresh([array[k] if array.ndim > 1 else array for array in states])
            values[k], residual[k], rcond[k] = found.values, found.residual, found.rcond
        return Solution(values, residual, outcomes != Outcome.OK, rcond)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        parts, at = state_parts(self._plan, state), self.kernel.place(state, values)

        def afresh() -> Status:
            cause = self._find_cause(self.kernel.run(at), parts, values)
            values[:], residual, rcond = self._fallback.solve(*parts)
            return Status.of(Solution(values, residual, True, rcond), cause)

        return self.kernel.bound(at, judged=(Status(), afresh))

    def _find_cause(self, outcome: int, parts: list[Floats], values: Floats) -> str:
        """Return what `run` found wrong with a state, and with what it left in `values` and in the workspace."""
        wrong = find_wrong_input(self._plan.system, parts)
        if wrong:
            return wrong
        if outcome == Outcome.WEIGHT_SPREAD:
            return f"the weights span a ratio of more than {WEIGHT_SPREAD:.0e}"
        pivots, steps = map(np.abs, self.kernel.guarded())
        least, usual = np.split(self.kernel.limits[: len(pivots) + len(steps)], [len(pivots)])
        small = np.flatnonzero(~(pivots >= least))
        if len(small):
            k = int(small[0])
            return f"the pivot of '{self.guards[k]}' is {pivots[k]:.2g}, below its limit {least[k]:.2g}"
        if not len(steps) or not np.isfinite(values).all():
            return "the planned order gives numbers that are not finite"
        shares = steps / (np.abs(values) + usual)
        k = int(np.argmax(shares))
        name = self._plan.system.variable_names[self._columns[k]]
        return f"refinement still changes '{name}' by a share of {shares[k]:.2g} of it, above {STEP_LIMIT:g}"


def _at_unit_length(plan: EliminationPlan, q: Floats) -> Floats:
    """Return a configuration that the guards refused; of one that is none, itself."""
    return plan.system.tree.normalised(q) if np.isfinite(q).all() and plan.system.tree.quaternions else q
