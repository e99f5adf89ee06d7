"""Fisher information of parameters from a motion, its derivatives by the motion, exactly, and criteria of it.

With W_k the whitened rows of sample k over the parameters and N_k those over unknown wrenches, what is left
of W_k where the wrenches are fitted as well is V_k = W_k - N_k C_k, C_k = N_k^+ W_k, and

    F = R0^T R0 + n sum_k V_k^T V_k

where n is how many samples of a log each one stands for, and R0 is the square root of the prior information. For any
criterion J(F) with the derivative G, dJ = 2 n sum_k tr(G V_k^T (dW_k - dN_k C_k)): the derivatives of C_k drop out, as
V_k is what is least. The last step, from factors of the entries to the motion, is one reverse sweep of their program.

Criterion D is the logarithm of the determinant of F, which does not change with the units of the parameters; A the
negative logarithm of the trace of its inverse, the sum of the variances, which does. Both are large where F is.

Source: Pukelsheim, Optimal Design of Experiments, ch. 6; Swevers et al. (1997) for D on motions of robots; the
derivatives are ours (tests/unit/identification/test_motion_information.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.derivatives import depends_on
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.dependent_joints import MovingJoints
from nori_dyn.identification.elimination import TOLERANCE
from nori_dyn.identification.motion_gradient import MotionGradient, Pullback
from nori_dyn.identification.regression import Regression, RegressorProgram
from nori_dyn.program.tracing import Traced
from nori_dyn.typing import Floats


@dataclass(frozen=True, eq=False)
class MotionInformation:
    """Information that motions give of some parameters.

    Attributes:
        program: the rows.
        gradient: their derivatives, for factors of the entries.
        columns: the parameters, by their indices.
        weights: 1 / sigma of each row (n_rows,).
        units: what F is of (n_columns, n): the parameters are `units` times n numbers.
        earlier: R0 (rows, n), over these numbers; of no rows where nothing is known beforehand.
    """

    program: RegressorProgram
    gradient: MotionGradient
    columns: tuple[int, ...]
    weights: Floats
    units: Floats
    earlier: Floats

    @staticmethod
    def of(
        regression: Regression,
        columns: Sequence[int],
        joints: MovingJoints,
        weights: Floats,
    ) -> MotionInformation:
        """Compile it in SI units, with nothing known beforehand.

        Args:
            regression: the regression.
            columns: the parameters, by their indices; they must be identifiable one by one.
            joints: those that move.
            weights: 1 / sigma of each row (n_rows,).

        Raises:
            InputError: a parameter whose rows depend on what the sensors read.
            CompilerError: as for `compile`.
        """
        columns = tuple(columns)
        place = {column: k for k, column in enumerate(columns)}
        entries = [entry for (_, k), entry in regression.W.items() if k in place] + list(regression.N.values())
        _refuse_readings(regression, columns)
        outputs = np.array(entries, dtype=object)
        inputs = {name: regression.inputs[name] for name in ("q", "qd", "qdd")}
        traced = Traced("regressor", regression.system.tree, regression.graph, inputs, {"entries": outputs}, None, None)
        gradient = MotionGradient.of(traced, joints.moved)
        n = len(columns)
        return MotionInformation(regression.program(columns), gradient, columns, weights, np.eye(n), np.zeros((0, n)))

    def rows(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Floats]:
        """Whitened rows W (N, rows, n) of N samples, of what F is of, and N (N, rows, unknowns)."""
        y = np.zeros((len(q), len(self.program.function.inputs.y)))
        W, N, _ = self.program(q, qd, qdd, y)
        weights = self.weights[:, None]
        return (weights * W) @ self.units, weights * N

    def left(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Rows V (N, rows, n) of N samples, in which unknown wrenches are fitted."""
        W, N = self.rows(q, qd, qdd)
        return W - N @ _fitted(W, N)

    def in_units(self, units: Floats) -> MotionInformation:
        """Express it in n other numbers, of which the parameters are `units` (n_columns, n) times them."""
        return replace(self, units=units, earlier=np.zeros((0, units.shape[1])))

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats, n: float) -> tuple[Floats, Pullback]:
        """Information F (n, n) of a motion, and the pullback of derivatives by it to the freedoms that move.

        Args:
            q: the samples (N, nq).
            qd: their velocities (N, nv).
            qdd: their accelerations (N, nv).
            n: how many samples of a log each stands for.
        """
        W, N = self.rows(q, qd, qdd)
        C = _fitted(W, N)
        V = W - N @ C
        flat = V.reshape(-1, V.shape[2])
        F = self.earlier.T @ self.earlier + n * (flat.T @ flat)

        def pullback(G: Floats) -> Floats:
            of_W = 2.0 * n * self.weights[:, None] * (V @ G)
            of_N = -(of_W @ np.swapaxes(C, 1, 2))
            of_W = of_W @ self.units.T
            layout = self.program.layout
            at_W, at_N = (np.array(places, dtype=np.intp).reshape(-1, 2) for places in (layout.of_W, layout.of_N))
            factors = np.hstack([of_W[:, at_W[:, 0], at_W[:, 1]], of_N[:, at_N[:, 0], at_N[:, 1]]])
            return self.gradient(q, qd, qdd, factors)

        return F, pullback


def _fitted(W: Floats, N: Floats) -> Floats:
    """Wrenches C (N, unknowns, n) that make the rows W - N C least; the least of these."""
    if not N.shape[2]:
        return np.zeros((len(W), 0, W.shape[2]))
    fitted: Floats = np.linalg.pinv(N, rcond=TOLERANCE) @ W
    return fitted


def _refuse_readings(regression: Regression, columns: Sequence[int]) -> None:
    """Refuse parameters whose rows are not known before the motion, as they depend on readings."""
    y = [x.index for x in regression.inputs["y"]]
    wanted = set(columns)
    entries = {place: entry for place, entry in regression.W.items() if place[1] in wanted}
    depends = depends_on(regression.graph, [*entries.values(), *regression.N.values()], y)
    for (row, column), entry in entries.items():
        if depends[entry.index]:
            raise InputError(
                f"'{regression.parameters.names[column]}' multiplies what '{regression.row_names[row]}' reads, which "
                "is known after the motion only: no motion can be chosen for it. Leave gains out; those that excite "
                "inertias and friction serve them as well."
            )


Criterion: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Of an information F (n, n) that is symmetric: the criterion, and its derivative by F (n, n), symmetric."""

VAGUE = 1e-12
"""Prior information of everything, as a share of the largest, so that F is never singular."""


def d_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion log det F, and F^-1."""
    factor, inverse = _inverse(F)
    return 2.0 * float(np.log(np.diag(factor)).sum()), inverse


def a_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion -log tr F^-1, and F^-2 / tr F^-1."""
    _, inverse = _inverse(F)
    trace = float(np.trace(inverse))
    return -math.log(trace), inverse @ inverse / trace


CRITERIA: Mapping[str, Criterion] = {"D": d_optimality, "A": a_optimality}
"""The criteria by name."""


def criterion_named(name: str) -> Criterion:
    """A criterion by name.

    Raises:
        UnknownNameError: there is no such criterion.
    """
    if not isinstance(name, str) or name not in CRITERIA:
        raise UnknownNameError("criterion", str(name), CRITERIA)
    return CRITERIA[name]


def _inverse(F: Floats) -> tuple[Floats, Floats]:
    """Cholesky factor of F with a vague prior, and the inverse of that."""
    vague = F + VAGUE * (float(np.diag(F).max(initial=0.0)) or 1.0) * np.eye(len(F))
    factor = la.cholesky(vague, lower=True)
    root = la.solve_triangular(factor, np.eye(len(F)), lower=True)
    return factor, root.T @ root
