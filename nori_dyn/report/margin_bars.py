"""How many configurations have which margin, as the bars of a page: a table whose rows a browser draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nori_dyn.report.workspace import NEARLY_SINGULAR
from nori_dyn.tables import number
from nori_dyn.typing import Floats

MOST_DECADES = 3
"""Most decades of margins that are shown in thirds; more are shown whole."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Configurations whose margins lie in a range.

    Attributes:
        range: in words.
        count: how many there are.
        share: of the longest bar, from 0 to 1.
        is_low: whether they are nearly singular, or worse.
    """

    range: str
    count: int
    share: float
    is_low: bool


def margin_bars(smallest: Floats) -> tuple[Bar, ...]:
    """Return the bars of some margins, the worst first, from the first that is not empty to the last.

    Args:
        smallest: the smallest relative singular value at each configuration (N,), 0 where something is not determined.
    """
    positive = smallest[smallest > 0.0]
    lost = len(smallest) - len(positive)
    low = math.floor(math.log10(positive.min())) if len(positive) else 0
    steps = (1, 2, 5) if low >= -MOST_DECADES else (1,)
    edges = np.array([float(f"{step}e{decade}") for decade in range(low, 0) for step in steps] + [1.0])
    counts = np.histogram(np.minimum(positive, 1.0), edges)[0] if len(edges) > 1 else np.array([], dtype=int)
    filled = np.flatnonzero(counts)
    longest = max(lost, int(counts.max(initial=1)))
    bars = [Bar("not determined", lost, lost / longest, True)] if lost else []
    for k in range(filled[0], filled[-1] + 1) if len(filled) else ():
        is_low = bool(edges[k + 1] <= NEARLY_SINGULAR)
        words = f"{number(edges[k], 1)} to {number(edges[k + 1], 1)}"
        bars.append(Bar(words, int(counts[k]), float(counts[k] / longest), is_low))
    return tuple(bars)
