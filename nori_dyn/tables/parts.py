"""The parts of what is shown: paragraphs, lists, facts and tables, each as lines of text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsFloat, TypeAlias

from nori_dyn.tables.figures import number
from nori_dyn.tables.words import characters, emphasised, escaped, plain, wrapped

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
        said = [(name, value) for name, value in self.pairs if value]
        edge = max((characters(name) for name, _ in said), default=0)
        for name, value in said:
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
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    left: tuple[int, ...] = (0,)
    most: int | None = None

    def cells(self, most: int | None = None) -> list[list[str]]:
        """Return the first rows as text."""
        return [[_cell(cell) for cell in row] for row in self.rows[:most]]

    def lines(self, width: int | None, bold: bool) -> Iterator[str]:
        """Yield its lines of text, at most so wide where a width is given."""
        if self.title:
            yield from (emphasised(line, bold) for line in wrapped(self.title, width))
        most = len(self.rows) if width is None or self.most is None else self.most
        rows = [[plain(cell) for cell in row] for row in (list(self.columns), *self.cells(most))]
        widths = self._widths(rows, width)
        groups = [*_folded(widths, width)]
        for k, row in enumerate(rows):
            for lines in (self._row(row, group, widths) for group in groups):
                yield from lines
            if k == 0:
                yield "-" * max(sum(widths[j] for j in g) + len(GAP) * len(g) - len(GAP) * (g[0] == 0) for g in groups)
        if len(self.rows) > most:
            yield f"... {len(self.rows) - most:,} more"
        for note in self.notes:
            yield from wrapped(note, width)

    def _widths(self, rows: Sequence[Sequence[str]], width: int | None) -> list[int]:
        """Return how wide each column is: as its cells are, but where that is too wide with its sentences wrapped."""
        widths = [max(map(characters, column)) for column in zip(*rows, strict=True)]
        if width is None:
            return widths
        least = [
            max(characters(word) for cell in column for word in cell.split(" ")) if k in self.left else widths[k]
            for k, column in enumerate(zip(*rows, strict=True))
        ]
        over = sum(widths) + len(GAP) * (len(widths) - 1) - width
        if over > sum(widths) - sum(least):
            return widths  # wrapping does not help
        for k in sorted(range(len(widths)), key=lambda k: least[k] - widths[k]):
            taken = max(0, min(over, widths[k] - least[k]))
            widths[k] -= taken
            over -= taken
        return widths

    def _row(self, row: Sequence[str], group: Sequence[int], widths: Sequence[int]) -> Iterator[str]:
        """Yield the lines of some columns of a row."""
        cells = [wrapped(row[k], widths[k]) or [""] for k in group]
        for part in range(max(map(len, cells))):
            texts = [lines[part] if part < len(lines) else "" for lines in cells]
            spaces = [" " * (widths[k] - characters(text)) for k, text in zip(group, texts, strict=True)]
            padded = [t + s if k in self.left else s + t for k, t, s in zip(group, texts, spaces, strict=True)]
            yield (GAP * (group[0] > 0) + GAP.join(padded)).rstrip()

    def html(self) -> Iterator[str]:
        """Yield its HTML."""
        side = ["left" if k in self.left else "right" for k in range(len(self.columns))]
        yield f"<p><b>{escaped(self.title)}</b></p>" if self.title else ""
        head = "".join(map(_th, self.columns, side))
        rows = "".join(f"<tr>{''.join(map(_td, row, side))}</tr>" for row in self.cells())
        yield '<div style="max-height: 30em; overflow: auto">'
        yield f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        yield "".join(f"<p>{escaped(note)}</p>" for note in self.notes)


def _folded(widths: Sequence[int], width: int | None) -> Iterator[list[int]]:
    """Yield the columns that stand side by side; those that do not fit stand below, a little to the right."""
    group: list[int] = []
    room = math.inf if width is None else width
    used = 0
    for k, own in enumerate(widths):
        if group and used + len(GAP) + own > room:
            yield group
            group = []
            used = 0
        used += own + len(GAP) * (bool(group) or k > 0)
        group.append(k)
    yield group


def _cell(cell: Cell) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else number(cell)


def _th(text: str, side: str) -> str:
    return f'<th style="text-align: {side}">{escaped(text)}</th>'


def _td(text: str, side: str) -> str:
    return f'<td style="text-align: {side}; white-space: {"normal" if " " in text else "nowrap"}">{escaped(text)}</td>'
