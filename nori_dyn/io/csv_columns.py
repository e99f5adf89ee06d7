"""Reading the columns of a CSV: commas, semicolons, tabs or spaces between them, names in the first line."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.files import read_bytes
from nori_dyn.typing import Floats, Indices

DELIMITERS = ",;\t "
SAMPLE = 10
"""Number of lines that are looked at to find what stands between columns."""

Lines: TypeAlias = Sequence[tuple[int, str]]
"""Lines of a file, with their numbers from 1."""


def csv_columns(path: str | Path) -> tuple[dict[str, Floats], Indices]:
    """Return the columns (N,) of a `.csv` or `.csv.gz` by name, and in which line each sample stands (N,).

    An empty cell is nan. Empty lines, and lines that begin with #, are left alone; before the names a # may stand.

    Raises:
        FileFormatError: it cannot be read, its first line names no columns, or a cell is no number; says where.
        InputError: it holds no samples.
    """
    (first, header), *rows = _lines(path) or [(1, "")]
    delimiter = _delimiter([header, *(line for _, line in rows[: SAMPLE - 1])])
    names = _cells(header.lstrip("# "), delimiter)
    if header.strip() and all(_is_number(name) for name in names):
        raise FileFormatError(
            f"{path}:{first}: the first line holds numbers. It must name the columns: q[0],q[1],... and so on."
        )
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"{path}: has two columns '{twice}'. Rename or remove one of the two.")
    rows = [(n, line) for n, line in rows if not line.lstrip().startswith("#")]
    if not rows:
        raise InputError(f"{path}: holds no samples.")
    try:
        table = np.loadtxt([line for _, line in rows], delimiter=delimiter, ndmin=2)
    except ValueError:  # the slower way: for empty or quoted cells, and to say what is wrong where
        table = _table(path, names, rows, delimiter)
    if table.shape[1] != len(names):
        raise _ragged(path, rows[0][0], table.shape[1], names, delimiter)
    return dict(zip(names, table.T, strict=True)), np.array([n for n, _ in rows], dtype=np.intp)


def _lines(path: str | Path) -> Lines:
    """Return the lines that are not empty.

    Raises:
        FileFormatError: the file cannot be read, or is not text.
    """
    content = read_bytes(path)
    try:
        if str(path).endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")  # Excel marks the beginning
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, MemoryError) as error:
        raise FileFormatError(f"{path}: is damaged or not text: {error}.") from None
    return [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _delimiter(sample: Sequence[str]) -> str | None:
    """Return what stands between columns; None for spaces, any number of them."""
    try:
        found = csv.Sniffer().sniff("\n".join(sample), DELIMITERS).delimiter
    except csv.Error:  # too few lines, or uneven ones
        found = next((each for each in ";\t," if each in sample[0]), ",")
    return None if found == " " else found


def _cells(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]


def _table(path: str | Path, names: Sequence[str], rows: Lines, delimiter: str | None) -> Floats:
    """Return the numbers of all rows (N, columns), nan where a cell is empty.

    Raises:
        FileFormatError: a cell is no number, or a row has more or fewer cells than there are names; says where.
    """
    table = np.empty((len(rows), len(names)))
    for k, (n, line) in enumerate(rows):
        cells = _cells(line, delimiter)
        if len(cells) != len(names):
            raise _ragged(path, n, len(cells), names, delimiter)
        try:
            table[k] = [float(cell) if cell else np.nan for cell in cells]
        except ValueError:
            name, cell = next((name, cell) for name, cell in zip(names, cells, strict=True) if not _is_number(cell))
            if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", cell, flags=re.IGNORECASE):
                advice = f"Decimal commas are not read. Write points: sed 's/,/./g' {path} > points.csv"
            elif k == 0 and not any(_is_number(cell) for cell in cells if cell):
                advice = "A line of units, or of other names? Remove it: below the names stand numbers only."
            else:
                advice = "Leave the cell empty where there is no reading."
            raise FileFormatError(
                f"{path}:{n}: column '{name}' is '{cell:.40}', which is no number. {advice}"
            ) from None
    return table


def _ragged(path: str | Path, n: int, found: int, names: Sequence[str], delimiter: str | None) -> FileFormatError:
    hint = ""
    if delimiter == "," and found == 2 * len(names):
        hint = " Decimal commas? Write decimal points."
    return FileFormatError(f"{path}:{n}: has {found} cells, and the first line names {len(names)} columns.{hint}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
