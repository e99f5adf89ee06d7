"""Plots over time as a page lays them out: panels of lines and bands, and strips of flags of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.report.curves import ROUND_OFF, SIZE, Bins, Scale, band, line, spans, ticks
from nori_dyn.tables import number
from nori_dyn.typing import Booleans, Floats, Indices

COLOURS = 6
"""Lines of a panel that have a colour of their own; the rest share them."""

BAND_ROOM = 2.0
"""A band that is wider than so many times its line is cut off by its panel."""


BUDGET = 2_200_000
"""Characters that all lines of a page may have together."""

EACH_BIN = 11
"""Characters that a line takes in a bin, about."""

BINS = (200, 1000)
"""Fewest and most bins of a line."""

GAP = 5.0
"""Samples that are further apart than so many times the usual are a gap."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A line to be drawn.

    Attributes:
        label: what it is called in its panel.
        x: its numbers (N,).
        sigma: half of a band about it, twice that is drawn to each side (N,); None for no band.
        mark: how it is drawn: "c0", "c0 measured"; "" for the next colour.
    """

    label: str
    x: Floats
    sigma: Floats | None = None
    mark: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves that are drawn over each other.

    Attributes:
        title: what it is of.
        unit: of its numbers.
        curves: its curves.
        shades: from where to where the time is marked, in samples, and as what: "first" or "other".
        limit: lines at so much above and below zero are drawn; nothing when zero.
        level: a line at this height is drawn; None for none.
        note: the text below it.
    """

    title: str
    unit: str
    curves: tuple[Curve, ...]
    shades: tuple[tuple[int, int, str], ...] = ()
    limit: float = 0.0
    level: float | None = None
    note: str = ""

    @property
    def lines(self) -> int:
        """How many lines of numbers drawing it takes."""
        return sum(1 + (curve.sigma is not None) for curve in self.curves)

    @cached_property
    def scale(self) -> Scale:
        """The numbers at the bottom and at the top."""
        parts = [part for part in (_finite(curve.x) for curve in self.curves) if len(part)]
        if not parts:
            return Scale.around(0.0, 1.0)
        low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
        room = BAND_ROOM * (high - low)
        for curve in self.curves:
            if curve.sigma is not None and len(_finite(curve.sigma)):
                with np.errstate(invalid="ignore"):
                    below, above = _finite(curve.x - 2 * curve.sigma), _finite(curve.x + 2 * curve.sigma)
                if len(below):
                    low, high = min(low, max(below.min(), low - room)), max(high, min(above.max(), high + room))
        if self.limit and max(-low, high) > 0.5 * self.limit:
            low, high = min(low, -self.limit), max(high, self.limit)
        if self.level is not None:
            low, high = min(low, self.level), max(high, self.level)
        return Scale.around(float(low), float(high))

    @property
    def across(self) -> list[int]:
        """How far down lines at its limits are drawn, as far as there is room for them, in units of the drawing."""
        heights = [self.scale.at(np.array(x)).item() for x in (self.limit, -self.limit) if self.limit]
        return [round(y) for y in heights if 0 <= y <= SIZE]

    @property
    def summary(self) -> str:
        """What it shows, in words."""
        unit = f" {self.unit}" if self.unit else ""
        ranges = []
        for curve in self.curves:
            x = _finite(curve.x)
            known = f"{curve.label} from {number(x.min())} to {number(x.max())}{unit}" if len(x) else ""
            ranges.append(known or f"{curve.label}: nothing known")
        return f"{self.title}: {'; '.join(ranges)}"


@dataclass(frozen=True, slots=True)
class Strip:
    """Flags of samples, along the time.

    Attributes:
        label: what it is.
        words: how often, for people.
        spans: from where to where, in units of the drawing, and how much: "alarm", "first", "other", "count".
    """

    label: str
    words: str
    spans: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, eq=False)
class Plots:
    """The time that all plots of a page share, and how it is drawn.

    Attributes:
        bins: of the samples.
    """

    bins: Bins

    @staticmethod
    def of(time: Floats, lines: int, gaps: Indices | None = None) -> Plots:
        """The plots of so many lines over some times (N,), each line in so few bins that the page stays small."""
        count = int(np.clip(BUDGET / (EACH_BIN * max(lines, 1)), *BINS))
        return Plots(Bins.of(time, count, gaps_in(time) if gaps is None else gaps))

    @property
    def span(self) -> tuple[float, float]:
        """The time at the left and at the right."""
        low, high = float(self.bins.time[0]), float(self.bins.time[-1])
        return low, high if high > low else low + 1.0

    @property
    def ticks(self) -> tuple[tuple[str, float], ...]:
        """Labels along the time, and how far right they are, in percent."""
        low, high = self.span
        return tuple((label, 100 * (x - low) / (high - low)) for label, x in ticks(low, high, 5))

    def at(self, sample: int) -> int:
        """Where a sample is drawn; the one after the last at the end."""
        low, high = self.span
        last = len(self.bins.time) - 1
        return SIZE if sample > last else round(SIZE * (float(self.bins.time[sample]) - low) / (high - low))

    def drawn(self, panel: Panel) -> Iterator[tuple[str, str, str, str]]:
        """Yield what each line of a panel is called, how it is marked, its path, and that of its band."""
        for k, curve in enumerate(panel.curves):
            around = ""
            if curve.sigma is not None:
                around = band(self.bins, curve.x - 2 * curve.sigma, curve.x + 2 * curve.sigma, panel.scale)
            yield curve.label, curve.mark or f"c{k % COLOURS}", line(self.bins, curve.x, panel.scale), around

    def flagged(self, label: str, flag: Booleans) -> Strip:
        """The strip of what holds of some samples (N,)."""
        count = int(np.count_nonzero(flag))
        words = f"{count:,} of {len(flag):,}"
        drawn = tuple((start, stop, "count") for start, stop in spans(self.bins, self.bins.any(flag)))
        return Strip(label, words, drawn)

    def windowed(self, label: str, words: str, parts: Sequence[tuple[int, int, str]]) -> Strip:
        """The strip of words about windows of samples."""
        return Strip(label, words, tuple((self.at(first), self.at(stop), mark) for first, stop, mark in parts))


def gaps_in(time: Floats) -> Indices:
    """The samples before gaps in time (N,)."""
    steps = np.diff(time)
    usual = float(np.median(steps)) if len(steps) else 0.0
    return np.flatnonzero(steps > GAP * usual) if usual > 0 else np.zeros(0, dtype=np.intp)


def _finite(x: Floats) -> Floats:
    return x[np.isfinite(x)]


def is_constant(x: Floats) -> bool:
    """Whether numbers, infinite ones left out, are all the same but for rounding."""
    x = _finite(x)
    return not len(x) or float(np.ptp(x)) < ROUND_OFF
