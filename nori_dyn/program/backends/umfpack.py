"""The paper's online solver: assemble D and b, then UMFPACK with the planned order and its analysis kept.

Source: Nori, remark 4 and section V-D.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.backends.base import Solution, Status, equation_starts, find_wrong_input, state_parts
from nori_dyn.program.backends.factorisation import Umfpack
from nori_dyn.program.backends.fallback import Fallback
from nori_dyn.program.kernel.numpy import are_comparable, relative_residual
from nori_dyn.program.limits import RESIDUAL_LIMIT, STEP_LIMIT
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.typing import Floats

SMALL_PIVOT = 1e-10
"""Ratio of pivots below which a state is suspicious: it is solved afresh, where a condition decides."""


class UmfpackBackend:
    """Numeric refactorisation by UMFPACK at every state, its rows pivoted anew.

    A state with small pivots or a large residual is solved by `Fallback`; of weighed rows, a step of refinement that is
    not small is suspicious too.

    Args:
        plan: the plan.
        check_residual: whether the residual is reported, for the estimate.

    Raises:
        MissingExtraError: scikit-umfpack is not installed.
    """

    name = "umfpack"

    def __init__(self, plan: EliminationPlan, check_residual: bool = True) -> None:
        self._plan, self._n = plan, plan.system.shape[1]
        self._checked = check_residual
        self._columns = output_columns(plan.system, plan.outputs)
        symbolic, self._weighed = plan.symbolic, plan.refined.original_weighed
        readings = [x for row in self._weighed for x in (row.b, row.weight, *row.entries.values())]
        self._assembly = PythonProgram(symbolic.inputs, (*symbolic.entries, *symbolic.b, *readings))
        self._sizes = len(symbolic.entries), len(symbolic.b)
        self._factorisation = Umfpack(plan)
        self._fallback = Fallback(plan, self._columns)
        self._usual = natural_scaling(plan.system, symbolic, plan.seed)[1][: self._n]
        self._is_given = (symbolic.rows >= self._n) | (symbolic.columns >= self._n)

    def quick(self, q: Any, qd: Any, y: Any) -> None:
        return None

    def quick_batch(self, Q: Any, Qd: Any, Y: Any, threads: Any, out: Any) -> None:
        return None

    def solve(self, *state: Floats) -> Solution:
        return self._solve_assembled(self._assembly.at(*state), state)

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        N = len(states[0])
        values = np.empty((N, len(self._columns))) if out is None else out
        residual, fell_back, rcond = np.empty(N), np.empty(N, dtype=bool), np.empty(N)
        for part, rows in self._assembly.chunks(*states):
            for k, assembled in enumerate(rows.T, part.start):
                state = tuple(array[k] for array in states)
                found = self._solve_assembled(np.ascontiguousarray(assembled), state)
                values[k], residual[k], fell_back[k], rcond[k] = found
        return Solution(values, residual, fell_back, rcond)

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        parts = state_parts(self._plan, state)

        def tick() -> Status:
            solution = self.solve(*parts)
            values[:] = solution.values
            return Status.of(solution, find_wrong_input(self._plan.system, parts))

        return tick

    def _solve_assembled(self, assembled: Floats, state: tuple[Floats, ...]) -> Solution:
        values, b, readings = np.split(assembled, np.cumsum(self._sizes))
        is_sound = np.isfinite(assembled).all() and not find_wrong_input(self._plan.system, state)
        is_sound &= not self._weighed or bool(are_comparable(state[-1], self._plan.system.n_noise_weights))
        pivots = self._factorisation.factorise(values) if is_sound else 0.0
        if pivots > 0:
            d, is_sound = self._factorisation.solve(b), False
            if self._plan.system.is_weighted:
                step = self._factorisation.solve(self._left(values, b, readings, d))
                d = d + step
                with np.errstate(invalid="ignore"):
                    allowed = STEP_LIMIT * (np.abs(d[: self._n]) + self._usual)
                    is_sound = bool(np.all(np.abs(step[: self._n]) <= allowed))
            residual = self._residual(values, b, d)
            if not self._plan.system.is_weighted:  # of conditions of optimality the step has told
                is_sound = pivots >= SMALL_PIVOT and residual <= RESIDUAL_LIMIT
            if is_sound and np.isfinite(d).all():
                rcond = 1.0 if self._plan.system.is_weighted else pivots
                return Solution(d[self._columns], residual if self._checked else np.nan, False, rcond)
        found, residual, rcond = self._fallback.solve(*state)
        return Solution(found, residual, True, rcond)

    def _left(self, values: Floats, b: Floats, readings: Floats, x: Floats) -> Floats:
        """Return what x leaves of each condition (n,): weighed rows are weighed before they are added up."""
        symbolic, n = self._plan.symbolic, self._n
        given = self._is_given
        left = np.where(np.arange(len(b)) < n, 0.0, b)
        np.add.at(left, symbolic.rows[given], values[given] * x[symbolic.columns[given]])
        place = 0
        for row in self._weighed:
            columns = list(row.entries)
            offset, weight, *entries = readings[place : place + 2 + len(columns)]
            left[columns] += np.array(entries) * (weight * (offset + np.dot(entries, x[columns])))
            place += 2 + len(columns)
        return left

    def _residual(self, values: Floats, b: Floats, d: Floats) -> float:
        """Return the relative residual of D d + b for one state, D given by its structural nonzeros (nnz)."""
        rows = self._plan.symbolic.rows
        products = values * d[self._plan.symbolic.columns]
        D_d = np.bincount(rows, products, len(b)).astype(float)
        magnitude = np.bincount(rows, np.abs(products), len(b)).astype(float)
        return float(relative_residual(D_d, magnitude, b, equation_starts(self._plan)))
