"""A state re-factorised with pivoting and refined in extended precision, and whether it can be solved.

Where rows are weighed this is the augmented system of least squares,

    D^T lambda + Y^T sqrt(W) t = 0,   D d + b = 0,   sqrt(W) Y d - t + sqrt(W) b_Y = 0,

with a residual t of its own for each weighed row, noisy equations of motion among them: heavy and light rows do not
meet before a pivot is chosen, and a weight may be zero.

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

from nori_dyn.algebra.matching import structural_rank
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import LIGHTEST, natural_sizes, sample_entries
from nori_dyn.program.guards import equation_starts, find_wrong_input
from nori_dyn.program.kernel.numpy import relative_residual
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.system.optimality import NoisyRow, WeighedRow
from nori_dyn.typing import Floats

Extended = NDArray[np.longdouble]

SCALING_STATES = 32
"""Number of random states that give the natural size of entries."""

SWEEPS = 4
"""Times that rows and columns are brought to size 1."""

STEPS = 20
"""Steps of refinement, at most."""

CONVERGED = 1e-13
"""A step of refinement that is less of an unknown, or of its size, is the last."""

AS_GOOD = 1e-9
"""Where refinement goes on turning below this, it has reached extended precision: unknowns that are small
beside others of an ill-conditioned state."""


@dataclass(frozen=True, slots=True, eq=False)
class PivotedSystem:
    """The system of one state, factorised, and its solution.

    Attributes:
        factors: of its matrix A; of a weighed system, of the augmented one.
        b: the constant term, A x + b = 0.
        x: the solution, the unknowns d first.
        left: the residual of each weighed row, Y d + b_Y (n_soft,), extended.
        rcond: one over the condition: how far an unknown may move, by its natural size, where each equation is off by
            the natural size of its terms; of a weighed reading, by its sigma. No scaling of rows or columns changes it.
    """

    factors: SparseLU
    b: Floats
    x: Extended
    left: Extended
    rcond: float


class PivotingSolver:
    """Solves a plan's system at one state, whatever the planned order.

    Attributes:
        exact: the rows of the plan's system as given that hold exactly, by number; of a weighed one, of its conditions.
        soft: those that are weighed, or have noise.
        weight_of: the number of the weight of each of these.

    Args:
        plan: the plan.
    """

    def __init__(self, plan: EliminationPlan) -> None:
        self._plan, symbolic, system = plan, plan.symbolic, plan.system
        self._n = n = system.shape[1]
        noisy, weighed = plan.refined.original_noisy, plan.refined.original_weighed
        self.soft: tuple[NoisyRow | WeighedRow, ...] = (*noisy, *weighed)
        soft = self.soft
        of_noise = [row for row in system.rows if row.is_dynamic and not row.is_exact]
        of_sensors = [row for row in system.rows if not row.has_multiplier]
        self.weight_of = [k for row in (*of_noise, *of_sensors) for k in row.weight_of_rows]
        self.exact = np.setdiff1d(np.arange(n * system.is_weighted, symbolic.shape[0]), [r.multiplier for r in noisy])
        is_exact = np.isin(symbolic.rows, self.exact)
        self._rows = np.searchsorted(self.exact, symbolic.rows[is_exact])
        self._columns = symbolic.columns[is_exact]
        self._reading = np.array([k for k, row in enumerate(soft) for _ in row.entries], dtype=np.intp)
        self._read = np.array([column for row in soft for column in row.entries], dtype=np.intp)
        entries = [symbolic.entries[k] for k in np.flatnonzero(is_exact)]
        of_soft = [x for row in soft for x in row.entries.values()]
        outputs = (*entries, *(symbolic.b[k] for k in self.exact), *of_soft, *(row.b for row in soft))
        self._sizes = len(entries), len(self.exact), len(of_soft)
        self._program = PythonProgram(symbolic.inputs, outputs)

    @cached_property
    def natural(self) -> Floats:
        """The natural size of each unknown of d (n,)."""
        return natural_sizes(self._plan.system, self._plan.symbolic, self._plan.seed)

    @cached_property
    def _natural_rows(self) -> Floats:
        """The natural size of the terms of each row of D that is kept."""
        plan, symbolic, n = self._plan, self._plan.symbolic, self._n
        entries, _ = sample_entries(plan.system, symbolic, plan.seed, SCALING_STATES, at_rest=True)
        rows = np.zeros(symbolic.shape[0])
        given = symbolic.columns < n
        largest = np.abs(entries[:, given]).max(axis=0) * self.natural[symbolic.columns[given]]
        np.maximum.at(rows, symbolic.rows[given], largest)
        return np.asarray(rows[self.exact])

    def solve(self, *state: Floats) -> tuple[Floats, float, float]:
        """The unknowns (n,) at a state, nan where they are not determined; the residual of an estimate; and rcond.

        All are nan of a state that is not finite, or has a weight below zero; of a singular matrix rcond is 0.

        Args:
            state: q (nq,), qd (nv,), y (ny,), and the weights (n_weights,) where there are any.
        """
        nothing = np.full(self._n, np.nan)
        if find_wrong_input(self._plan.system, state):
            return nothing, np.nan, np.nan
        at = self.factorised(*state)
        if at is None:
            return nothing, np.nan, 0.0
        d = at.x[: self._n].astype(float) if at.rcond >= RCOND_LIMIT else nothing
        return d, self._residual(at.factors.A, at.b, at.x), at.rcond

    def factorised(self, *state: Floats) -> PivotedSystem | None:
        """The system of a state that is in order, and its solution; None where it is singular."""
        computed = self._program.single(*state)
        A, b, sizes = self._assembled(computed, state)
        factors = SparseLU.of(A)
        if factors is None:
            return None
        x, is_converged = factors.solve(-b, self.natural)
        if not is_converged:
            return None
        return PivotedSystem(factors, b, x, self._left(computed, state, x), factors.rcond(self.natural, sizes))

    def _left(self, computed: Floats, state: tuple[Floats, ...], x: Extended) -> Extended:
        """Y d + b_Y (n_soft,): of rows that have a weight it is known to all its digits, by their t."""
        _, _, of_soft, b_soft = np.split(computed, np.cumsum(self._sizes))
        left = b_soft.astype(np.longdouble)
        np.add.at(left, self._reading, of_soft * x[self._read])
        root = np.sqrt(state[-1][self.weight_of]) if len(left) else left
        np.divide(x[len(x) - len(left) :], root, out=left, where=root > 0)
        return np.asarray(left)

    def _assembled(self, computed: Floats, state: tuple[Floats, ...]) -> tuple[sp.csc_matrix, Floats, Floats]:
        """The matrix, its right-hand side -b, and the natural size of the terms of each row."""
        entries, b, of_soft, b_soft = np.split(computed, np.cumsum(self._sizes))
        if not self._plan.system.is_weighted:
            A = sp.csc_matrix((entries, (self._rows, self._columns)), shape=(self._n, self._n))
            return A, b, self._natural_rows
        n, m, k = self._n, len(b), len(b_soft)
        root = np.sqrt(state[-1][self.weight_of])
        of_lambda, of_t, own = n + self._rows, n + m + self._reading, n + m + np.arange(k)
        weighted = of_soft * root[self._reading]
        rows = (of_lambda, self._columns, of_t, self._read, own)
        columns = (self._columns, of_lambda, self._read, of_t, own)
        values = (entries, entries, weighted, weighted, -np.ones(k))
        index = (np.concatenate(rows), np.concatenate(columns))
        A = sp.csc_matrix((np.concatenate(values), index), shape=(n + m + k,) * 2)
        sizes = np.concatenate([np.zeros(n), self._natural_rows, np.zeros(k)])
        np.maximum.at(sizes, self._read, np.abs(weighted))  # a reading that is off by its sigma: t is 1
        np.maximum.at(sizes, of_t, np.abs(weighted) * self.natural[self._read])
        return A, np.concatenate([np.zeros(n), b, root * b_soft]), sizes

    def _residual(self, A: sp.csc_matrix, b: Floats, x: Extended) -> float:
        """The largest |D d + b| of any equation, or exact row beside weighed ones, relative to its terms."""
        m, is_weighted = len(self.exact), self._plan.system.is_weighted
        first, rounded = self._n * is_weighted, x.astype(float)
        exact = slice(first, first + m)
        terms = (abs(A) @ np.abs(rounded))[exact] + LIGHTEST * self._natural_rows  # rounding is no error by itself
        starts = np.arange(m) if is_weighted else equation_starts(self._plan)
        return float(relative_residual((A @ rounded)[exact], terms, b[exact], starts)) if m else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SparseLU:
    """A matrix A with sparse factors of it, rows and columns brought to size 1 by powers of two.

    Attributes:
        A: the matrix.
        lu: its factors, scaled.
        row, column: the scaling of rows and columns.
    """

    A: sp.csc_matrix
    lu: Any
    row: Floats
    column: Floats

    @staticmethod
    def of(A: sp.csc_matrix) -> SparseLU | None:
        """The factors of a matrix; None where it is singular."""
        A.eliminate_zeros()
        if structural_rank(A) < A.shape[0]:  # SuperLU does not survive some of these
            return None
        row, column = _equilibration(A)
        scaled = sp.csc_matrix(sp.diags_array(row) @ A @ sp.diags_array(column))
        try:
            return SparseLU(A, spla.splu(scaled), row, column)
        except RuntimeError:  # "Factor is exactly singular"
            return None

    def inverse_times(self, b: Floats | Extended, transpose: bool = False) -> Floats:
        """A^-1 b or A^-T b, by the factors alone."""
        first, last = (self.column, self.row) if transpose else (self.row, self.column)
        return np.asarray(last * self.lu.solve((first * b).astype(float), trans="T" if transpose else "N"))

    def solve(self, b: Floats | Extended, natural: Floats, size: float = 0.0) -> tuple[Extended, bool]:
        """The solution of A x = b, and whether refinement settles on the first of it, whose sizes are given.

        Args:
            b: the right-hand side.
            natural: the natural size of the first n unknowns, by each other.
            size: what the largest of them counts as at least where refinement has reached extended precision, by its
                natural size.
        """
        by_row = self.A.tocsr()
        values, starts = by_row.data.astype(np.longdouble), by_row.indptr[:-1]
        x = self.inverse_times(b).astype(np.longdouble)
        n = len(natural)
        least = LIGHTEST * natural * np.max(np.abs(x[:n]) / natural, initial=0.0)
        for _ in range(STEPS):
            left = b - np.add.reduceat(values * x[by_row.indices], starts)
            scale = np.abs(self.row * left).max(initial=0.0)
            if not np.isfinite(scale):
                return x, False
            step = self.inverse_times(left / scale) * scale if scale > 0 else np.zeros(len(x))
            x = x + step
            change, usual = np.abs(step[:n]), np.maximum(np.abs(x[:n]), least)
            if np.all(change <= CONVERGED * usual):
                return x, True
        return x, bool(np.all(change <= AS_GOOD * np.maximum(usual, LIGHTEST * natural * size)))

    def rcond(self, unknowns: Floats, rows: Floats) -> float:
        """One over the largest of |A^-1| rows, relative to the sizes of the first unknowns (n,).

        Args:
            unknowns: sizes of the first n unknowns.
            rows: how far each row may be off.
        """
        n = len(unknowns)

        def matvec(v: Floats) -> Floats:  # the transpose of diag(1 / unknowns) A^-1 diag(rows), on the first n
            first = np.append(v.ravel()[:n] / unknowns, np.zeros(len(rows) - n))
            return np.asarray(rows * self.inverse_times(first, True))

        def rmatvec(v: Floats) -> Floats:
            return np.append(self.inverse_times(rows * v.ravel())[:n] / unknowns, np.zeros(len(rows) - n))

        operator = spla.LinearOperator(self.A.shape, matvec=matvec, rmatvec=rmatvec, dtype=float)
        return 1.0 / max(1.0, float(spla.onenormest(operator, t=1)))


def _equilibration(A: sp.csc_matrix) -> tuple[Floats, Floats]:
    """Powers of two that bring rows and columns to size 1.

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
