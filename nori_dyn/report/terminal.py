"""Printing documents: as wide as the terminal, with bold titles; where output is piped, nothing folded or left out."""

from __future__ import annotations

import os
import sys

from nori_dyn.tables import Document, Part


def show(*shown: Document | Part | str) -> None:
    """Print documents, or parts of one, one below the other."""
    parts = (part for each in shown for part in (each.parts if isinstance(each, Document) else (each,)))
    text = Document(tuple(parts)).text(line_width(), is_bold())
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def line_width() -> int | None:
    """How wide lines may be: COLUMNS where that is set, or as the terminal is; None where there is neither."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None
    except (OSError, ValueError):
        return None


def is_bold() -> bool:
    """Whether what is printed may be bold: on a terminal that can, unless NO_COLOR asks for plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
