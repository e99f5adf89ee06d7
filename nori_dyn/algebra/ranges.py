"""Ranges of numbers, kept as slices: where a variable lies in d, or an equation among the rows of D."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nori_dyn.typing import Indices


def width(part: slice) -> int:
    """How many numbers a range has."""
    return int(part.stop - part.start)


def numbers(part: slice) -> range:
    """The numbers of a range."""
    return range(part.start, part.stop)


def holding(parts: Iterable[slice], k: int) -> int:
    """Which of some ranges has a number."""
    return next(i for i, part in enumerate(parts) if k in numbers(part))


def numbers_in(parts: Iterable[slice]) -> Indices:
    """The numbers of some ranges, one range after the other."""
    return np.array([k for part in parts for k in numbers(part)], dtype=np.intp)
