"""Words: how wide they are, where lines end, and what of them a terminal or a page must not see."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

WIDTH = 80
"""Columns of text, unless told otherwise."""

JOINT = "\ue000"
"""Stands for a space inside a name, at which no line ends."""


def characters(text: str) -> int:
    """Return how many characters wide a text is; East Asian ones count twice."""
    return sum(1 + (unicodedata.east_asian_width(c) in "FW") for c in text)


def unbroken(name: str) -> str:
    """Return a name in which no line ends, though it has spaces."""
    return name.replace(" ", JOINT)


def spaced(text: str) -> str:
    """Return a text with plain spaces inside names, for what breaks no lines."""
    return text.replace(JOINT, " ")


def listed(names: Iterable[str], most: int | None = None) -> str:
    """Return names with commas, as they are broken between lines only; after so many, how many more there are."""
    names = tuple(names)
    shown = ", ".join(unbroken(name) for name in names[:most])
    more = 0 if most is None else len(names) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def wrapped(text: str, width: int | None, first: str = "", indent: str = "") -> list[str]:
    """Return the lines of a text, broken at spaces.

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
    """Return a text without characters that steer a terminal, or turn the direction of writing."""
    return "".join(c if c.isprintable() or c == JOINT else repr(c)[1:-1] for c in text)


def emphasised(text: str, bold: bool) -> str:
    """Return a text as a terminal prints it in bold."""
    return f"\033[1m{text}\033[0m" if bold else text


def escaped(text: str) -> str:
    """Return a text as HTML."""
    return html.escape(plain(text).replace(JOINT, " "))
