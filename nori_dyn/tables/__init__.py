"""Tables, and lines of text around them: what `print` shows of an object, a notebook, and the command line.

A class that is `Shown` does not know how: a function of `nori_dyn.report.shows` makes its `Document`, of which text and
HTML are made. Names are never broken: where a table is too wide, sentences in it are wrapped, and then its columns
folded.
"""

from __future__ import annotations

import html
import importlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral
from typing import Any, SupportsFloat, TypeAlias

WIDTH = 80
"""Columns of text, unless told otherwise."""

JOINT = "\ue000"
"""Stands for a space inside a name, at which no line ends."""

NEGLIGIBLE = 1e-9
"""Size of a factor, beside the largest of a sum, below which it is rounding: of angles in a robot's file, 1.5708."""


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

    Terms that are rounding beside the largest are left out.

    Args:
        terms: the factor of each name.
        most: how many terms are shown; None is all.
    """
    largest = max(map(abs, terms.values()), default=0.0)
    terms = {name: factor for name, factor in terms.items() if abs(factor) >= NEGLIGIBLE * largest}
    shown = ""
    for name, factor in list(terms.items())[:most]:
        sign = ("-" if factor < 0 else "") if not shown else (" - " if factor < 0 else " + ")
        size = "" if abs(factor) == 1.0 else f"{number(abs(factor))} "
        shown += sign + unbroken(size + name)
    more = 0 if most is None else len(terms) - most
    return f"{shown} + {unbroken(f'{more:,} more')}" if more > 0 else shown


GAP = "  "
"""What stands between columns, and before what is folded."""

Cell: TypeAlias = str | SupportsFloat | None
"""What a table holds: text, a number as `number` writes it, or nothing."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph.

    Attributes:
        text: what it says.
        lead: what stands before, in bold.
    """

    text: str
    lead: str = ""

    def lines(self, width: int | None, bold: bool) -> Iterator[str]:
        """Yield its lines of text, at most so wide where a width is given."""
        lines = wrapped(f"{self.lead} {self.text}".strip(), width)
        lead = characters(plain(self.lead))
        for line in lines:
            head = line[:lead]
            yield emphasised(head, bold and bool(head)) + line[len(head) :]
            lead = max(0, lead - len(line) - 1)

    def html(self) -> Iterator[str]:
        """Yield its HTML."""
        yield f"<p>{f'<b>{escaped(self.lead)}</b> ' if self.lead else ''}{escaped(self.text)}</p>"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences.

    Attributes:
        items: the sentences.
        title: what they are.
        most: how many are shown as text of some width; all others are counted. None is all.
    """

    items: tuple[str, ...]
    title: str = ""
    most: int | None = None

    def lines(self, width: int | None, bold: bool) -> Iterator[str]:
        """Yield its lines of text, at most so wide where a width is given."""
        if self.title:
            yield from wrapped(self.title, width)
        most = len(self.items) if width is None or self.most is None else self.most
        for item in self.items[:most]:
            yield from wrapped(item, width, "  - ", "    ")
        if len(self.items) > most:
            yield f"  ... {len(self.items) - most:,} more"

    def html(self) -> Iterator[str]:
        """Yield its HTML."""
        if self.title:
            yield f"<p>{escaped(self.title)}</p>"
        yield f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in self.items)}</ul>"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is called what: a name a line, and what it is, wrapped beside it.

    Attributes:
        pairs: the names, and what they are; those that are "" are left out.
        title: what they are about.
    """

    pairs: tuple[tuple[str, str], ...]
    title: str = ""

    def lines(self, width: int | None, bold: bool) -> Iterator[str]:
        """Yield its lines of text, at most so wide where a width is given."""
        if self.title:
            yield from (emphasised(line, bold) for line in wrapped(self.title, width))
        known = [(name, value) for name, value in self.pairs if value]
        edge = max((characters(name) for name, _ in known), default=0)
        for name, value in known:
            first = name + " " * (edge - characters(name)) + GAP
            yield from wrapped(value, width, first, " " * (edge + len(GAP)))

    def html(self) -> Iterator[str]:
        """Yield its HTML."""
        yield f"<p><b>{escaped(self.title)}</b></p>" if self.title else ""
        rows = (f"<tr>{_th(name, 'left')}{_td(value, 'left')}</tr>" for name, value in self.pairs if value)
        yield f"<table><tbody>{''.join(rows)}</tbody></table>"


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: what it is.
        columns: what its columns are called.
        rows: the cells.
        notes: sentences below it.
        left: numbers of the columns that are text; all others are figures, which stand to the right.
        most: how many rows are shown as text of some width; all others are counted. None is all.
        bars: shares from 0 to 1 that a page draws in each row, behind its third column.
        levels: how good each row is, "yes", "sometimes", "no" or "low", where a page colours it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    left: tuple[int, ...] = (0,)
    most: int | None = None
    bars: tuple[tuple[float, ...], ...] = ()
    levels: tuple[str, ...] = ()

    def cells(self, most: int | None = None) -> list[list[str]]:
        """The first rows as text."""
        return [[_cell(cell) for cell in row] for row in self.rows[:most]]

    def lines(self, width: int | None, bold: bool) -> Iterator[str]:
        """Yield its lines of text, at most so wide where a width is given."""
        if self.title:
            yield from (emphasised(line, bold) for line in wrapped(self.title, width))
        most = len(self.rows) if width is None or self.most is None else self.most
        rows = [[plain(cell) for cell in row] for row in (list(self.columns), *self.cells(most))]
        widths, gap = self._widths(rows, width)
        groups = _folded(widths, gap, math.inf if width is None else width)
        for k, row in enumerate(rows):
            for group in groups:
                yield from self._row(row, group, widths, gap)
            if k == 0:
                yield "-" * max(_room(widths, group, gap) for group in groups)
        if len(self.rows) > most:
            yield f"... {len(self.rows) - most:,} more"
        for note in self.notes:
            yield from wrapped(note, width)

    def _widths(self, rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[int], str]:
        """How wide columns are, and what stands between: as the cells are, or with sentences wrapped."""
        widths = [max(map(characters, column)) for column in zip(*rows, strict=True)]
        if width is None:
            return widths, GAP
        least = [
            max(characters(word) for cell in column for word in cell.split(" ")) if k in self.left else widths[k]
            for k, column in enumerate(zip(*rows, strict=True))
        ]
        for gap in (GAP, " "):
            over = sum(widths) + len(gap) * (len(widths) - 1) - width
            if over <= sum(widths) - sum(least):
                return _narrowed(widths, least, over), gap
        return [max(low, min(own, width - len(GAP))) for low, own in zip(least, widths, strict=True)], GAP

    def _row(self, row: Sequence[str], group: Sequence[int], widths: Sequence[int], gap: str) -> Iterator[str]:
        """Yield the lines of some columns of a row."""
        cells = [wrapped(row[k], widths[k]) for k in group]
        for part in range(max(map(len, cells))):
            texts = [lines[part] if part < len(lines) else "" for lines in cells]
            spaces = [" " * (widths[k] - characters(text)) for k, text in zip(group, texts, strict=True)]
            padded = [t + s if k in self.left else s + t for k, t, s in zip(group, texts, spaces, strict=True)]
            yield (GAP * (group[0] > 0) + gap.join(padded)).rstrip()

    def html(self) -> Iterator[str]:
        """Yield its HTML."""
        side = ["left" if k in self.left else "right" for k in range(len(self.columns))]
        yield f"<p><b>{escaped(self.title)}</b></p>" if self.title else ""
        head = "".join(map(_th, self.columns, side))
        rows = "".join(f"<tr>{''.join(map(_td, row, side))}</tr>" for row in self.cells())
        yield '<div style="max-height: 30em; overflow: auto">'
        yield f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        yield "".join(f"<p>{escaped(note)}</p>" for note in self.notes)


def _narrowed(widths: Sequence[int], least: Sequence[int], over: int) -> list[int]:
    """The widths of columns of which so much is taken away, first of those that have most to give."""
    found = list(widths)
    for k in sorted(range(len(found)), key=lambda k: least[k] - found[k]):
        taken = max(0, min(over, found[k] - least[k]))
        found[k] -= taken
        over -= taken
    return found


def _folded(widths: Sequence[int], gap: str, width: float) -> list[list[int]]:
    """The columns that stand side by side; those that do not fit stand below, a little to the right.

    The lines are about as long as each other: none is longer than their number needs.
    """
    groups = _filled(widths, gap, width)
    if len(groups) > 1:
        shorter = (_filled(widths, gap, room) for room in range(max(widths), int(width)))
        return next((found for found in shorter if len(found) == len(groups)), groups)
    return groups


def _filled(widths: Sequence[int], gap: str, width: float) -> list[list[int]]:
    """The columns that stand side by side, where each line takes as many as fit."""
    groups: list[list[int]] = [[]]
    for k in range(len(widths)):
        if groups[-1] and _room(widths, [*groups[-1], k], gap) > width:
            groups.append([])
        groups[-1].append(k)
    return groups


def _room(widths: Sequence[int], group: Sequence[int], gap: str) -> int:
    """How wide some columns are side by side, with the indent of those below others."""
    return sum(widths[k] for k in group) + len(gap) * (len(group) - 1) + len(GAP) * (group[0] > 0)


def _cell(cell: Cell) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else number(cell)


def _th(text: str, side: str) -> str:
    return f'<th style="text-align: {side}">{escaped(text)}</th>'


def _td(text: str, side: str) -> str:
    return f'<td style="text-align: {side}; white-space: {"normal" if " " in text else "nowrap"}">{escaped(text)}</td>'


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


def document_of(module: str, name: str) -> Callable[[object], Document]:
    """What makes the document of a class, by the module of `SHOWS` that it is in, and the name of the class."""
    function = re.sub(r"\B(?=[A-Z])", "_", name).lower() + "_document"
    made: Callable[[object], Document] = getattr(importlib.import_module(f"{SHOWS}.{module}"), function)
    return made


class Shown:
    """A thing that `print` shows as tables of text, and notebooks as HTML; `repr` stays one line.

    What is shown is the document of its type, see `SHOWS`.

    Laws, tested in tests/contracts/test_shown.py: no line is wider than 80 columns, no name is broken, and none of its
    characters is markup in the HTML.
    """

    __slots__ = ()

    def shown(self) -> Document:
        """Make the document that `print` shows."""
        documents: Mapping[str, tuple[str, ...]] = importlib.import_module(SHOWS).DOCUMENTS
        known = {name: module for module, names in documents.items() for name in names}
        name = next((kind.__name__ for kind in type(self).__mro__ if kind.__name__ in known), None)
        if name is None:
            raise NotImplementedError(f"{type(self).__name__} has no document: write one in {SHOWS}.")
        return document_of(known[name], name)(self)

    def to_dict(self) -> dict[str, Any]:
        """The figures of what is shown, as JSON has them."""
        return self.shown().data()

    def __str__(self) -> str:
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()
