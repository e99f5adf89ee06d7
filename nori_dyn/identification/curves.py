"""Readings over the time, beside what parameters make of the motion: as many points as can be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Readings over the time, beside what the model makes of the motion.

    Attributes:
        log: name of the log.
        t: times from its beginning (n,) [s], or numbers of samples.
        unit: "s", or "sample".
        read: the readings (rows, n), filtered as for the estimate.
        before: by the model as it was (rows, n).
        found: by the parameters found (rows, n).
    """

    log: str
    t: Floats
    unit: str
    read: Floats
    before: Floats
    found: Floats


class Thinned:
    """Rows that come one after the other, of which each second one is left out whenever there are too many.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._most, self._step, self._next = most, 1, 0
        self._parts: list[Floats] = []

    def add(self, rows: Floats) -> None:
        """Add rows (n, k)."""
        self._parts.append(rows[self._next :: self._step])
        self._next = (self._next - len(rows)) % self._step
        if sum(map(len, self._parts)) > self._most:
            kept = len(self.rows)
            self._parts = [self.rows[::2]]
            self._next += self._step * (kept % 2)
            self._step *= 2

    @property
    def rows(self) -> Floats:
        """Those that are kept."""
        return np.concatenate(self._parts)
