"""CSV: commas, semicolons, tabs or spaces between cells, names in the first line or none; read in pieces."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.source import BLOCK, LogSource, SampleBlock, Stream, refusing, time_column
from nori_dyn.logs.formats.writer import DIGEST, FileSchema, Writer, digest_of, flat
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

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", flags=re.IGNORECASE)
"""A number whose decimals stand behind a comma."""

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
        has_commas: whether decimals stand behind commas, and something else between cells.
    """

    names: tuple[str, ...]
    delimiter: str | None
    data: int
    metadata: Mapping[str, str]
    numbers: tuple[bool, ...]
    dates: frozenset[int] = frozenset()
    has_lists: bool = False
    has_commas: bool = False


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
    with_commas = [any(map(DECIMAL_COMMA.fullmatch, cells(line, delimiter))) for _, line in rest[:SAMPLE]]
    has_commas = delimiter != "," and any(with_commas)
    if has_commas:
        rest = [(n, line.replace(",", ".") if k or with_commas[0] else line) for k, (n, line) in enumerate(rest)]
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
    numbers = [
        k in dates or any(is_number(cell) or DECIMAL_COMMA.fullmatch(cell) for cell in column)
        for k, column in enumerate(columns)
    ]
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
        has_commas,
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
    if DECIMAL_COMMA.fullmatch(found[column]):
        advice = "Decimal commas are not read where commas stand between cells too: write semicolons between cells."
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


PIECE = 1 << 22
"""Bytes that are read at once."""

LONGEST = 1 << 26
"""Bytes of a line, at most: what has longer ones is no table."""

LARGE = 1 << 20
"""Bytes of a piece from which on pyarrow reads it, where it is installed: five times as fast, and slow to import."""

METADATA = "-metadata.json"
"""How the name ends of the file beside a table that says what it holds."""

Piece = tuple[int, bytes]
"""Whole lines, and the number of the first."""


class CsvSource(LogSource):
    """A table of text.

    An empty cell is nan. Empty lines, and lines that begin with #, are left alone; before the names a # may stand. What
    stands in columns that are not asked for is not looked at. Of a file that was cut off the lines that are whole are
    read, with a warning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends_early = False
        self._has_commas = False
        first = next(self._pieces(), (1, b""))
        self._head = read_head(path, _lines(path, first)[:1000])
        head = self._head
        self._has_commas = head.has_commas
        columns = tuple(name for name, is_numeric in zip(head.names, head.numbers, strict=True) if is_numeric)
        units, beside = _described(path)
        self.metadata = {**head.metadata, **beside}
        units = {name: unit for name, unit in units.items() if name in columns}
        dates = {head.names[k]: "s" for k in sorted(head.dates)}
        clock = time_column(columns) or next(iter(dates), None)
        self.streams = (Stream("", columns, clock, None, {**dates, **units}),)

    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        columns = [self._head.names.index(name) for name in wanted[""]]
        done = 0
        for piece in self._pieces():
            if self._is_cut(piece):
                message = f"{self.path}:{piece[0]}: the last line is cut off, and left out."
                warnings.warn(message, NoriWarning, stacklevel=2)
                break
            table = self._parse(piece, columns)
            for start in range(0, len(table), BLOCK):
                rows = table[start : start + BLOCK]
                yield SampleBlock("", done + start, tuple(rows.T))
            done += len(table)

    def place(self, stream: str, sample: int) -> str:
        done = 0
        for piece in self._pieces():
            rows = self._rows(piece)
            if sample < done + len(rows):
                return f"{self.path}:{rows[sample - done][0]}"
            done += len(rows)
        return super().place(stream, sample)

    def _rows(self, piece: Piece) -> list[tuple[int, str]]:
        """The lines of a piece with numbers."""
        head, lines = self._head, _lines(self.path, piece)
        rows = [(n, line) for n, line in lines if n >= head.data and not line.lstrip().startswith("#")]
        return [(n, opened(line, head.delimiter)) for n, line in rows] if head.has_lists else rows

    def _pieces(self) -> Iterator[Piece]:
        """Yield lines, some megabytes at once; one without an end, which comes last, by itself.

        Raises:
            FileFormatError: the file cannot be read, or has no lines.
        """
        n, rest = 1, b""
        with refusing(f"{self.path}: is damaged or not text"):
            size = max(self.path.stat().st_size, 1)
            with self.path.open("rb") as raw:
                file: Any = gzip.GzipFile(fileobj=raw) if self.path.name.endswith(".gz") else raw
                while content := self._read(file, n == 1 and not rest):
                    self._share = raw.tell() / size
                    end = content.rfind(b"\n") + 1
                    if not end:
                        rest += content
                        if len(rest) > LONGEST:
                            raise FileFormatError(f"{self.path}:{n}: is not a line of text.")
                        continue
                    yield n, (piece := self._with_points(rest + content[:end]))
                    n += piece.count(b"\n")
                    rest = content[end:]
                if rest and not self._ends_early:
                    yield n, self._with_points(rest)

    def _with_points(self, content: bytes) -> bytes:
        return content.replace(b",", b".") if self._has_commas else content

    def _read(self, file: Any, is_first: bool) -> bytes:
        """Read the next megabytes of a file, of a truncated one what is left.

        Raises:
            EOFError: nothing is there of a file that was cut off.
        """
        parts: list[bytes] = []
        try:
            while sum(map(len, parts)) < PIECE and (part := file.read1(PIECE)):
                parts.append(part)
        except EOFError:
            if is_first and not parts:
                raise
            if not self._ends_early:
                message = f"{self.path}: is cut off; the lines that are whole are read."
                warnings.warn(message, NoriWarning, stacklevel=2)
            self._ends_early = True
        return b"".join(parts)

    def _is_cut(self, piece: Piece) -> bool:
        """Whether a piece is a line that ends within its last cell."""
        rows = [] if piece[1].endswith(b"\n") else self._rows(piece)
        found = cells(rows[0][1], self._head.delimiter) if rows else []
        if len(found) != len(self._head.names):
            return 0 < len(found) < len(self._head.names)
        return self._head.numbers[-1] and not is_number(found[-1]) and is_number(f"{found[-1]}0")

    def _parse(self, piece: Piece, columns: Sequence[int]) -> Floats:
        """Numbers (N, columns) of a piece of a file."""
        dates = [column for column in columns if column in self._head.dates]
        if dates:  # the others, which are many, the faster way
            rest = [column for column in columns if column not in self._head.dates]
            slow = parse_slowly(self.path, self._head, self._rows(piece), dates)
            parts = dict(zip((*dates, *rest), np.hstack([slow, self._parse(piece, rest)]).T, strict=True))
            return np.column_stack([parts[column] for column in columns])
        n, content = piece
        if (
            n > self._head.data
            and len(content) > LARGE
            and (table := _parse_large(content, self._head, columns)) is not None
        ):
            return table
        rows = self._rows(piece)
        if not rows or not columns:
            return np.empty((len(rows), len(columns)))
        lines = [line for _, line in rows]
        delimiter = self._head.delimiter
        separators = (len(self._head.names) - 1) * len(lines)
        is_even = delimiter is None or sum(line.count(delimiter) for line in lines) == separators
        try:
            if is_even:
                used = None if delimiter is None else columns
                table = np.loadtxt(lines, delimiter=delimiter, ndmin=2, usecols=used)
                if delimiter is not None:
                    return table
                if table.shape[1] == len(self._head.names):
                    return table[:, columns]
        except ValueError:  # the slower way: for empty or quoted cells, and to say what is wrong where
            pass
        return parse_slowly(self.path, self._head, rows, columns)


def _parse_large(content: bytes, head: Head, columns: Sequence[int]) -> Floats | None:
    """Numbers of many lines by pyarrow's parser; None if it cannot parse them or is not installed."""
    if head.delimiter is None or head.has_lists or b"#" in content:
        return None
    try:
        from pyarrow import ArrowInvalid, csv, float64
    except ImportError:
        return None
    names = [str(k) for k in range(len(head.names))]
    wanted = [names[k] for k in columns]
    try:
        table = csv.read_csv(
            io.BytesIO(content),
            csv.ReadOptions(column_names=names, block_size=len(content) + 1, use_threads=True),
            csv.ParseOptions(delimiter=head.delimiter),
            csv.ConvertOptions(
                include_columns=list(dict.fromkeys(wanted)),
                column_types=dict.fromkeys(wanted, float64()),
                null_values=[""],
            ),
        )
    except ArrowInvalid:
        return None
    return np.column_stack([table.column(name).to_numpy() for name in wanted])


def _lines(path: Path, piece: Piece) -> list[tuple[int, str]]:
    """The non-empty lines, with their numbers.

    Raises:
        FileFormatError: they are no text.
    """
    n, content = piece
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileFormatError(f"{path}: is text in UTF-16, as Excel and PowerShell write it. Save it in UTF-8.")
    with refusing(f"{path}: is damaged or not text"):
        text = content.decode("utf-8-sig" if n == 1 else "utf-8")  # Excel marks the beginning
    return [(k, line) for k, line in enumerate(text.split("\n"), start=n) if line.strip()]


class CsvWriter(Writer):
    """A table of text with names in the first line, and nothing but numbers below: any program reads it.

    What else is known of it, units and metadata, stands beside it in `NAME.csv-metadata.json`, as the W3C's "CSV on the
    Web" has it: remarks in the table itself would be rows to programs that know of none.
    """

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        self._raw = path.open("wb")
        self._file: Any = self._raw
        if path.name.endswith(".gz"):
            self._file = gzip.GzipFile(fileobj=self._raw, filename="", mode="wb", mtime=0, compresslevel=6)
        self._file.write((",".join(map(_quoted, schema.labels)) + "\n").encode())
        self._line = ",".join(["%.17g"] * len(schema.labels)) + "\n"

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        table = flat(self.schema, t, values)
        for start in range(0, len(table), 1024):  # all at once would take a hundred bytes a number
            rows = table[start : start + 1024]
            self._file.write((self._line * len(rows) % tuple(rows.ravel().tolist())).encode())

    def close(self) -> None:
        with self._raw:
            self._file.close()
        path, schema = self.path, self.schema
        columns = [
            {"titles": label, "datatype": "number"} | ({"schema:unitText": unit} if unit else {})
            for label, unit in zip(schema.labels, schema.units, strict=True)
        ]
        table = {"@context": "http://www.w3.org/ns/csvw", "url": path.name, "tableSchema": {"columns": columns}}
        metadata = {**schema.metadata, DIGEST: digest_of(path)}
        metadata = {key.replace(".", ":", 1): value for key, value in metadata.items()}
        _beside(path).write_bytes(json.dumps(table | metadata, ensure_ascii=False, indent=1).encode())


def _beside(path: Path) -> Path:
    """Path of the metadata file beside a table."""
    return path.with_name(f"{path.name}{METADATA}")


def _described(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Units of the columns and other metadata from the file beside a table; empty without one."""
    try:
        table = json.loads(_beside(path).read_bytes())
        units = {str(each["titles"]): str(each.get("schema:unitText", "")) for each in table["tableSchema"]["columns"]}
        metadata = {key.replace(":", ".", 1): value for key, value in table.items() if isinstance(value, str)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}, {}
    return {k: unit for k, unit in units.items() if unit}, {
        k: v for k, v in metadata.items() if k[0] != "@" and k != "url"
    }


def _quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if any(c in label for c in ',"\n#') else label
