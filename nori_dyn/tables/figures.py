"""Numbers as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import SupportsFloat

from nori_dyn.tables.words import unbroken


def number(value: SupportsFloat, digits: int = 3) -> str:
    """Return a number for people, "12,345" or "0.0123": plain as long as it is neither huge nor tiny.

    Args:
        value: an integer is written in full, with separators of thousands; anything else rounded.
        digits: how many digits count.
    """
    if isinstance(value, Integral):
        return f"{int(value):,}"
    x = float(value)
    if not math.isfinite(x):
        return f"{x:g}"
    rounded = float(f"{x:.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e9:
        return re.sub(r"e\+?(-?)0*(?=\d)", r"e\1", f"{x:.{digits}g}")
    if x.is_integer():
        return f"{int(x):,}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def numbers(values: Iterable[float], digits: int = 4) -> list[str]:
    """Return the numbers of a column, all with as many decimals, so that so many digits of the largest count."""
    values = [float(value) for value in values]
    largest = max((abs(x) for x in values if math.isfinite(x)), default=0.0)
    if largest and not 1e-4 <= largest < 1e9:
        return [number(x, digits) for x in values]
    decimals = max(0, digits - 1 - (math.floor(math.log10(largest)) if largest else digits))
    return [f"{round(x, decimals) + 0.0:,.{decimals}f}" for x in values]


def describe_sum(terms: Mapping[str, float], most: int | None = None) -> str:
    """Return a sum with factors, "I:l1.zz + I:l2.yy + 0.25 m:l3 + 2 more", whose terms are not broken between lines.

    Args:
        terms: the factor of each name.
        most: how many terms are shown; None is all.
    """
    shown = ""
    for name, factor in list(terms.items())[:most]:
        sign = ("-" if factor < 0 else "") if not shown else (" - " if factor < 0 else " + ")
        size = "" if abs(factor) == 1.0 else f"{number(abs(factor))} "
        shown += sign + unbroken(size + name)
    more = 0 if most is None else len(terms) - most
    return f"{shown} + {unbroken(f'{more:,} more')}" if more > 0 else shown
