"""Expected standard deviations at a configuration: what the noise of the sensors does to numbers of d.

Rows that hold exactly restrict the sources s (external wrenches and joint accelerations) to s = B z; of what is left,
the weighed rows M s give the covariance P = B (B^T M^T W M B)^-1 B^T with W = diag(1 / sigma^2), and a number o s of d
has the variance o P o^T. With sqrt(W) M B = Q R that is |R^-T B^T o^T|^2, without a product of M by itself. What no row
sees is kept out of B, and a number that it moves has no finite deviation. Errors of equations of motion that are noisy
are further sources, each read as zero up to its sigma.

Source: own derivation (tests/unit/observe/test_conditioning.py); Bjoerck, Numerical Methods for Least Squares
Problems, ch. 5.1.3 for the null-space method, 4.4 for the order of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as la

from nori_dyn.observe.numeric import RANK_TOLERANCE, Reduction
from nori_dyn.planning.outputs import Output
from nori_dyn.program.layout import output_names, sums_of
from nori_dyn.system.builder import System
from nori_dyn.system.sources import Reduced
from nori_dyn.typing import Floats

MOVED = 1e-7
"""Share of a number of d, in natural units, above which the null space is taken to move it."""

ROUNDING = 1e-12
"""Share of a number of d, in natural units, that is left by rounding where exact rows determine it."""


class OutputDeviations:
    """Standard deviations of numbers of d, of sensors whose noise is that of their sigmas.

    Attributes:
        names: the numbers of d, "tau:l_knee" (n_outputs).
        units: the SI unit of each (n_outputs).
        noisy: rows of D that are noisy equations of motion.
        weighed_rows: the other rows that are weighed.

    Args:
        reduction: the system; some of its rows have a sigma.
        outputs: what is asked for.
    """

    def __init__(self, reduction: Reduction, outputs: Sequence[Output]) -> None:
        system = reduction.system
        self.names, self.units, directions = output_rows(system, outputs)
        self._reduction = reduction
        self._of_sources, self._of_others = (
            directions[:, reduction.split.sources],
            directions[:, reduction.split.others],
        )
        roots = np.zeros(system.shape[0])  # 1 / sigma, and 0 where a row holds exactly
        for row in system.rows:
            if not row.is_exact:
                roots[row.slice] = np.sqrt(system.weights[list(row.weight_of_rows)])
        is_noisy = roots > 0
        is_noisy[reduction.split.measured] = False
        self.noisy = np.flatnonzero(is_noisy)
        self._roots, self._error_sigmas = roots[reduction.split.measured], 1.0 / roots[self.noisy]
        self.weighed_rows = reduction.split.measured[self._roots > 0]

    def at(self, found: Reduced, unseen: Floats) -> Floats:
        """The deviations (n_outputs,) at a configuration, in the units of d; infinite where not determined.

        Args:
            found: the system there, with the errors of its `noisy` rows.
            unseen: sources that no row sees, in natural units, orthonormal (dimension, n_sources).
        """
        A, along, d = self._whiten(found, unseen)
        size = np.linalg.norm(d, axis=1)
        moved = np.linalg.norm(d[:, : unseen.shape[1]] @ unseen.T, axis=1) > MOVED * size
        return np.where(moved, np.inf, _root_of_variance(A, along))

    def whiten(self, found: Reduced) -> tuple[Floats, Floats]:
        """The weighed rows, divided by their sigmas, over what exact rows leave free, and the outputs over it.

        Args:
            found: the system there, with the errors of its `noisy` rows.

        Returns:
            The rows (n, k): those in `weighed_rows`, then those of the errors; and the outputs (n_outputs, k).
        """
        return self._whiten(found, np.zeros((0, len(self._reduction.split.sources))))[:2]

    def _whiten(self, found: Reduced, unseen: Floats) -> tuple[Floats, Floats, Floats]:
        """The rows that `whiten` gives, `unseen` left out, and the outputs in natural units."""
        scale = np.concatenate([self._reduction.column_scale, self._error_sigmas])
        M = np.hstack([found.M, found.M_errors]) * scale
        d = np.hstack([self._of_others @ found.X + self._of_sources, self._of_others @ found.X_errors]) * scale
        n_errors = len(self.noisy)
        hidden = np.hstack([unseen, np.zeros((len(unseen), n_errors))])
        exact = self._roots == 0
        B = la.null_space(np.vstack([(self._reduction.row_scale[:, None] * M)[exact], hidden]), rcond=RANK_TOLERANCE)
        errors = np.eye(n_errors, len(scale), len(scale) - n_errors)
        along = d @ B
        along[np.linalg.norm(along, axis=1) <= ROUNDING * np.linalg.norm(d, axis=1)] = 0.0
        return np.vstack([(self._roots[:, None] * M)[~exact], errors]) @ B, along, d


def _root_of_variance(A: Floats, rows: Floats) -> Floats:
    """Return |R^-T r^T| of each row r (n, k), with A = Q R (m, k) of full rank; infinite where that is not so."""
    k = A.shape[1]
    heavy_first = A[np.argsort(-np.abs(A).max(axis=1, initial=0.0), kind="stable")]
    padded = np.vstack([heavy_first, np.zeros((max(0, k - len(A)), k))])
    if not k:
        return np.zeros(len(rows))
    R, order = la.qr(padded, mode="r", pivoting=True, check_finite=False)
    R = R[:k]
    R[np.diag_indices(k)] = np.where(np.diagonal(R) == 0.0, np.finfo(float).tiny, np.diagonal(R))
    with np.errstate(over="ignore", invalid="ignore"):
        sigma = np.linalg.norm(la.solve_triangular(R, rows[:, order].T, trans="T"), axis=0)
    return np.where(np.isfinite(sigma), sigma, np.inf)


def output_rows(system: System, outputs: Sequence[Output]) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    """The names and units of the numbers of outputs, and each as a sum of numbers of d (n_outputs, n)."""
    names, units = output_names(system, outputs)
    rows = np.zeros((len(names), system.shape[1]))
    for row, terms in zip(rows, (terms for output in outputs for terms in sums_of(system, output)), strict=True):
        row[list(terms)] = list(terms.values())
    return names, units, rows
