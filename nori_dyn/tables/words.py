"""Words and numbers: how wide they are, where lines end, and what of them a terminal or a page must not see."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import SupportsFloat

WIDTH = 80
"""Columns of text, unless told otherwise."""

JOINT = "\ue000"
"""Stands for a space inside a name, at which no line ends."""


def characters(text: str) -> int:
    """How many characters wide a text is; East Asian ones count twice."""
    return sum(1 + (unicodedata.east_asian_width(c) in "FW") for c in text)


def unbroken(name: str) -> str:
    """A name in which no line ends, though it has spaces."""
    return name.replace(" ", JOINT)


def spaced(text: str) -> str:
    """A text with plain spaces inside names, for what breaks no lines."""
    return text.replace(JOINT, " ")


def listed(names: Iterable[str], most: int | None = None) -> str:
    """Names with commas, as they are broken between lines only; after so many, how many more there are."""
    names = tuple(names)
    shown = ", ".join(unbroken(name) for name in names[:most])
    more = 0 if most is None else len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def wrapped(text: str, width: int | None, first: str = "", indent: str = "") -> list[str]:
    """The lines of a text, broken at spaces.

    Args:
        text: the text.
        width: how wide lines are at most, but for words that are wider; None is one line.
        first: what the first line begins with.
        indent: what the others begin with.
    """
    words = plain(text).split(" ")
    lines, line, is_bare = [], first, True
    for word in words:
        if not is_bare and width is not None and characters(line) + 1 + characters(word) > width:
            lines.append(line)
            line, is_bare = indent, True
        line += word if is_bare else f" {word}"
        is_bare = False
    return [each.replace(JOINT, " ").rstrip() for each in (*lines, line)]


def plain(text: str) -> str:
    """A text without characters that steer a terminal, or turn the direction of writing."""
    return "".join(c if c.isprintable() or c == JOINT else repr(c)[1:-1] for c in text)


def emphasised(text: str, bold: bool) -> str:
    """A text as a terminal prints it in bold."""
    return f"\033[1m{text}\033[0m" if bold else text


def escaped(text: str) -> str:
    """A text as HTML."""
    return html.escape(plain(text).replace(JOINT, " "))


def number(value: SupportsFloat, digits: int = 3) -> str:
    """A number for people, "12,345" or "0.0123": plain as long as it is neither huge nor tiny.

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
    """The numbers of a column, all with as many decimals, so that so many digits of the largest count."""
    values = [float(value) for value in values]
    largest = max((abs(x) for x in values if math.isfinite(x)), default=0.0)
    if largest and not 1e-4 <= largest < 1e9:
        return [number(x, digits) for x in values]
    decimals = max(0, digits - 1 - (math.floor(math.log10(largest)) if largest else digits))
    return [f"{round(x, decimals) + 0.0:,.{decimals}f}" for x in values]


def describe_sum(terms: Mapping[str, float], most: int | None = None) -> str:
    """A sum with factors, "I:l1.zz + I:l2.yy + 0.25 m:l3 + 2 more", whose terms are not broken between lines.

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
