"""The fallback for a state that the planned order does not handle: it is re-factorised with pivoting."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.guards import find_wrong_input
from nori_dyn.program.kernel.base import Kernel, Outcome
from nori_dyn.program.limits import RESIDUAL_LIMIT, STEP_LIMIT, WEIGHT_SPREAD
from nori_dyn.program.pivoting.solver import PivotingSolver
from nori_dyn.typing import Floats, Indices


class Fallback:
    """A plan's system re-factorised with pivoting; its parts are made when they are first needed.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._plan = plan

    @cached_property
    def _solver(self) -> PivotingSolver:
        return PivotingSolver(self._plan)

    @cached_property
    def _columns(self) -> Indices:
        return output_columns(self._plan.system, self._plan.outputs)

    def solve(self, *state: Floats) -> tuple[Floats, float, float]:
        """The outputs of one state, its relative residual and rcond; nan for a state that is not finite."""
        d, residual, rcond = self._solver.solve(*state)
        return d[self._columns], residual, rcond

    def cause(self, kernel: Kernel, at: Any, outcome: int, state: list[Floats], values: Floats) -> str:
        """The reason why a kernel's last run was refused, and the outputs that it left."""
        if wrong := find_wrong_input(self._plan.system, state):
            return wrong
        if outcome == Outcome.WEIGHT_SPREAD:
            return f"the weights span a ratio of more than {WEIGHT_SPREAD:.0e}"
        if outcome == Outcome.LARGE_RESIDUAL:
            return f"the residual of the planned order is above {RESIDUAL_LIMIT:.0e}"
        if outcome == Outcome.NOT_USUAL:
            return "the state is off the fast path, and its refinement is being compiled: see `prepare`"
        pivots, steps = map(np.abs, kernel.guarded(at))
        least, usual = np.split(kernel.limits[: len(pivots) + len(steps)], [len(pivots)])
        small = np.flatnonzero(~(pivots >= least))
        if len(small):
            k = int(small[0])
            return f"the pivot of '{kernel.pivot_names[k]}' is {pivots[k]:.2g}, below its limit {least[k]:.2g}"
        if outcome == Outcome.SMALL_PIVOT:
            return "a pivot of the factorisation is small beside the others"
        if not len(steps) or not np.isfinite(values).all():
            return "the planned order gives numbers that are not finite"
        shares = steps / (np.abs(values) + usual)
        k = int(np.argmax(shares))
        name = self._plan.system.variable_names[self._columns[k]]
        return f"refinement still changes '{name}' by a share of {shares[k]:.2g} of it, above {STEP_LIMIT:g}"
