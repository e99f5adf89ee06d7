"""A state solved afresh, with pivots of its own and refinement in extended precision; and whether it can be solved.

Where rows are weighed this is the augmented system of least squares,

    D^T lambda + Y^T sqrt(W) t = 0,   D d - C lambda + b = 0,   sqrt(W) Y d - t + sqrt(W) b_Y = 0,

with a residual t of its own for each weighed row: heavy and light rows do not meet before a pivot is chosen.

Source: Björck, Numerical Methods for Least Squares Problems, ch. 2.9 (augmented system); Arioli, Demmel, Duff, Solving
sparse linear systems with sparse backward error (1989), for the condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray
from scipy.sparse.csgraph import structural_rank

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.backends.base import RCOND_LIMIT, Floats, equation_starts, relative_residual
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.program.straight_line import Program
from nori_dyn.system.variables import FORCES

Extended = NDArray[np.longdouble]

SWEEPS = 4
"""Times that rows and columns are brought to size 1."""

STEPS = 20
"""Steps of refinement, at most."""

SETTLED = 1e-13
"""A step of refinement that is less of an unknown, or of its size, is the last."""

LIGHTEST = 1e-6
"""No unknown counts as smaller than this share of the largest of its kind: on links without mass forces are nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Fresh:
    """A state solved afresh.

    Attributes:
        d: the unknowns (n,); nan where they are not determined.
        residual: as in `Solution`.
        rcond: one over the condition: by how much the relative error of the entries may be magnified in any unknown,
            relative to its size. No scaling of rows or columns changes it. Zero where the matrix is singular.
    """

    d: Floats
    residual: float
    rcond: float


class FreshSolver:
    """Solves a plan's system at one state, whatever the planned order.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._plan, symbolic = plan, plan.symbolic
        self._n = n = plan.system.shape[1]
        weighed = plan.refined.original_weighed
        self._weight_of = [k for row in plan.system.rows if not row.has_multiplier for k in row.weight_of_rows]
        is_kept = symbolic.rows >= n if weighed else np.ones(len(symbolic.rows), dtype=bool)
        self._rows, self._columns = symbolic.rows[is_kept], symbolic.columns[is_kept]
        self._reading = np.array([k for k, row in enumerate(weighed) for _ in row.entries], dtype=np.intp)
        self._read = np.array([column for row in weighed for column in row.entries], dtype=np.intp)
        entries = [x for x, kept in zip(symbolic.entries, is_kept, strict=True) if kept]
        of_weighed = [x for row in weighed for x in row.entries.values()]
        outputs = (*entries, *symbolic.b[n if weighed else 0 :], *of_weighed, *(row.b for row in weighed))
        self._sizes = len(entries), len(symbolic.b) - n * bool(weighed), len(of_weighed)
        self._program = PythonProgram(Program.of(symbolic.inputs, outputs))

    @cached_property
    def _usual(self) -> Floats:
        """The natural size of each unknown of d (n,)."""
        return natural_scaling(self._plan.system, self._plan.symbolic, self._plan.seed)[1][: self._n]

    @cached_property
    def _groups(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """For each unknown of d (n,) the number of those that have its size, and whether it is a force."""
        symbolic = self._plan.symbolic
        kinds = [v.kind in FORCES for v in self._plan.system.variables for _ in range(v.slice.start, v.slice.stop)]
        return symbolic.groups[: self._n], np.array(kinds)

    def solve(self, *state: Floats) -> Fresh:
        """Return the solution at a state: q (nq,), qd (nv,), y (ny,), and the weights (n_weights,) where there are any.

        A state that is not finite has a solution and a rcond of nan.
        """
        nothing = np.full(self._n, np.nan)
        if not all(np.isfinite(x).all() for x in state):
            return Fresh(nothing, np.nan, np.nan)
        try:
            computed = self._program.single(*state)
        except ZeroDivisionError:  # an equation of motion whose weight is zero
            return Fresh(nothing, np.nan, 0.0)
        A, b, floor = self._assembled(computed, state)
        factors = Factors.of(A)
        if factors is None:
            return Fresh(nothing, np.nan, 0.0)
        x, is_settled = factors.solve(-b, self._n)
        if not is_settled:
            return Fresh(nothing, np.nan, 0.0)
        d = x[: self._n].astype(float)
        rcond = factors.rcond(x, b, self._size(d), floor)
        return Fresh(d if rcond >= RCOND_LIMIT else nothing, self._residual(A, b, x), rcond)

    def _assembled(self, computed: Floats, state: tuple[Floats, ...]) -> tuple[sp.csc_matrix, Floats, Floats]:
        """Return the matrix and its right-hand side, -b, and what counts as the size of b at least."""
        entries, b, of_weighed, b_weighed = np.split(computed, np.cumsum(self._sizes))
        if not self._plan.system.is_weighted:
            A = sp.csc_matrix((entries, (self._rows, self._columns)), shape=(self._n, self._n))
            return A, b, np.zeros(self._n)
        n, m, k = self._n, len(b), len(b_weighed)
        root = np.sqrt(state[-1][self._weight_of])
        is_D = self._columns < n
        of_t, weighted = n + m + self._reading, of_weighed * root[self._reading]
        own = n + m + np.arange(k)
        rows = (self._rows, self._columns[is_D], of_t, self._read, own)
        columns = (self._columns, self._rows[is_D], self._read, of_t, own)
        values = (entries, entries[is_D], weighted, weighted, -np.ones(k))
        index = (np.concatenate(rows), np.concatenate(columns))
        A = sp.csc_matrix((np.concatenate(values), index), shape=(n + m + k,) * 2)
        floor = np.zeros(n + m + k)
        np.maximum.at(floor, self._read, np.abs(weighted))  # a reading that is off by its sigma: t is 1
        return A, np.concatenate([np.zeros(n), b, root * b_weighed]), floor

    def _size(self, d: Floats) -> Floats:
        """Return what each unknown's error is measured by (n,)."""
        groups, is_force = self._groups
        largest = np.zeros(groups.max() + 1)
        np.maximum.at(largest, groups, np.maximum(np.abs(d), self._usual))
        size = largest[groups]
        for kind in (is_force, ~is_force):
            size[kind] = np.maximum(size[kind], LIGHTEST * size[kind].max(initial=0.0))
        return size

    def _residual(self, A: sp.csc_matrix, b: Floats, x: Extended) -> float:
        """Return the largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in it."""
        rounded = x.astype(float)
        error, terms = A @ rounded + b, np.asarray(abs(A) @ np.abs(rounded) + np.abs(b))
        if not self._plan.system.is_weighted:
            return float(relative_residual(A @ rounded, abs(A) @ np.abs(rounded), b, equation_starts(self._plan)))
        exact = slice(self._n, self._n + self._sizes[1])
        ratio = np.abs(error[exact]) / np.where(terms[exact] == 0, 1.0, terms[exact])
        return float(ratio.max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A matrix A with sparse factors of it, rows and columns brought to size 1 by powers of two.

    Attributes:
        A: the matrix.
        lu: its factors, scaled.
        row, column: what rows and columns are multiplied by.
    """

    A: sp.csc_matrix
    lu: Any
    row: Floats
    column: Floats

    @staticmethod
    def of(A: sp.csc_matrix) -> Factors | None:
        """Return the factors of a matrix; None where it is singular."""
        A.eliminate_zeros()
        if structural_rank(A) < A.shape[0]:  # SuperLU does not survive some of these
            return None
        row, column = _equilibration(A)
        scaled = sp.csc_matrix(sp.diags_array(row) @ A @ sp.diags_array(column))
        try:
            return Factors(A, spla.splu(scaled), row, column)
        except RuntimeError:  # "Factor is exactly singular"
            return None

    def inverse_times(self, b: Floats, transpose: bool = False) -> Floats:
        """Return A^-1 b or A^-T b, by the factors alone."""
        first, last = (self.column, self.row) if transpose else (self.row, self.column)
        return np.asarray(last * self.lu.solve(first * b, trans="T" if transpose else "N"))

    def solve(self, b: Floats, n: int) -> tuple[Extended, bool]:
        """Return the solution of A x = b, and whether refinement settles on the first n of it."""
        by_row = self.A.tocsr()
        values, starts = by_row.data.astype(np.longdouble), by_row.indptr[:-1]
        x = self.inverse_times(b).astype(np.longdouble)
        size = np.abs(x[:n]).max(initial=0.0)
        for _ in range(STEPS):
            left = b - np.add.reduceat(values * x[by_row.indices], starts)
            scale = np.abs(self.row * left).max(initial=0.0)
            if not np.isfinite(scale):
                return x, False
            step = self.inverse_times((left / scale).astype(float)) * scale if scale > 0 else np.zeros(len(x))
            x = x + step
            if np.all(np.abs(step[:n]) <= SETTLED * np.maximum(np.abs(x[:n]), LIGHTEST * size)):
                return x, True
        return x, False

    def rcond(self, x: Extended, b: Floats, size: Floats, floor: Floats) -> float:
        """Return one over the largest of |A^-1| (|A| |x| + |b|), relative to the size of the first unknowns (n,).

        Args:
            x: the solution.
            b: the right-hand side.
            size: sizes of the first n unknowns; others count by their own.
            floor: what |A| |x| + |b| is at least.
        """
        n, at_least = len(size), np.abs(x).astype(float)
        at_least[:n] = np.maximum(at_least[:n], size)
        g = np.maximum(abs(self.A) @ at_least + np.abs(b), floor)

        def matvec(v: Floats) -> Floats:  # the transpose of diag(1 / size) A^-1 diag(g), on the first n
            return np.asarray(g * self.inverse_times(np.append(v.ravel()[:n] / size, np.zeros(len(g) - n)), True))

        def rmatvec(v: Floats) -> Floats:
            return np.append(self.inverse_times(g * v.ravel())[:n] / size, np.zeros(len(g) - n))

        operator = spla.LinearOperator(self.A.shape, matvec=matvec, rmatvec=rmatvec, dtype=float)
        return 1.0 / max(1.0, float(spla.onenormest(operator, t=1)))


def _equilibration(A: sp.csc_matrix) -> tuple[Floats, Floats]:
    """Return powers of two that bring rows and columns to size 1.

    Source: Ruiz, A scaling algorithm to equilibrate both rows and columns norms in matrices (2001).
    """
    size, rows = np.log2(np.abs(A.data)), A.indices
    columns = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    row, column = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    for _ in range(SWEEPS):
        now = size + row[rows] + column[columns]
        largest = [np.full(A.shape[0], -np.inf), np.full(A.shape[1], -np.inf)]
        np.maximum.at(largest[0], rows, now)
        np.maximum.at(largest[1], columns, now)
        row, column = row - largest[0] / 2, column - largest[1] / 2
    return np.exp2(np.round(row)), np.exp2(np.round(column))
