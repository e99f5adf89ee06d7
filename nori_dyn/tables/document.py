"""A document of several parts, and the registry of what is shown as one, by type."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeAlias

from nori_dyn.tables.parts import Bullets, Cell, Facts, Paragraph, Table
from nori_dyn.tables.words import WIDTH, spaced

Part: TypeAlias = Paragraph | Bullets | Facts | Table

SHOWS = "nori_dyn.report.shows"
"""The package whose modules make documents, by its `DOCUMENTS`: above all that is shown, and imported when needed."""


@dataclass(frozen=True, slots=True)
class Document:
    """Parts one below the other, and the figures that they are about: rendered as text, as HTML, and as JSON.

    Attributes:
        parts: the parts; a string is a paragraph.
        figures: names, numbers and lists of them, as JSON has them, where these are more than the parts read as.
    """

    parts: tuple[Part | str, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)

    def text(self, width: int | None = WIDTH, bold: bool = False) -> str:
        """Render it as text.

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
        """Render it as a piece of HTML, with nothing that a name could change."""
        parts = (Paragraph(part) if isinstance(part, str) else part for part in self.parts)
        return f"<div>{''.join(line for part in parts for line in part.html())}</div>"

    def data(self) -> dict[str, Any]:
        """Its figures; where there are none, its facts, lists and tables by their names."""
        return dict(self.figures) or {name: value for part in self.parts for name, value in _figures(part)}

    def json(self) -> str:
        """Render it as JSON."""
        return json.dumps(self.data(), indent=2)

    def under(self, name: str) -> Document:
        """The same document with its figures under one name, to be added to another."""
        return Document(self.parts, {name: self.data()})

    def __add__(self, other: Document) -> Document:
        return Document(self.parts + other.parts, {**self.figures, **other.figures})


def attributes(of: object, *names: str) -> dict[str, Any]:
    """Attributes of a thing by their names, as JSON has them: arrays are lists, what is not finite is None."""
    return {name: _plain(getattr(of, name)) for name in names}


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _figures(part: Part | str) -> Iterator[tuple[str, Any]]:
    """Yield what a part has for JSON, by its name."""
    if isinstance(part, Facts):
        yield from ((name, spaced(value)) for name, value in part.pairs if value)
    elif isinstance(part, Bullets):
        yield part.title.rstrip(":"), [spaced(item) for item in part.items]
    elif isinstance(part, Table):
        yield part.title, [dict(zip(part.columns, map(_value, row), strict=True)) for row in part.rows]


def _value(cell: Cell) -> str | float | None:
    if cell is None or isinstance(cell, str):
        return None if cell is None else spaced(cell)
    return int(cell) if isinstance(cell, Integral) else float(cell)


class Shown:
    """A thing that `print` shows as tables of text, and notebooks as HTML; `repr` stays one line.

    What is shown is the document of its type, see `SHOWS`.

    Laws, tested in tests/contracts/test_shown.py: no line is wider than 80 columns, no name is broken, and none of its
    characters is markup in the HTML.
    """

    __slots__ = ()

    def shown(self) -> Document:
        """Make the document that `print` shows."""
        known: Mapping[str, str] = importlib.import_module(SHOWS).DOCUMENTS
        name = next((kind.__name__ for kind in type(self).__mro__ if kind.__name__ in known), None)
        if name is None:
            raise NotImplementedError(f"{type(self).__name__} has no document: write one in {SHOWS}.")
        module, _, function = known[name].partition(".")
        made: Document = getattr(importlib.import_module(f"{SHOWS}.{module}"), function)(self)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The figures of what is shown, as JSON has them."""
        return self.shown().data()

    def __str__(self) -> str:
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()
