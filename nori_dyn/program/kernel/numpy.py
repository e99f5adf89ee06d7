"""A program as straight-line Python and NumPy: works everywhere, vectorised over batches."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.algebra.arrays import DOUBLE, SINGLE
from nori_dyn.model.tree import QUATERNION_TOLERANCE
from nori_dyn.program.kernel.base import NUMPY, Batches, Outcome, Outcomes, Returns
from nori_dyn.program.limits import RESIDUAL_LIMIT, SINGLE_RESIDUAL_LIMIT, STEP_LIMIT, WEIGHT_SPREAD, single_limits
from nori_dyn.program.program import Program
from nori_dyn.program.python_source import PythonProgram
from nori_dyn.typing import Booleans, Floats, Indices


class _Buffers:
    """Where a program reads its inputs, and writes its outputs; the residual of the last state."""

    def __init__(self, inputs: Sequence[Floats], values: Floats) -> None:
        self.inputs, self.values, self.residual = inputs, values, np.nan


class NumpyKernel:
    """Runs a program on floats one state at a time, and on arrays chunk by chunk: c/one_state.h in NumPy.

    Attributes:
        limits, pivot_names, has_residual, has_single: see `Kernel`. There is no fast path.

    Args:
        program: the program.
        limits: of pivots and of steps; those of the fast path are not read. Zeros when None.
    """

    name = NUMPY

    def __init__(self, program: Program, limits: Floats | None = None) -> None:
        parts, self.pivot_names = program.parts, program.pivot_names
        self._program, self._compute = program, PythonProgram(program.inputs, [x for part in parts for x in part])
        self._ends = np.cumsum([len(part) for part in parts])[:-1]
        self._split = np.cumsum([len(scalars) for scalars in program.inputs.values()])[:-1]
        self.limits = np.zeros(len(program.pivots) + len(program.refinement.steps))
        self._residual = residual_of(program) if program.equations else None
        self.has_residual = bool(program.equations)
        self.has_single = program.has_single
        self._guarded = self.limits[:0], self.limits[:0]
        if limits is not None:
            self.limits[:] = limits[: len(self.limits)]

    def bind(self, state: Floats, values: Floats) -> _Buffers:
        """Where inputs and outputs are, see `Kernel`."""
        return _Buffers(np.split(state, self._split), values)

    def _run(self, at: _Buffers) -> int:
        values, outcome, _ = self._judged(self._compute.at(*at.inputs)[:, None], [X[None] for X in at.inputs])
        at.values[:] = values[0]
        return int(outcome[0])

    def _solve(self, at: _Buffers) -> int:
        states, outcome = self._states([X[None] for X in at.inputs])
        if outcome[0] == Outcome.OK:
            values, outcome, residual = self._judged(self._compute.at(*(X[0] for X in states))[:, None], states)
            at.values[:], at.residual = values[0], float(residual[0])
        if outcome[0] != Outcome.OK:
            at.values[:] = np.nan
        return int(outcome[0])

    def bound(self, at: _Buffers, checks: bool = False, returns: Returns | None = None) -> Callable[[], Any]:
        """A function that computes the outputs, see `Kernel`."""
        run = partial(self._solve if checks else self._run, at)
        if returns is None:
            return run
        good, otherwise = returns
        return lambda: otherwise() if run() else good

    def prepare(self, wait: bool = True) -> None:
        """Do nothing: there is no fast path."""

    def guarded(self, at: _Buffers) -> tuple[Floats, Floats]:
        """The pivots and the steps of the last state, see `Kernel`."""
        return self._guarded

    def batches(self, sizes: Sequence[int], n_out: int, n_each: int, dtype: np.dtype[Any] = DOUBLE) -> Batches:
        """A function that runs no batch: all of them are checked."""
        return lambda arrays, N, threads: None

    def batch(self, inputs: Sequence[Floats], outputs: Sequence[Floats], threads: int = 1) -> Outcomes:
        """Run N states, see `Kernel`; on one thread."""
        N = len(outputs[0])
        ends = np.cumsum([values.shape[1] for values in outputs])[:-1]
        with np.errstate(over="ignore"):
            inputs = [X.astype(outputs[0].dtype, copy=False) for X in inputs]
        states, outcomes = self._states([np.broadcast_to(X, (N, X.shape[-1])) for X in inputs])
        residuals = np.empty(N)
        for part, rows in self._compute.chunks(*states):
            found, outcome, residuals[part] = self._judged(rows, [X[part] for X in states])
            outcomes[part] = np.where(outcomes[part] == Outcome.OK, outcome, outcomes[part])
            for values, own in zip(outputs, np.split(found, ends, axis=1), strict=True):
                values[part] = own
        return outcomes if outcomes.any() else None, residuals if self.has_residual else None

    def _states(self, inputs: Sequence[Floats]) -> tuple[list[Floats], NDArray[np.int32]]:
        """N states with quaternions of unit length, and the outcome of each as far as it is known."""
        outcomes = np.zeros(len(inputs[0]), dtype=np.int32)
        if self._program.quaternions:
            whole = np.concatenate(inputs, axis=1)
            for place in self._program.quaternions:
                own = whole[:, place : place + 4]
                with np.errstate(all="ignore"):
                    norm = np.linalg.norm(own, axis=1)
                    outcomes[~(np.abs(norm - 1) <= QUATERNION_TOLERANCE)] = Outcome.QUATERNION_NOT_UNIT
                    own /= norm[:, None]
            states = np.split(whole, self._split, axis=1)
        else:
            states = list(inputs)
        for X in inputs:
            outcomes[~np.isfinite(X).all(axis=1)] = Outcome.INPUT_NOT_FINITE
        return states, outcomes

    def _judged(self, rows: Floats, states: Sequence[Floats]) -> tuple[Floats, NDArray[np.int32], Floats]:
        """The outputs (N, n) of all that was computed (n, N), the outcome of each state, and its residual."""
        values, pivots, steps, twice, further, of_equations = np.split(rows, self._ends)
        is_single = rows.dtype == SINGLE
        limits = single_limits(self.limits) if is_single else self.limits
        least, usual = np.split(limits[:, None], [len(pivots)])
        outcomes = np.zeros(rows.shape[1], dtype=np.int32)

        def note(mask: Any, outcome: Outcome) -> None:
            outcomes[mask & (outcomes == Outcome.OK)] = outcome

        with np.errstate(all="ignore"):
            zero: Any = np.zeros(rows.shape[1], dtype=bool)
            if self._program.n_weights:
                weights = np.concatenate(states, axis=1)[:, -self._program.n_weights :]
                note(~(weights >= 0).all(axis=1), Outcome.NEGATIVE_WEIGHT)
                note(~are_comparable(weights, self._program.n_noise_weights), Outcome.WEIGHT_SPREAD)
                zero = (weights <= 0).any(axis=1)
            small = ~(np.abs(pivots) >= least).all(axis=0)
            inaccurate = np.zeros_like(small)
            if len(steps):
                is_near = _are_small(steps, values, usual)
                values = np.where(is_near, values, twice)
                inaccurate = ~(is_near | _are_small(further, twice, usual))
            strange = ~np.isfinite(values).all(axis=0)
            note((small | inaccurate | strange) & zero, Outcome.ZERO_WEIGHT)
            note(small, Outcome.SMALL_PIVOT)
            note(inaccurate, Outcome.INACCURATE)
            note(strange, Outcome.OUTPUT_NOT_FINITE)
            residuals = np.full(rows.shape[1], np.nan)
            if self._residual is not None:
                b, entries = np.split(of_equations, [self._residual.n_rows])
                residuals = self._residual.of(b, entries, values)
                limit = SINGLE_RESIDUAL_LIMIT if is_single else RESIDUAL_LIMIT
                note(~(residuals <= limit), Outcome.LARGE_RESIDUAL)
        self._guarded = pivots[:, -1], further[:, -1]
        return np.ascontiguousarray(values.T), outcomes, residuals


def are_comparable(weights: Floats, n_noise_weights: int) -> Booleans:
    """Whether weights (..., n) of sensors span no more than `WEIGHT_SPREAD`, those of 0 left out.

    The first are of equations of motion: these may be as good as infinite.
    """
    weights = weights[..., n_noise_weights:]
    least = np.where(weights > 0, weights, np.inf).min(axis=-1, initial=np.inf)
    return np.asarray(weights.max(axis=-1, initial=0.0) <= WEIGHT_SPREAD * least)


def _are_small(steps: Floats, values: Floats, usual: Floats) -> Booleans:
    """Whether all steps (n, N) of a state (N,) are small beside their unknowns."""
    near: Booleans = np.all(np.abs(steps) <= STEP_LIMIT * (np.abs(values) + usual), axis=0)
    return near


class Residual:
    """The residual of equations D d + b = 0, of which each row has some entries.

    Args:
        rows: the row of each entry (nnz,).
        columns: which of the values it is of (nnz,).
        starts: the first row of each equation.
        n_rows: number of rows.
    """

    def __init__(self, rows: Indices, columns: Indices, starts: Indices, n_rows: int) -> None:
        entries = np.ones(len(rows)), (rows, np.arange(len(rows)))
        self._sums = sp.csr_array(entries, shape=(n_rows, len(rows)))
        self._columns, self._starts, self.n_rows = columns, starts, n_rows

    def of(self, b: Floats, entries: Floats, values: Floats) -> Floats:
        """The largest |D d + b| of any equation, relative to the largest |D| |d| + |b| in it (...).

        Args:
            b: b (rows, ...).
            entries: the entries (nnz, ...).
            values: d (n, ...).
        """
        products = entries * values[self._columns]
        D_d, magnitude = np.asarray(self._sums @ products), np.asarray(self._sums @ np.abs(products))
        return relative_residual(D_d, magnitude, b, self._starts)


def residual_of(program: Program) -> Residual:
    """The residual of a program's equations."""
    rows = [row for equation in program.equations for row in equation]
    entries = [(k, place) for k, (_, terms) in enumerate(rows) for _, place in terms]
    sizes = [len(equation) for equation in program.equations if equation]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.intp)
    row_of, places = np.array(entries, dtype=np.intp).reshape(-1, 2).T
    return Residual(row_of, places, starts, len(rows))


def relative_residual(D_d: Floats, magnitude: Floats, b: Floats, blocks: Indices) -> Floats:
    """The largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in the same equation.

    Args:
        D_d: D d (rows, ...).
        magnitude: |D| |d| (rows, ...).
        b: b (rows, ...).
        blocks: the first row of each equation.
    """
    worst = np.maximum.reduceat(np.abs(D_d + b), blocks, axis=0)
    scale = np.maximum.reduceat(magnitude + np.abs(b), blocks, axis=0)
    return np.asarray(np.max(np.where(worst == 0, 0.0, worst / np.where(scale == 0, 1.0, scale)), axis=0))
