"""The parts of what is shown: paragraphs, lists, facts and tables, each as lines of text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsFloat, TypeAlias

from nori_dyn.tables.words import characters, emphasised, escaped, number, plain, wrapped

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
