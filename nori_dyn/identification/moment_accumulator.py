"""Moments of samples, accumulated as they come, with flat memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nori_dyn.identification.elimination import without_unknowns
from nori_dyn.identification.filtering import Decimation
from nori_dyn.identification.moments import EXTRA, Moments, Segments, row_moments
from nori_dyn.identification.regression import Regression, RegressorProgram
from nori_dyn.typing import Floats, Indices

AT_ONCE = 4096
"""Samples that are taken at a time: what they make fits the caches."""

HUBER = 1.345
"""Residuals beyond so many standard deviations count less: 95 % efficient under normal noise."""

LEAST_WITHIN = 0.5
"""Share of the residuals, at the least, that are taken to be within that."""


WHOLLY = 0.99
"""Share of a filter's window in which a joint has to move for its torque to count."""


@dataclass(frozen=True, slots=True, eq=False)
class HuberPseudoValues:
    """Estimates before, by which residuals that are far off count less (Huber, 1964).

    In place of a residual u stands psi(u) / mean psi', with psi(u) = u up to a bound, and the bound beyond it: least
    squares on these pseudo-values settle at Huber's estimate, with its covariance.

    Attributes:
        values: of the columns of the program.
        sigma: standard deviation of each row.

    Source: Huber, Robust Statistics, 7.6 to 7.8.
    """

    values: Floats
    sigma: Floats

    def pseudo_values(self, residuals: Floats, counts: Floats | None = None) -> Floats:
        """Pseudo-values in place of residuals (n, rows), of which those count that are not 0 in `counts`."""
        most = HUBER * self.sigma
        n = np.full(len(most), len(residuals)) if counts is None else np.sum(counts, axis=0)
        is_within = np.where(np.abs(residuals) <= most, 1.0 if counts is None else counts, 0.0)
        share = np.maximum(np.sum(is_within, axis=0) / np.maximum(n, 1.0), LEAST_WITHIN)
        return np.asarray(np.clip(residuals, -most, most) / share)


@dataclass(frozen=True, slots=True, eq=False)
class MovingRows:
    """Torques of joints count only while these move: at rest, friction is whatever it takes to stand still.

    Attributes:
        speed: above which a joint moves [rad/s or m/s].
        freedoms: of each row the velocity of its joint, -1 of rows of other readings, which always count.
    """

    speed: float
    freedoms: Indices

    def counts(self, qd: Floats) -> Floats:
        """Weights (n, rows) at velocities (n, nv): 1 where a row counts, 0 elsewhere."""
        return np.where((np.abs(qd[:, self.freedoms]) > self.speed) | (self.freedoms < 0), 1.0, 0.0)


class FilteredSamples(NamedTuple):
    """Samples behind the filter.

    Attributes:
        entries: of the program (n, ...).
        read: what each row reads (n, rows), 0 of those that read nothing.
        rates: how fast that changes (n, rows).
        counts: 1 where a row counts (n, rows), 0 elsewhere; None where all do.
        t: times (n,).
    """

    entries: Floats
    read: Floats
    rates: Floats
    counts: Floats | None
    t: Floats


class MomentAccumulator:
    """Accumulates the moments of samples, in order.

    Args:
        regression: the regression.
        program: its columns that are wanted.
        sigma: standard deviation of each row, by which those with unknown wrenches are weighed; 1 where not known.
        decimation: the filter; None leaves samples as they are.
        robust: estimates before; None counts all alike.
        moving: which rows count only while their joint moves; None counts all.
    """

    def __init__(
        self,
        regression: Regression,
        program: RegressorProgram,
        sigma: Floats,
        decimation: Decimation | None = None,
        robust: HuberPseudoValues | None = None,
        moving: MovingRows | None = None,
    ) -> None:
        self._program, self._sigma, self._decimation, self._robust = program, sigma, decimation, robust
        self._moving = moving
        self._reads = np.array(regression.reads)
        self._has_unknowns, self._is_exact = bool(regression.unknowns), np.array(regression.is_exact)
        self.segments = Segments()

    def add(self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None) -> None:
        """Add samples that follow those before, dt [s] apart, each argument (n, ...)."""
        self.segments.expect(len(q) // (1 if self._decimation is None else self._decimation.step))
        for first in range(0, len(q), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            self._add(q[part], qd[part], qdd[part], y[part], dt)

    def restart(self) -> None:
        """Begin anew: the next samples do not follow those before."""
        if self._decimation is not None:
            self._decimation.restart()

    def filtered(
        self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None, t: Floats | None = None
    ) -> FilteredSamples:
        """Filter samples: as many as it leaves."""
        entries = self._program.entries(q, qd, qdd, y)
        read = np.zeros((len(q), len(self._reads)))
        read[:, self._reads >= 0] = y[:, self._reads[self._reads >= 0]]
        rates = np.zeros_like(read)
        if dt is not None and len(read) > 1:
            rates[:] = np.gradient(read, dt, axis=0)
        at = np.zeros(len(q)) if t is None else t
        counts = None if self._moving is None else self._moving.counts(qd)
        if self._decimation is None:
            return FilteredSamples(entries, read, rates, counts, at)
        parts = [entries, read, rates, at[:, None], *([] if counts is None else [counts])]
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        rows = np.split(self._decimation.add(np.concatenate(parts, axis=1)), ends, axis=1)
        if counts is not None:
            counts = np.where(rows[4] > WHOLLY, 1.0, 0.0)
        return FilteredSamples(rows[0], rows[1], rows[2], counts, rows[3][:, 0])

    def residuals(self, entries: Floats, values: Floats) -> Floats:
        """Residual of each row (n, rows) for values of the columns of the program."""
        layout = self._program.layout
        found: Floats = np.array(entries[:, layout.constants])
        for row, (own, columns) in enumerate(layout.rows):
            found[:, row] += entries[:, own] @ values[columns]
        return found

    def _add(self, q: Floats, qd: Floats, qdd: Floats, y: Floats, dt: float | None) -> None:
        entries, read, rates, counts, _ = self.filtered(q, qd, qdd, y, dt)
        constants = self._constants(entries, counts)
        first = 0
        while first < len(entries):
            part = slice(first, first + self.segments.size)
            own = None if counts is None else counts[part]
            rows = self._moments(entries[part], read[part], rates[part], own, constants[part])
            self.segments.add(rows, len(entries[part]))
            first = part.stop

    def _moments(
        self, entries: Floats, read: Floats, rates: Floats, counts: Floats | None, constants: Floats
    ) -> list[Moments]:
        """Moments of each row."""
        if self._has_unknowns:
            return [self._without_unknowns(entries if counts is None else entries[counts.all(axis=1)])]
        return row_moments(self._program.layout, entries, read, rates, counts, constants)

    def _constants(self, entries: Floats, counts: Floats | None) -> Floats:
        """Residual of each row without parameters (n, rows)."""
        constants = np.array(entries[:, self._program.layout.constants])
        if self._robust is None or self._has_unknowns:
            return constants
        residuals = self.residuals(entries, self._robust.values)
        return constants + self._robust.pseudo_values(residuals, counts) - residuals

    def _without_unknowns(self, entries: Floats) -> Moments:
        """Moments of all rows together, unknown wrenches eliminated."""
        W, N, c = self._program.dense(entries)
        both = np.concatenate([W, c[:, :, None]], axis=2) / self._sigma[:, None]
        left = without_unknowns(both, N / self._sigma[:, None], self._is_exact).reshape(-1, both.shape[2])
        k = both.shape[2] - 1
        rows = np.zeros((len(left), k + len(EXTRA)), order="F")
        rows[:, :k], rows[:, -1] = left[:, :k], left[:, k]
        if self._robust is not None:
            residuals = left[:, :k] @ self._robust.values + left[:, k]
            rows[:, -1] += self._robust.pseudo_values(residuals[:, None])[:, 0] - residuals
        return Moments.of(np.arange(k), rows)
