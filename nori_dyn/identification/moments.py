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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dgeqrt

from nori_dyn.identification.elimination import EliminatedRows, SampleRows
from nori_dyn.typing import Floats, Indices

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
