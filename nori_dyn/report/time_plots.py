"""Plots over time as a page lays them out: panels of lines and bands, and strips of flags of samples.

Curves are any number of samples as paths of SVG that stay small, and on which no spike is lost. Where there are more
samples than a curve has bins, the smallest and the largest of each bin are drawn, in the order in which they came: at
the width of a page it looks as all samples do. The numbers of a path are whole, from 0 to `SIZE` in both directions, so
that what it draws can be read back from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.tables import number
from nori_dyn.typing import Booleans, Floats, Indices

SIZE = 10_000
"""Width and height of a drawing, in its own units."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Which samples fall in which bin of time.

    Attributes:
        time: of the samples (N,), in their order.
        breaks: samples after which a line ends (n_breaks,): gaps.
        starts: the first sample of each bin that has some (n_bins,).
        at: where a bin is drawn, from 0 to `SIZE` (n_bins,).
        width: of a bin, in units of time; 0 where each sample has its own.
    """

    time: Floats
    breaks: Indices
    starts: Indices
    at: Indices
    width: float

    @staticmethod
    def of(time: Floats, count: int, breaks: Indices | None = None) -> Bins:
        """The bins of samples at some times (N,), in their order: as many as there are samples, or `count`."""
        breaks = np.zeros(0, dtype=np.intp) if breaks is None else breaks
        low, span = float(time[0]), float(time[-1] - time[0]) or 1.0
        share = np.clip((time - low) / span, 0.0, 1.0)
        if len(time) <= 2 * count:
            return Bins(time, breaks, np.arange(len(time)), np.rint(SIZE * share).astype(np.intp), 0.0)
        number = np.minimum((count * share).astype(np.intp), count - 1)
        starts = np.flatnonzero(np.diff(number, prepend=-1) > 0)
        at = np.rint(SIZE * (number[starts] + 0.5) / count).astype(np.intp)
        return Bins(time, breaks, starts, at, span / count)

    def lowest(self, x: Floats) -> Floats:
        """The smallest of some numbers (N,) in each bin; nan where it has none."""
        return np.asarray(np.fmin.reduceat(x, self.starts))

    def highest(self, x: Floats) -> Floats:
        """The largest of some numbers (N,) in each bin; nan where it has none."""
        return np.asarray(np.fmax.reduceat(x, self.starts))

    def any(self, flag: Booleans) -> Booleans:
        """Whether something holds (N,) of any sample of each bin."""
        return np.asarray(np.logical_or.reduceat(flag, self.starts))

    @property
    def joined(self) -> Booleans:
        """Whether a line goes on from each bin to the next (n_bins - 1,)."""
        if not len(self.breaks):
            return np.ones(max(0, len(self.starts) - 1), dtype=bool)
        number = np.searchsorted(self.starts, self.breaks, side="right") - 1
        joined = np.ones(len(self.starts), dtype=bool)
        joined[number[self.starts[np.minimum(number + 1, len(self.starts) - 1)] == self.breaks + 1]] = False
        return joined[:-1]

    def extremes(self, x: Floats) -> Indices:
        """The samples of each bin at which numbers (N,) are smallest and largest, in their order (n_bins, 2).

        Those of a bin without any number are N.
        """
        n = len(x)
        sizes = np.diff(self.starts, append=n)
        where = [
            np.minimum.reduceat(np.where(x == np.repeat(each, sizes), np.arange(n), n), self.starts)
            for each in (self.lowest(x), self.highest(x))
        ]
        return np.sort(np.column_stack(where), axis=1)


ROUND_OFF = 1e-12
"""Numbers in SI that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers at the bottom and at the top of a drawing."""

    low: float
    high: float

    @staticmethod
    def around(low: float, high: float) -> Scale:
        """A scale with a little room about some numbers."""
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = 0.0, 1.0
        room = next((x for x in (0.06 * (high - low), 0.1 * abs(high)) if x > ROUND_OFF), 1.0)
        return Scale(low - room, high + room)

    def at(self, x: Floats) -> Floats:
        """Where numbers are drawn, from the top down."""
        with np.errstate(invalid="ignore"):
            return np.clip(SIZE * (self.high - x) / (self.high - self.low), -9 * SIZE, 9 * SIZE)

    def ticks(self) -> tuple[tuple[str, float], ...]:
        """Some round numbers, and how far down they are, from 0 to 1."""
        return tuple((label, (self.high - x) / (self.high - self.low)) for label, x in ticks(self.low, self.high, 4))


FEWEST_TICKS = 3
"""Round numbers along an axis, at least."""


def ticks(low: float, high: float, about: int) -> list[tuple[str, float]]:
    """About so many round numbers between two, `FEWEST_TICKS` at least, as people write them, and as they are."""
    rough = (high - low) / about
    decade = 10.0 ** math.floor(math.log10(rough))
    steps = [factor * decade for factor in (10, 5, 2, 1, 0.5, 0.2)]
    widest = min(step for step in steps if step >= 0.999 * rough)
    step = next(step for step in steps if step <= widest and _multiples(low, high, step) >= FEWEST_TICKS)
    first = math.ceil(low / step - 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    found = []
    while first * step <= high + 1e-9 * step:
        x = first * step
        is_plain = step > 1e-4 and max(abs(low), abs(high)) < 1e6
        found.append((f"{x:.{decimals}f}" if is_plain else f"{x:.3g}", x))
        first += 1
    return found


def _multiples(low: float, high: float, step: float) -> int:
    """How many multiples of a step lie between two numbers."""
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


def line(bins: Bins, x: Floats, scale: Scale) -> str:
    """The path of a line through numbers (N,), infinite ones left out."""
    x = np.where(np.isfinite(x), x, np.nan)
    first, second = np.append(x, np.nan)[bins.extremes(x)].T
    return "".join(_segments(bins, scale.at(first), scale.at(second)))


def _segments(bins: Bins, first: Floats, second: Floats) -> Iterator[str]:
    known = np.isfinite(first)
    goes_on = np.concatenate([[False], known[:-1] & bins.joined]) if len(known) else known
    a = np.rint(np.where(known, first, 0)).astype(np.intp).tolist()
    b = np.rint(np.where(known, second, 0)).astype(np.intp).tolist()
    at, x, y = bins.at.tolist(), 0, 0
    for k in np.flatnonzero(known).tolist():
        step = f"l{at[k] - x} {a[k] - y}" if goes_on[k] else f"M{at[k]} {a[k]}l0 0"
        if b[k] != a[k]:
            step += f"v{b[k] - a[k]}"
        yield step
        x, y = at[k], b[k]


def band(bins: Bins, low: Floats, high: Floats, scale: Scale) -> str:
    """The path of the area between two lines (N,), infinite parts left out."""
    with np.errstate(invalid="ignore"):
        known = np.isfinite(low) & np.isfinite(high)
    below = scale.at(bins.lowest(np.where(known, low, np.nan)))
    above = scale.at(bins.highest(np.where(known, high, np.nan)))
    is_there = np.isfinite(below)
    ends = np.flatnonzero(~(is_there[:-1] & is_there[1:] & bins.joined)) + 1
    parts = []
    for run in np.split(np.arange(len(is_there)), ends):
        if len(run) < 2 or not is_there[run[0]]:
            continue
        xs = np.concatenate([bins.at[run], bins.at[run][::-1]])
        ys = np.rint(np.concatenate([above[run], below[run][::-1]])).astype(np.intp)
        steps = " ".join(f"{dx} {dy}" for dx, dy in zip(np.diff(xs).tolist(), np.diff(ys).tolist(), strict=True))
        parts.append(f"M{xs[0]} {ys[0]}l{steps}z")
    return "".join(parts)


def spans(bins: Bins, held: Booleans) -> list[tuple[int, int]]:
    """From where to where on a strip something holds of bins (n_bins,), at least so far that it can be seen."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], held, [False]]).astype(np.int8)))
    half = SIZE * bins.width / (2 * float(bins.time[-1] - bins.time[0] or 1.0))
    least = SIZE // 1000
    found = []
    for first, last in edges.reshape(-1, 2).tolist():
        start, stop = bins.at[first] - half, bins.at[last - 1] + half
        wide = max(stop - start, least)
        start = min(max(0.0, start - (wide - (stop - start)) / 2), SIZE - wide)
        found.append((round(start), round(start + wide)))
    return found


def kept(bins: Bins, x: Floats) -> Indices:
    """The samples, in their order, that show all that numbers (N,) do in each bin: smallest and largest."""
    found = np.unique(bins.extremes(np.where(np.isfinite(x), x, np.nan)))
    return found[found < len(x)]


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
