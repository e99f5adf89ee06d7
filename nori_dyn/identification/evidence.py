"""Evidence of a log on the free parameters: moments of columns of a program, which depend on these.

A row with an unknown gain g, W phi - g y, is noisy in y, and the smallest residual is that of no gain at all. So it is
the residual of the reading, W phi / g - y, that counts, to first order about an estimate: in place of y, its noise and
all, stands what the estimate predicts (Koopmans, 1937: errors in variables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.identification.moments import Moments, joined
from nori_dyn.typing import Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of one log on the free parameters.

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
