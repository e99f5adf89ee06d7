"""The histogram of margins of an observability page, as places and words. All lengths are in pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nori_dyn.observe.findings import NEARLY_SINGULAR, few
from nori_dyn.typing import Floats

DIGIT = 6.6
MOST_BINS = 20
BIN_WIDTHS = (0.25, 0.5, 1.0)
"""Widths of the bars of a histogram, in decades."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram, with its left lower corner at x and the base line."""

    x: float
    width: float
    height: float
    count: int
    is_low: bool
    title: str

    @property
    def shown(self) -> bool:
        """Whether there is room for the count above it."""
        return self.is_low or self.width >= DIGIT * len(f"{self.count}")


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many configurations have which margin, the smallest relative singular value, by its decimal logarithm.

    Attributes:
        width, height, base: of the drawing, and of its base line.
        bars: those that are not empty.
        lost: the bar of configurations that lack rank, whose margin is zero; None where there are none.
        ticks: place and text on the axis.
        threshold: place of the margin below which a pose is called nearly singular.
        summary: in words.
    """

    width: int
    height: int
    base: float
    bars: tuple[Bar, ...]
    lost: Bar | None
    ticks: tuple[tuple[float, str], ...]
    threshold: float
    summary: str


def histogram(smallest: Floats, lacking: int) -> Histogram:
    """Return the histogram of margins.

    Args:
        smallest: the smallest relative singular value at each configuration (N,), 0 where rank is lost.
        lacking: how many lack rank.
    """
    logs = np.log10(smallest[smallest > 0])
    low = math.floor(min(math.log10(NEARLY_SINGULAR) - 1, logs.min(initial=0.0)))
    step = next((w for w in BIN_WIDTHS if -low / w <= MOST_BINS), BIN_WIDTHS[-1])
    low = -step * math.ceil(-low / step)
    counts, edges = np.histogram(logs, round(-low / step), (low, 0.0))
    left, base, right, most = 56.0 if lacking else 14.0, 172.0, 306.0, 130.0
    tallest = max(int(counts.max()), lacking, 1)
    scale = (right - left) / -low

    def bar(x: float, width: float, count: int, is_low: bool, title: str) -> Bar:
        return Bar(x, width, max(most * count / tallest, 2.0), count, is_low, f"{count:,} {title}")

    bars = [
        bar(
            left + scale * (edge - low) + 0.5,
            scale * step - 1,
            int(count),
            bool(edge + step / 2 < math.log10(NEARLY_SINGULAR)),
            f"with a margin from {power(edge)} to {power(edge + step)}",
        )
        for count, edge in zip(counts, edges[:-1], strict=True)
        if count
    ]
    every = max(1, math.ceil(-low / 8))
    ticks = [(left + scale * (k - low), power(k)) for k in range(0, math.ceil(low) - 1, -every)]
    N = len(smallest)
    nearly = int(np.sum(smallest < NEARLY_SINGULAR)) - lacking
    return Histogram(
        width=320,
        height=212,
        base=base,
        bars=tuple(bars),
        lost=bar(8.0, 22.0, lacking, True, "lack rank") if lacking else None,
        ticks=tuple(ticks),
        threshold=left + scale * (math.log10(NEARLY_SINGULAR) - low),
        summary=(
            f"Of {N:,} configurations {few(lacking)} lack rank and {few(nearly)} of the others are nearly singular, "
            f"whose median margin is {margin(float(10 ** np.median(logs)))}."
            if len(logs)
            else f"All {N:,} configurations lack rank."
        ),
    )


def margin(smallest: float) -> str:
    """Return a margin as text."""
    return f"{smallest:.1g}" if smallest >= 1e-3 or smallest == 0.0 else power(math.log10(smallest))


def power(exponent: float) -> str:
    """Return a power of ten: "10⁻³", or "3.2·10⁻⁴" where the exponent is no whole number."""
    whole = math.floor(exponent + 1e-9)
    factor = 10 ** (exponent - whole)
    text = f"10{str(whole).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    return text if abs(factor - 1) < 0.05 else f"{factor:.1f}·{text}"
