"""What to do with a state that the planned order does not handle: solve it afresh, with pivots of its own."""

from __future__ import annotations

from functools import cached_property

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.fresh import FreshSolver
from nori_dyn.typing import Floats, Indices


class Fallback:
    """A plan's system solved afresh; what that needs is made when it is first needed.

    Args:
        plan: the plan.
        columns: the unknowns wanted, in this order.
    """

    def __init__(self, plan: EliminationPlan, columns: Indices) -> None:
        self._plan = plan
        self._columns = columns

    @cached_property
    def _solver(self) -> FreshSolver:
        return FreshSolver(self._plan)

    def solve(self, *state: Floats) -> tuple[Floats, float, float]:
        """Return the unknowns of one state, its relative residual and rcond; nan for a state that is not finite."""
        fresh = self._solver.solve(*state)
        return fresh.d[self._columns], fresh.residual, fresh.rcond
