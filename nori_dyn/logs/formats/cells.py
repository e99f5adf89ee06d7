"""Syntax of a text table: its delimiter, its header, and errors that name the line."""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.typing import Floats

DELIMITERS = ",;\t "
SAMPLE = 10
"""Number of lines that are looked at to find what stands between columns."""

END = "endheader"
"""The line that ends the header of OpenSim's tables."""

WIDE = 100
"""How many times more columns than lines a table without names has whose samples stand side by side."""

LIST = re.compile(r'"?[\[(]([^\[\]()"]*)[\])]"?')
"""A cell that holds several numbers, as a list of Python, an array of NumPy or a vector of MATLAB is written."""

Lines: TypeAlias = Sequence[tuple[int, str]]
"""Lines of a file that are not empty, with their numbers from 1."""


@dataclass(frozen=True, slots=True)
class Head:
    """Header of a table, from its first lines.

    Attributes:
        names: the name of each cell of a line; "column[k]" where none is given.
        delimiter: what stands between cells; None for spaces, any number of them.
        data: the number of the first line of numbers.
        metadata: of the remarks `# key: value` above it.
        numbers: for each cell whether a number, or a time, stands there in one of the first lines, under its own name.
        dates: which cells hold times such as 2024-05-01T12:30:00.5.
        has_lists: whether cells hold lists, whose numbers are cells of their own: see `opened`.
    """

    names: tuple[str, ...]
    delimiter: str | None
    data: int
    metadata: Mapping[str, str]
    numbers: tuple[bool, ...]
    dates: frozenset[int] = frozenset()
    has_lists: bool = False


def read_head(path: Path, lines: Lines) -> Head:
    """Header of a table: what its first lines say.

    The first line that is no remark names the columns, unless it holds numbers: then the last remark above it does, if
    it has as many cells, and else nothing does. OpenSim's header ends with a line of its own, and is left out.

    Raises:
        FileFormatError: there is no line, or samples stand in columns.
    """
    lines = lines[next((k + 1 for k, (_, line) in enumerate(lines) if line.strip().lower() == END), 0) :]
    remarks = [(n, line.lstrip("# ")) for n, line in lines if line.lstrip().startswith("#")]
    rest = [(n, line) for n, line in lines if not line.lstrip().startswith("#")]
    if not rest and not remarks:
        raise FileFormatError(f"{path}: is empty.")
    delimiter = _delimiter([line for _, line in (rest or remarks)[:SAMPLE]])
    first = cells(rest[0][1], delimiter) if rest else []
    above = [line for n, line in remarks if not rest or n < rest[0][0]]
    names: Sequence[str]
    if not rest:
        names, rows = cells(above[0], delimiter), []
    elif any(map(is_number, first)) and all(is_number(cell) or is_date(cell) or not cell for cell in first):
        rows = rest
        titles = cells(above[-1], delimiter) if above else []
        names = titles if len(titles) == len(first) else [f"column[{k}]" for k in range(len(first))]
        if len(first) > WIDE * max(len(rows), SAMPLE):
            raise FileFormatError(
                f"{path}: has {len(first):,} numbers a line and few lines: samples seem to stand side by side. Turn "
                f"it: python -c \"from numpy import *; savetxt('turned.txt', loadtxt('{path}').T)\""
            )
    else:
        names, rows = first, rest[1:]
    names = [name or f"column[{k}]" for k, name in enumerate(names)]
    sizes = [_numbers_in(cell) for cell in cells(rows[0][1], delimiter)] if rows else []
    if has_lists := len(sizes) == len(names) and any(sizes):
        rows = [(n, opened(line, delimiter)) for n, line in rows]
        parts = ([f"{name}[{k}]" for k in range(n)] or [name] for name, n in zip(names, sizes, strict=True))
        names = [name for part in parts for name in part]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        more = f" and {len(twice) - 1} more names" if twice[1:] else ""
        what = f"{path}: has two columns '{twice[0]}'{more}, which are not read. Rename or remove one of the two."
        warnings.warn(what, NoriWarning, stacklevel=2)
    found = [cells(line, delimiter) for _, line in rows[:SAMPLE]]
    columns = [[row[k] for row in found if k < len(row)] for k in range(len(names))]
    dates = frozenset(k for k, column in enumerate(columns) if any(map(is_date, column)))
    numbers = [k in dates or any(map(is_number, column)) for k, column in enumerate(columns)]
    is_read = [(own or not any(numbers)) and name not in twice for own, name in zip(numbers, names, strict=True)]
    described = (re.fullmatch(r"([\w.]+): (.*)", line.strip()) for n, line in remarks if not rows or n < rows[0][0])
    return Head(
        tuple(names),
        delimiter,
        rows[0][0] if rows else lines[-1][0] + 1,
        {match[1]: match[2] for match in described if match},
        tuple(is_read),
        dates,
        has_lists,
    )


def opened(line: str, delimiter: str | None) -> str:
    """A line whose cells that hold lists are as many cells as numbers."""
    return LIST.sub(lambda match: (delimiter or " ").join(match[1].replace(",", " ").split()), line)


def _numbers_in(cell: str) -> int:
    """How many numbers a cell holds as a list; 0 if it is none."""
    match = LIST.fullmatch(cell)
    found = match[1].replace(",", " ").split() if match else []
    return len(found) if all(map(is_number, found)) else 0


def cells(line: str, delimiter: str | None) -> list[str]:
    """Cells of a line, stripped of spaces and quotes."""
    if delimiter is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
    except csv.Error:  # a cell that is longer than it takes
        return [cell.strip() for cell in line.split(delimiter)]


def parse_slowly(path: Path, head: Head, rows: Lines, wanted: Sequence[int]) -> Floats:
    """Numbers (N, wanted) of lines with empty or quoted cells, or dates; nan for an empty cell.

    Raises:
        FileFormatError: a cell is no number, or a row has more or fewer cells than there are names; says where.
    """
    table = np.empty((len(rows), len(wanted)))
    for k, (n, line) in enumerate(rows):
        found = cells(line, head.delimiter)
        if len(found) != len(head.names):
            raise _ragged(path, n, len(found), head)
        for j, column in enumerate(wanted):
            cell = found[column]
            try:
                number = _seconds if column in head.dates else float
                table[k, j] = number(cell) if cell else math.nan
            except ValueError:
                raise _no_number(path, n, head, found, column, is_first=n == head.data) from None
    return table


def is_number(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_date(cell: str) -> bool:
    """Whether a cell holds a date and time of ISO 8601."""
    try:
        _seconds(cell)
    except ValueError:
        return False
    return not is_number(cell)


def _seconds(cell: str) -> float:
    """Seconds since 1970 of a date and time, in UTC unless it has a time zone."""
    time = datetime.fromisoformat(cell)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _delimiter(sample: Sequence[str]) -> str | None:
    try:
        found = csv.Sniffer().sniff("\n".join(sample), DELIMITERS).delimiter
    except csv.Error:  # too few lines, or uneven ones
        found = next((each for each in ";\t," if each in sample[0]), "," if len(sample[0].split()) < 2 else " ")
    return None if found == " " else found


def _no_number(path: Path, n: int, head: Head, found: Sequence[str], column: int, is_first: bool) -> FileFormatError:
    if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", found[column], flags=re.IGNORECASE):
        advice = f"Decimal commas are not read. Write points: sed 's/,/./g' {path} > points.csv"
    elif is_first and not any(is_number(cell) for cell in found if cell):
        advice = "A line of units, or of other names? Remove it: below the names stand numbers only."
    else:
        advice = "Leave the cell empty where there is no reading."
    return FileFormatError(
        f"{path}:{n}: column '{head.names[column]}' is '{found[column]:.40}', which is not a number. {advice}"
    )


def _ragged(path: Path, n: int, found: int, head: Head) -> FileFormatError:
    hint = ""
    if head.delimiter == "," and found == 2 * len(head.names):
        hint = " Decimal commas? Write decimal points."
    named = "the first line names" if head.names[0] != "column[0]" else "the first line of numbers has"
    return FileFormatError(f"{path}:{n}: has {found} cells, and {named} {len(head.names)} columns.{hint}")
