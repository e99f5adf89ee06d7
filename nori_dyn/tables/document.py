"""A document of several parts, and what shows itself as one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from nori_dyn.tables.parts import Bullets, Facts, Paragraph, Table
from nori_dyn.tables.words import WIDTH

Part: TypeAlias = Paragraph | Bullets | Facts | Table


@dataclass(frozen=True, slots=True)
class Document:
    """Parts one below the other.

    Attributes:
        parts: the parts; a string is a paragraph.
    """

    parts: tuple[Part | str, ...]

    def text(self, width: int | None = WIDTH, bold: bool = False) -> str:
        """Return it as text.

        Args:
            width: how wide lines are at most, but for names that are wider; None folds and leaves out nothing.
            bold: whether titles are bold, on a terminal.
        """
        parts = [Paragraph(part) if isinstance(part, str) else part for part in self.parts]
        blocks = ["\n".join(part.lines(width, bold)) for part in parts]
        beside = [isinstance(a, Paragraph) and isinstance(b, Paragraph) and not b.lead for a, b in pairwise(parts)]
        gaps = ["\n" if is_beside else "\n\n" for is_beside in beside]
        return "".join(text for pair in zip(blocks, [*gaps, ""], strict=False) for text in pair)

    def html(self) -> str:
        """Return it as a piece of HTML, with nothing that a name could change."""
        parts = (Paragraph(part) if isinstance(part, str) else part for part in self.parts)
        return f"<div>{''.join(line for part in parts for line in part.html())}</div>"

    def __add__(self, other: Document) -> Document:
        return Document(self.parts + other.parts)


class Shown:
    """What `print` shows as tables of text, and notebooks as HTML; `repr` stays one line.

    Laws, tested in tests/contracts/test_shown.py: no line is wider than 80 columns, no name is broken, and none of its
    characters is markup in the HTML.
    """

    __slots__ = ()

    def shown(self) -> Document:
        """Return what `print` shows."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()
