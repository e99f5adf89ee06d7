"""Moments of samples, filtered and accumulated as they come, with flat memory.

W phi + c = 0 stays true when both sides are filtered alike, whatever the filter: so W and the readings lose the noise
above a frequency, and nothing is delayed. A symmetric window of fixed length makes that exact in pieces too.

Source: Gautier, Dynamic identification of robots with power model (1997), for the parallel filter with decimation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.elimination import EliminatedRows, Motion, SampleRows
from nori_dyn.identification.moments import Segments, row_moments
from nori_dyn.typing import Booleans, Floats, Indices

AT_ONCE = 1 << 21
"""Numbers of W that are taken at a time."""

HUBER = 1.345
"""Residuals beyond so many standard deviations count less: 95 % efficient under normal noise."""

LEAST_WITHIN = 0.5
"""Share of the residuals, at the least, that are taken to be within that."""


WHOLLY = 0.99
"""Share of a filter's window in which a joint has to move for its torque to count."""

FEWEST = 10
"""Samples behind a filter that tell noise, at the least."""


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

    def pseudo_values(self, residuals: Floats, counts: Floats, shares: Floats) -> Floats:
        """Pseudo-values in place of residuals (n, rows), of which those count that are not 0 in `counts`.

        They vary as those of whole samples times the root of their share (n, rows).
        """
        most = HUBER * self.sigma * np.sqrt(shares)
        is_within = np.where(np.abs(residuals) <= most, counts, 0.0)
        share = np.maximum(np.sum(is_within, axis=0) / np.maximum(np.sum(counts, axis=0), 1.0), LEAST_WITHIN)
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


class FilterNoise:
    """Noise of the readings of rows, which is what a filter takes off them: at rest, and where they count.

    Args:
        rests: for each row (rows,) whether it does not count where its joint is at rest.
    """

    def __init__(self, rests: Booleans) -> None:
        self._rests = rests
        self._squares, self._counts = np.zeros((2, len(rests))), np.zeros((2, len(rests)))

    def add(self, noise: Floats, counts: Floats) -> None:
        """Add noise (n, rows), with the share of the filter's window in which a row counts (n, rows)."""
        for k, chosen in enumerate(((counts < 1.0 - WHOLLY) & self._rests, counts > WHOLLY)):
            self._squares[k] += np.sum(np.where(chosen, noise, 0.0) ** 2, axis=0)
            self._counts[k] += np.sum(chosen, axis=0)

    @staticmethod
    def deviations(logs: Iterable[FilterNoise]) -> Floats:
        """Standard deviations (2, rows) in some logs: at rest, and where rows count; nan where samples are too few."""
        each = list(logs)
        counts, squares = sum(one._counts for one in each), sum(one._squares for one in each)
        mean: Floats = np.divide(squares, counts, out=np.full_like(squares, np.nan), where=counts >= FEWEST)
        return np.sqrt(mean)


class MomentAccumulator:
    """Accumulates the moments of samples, in order.

    Attributes:
        segments: the moments.
        noise: noise of the readings, which the filter takes off.

    Args:
        rows: the rows.
        sigma: standard deviation of each row, by which unknown wrenches are estimated; 1 where not known.
        decimation: the filter; None leaves samples as they are.
        robust: estimates before; None counts all alike.
        moving: which rows count only while their joint moves; None counts all.
    """

    def __init__(
        self,
        rows: EliminatedRows,
        sigma: Floats,
        decimation: Decimation | None = None,
        robust: HuberPseudoValues | None = None,
        moving: MovingRows | None = None,
    ) -> None:
        self._rows, self._sigma, self._decimation, self._robust = rows, sigma, decimation, robust
        self._moving = moving
        n_rows = rows.layout.shape[0]
        self.segments = Segments()
        self.noise = FilterNoise(np.zeros(n_rows, dtype=bool) if moving is None else moving.freedoms >= 0)

    def add(self, part: Motion, dt: float | None) -> None:
        """Add samples that follow those before, dt [s] apart."""
        self.segments.expect(len(part.q) // (1 if self._decimation is None else self._decimation.step))
        for samples in self.filtered(part, dt):
            constants = np.array(samples.entries[:, self._rows.layout.constants])
            if self._robust is not None:
                residuals = self.residuals(samples.entries, self._robust.values)
                constants += self._robust.pseudo_values(residuals, samples.counts, samples.shares) - residuals
            first = 0
            while first < len(constants):
                chosen = slice(first, first + self.segments.size)
                own = SampleRows(*(each[chosen] for each in samples))
                self.segments.add(row_moments(self._rows, own, constants[chosen]), len(own.t))
                first = chosen.stop

    def restart(self) -> None:
        """Begin anew: the next samples do not follow those before."""
        if self._decimation is not None:
            self._decimation.restart()

    def filtered(self, motion: Motion, dt: float | None) -> Iterator[SampleRows]:
        """Yield the rows of samples, as many as the filter leaves."""
        n_rows, n_columns, _ = self._rows.layout.shape
        step = max(AT_ONCE // (n_rows * (n_rows + n_columns)), 1)
        rates = np.zeros_like(motion.y)
        if dt is not None and len(rates) > 1:
            rates = np.nan_to_num(np.gradient(motion.y, dt, axis=0), posinf=0.0, neginf=0.0)
        for first in range(0, len(rates), step):
            part = slice(first, first + step)
            own = motion.at(part)
            counts = np.ones((len(own.q), n_rows)) if self._moving is None else self._moving.counts(own.qd)
            found = self._rows.samples(own, rates[part], self._sigma, counts)
            yield found if self._decimation is None else self._filtered(found, self._decimation)

    def _filtered(self, samples: SampleRows, decimation: Decimation) -> SampleRows:
        """Samples behind a filter, as many as it leaves: those count of whose window nearly all do."""
        parts = [each if each.ndim > 1 else each[:, None] for each in samples]
        ends = [*accumulate(each.shape[1] for each in parts)][:-1]
        found, centre = (np.split(rows, ends, axis=1) for rows in decimation.add(np.concatenate(parts, axis=1)))
        entries, read, late, counts, shares, t = found
        self.noise.add(centre[1] - read, counts)
        whole = np.where(counts > WHOLLY, 1.0, 0.0)
        return SampleRows(entries, read, late, whole, np.clip(shares, 0.0, 1.0), t[:, 0])

    def residuals(self, entries: Floats, values: Floats) -> Floats:
        """Residual of each row (n, rows) for values of the columns of the program."""
        layout = self._rows.layout
        found: Floats = np.array(entries[:, layout.constants])
        for row, (own, columns) in enumerate(layout.rows):
            found[:, row] += entries[:, own] @ values[columns]
        return found


ATTENUATION = 60.0
"""Of what is above the stop frequency [dB], for the length of the window."""

TRANSITION = 0.5
"""Of the cutoff: half the range of frequencies from the one that passes to the one that does not."""


class Decimation:
    """A low-pass with its window, and the samples that it still needs.

    Args:
        cutoff: the frequency [Hz] at which a half is left.
        dt: time between samples [s].

    Attributes:
        step: of how many samples one is left.
        taps: the window (2 half + 1,), which adds up to 1.

    Raises:
        InputError: a cutoff that the samples cannot have.
    """

    def __init__(self, cutoff: float, dt: float) -> None:
        from scipy.signal import firwin  # takes seconds to load

        highest = 0.5 / dt
        if not 0 < cutoff < highest / (1 + TRANSITION):
            raise InputError(
                f"the cutoff is {cutoff:g} Hz, and must be above 0 and below {highest / (1 + TRANSITION):.4g} Hz for "
                f"samples {dt:g} s apart. Leave it out to filter nothing."
            )
        width = 2 * TRANSITION * cutoff
        half = math.ceil((ATTENUATION - 7.95) / (2.285 * 2 * math.pi * width * dt) / 2)
        self.taps: Floats = firwin(2 * half + 1, cutoff, width=width, fs=1 / dt)
        self.step = max(1, int(highest / (cutoff * (1 + TRANSITION))))
        self._half = half
        self._kept: Floats | None = None

    def add(self, rows: Floats) -> tuple[Floats, Floats]:
        """Filter the next samples (n, k): what is left (m, k), and samples at these times; none where it needs more."""
        all_rows = rows if self._kept is None else np.concatenate([self._kept, rows])
        n = len(all_rows) - 2 * self._half
        if n <= 0:
            self._kept = np.array(all_rows)
            return np.empty((0, rows.shape[1]), order="F"), np.empty((0, rows.shape[1]))
        m = (n - 1) // self.step + 1
        used = all_rows[: (m - 1) * self.step + 2 * self._half + 1]
        found = np.empty((m, rows.shape[1]), order="F")
        for k in range(m):
            found[k] = self.taps @ used[k * self.step : k * self.step + len(self.taps)]
        self._kept = np.array(all_rows[m * self.step :])
        return found, all_rows[self._half : self._half + m * self.step : self.step]

    def restart(self) -> None:
        """Begin anew: the next samples do not follow those before."""
        self._kept = None
