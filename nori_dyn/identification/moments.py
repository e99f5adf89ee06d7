"""Moments of the samples of a reading, kept as a triangular factor: flat memory, however many there are.

The rows of a reading over some samples, [W E 1 y c], are kept as the triangular factor of their QR decomposition. All
that is asked of them later is an inner product of two combinations of their columns, (A u) . (A v) = (R u) . (R v).
Least squares on factors put below one another are those on all rows (square-root information, Lawson and Hanson, ch.
27), and no square of W is ever formed.

    y   what the sensor reads,    c   the residual without parameters: known terms less y
    E   the rates of readings, whose factors are by how much these are late,    1   for means

Where unknown wrenches are eliminated, a row is a share s of a sample: W, E and c are what is left of them, and y and 1
count times the root of s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from scipy.linalg.lapack import dgeqrt

from nori_dyn.errors import InputError
from nori_dyn.identification.elimination import EliminatedRows, Motion, SampleRows
from nori_dyn.typing import Booleans, Floats, Indices

EXTRA = ("one", "reading", "constant")
"""The columns after those of the parameters and rates."""

LEAST = 1e-6
"""Samples that a row with less has: unknown wrenches explain whatever it reads."""

SMALLEST = 8
"""Samples of a segment of a short log."""

BLOCK = 16
"""Columns that LAPACK takes at a time: what suits matrices of few columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of some samples of a reading.

    Attributes:
        columns: the parameters that it depends on (k,).
        delayed: the rows of the readings whose delays it depends on (m,).
        n: number of samples that count, each by its share.
        R: triangular factor of [W E 1 y c] (k + m + 3, k + m + 3).
    """

    columns: Indices
    delayed: Indices
    n: float
    R: Floats

    @staticmethod
    def of(
        columns: Sequence[int] | Indices, rows: Floats, n: float | None = None, delayed: Sequence[int] = (0,)
    ) -> Moments:
        """Factorise rows [W E 1 y c] (n, k + m + 3), which are overwritten where they lie column by column.

        Args:
            columns: the parameters that they depend on.
            rows: the rows, those of samples that do not count zero.
            n: how many samples count; all when None.
            delayed: the rows of the readings whose delays they depend on.
        """
        own = np.asarray(columns, dtype=np.intp), np.asarray(delayed, dtype=np.intp)
        return Moments(*own, len(rows) if n is None else n, triangular(rows))

    @staticmethod
    def joined(parts: Sequence[Moments]) -> Moments:
        """Moments of the samples of several together."""
        if len(parts) == 1:
            return parts[0]
        R = triangular(np.vstack([p.R for p in parts]))
        return Moments(parts[0].columns, parts[0].delayed, sum(p.n for p in parts), R)

    @property
    def k(self) -> int:
        """Number of parameters that it depends on."""
        return len(self.columns)

    @property
    def rates(self) -> Floats:
        """Columns of R of the rates (k + m + 3, m)."""
        return self.R[:, self.k : self.k + len(self.delayed)]

    def residual(self, values: Floats) -> Floats:
        """Combination of columns that is the residual W phi + c for values of all parameters."""
        return np.concatenate([values[self.columns], np.zeros(len(self.delayed)), [0.0, 0.0, 1.0]])

    def prediction(self, values: Floats) -> Floats:
        """Combination of columns that is the predicted reading: y and the residual."""
        return self.residual(values) + self.unit("reading")

    def unit(self, name: str) -> Floats:
        """Combination that is one of the columns `EXTRA`."""
        unit = np.zeros(len(self.R))
        unit[EXTRA.index(name) - len(EXTRA)] = 1.0
        return unit

    def inner(self, u: Floats, v: Floats) -> float:
        """Sum over the samples of the product of two combinations of columns."""
        return float((self.R @ u) @ (self.R @ v))

    def mean(self, u: Floats) -> float:
        """Mean of a combination of columns."""
        return self.inner(u, self.unit("one")) / max(self.n, LEAST)

    def rms(self, u: Floats) -> float:
        """Root of the mean square of a combination of columns."""
        return float(np.linalg.norm(self.R @ u) / np.sqrt(max(self.n, LEAST)))

    def spread(self, u: Floats) -> float:
        """Standard deviation of a combination of columns."""
        return float(np.sqrt(max(self.rms(u) ** 2 - self.mean(u) ** 2, 0.0)))

    def correlation(self, u: Floats, v: Floats) -> float:
        """Correlation of two combinations of columns; nan where one does not vary."""
        both = self.spread(u) * self.spread(v)
        return (
            (self.inner(u, v) / max(self.n, LEAST) - self.mean(u) * self.mean(v)) / both if both > 0 else float("nan")
        )

    def gradient(self, values: Floats) -> Floats:
        """Sum over the samples of W^T times the residual (k,)."""
        own: Floats = self.R[:, : self.k].T @ (self.R @ self.residual(values))
        return own

    def rows(self, n: int) -> Floats:
        """Rows [W c] (k + m + 3, n + 1) over all n parameters, whose least squares are those of all samples."""
        found = np.zeros((len(self.R), n + 1))
        found[:, self.columns] = self.R[:, : self.k]
        found[:, -1] = self.R[:, -1]
        return found


def triangular(rows: Floats) -> Floats:
    """Triangular factor (k, k) of rows (n, k); they are overwritten where they lie column by column."""
    n, k = rows.shape
    if not n:
        return np.zeros((k, k))
    found, _, _ = dgeqrt(min(BLOCK, n, k), np.asarray(rows, order="F"), overwrite_a=1)
    R = np.triu(found[:k])
    return R if n >= k else np.vstack([R, np.zeros((k - n, k))])


def least_squares(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """R (n, n), upper triangular, and z (n,) of which |R x - z|^2 is |A x - b|^2 but for a constant."""
    n, triangle = A.shape[1], triangular(np.column_stack([A, b]))
    return triangle[:n, :n], triangle[:n, n]


def row_moments(rows: EliminatedRows, samples: SampleRows, constants: Floats) -> list[Moments]:
    """Moments of each row over n samples.

    Args:
        rows: the rows.
        samples: their numbers.
        constants: the residual of each row without parameters (n, rows).
    """
    found = []
    sizes, shares = np.sqrt(samples.shares), samples.counts * samples.shares
    for row, ((own, columns), (late, readings)) in enumerate(zip(rows.layout.rows, rows.delays, strict=True)):
        k = len(own)
        table = np.empty((len(constants), k + len(late) + len(EXTRA)), order="F")
        for at, entry in enumerate(own):
            table[:, at] = samples.entries[:, entry]
        table[:, k : k + len(late)] = samples.late[:, late]
        table[:, -3] = sizes[:, row]
        table[:, -2] = samples.read[:, row] * sizes[:, row]
        table[:, -1] = constants[:, row]
        if not samples.counts[:, row].all():
            table *= samples.counts[:, [row]]
        found.append(Moments.of(columns, table, float(np.sum(shares[:, row])), readings))
    return found


class Segments:
    """Moments of the rows of a log, segment by segment: few of them, of as many samples each, in order.

    Attributes:
        size: samples of a segment, which grows with the log.
        closed: the segments that have them.

    Args:
        most: number of segments at the least, once the log is long enough.
    """

    def __init__(self, most: int = 12) -> None:
        self.size = SMALLEST
        self.closed: list[list[Moments]] = []
        self._most = most
        self._open: list[list[Moments]] = []
        self._n = 0

    def expect(self, n: int) -> None:
        """Say that at least n samples are to come: where there are none yet, segments begin as large as that allows.

        Factors of many samples at a time take less time than those of few.
        """
        if not self.closed and not self._open:
            while 2 * self._most * self.size <= n:
                self.size *= 2

    def add(self, rows: Sequence[Moments], n: int) -> None:
        """Add the moments of each row over the next n samples, at most `size`."""
        self._open.append(list(rows))
        self._n += n
        if self._n < self.size:
            return
        self.closed.append(joined(self._open))
        self._open, self._n = [], 0
        if len(self.closed) == 2 * self._most:
            self.closed = [joined(self.closed[k : k + 2]) for k in range(0, len(self.closed), 2)]
            self.size *= 2

    def each(self) -> list[list[Moments]]:
        """Moments of each row, segment by segment."""
        return [*self.closed, *([joined(self._open)] if self._open else [])]


def joined(parts: Iterable[Sequence[Moments]]) -> list[Moments]:
    """Moments of each row over several parts together."""
    return [Moments.joined(of_row) for of_row in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of one log on the free parameters: moments of columns of a program, which depend on these.

    A row with an unknown gain g, W phi - g y, is noisy in y, and the smallest residual is that of no gain at all. So it
    is the residual of the reading, W phi / g - y, that counts, to first order about an estimate: in place of y, its
    noise and all, stands what the estimate predicts (Koopmans, 1937: errors in variables).

    Attributes:
        segments: moments of each row over the columns of the program, segment by segment.
        E: those columns over the free parameters (columns, n).
        shift: what known parameters add (columns,).
        gains: for each row which of its columns is its reading, multiplied by a gain; -1 where there is none.
    """

    segments: Sequence[Sequence[Moments]]
    E: Floats
    shift: Floats
    gains: tuple[int, ...] = ()

    @cached_property
    def rows(self) -> list[Moments]:
        """Moments of each row over all segments."""
        return joined(self.segments)

    def beta(self, values: Floats) -> Floats:
        """Values of the columns (columns,), for values of the free parameters (n,)."""
        return np.asarray(self.E @ values + self.shift)

    def gain(self, row: int, values: Floats) -> float:
        """Gain of a row, for values of the free parameters: 1 where it has none."""
        column = self.gains[row] if self.gains else -1
        return 1.0 if column < 0 else float(self.E[column] @ values + self.shift[column])

    def residual(self, row: int, values: Floats) -> Floats:
        """Combination of columns that is the residual of a row, in units of its reading."""
        return self.rows[row].residual(self.beta(values)) / self.gain(row, values)

    def shift_of(self, row: int, column: int, values: Floats) -> tuple[float, float]:
        """By how much a column's value differs here from an estimate, by one row alone, and its information."""
        m = self.rows[row]
        own = np.zeros(len(m.R))
        own[: m.k] = m.columns == column
        own /= self.gain(row, values)
        information = m.inner(own, own)
        return -m.inner(own, self.residual(row, values)) / information if information > 0 else 0.0, information

    def over(self, row: int, moments: Moments, values: Floats | None = None) -> Floats:
        """Rows [W c] (k, n + 1) over the free parameters, in units of the reading.

        Args:
            row: which row it is.
            moments: those of the row.
            values: the parameters about which a row with a gain is linear; None leaves the residual as it is, linear in
                its gain.
        """
        rows = moments.rows(len(self.E))
        column = self.gains[row] if self.gains else -1
        gain = 1.0
        if column >= 0 and values is not None:
            beta = self.beta(values)
            gain = beta[column]
            true = rows[:, :-1] @ beta - rows[:, column] * gain + rows[:, -1]
            rows[:, -1] = gain * rows[:, column] + true + rows[:, -1]
            rows[:, column] = -true / gain
        return np.column_stack([rows[:, :-1] @ self.E, rows[:, -1] + rows[:, :-1] @ self.shift]) / gain


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
    """Accumulates the moments of samples, filtered, as they come, with flat memory.

    W phi + c = 0 stays true when both sides are filtered alike, whatever the filter: so W and the readings lose the
    noise above a frequency, and nothing is delayed. A symmetric window of fixed length makes that exact in pieces too.

    Source: Gautier, Dynamic identification of robots with power model (1997), for the parallel filter with decimation.

    Attributes:
        segments: the moments.
        noise: noise of the readings, which the filter takes off.

    Args:
        rows: the rows.
        sigma: standard deviation of each row, by which unknown wrenches are estimated; 1 where not known.
        decimation: the filter; None leaves samples as they are.
        robust: estimates before; None counts all alike.
        speed: above which a joint moves [rad/s or m/s].
        moved: the velocity of each row that counts only while its joint moves, as torques do: at rest, friction is
            whatever it takes to stand still; -1 of rows that always count. All do when None.
    """

    def __init__(
        self,
        rows: EliminatedRows,
        sigma: Floats,
        decimation: Decimation | None = None,
        robust: HuberPseudoValues | None = None,
        speed: float = 0.0,
        moved: Indices | None = None,
    ) -> None:
        self._rows, self._sigma, self._decimation, self._robust = rows, sigma, decimation, robust
        self._speed, self._moved = speed, np.full(rows.layout.shape[0], -1) if moved is None else moved
        self.segments = Segments()
        self.noise = FilterNoise(self._moved >= 0)

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
            counts = np.where((np.abs(own.qd[:, self._moved]) > self._speed) | (self._moved < 0), 1.0, 0.0)
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
