"""What samples say of a robot's parameters, gathered as they come, with flat memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.identification.elimination import without_unknowns
from nori_dyn.identification.filtering import Decimation
from nori_dyn.identification.information import EXTRA, Moments, Segments, row_moments
from nori_dyn.identification.regression import Regression, RegressorProgram
from nori_dyn.typing import Floats

AT_ONCE = 4096
"""Samples that are taken at a time: what they make fits the caches."""

HUBER = 1.345
"""Residuals beyond so many standard deviations count less: 95 % efficient under normal noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Robust:
    """Estimates before, by which residuals that are far off count less (Huber, 1964).

    Attributes:
        values: of the columns of the program.
        sigma: standard deviation of each row.
    """

    values: Floats
    sigma: Floats


class Gathering:
    """Gathers what samples say, in order.

    Args:
        found: the regression.
        program: its columns that are wanted.
        sigma: standard deviation of each row, by which those with unknown wrenches are weighed; 1 where not known.
        decimation: the filter; None leaves samples as they are.
        robust: estimates before; None counts all alike.
    """

    def __init__(
        self,
        found: Regression,
        program: RegressorProgram,
        sigma: Floats,
        decimation: Decimation | None = None,
        robust: Robust | None = None,
    ) -> None:
        self._program, self._sigma, self._decimation, self._robust = program, sigma, decimation, robust
        self._reads = np.array(found.reads)
        self._has_unknowns, self._is_exact = bool(found.unknowns), np.array(found.is_exact)
        self.segments = Segments()
        self.n_samples = 0

    def add(self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None) -> None:
        """Add samples that follow those before, dt [s] apart, each argument (n, ...)."""
        self.n_samples += len(q)
        for first in range(0, len(q), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            self._add(q[part], qd[part], qdd[part], y[part], dt)

    def forget(self) -> None:
        """Say that the samples that come next do not follow those before."""
        if self._decimation is not None:
            self._decimation.forget()

    def filtered(
        self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None, t: Floats | None = None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the entries of the program, the readings of its rows, their rates, and times, behind the filter."""
        entries = self._program.entries(q, qd, qdd, y)
        read = np.zeros((len(q), len(self._reads)))
        read[:, self._reads >= 0] = y[:, self._reads[self._reads >= 0]]
        rates = np.zeros_like(read)
        if dt is not None and len(read) > 1:
            rates[:] = np.gradient(read, dt, axis=0)
        at = np.zeros(len(q)) if t is None else t
        if self._decimation is None:
            return entries, read, rates, at
        n, m = entries.shape[1], read.shape[1]
        rows = self._decimation.add(np.concatenate([entries, read, rates, at[:, None]], axis=1))
        return rows[:, :n], rows[:, n : n + m], rows[:, n + m : n + 2 * m], rows[:, -1]

    def residuals(self, entries: Floats, values: Floats) -> Floats:
        """Return what is left of each row (n, rows) for values of the columns of the program."""
        layout = self._program.layout
        found: Floats = np.array(entries[:, layout.constants])
        for row, (own, columns) in enumerate(layout.rows):
            found[:, row] += entries[:, own] @ values[columns]
        return found

    def _add(self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None) -> None:
        entries, read, rates, _ = self.filtered(q, qd, qdd, y, dt)
        first = 0
        while first < len(entries):
            part = slice(first, first + self.segments.size)
            self.segments.add(self._moments(entries[part], read[part], rates[part]))
            first = part.stop

    def _moments(self, entries: Floats, read: Floats, rates: Floats) -> list[Moments]:
        """Return what samples say of each row."""
        if self._has_unknowns:
            return [self._without_unknowns(entries)]
        weights = None if self._robust is None else self._weights(entries, self._robust)
        return row_moments(self._program.layout, entries, read, rates, weights)

    def _weights(self, entries: Floats, robust: Robust) -> Floats:
        """Return how much each residual counts (n, rows)."""
        far = np.abs(self.residuals(entries, robust.values)) / (HUBER * robust.sigma)
        return np.asarray(1.0 / np.maximum(far, 1.0))

    def _without_unknowns(self, entries: Floats) -> Moments:
        """Return what samples say whose unknown wrenches are eliminated, all rows together."""
        W, N, c = self._program.dense(entries)
        both = np.concatenate([W, c[:, :, None]], axis=2) / self._sigma[:, None]
        left = without_unknowns(both, N / self._sigma[:, None], self._is_exact).reshape(-1, both.shape[2])
        k = both.shape[2] - 1
        rows = np.zeros((len(left), k + len(EXTRA)), order="F")
        rows[:, :k], rows[:, -1] = left[:, :k], left[:, k]
        if self._robust is not None:
            residual = left[:, :k] @ self._robust.values + left[:, k]
            rows *= np.sqrt(1.0 / np.maximum(np.abs(residual) / (HUBER * self._robust.sigma[0]), 1.0))[:, None]
        return Moments.of(np.arange(k), rows)
