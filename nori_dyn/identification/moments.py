"""Moments of the samples of a reading, kept as a triangular factor: flat memory, however many there are.

The rows of a reading over some samples, [W e 1 y c], are kept as the triangular factor of their QR decomposition. All
that is asked of them later is an inner product of two combinations of their columns, (A u) . (A v) = (R u) . (R v).
Least squares on factors put below one another are those on all rows (square-root information, Lawson and Hanson, ch.
27), and no square of W is ever formed.

    y   what the sensor reads,    c   the residual without parameters: known terms less y
    e   the rate of y, whose factor is by how much the reading is late,    1   for means
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgeqrt

from nori_dyn.identification.regression import RegressorLayout
from nori_dyn.typing import Floats, Indices

EXTRA = ("rate", "one", "reading", "constant")
"""The columns after those of the parameters."""

SMALLEST = 8
"""Samples of a segment of a short log."""

BLOCK = 16
"""Columns that LAPACK takes at a time: what suits matrices of few columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of some samples of a reading.

    Attributes:
        columns: the parameters that it depends on (k,).
        n: number of samples that count.
        R: triangular factor of [W e 1 y c] (k + 4, k + 4).
    """

    columns: Indices
    n: int
    R: Floats

    @staticmethod
    def of(columns: Sequence[int] | Indices, rows: Floats, n: int | None = None) -> Moments:
        """Factorise rows [W e 1 y c] (n, k + 4), which are overwritten where they lie column by column.

        Args:
            columns: the parameters that they depend on.
            rows: the rows, those of samples that do not count zero.
            n: how many samples count; all when None.
        """
        return Moments(np.asarray(columns, dtype=np.intp), len(rows) if n is None else n, triangular(rows))

    @staticmethod
    def joined(parts: Sequence[Moments]) -> Moments:
        """Moments of the samples of several together."""
        if len(parts) == 1:
            return parts[0]
        return Moments(parts[0].columns, sum(p.n for p in parts), triangular(np.vstack([p.R for p in parts])))

    @property
    def k(self) -> int:
        """Number of parameters that it depends on."""
        return len(self.columns)

    def residual(self, values: Floats) -> Floats:
        """Combination of columns (k + 4,) that is the residual W phi + c for values of all parameters."""
        return np.concatenate([values[self.columns], [0.0, 0.0, 0.0, 1.0]])

    def prediction(self, values: Floats) -> Floats:
        """Combination of columns that is the predicted reading: y and the residual."""
        return self.residual(values) + self.unit("reading")

    def unit(self, name: str) -> Floats:
        """Combination that is one of the columns `EXTRA`."""
        unit = np.zeros(len(self.R))
        unit[self.k + EXTRA.index(name)] = 1.0
        return unit

    def inner(self, u: Floats, v: Floats) -> float:
        """Sum over the samples of the product of two combinations of columns."""
        return float((self.R @ u) @ (self.R @ v))

    def mean(self, u: Floats) -> float:
        """Mean of a combination of columns."""
        return self.inner(u, self.unit("one")) / max(self.n, 1)

    def rms(self, u: Floats) -> float:
        """Root of the mean square of a combination of columns."""
        return float(np.linalg.norm(self.R @ u) / np.sqrt(max(self.n, 1)))

    def spread(self, u: Floats) -> float:
        """Standard deviation of a combination of columns."""
        return float(np.sqrt(max(self.rms(u) ** 2 - self.mean(u) ** 2, 0.0)))

    def correlation(self, u: Floats, v: Floats) -> float:
        """Correlation of two combinations of columns; nan where one does not vary."""
        both = self.spread(u) * self.spread(v)
        return (self.inner(u, v) / max(self.n, 1) - self.mean(u) * self.mean(v)) / both if both > 0 else float("nan")

    def gradient(self, values: Floats) -> Floats:
        """Sum over the samples of W^T times the residual (k,)."""
        own: Floats = self.R[:, : self.k].T @ (self.R @ self.residual(values))
        return own

    def rows(self, n: int) -> Floats:
        """Rows [W c] (k + 4, n + 1) over all n parameters, whose least squares are those of all samples."""
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


def row_moments(
    layout: RegressorLayout,
    entries: Floats,
    y: Floats,
    rates: Floats,
    weights: Floats | None = None,
    constants: Floats | None = None,
) -> list[Moments]:
    """Moments of each row of a regressor without unknown wrenches.

    Args:
        layout: where its numbers belong.
        entries: these, for n samples (n, ...).
        y: what each row reads (n, rows), 0 of those that read nothing.
        rates: how fast that changes (n, rows).
        weights: how much each residual counts (n, rows): 1 when None; where it is 0, the sample is none of that row.
        constants: the residual of each row without parameters (n, rows); that of the entries when None.
    """
    found = []
    constants = entries[:, layout.constants] if constants is None else constants
    for row, (own, columns) in enumerate(layout.rows):
        k = len(own)
        rows = np.empty((len(entries), k + len(EXTRA)), order="F")
        for at, entry in enumerate(own):
            rows[:, at] = entries[:, entry]
        rows[:, k] = rates[:, row]
        rows[:, k + 1] = 1.0
        rows[:, k + 2] = y[:, row]
        rows[:, k + 3] = constants[:, row]
        n = len(rows)
        if weights is not None:
            rows *= np.sqrt(weights[:, row])[:, None]
            n = int(np.count_nonzero(weights[:, row]))
        found.append(Moments.of(columns, rows, n))
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
