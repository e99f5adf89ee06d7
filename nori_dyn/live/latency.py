"""How long things took: a histogram that never grows."""

from __future__ import annotations

import math

A_DECADE = 40
"""Bins of a decade: neighbours are 6 % apart."""

LEAST = 1e-6
"""Where the first bin ends [s]."""

DECADES = 9
"""Decades that are told apart, up to 1000 s."""


class Latency:
    """A histogram of durations, in bins that grow by 6 %, with the exact extremes.

    Attributes:
        count: how many durations.
        largest: the longest [s].
        total: their sum [s].
        below_zero: how many ended before they began, by clocks that disagree; they count as zero.
    """

    __slots__ = ("_bins", "below_zero", "count", "largest", "total")

    def __init__(self) -> None:
        self._bins = [0] * (A_DECADE * DECADES + 2)
        self.count = self.below_zero = 0
        self.largest = self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.count += 1
        if seconds < 0.0:
            self.below_zero += 1
            seconds = 0.0
        self.total += seconds
        if seconds > self.largest:
            self.largest = seconds
        if seconds <= LEAST:
            self._bins[0] += 1
        else:
            place = int(A_DECADE * math.log10(seconds / LEAST)) + 1
            self._bins[min(place, len(self._bins) - 1)] += 1

    def join(self, other: Latency) -> None:
        """Count what another one has counted."""
        self._bins = [own + more for own, more in zip(self._bins, other._bins, strict=True)]
        self.count += other.count
        self.below_zero += other.below_zero
        self.total += other.total
        self.largest = max(self.largest, other.largest)

    def quantile(self, share: float) -> float:
        """Return how long a share of them took at most [s], too long by 6 % at most; nan where there are none."""
        if not self.count:
            return math.nan
        wanted, seen = share * self.count, 0
        for place, n in enumerate(self._bins):
            seen += n
            if seen >= wanted and n:
                return min(LEAST * math.pow(10.0, place / A_DECADE), self.largest)
        return self.largest

    @property
    def mean(self) -> float:
        """How long they took on average [s]; nan where there are none."""
        return self.total / self.count if self.count else math.nan

    def figures(self) -> dict[str, float]:
        """Return p50, p99 and the largest [s], by name; nothing where there are none."""
        return {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": self.largest} if self.count else {}
