"""Arrow's tables: Parquet, and Arrow's own files and streams (Feather); some columns at a time, batch by batch.

How large batches are in memory is known from their headers before anything is decompressed. Each is a flatbuffer, which
is read here as far as it takes. Of a compressed buffer the first eight bytes say what it expands to; where they lie,
decompressing fails, and needs no more than they say.

Source: Apache Arrow columnar format 1.5, "Serialization and Interprocess Communication", `Message.fbs`, `File.fbs`.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.source import BLOCK, LogSource, SampleBlock, Stream, refusing, time_column
from nori_dyn.logs.formats.writer import FileSchema, Writer, columns_of
from nori_dyn.typing import Floats

RECORD_BATCH, DICTIONARY_BATCH = "record batch", "dictionary"


def batch_headers(file: Any, is_file: bool) -> list[tuple[bool, int, int]]:
    """Headers of all batches: whether one is the dictionary of a column, its rows, and bytes of its buffers in memory.

    All dictionaries are in memory while a file is read.

    Args:
        file: a file of Arrow's, or one that holds a stream.
        is_file: whether it is the former.

    Raises:
        ValueError: a header that cannot be.
        pyarrow.ArrowException: it is damaged.
    """
    found = []
    for message in _of_file(file) if is_file else _of_stream(file):
        if message.type in (RECORD_BATCH, DICTIONARY_BATCH):
            try:
                found.append(_header(message))
            except struct.error:
                raise ValueError("the header of a batch is cut short") from None
    return found


def _of_stream(file: Any) -> Iterator[Any]:
    file.seek(0)
    yield from pa.ipc.MessageReader.open_stream(file)


def _of_file(file: Any) -> Iterator[Any]:
    """Yield the messages that the footer names, which are those that are read: others may lie between them."""
    end = file.size() - 10
    file.seek(end)
    (size,) = struct.unpack("<i", file.read(4))
    if not 0 < size <= end:
        raise ValueError(f"its footer of {size} bytes is invalid")
    file.seek(end - size)
    footer = file.read(size)
    try:
        (root,) = struct.unpack_from("<I", footer)
        blocks = [at for part in (2, 3) for at in _vector(footer, root, part, 24)]
        offsets = [struct.unpack_from("<q", footer, at)[0] for at in blocks]
    except struct.error:
        raise ValueError("its footer is cut short") from None
    for offset in offsets:
        file.seek(offset)
        yield pa.ipc.read_message(file)


def _header(message: Any) -> tuple[bool, int, int]:
    header, body = message.metadata.to_pybytes(), message.body
    batch = _table(header, struct.unpack_from("<I", header)[0], 2)
    is_dictionary = message.type == DICTIONARY_BATCH
    if is_dictionary:
        batch = _table(header, batch, 1)
    at = _entry(header, batch, 0)
    (rows,) = struct.unpack_from("<q", header, at) if at else (0,)
    is_compressed = bool(_entry(header, batch, 3))
    size = 0
    for place in _vector(header, batch, 2, 16):
        offset, length = struct.unpack_from("<qq", header, place)
        if offset < 0 or length < 0 or (is_compressed and 0 < length < 8):
            raise ValueError(f"it has a buffer of {length} bytes at {offset}")
        if is_compressed and length:
            (expanded,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            length = length - 8 if expanded == -1 else expanded
        size += length
        if length < 0:
            raise ValueError(f"it has a buffer that expands to {length} bytes")
    if rows < 0:
        raise ValueError(f"it has a batch of {rows} rows")
    return is_dictionary, rows, size


def _entry(data: bytes, table: int, number: int) -> int:
    """Offset of an entry of a flatbuffer's table; 0 if it is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, vtable)
    (offset,) = struct.unpack_from("<H", data, vtable + 4 + 2 * number) if 4 + 2 * number < size else (0,)
    return table + offset if offset else 0


def _table(data: bytes, table: int, number: int) -> int:
    """Offset of the table that an entry points to."""
    at = _entry(data, table, number)
    if not at:
        raise ValueError("it has a header without a batch")
    return at + int(struct.unpack_from("<I", data, at)[0])


def _vector(data: bytes, table: int, number: int, width: int) -> list[int]:
    """Offsets of the elements of a vector, of a given size each."""
    at = _entry(data, table, number)
    if not at:
        return []
    start = at + struct.unpack_from("<I", data, at)[0]
    (n,) = struct.unpack_from("<I", data, start)
    if start + 4 + n * width > len(data):
        raise ValueError(f"it has a header of {n:,} parts")
    return [start + 4 + width * k for k in range(n)]


NUMBERS = 5 << 17
"""Numbers of a block, at most: Parquet takes several times their memory."""

BUFFER = 1 << 16
"""Bytes of a column that are read at once: without it all of a row group would be."""

GROUP = 1 << 15
"""Samples of a row group of Parquet."""

LARGEST_BATCH, EXPANDS = 1 << 30, 16
"""Bytes that a record batch may have in memory, and how many times those of its file, whichever is more."""

LONGEST_LIST, LARGEST_BLOCK = 1 << 16, BLOCK << 10
"""Numbers of a list in a sample, and of a block, at most."""

DAMAGE = ": is damaged, or not what its name says"

SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ArrowSource(LogSource):
    """A table of Arrow's types: numbers, times, lists of one length `q[0]`, structures `imu.x`; text is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with refusing(f"{path}{DAMAGE}"):
            schema, samples = self._opened()
            head = next(self._batches(schema.names), None) if any(map(_varies, schema.types)) else None
            if head is not None:
                head.validate(full=True)
            units, metadata = {each.name: _unit(each) for each in schema}, _metadata(schema)
        self._places: dict[str, str] = {}
        self.metadata = {key: value for key, value in metadata.items() if key not in ("pandas", "ARROW:schema")}
        for each in schema:
            sample = head.column(each.name)[:1] if head is not None and len(head) else None
            with refusing(str(path)):
                columns = _columns(each.name, each.type, sample)
            for column in columns:
                if column in self._places:
                    raise self._twice(column)
                self._places[column] = each.name
        if not self._places:
            raise FileFormatError(f"{path}: holds no columns of numbers.")
        of_columns = {column: units[name] for column, name in self._places.items() if units[name]}
        times = next((each.name for each in schema if pa.types.is_timestamp(each.type)), None)
        clock = time_column(self._places) or times
        self.streams = (Stream("", tuple(self._places), clock, samples, of_columns),)

    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        columns = wanted[""]
        fields = list(dict.fromkeys(self._places[column] for column in columns))
        start, samples = 0, self.streams[0].samples
        step = max(1, min(BLOCK, LARGEST_BLOCK // sum(name in fields for name in self._places.values())))
        with refusing(f"{self.path}{DAMAGE}"):
            for batch in self._batches(fields):
                batch.validate(full=True)
                for begin in range(0, batch.num_rows, step):
                    part = batch.slice(begin, step)
                    found: dict[str, Floats] = {}
                    for each in fields:
                        found.update(_numbers(each, part.column(each), self._places))
                    n, lacking = part.num_rows, np.full(part.num_rows, np.nan)
                    yield SampleBlock("", start, tuple(found.get(column, lacking) for column in columns))
                    start += n
                    self._share = start / samples if samples else None
        if samples is not None and start != samples:
            raise FileFormatError(f"{self.path}: is damaged: it holds {start} of the {samples} rows that it declares.")

    def _opened(self) -> tuple[Any, int | None]:
        """Schema, and the number of samples where it is known."""
        with pa.memory_map(str(self.path)) as file:
            is_file = _is_file(self.path)
            schema = (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).schema
            headers = batch_headers(file, is_file)
            batches = [(rows, size) for is_dictionary, rows, size in headers if not is_dictionary]
            width, size = len(schema) * 8, self.path.stat().st_size
            most = max((max(expanded, width * rows) for rows, expanded in batches), default=0)
            most += sum(expanded for is_dictionary, _, expanded in headers if is_dictionary)
            if most > max(LARGEST_BATCH, EXPANDS * size):
                raise FileFormatError(
                    f"{self.path}: {size / 1e3:,.0f} kB of it expand to {most / 1e9:,.1f} GB at once. Write it in "
                    "record batches of some thousand rows."
                )
            return schema, sum(rows for rows, _ in batches) if is_file else None

    def _batches(self, fields: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with some fields."""
        with pa.OSFile(str(self.path)) as file:
            is_file = _is_file(self.path)
            names = (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).schema.names
            options = pa.ipc.IpcReadOptions(included_fields=[names.index(each) for each in fields])
            file.seek(0)
            if is_file:
                reader = pa.ipc.open_file(file, options=options)
                yield from (reader.get_batch(k) for k in range(reader.num_record_batches))
            else:
                yield from pa.ipc.open_stream(file, options=options)


class ParquetSource(ArrowSource):
    """A Parquet file, row group by row group, in memory that does not grow with them."""

    def _opened(self) -> tuple[Any, int | None]:
        with pq.ParquetFile(self.path) as file:
            return file.schema_arrow, file.metadata.num_rows

    def _batches(self, fields: Sequence[str]) -> Iterator[Any]:
        with pq.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False) as file:
            rows = max(1024, min(BLOCK, NUMBERS // max(1, len(fields))))
            yield from file.iter_batches(rows, columns=list(fields), use_threads=True)


def _metadata(of: Any) -> dict[str, str]:
    """Metadata of a schema or a field."""
    return {key.decode(): value.decode() for key, value in (of.metadata or {}).items()}


def _unit(each: Any) -> str:
    metadata = _metadata(each)
    return metadata.get("unit") or metadata.get("units") or ""


def _is_file(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _varies(kind: Any) -> bool:
    """Whether the number of columns is known from samples only."""
    if pa.types.is_struct(kind):
        return any(_varies(each.type) for each in kind)
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _columns(name: str, kind: Any, sample: Any) -> list[str]:
    """Names of the columns of a field; a list has as many as its first sample."""
    if _is_number(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return [name]
    if pa.types.is_struct(kind):
        parts = [None] * kind.num_fields if sample is None else sample.flatten()
        return [
            c for each, part in zip(kind, parts, strict=True) for c in _columns(f"{name}.{each.name}", each.type, part)
        ]
    if _is_list(kind) and _is_number(kind.value_type):
        fixed = pa.types.is_fixed_size_list(kind)
        size = kind.list_size if fixed else len(sample[0]) if sample is not None and sample[0].is_valid else 0
        if size > LONGEST_LIST:
            raise ValueError(f"'{name}' has {size:,} numbers in a sample, and more than {LONGEST_LIST:,} are not read")
        return [f"{name}[{k}]" for k in range(size)]
    return []


def _numbers(name: str, array: Any, known: Collection[str]) -> dict[str, Floats]:
    """Columns (n,) of a field, without a copy where its type allows it.

    Args:
        name: the field.
        array: what it holds.
        known: all columns, which are as many of a list as its first sample has.
    """
    kind = array.type
    if pa.types.is_float64(kind):  # what casts takes a while to load
        return {name: _doubles(array)}
    if _is_number(kind):
        return {name: _doubles(array.cast(pa.float64(), safe=False))}
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return {name: _doubles(array.cast(pa.int64()).cast(pa.float64(), safe=False)) / SECONDS[kind.unit]}
    if pa.types.is_struct(kind):
        parts = zip(kind, array.flatten(), strict=True)
        return {c: x for each, part in parts for c, x in _numbers(f"{name}.{each.name}", part, known).items()}
    if _is_list(kind) and _is_number(kind.value_type):
        sizes = (
            array.value_lengths() if not pa.types.is_fixed_size_list(kind) else pa.array([kind.list_size] * len(array))
        )
        sizes = sizes.fill_null(0).to_numpy(zero_copy_only=False)
        width = next(k for k in itertools.count() if f"{name}[{k}]" not in known)
        flat = _numbers("", array.flatten(), ())[""]
        if array.null_count or (sizes != width).any():
            starts = np.cumsum(sizes) - sizes
            there = np.arange(width) < np.minimum(sizes, width)[:, None]
            table = np.full((len(array), width), np.nan)
            table[there] = flat[(starts[:, None] + np.arange(width))[there]]
        else:
            table = flat.reshape(len(array), width)
        return {f"{name}[{k}]": column for k, column in enumerate(table.T)}
    return {}


def _doubles(array: Any) -> Floats:
    """An array of doubles (n,) from Arrow's buffers, since Arrow's `to_numpy` loads pandas; nan for nulls."""
    if array.null_count:
        array = array.fill_null(np.nan)
    if not len(array):
        return np.zeros(0)
    return np.frombuffer(array.buffers()[1], dtype=float, count=len(array), offset=8 * array.offset)


def _of_doubles(column: Floats) -> Any:
    """An Arrow array as doubles (n,), without a copy where it is contiguous."""
    return pa.Array.from_buffers(
        pa.float64(), len(column), [None, pa.py_buffer(np.ascontiguousarray(column, dtype=float))]
    )


class ArrowWriter(Writer):
    """An Arrow file with a column a number, the unit of each in the metadata of its field."""

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        fields = [
            pa.field(label, pa.float64(), metadata={"unit": unit} if unit else None)
            for label, unit in zip(schema.labels, schema.units, strict=True)
        ]
        self._schema = pa.schema(fields, metadata=dict(schema.metadata))
        self._sink = self._opened()
        self._waiting: list[Any] = []
        self._rows = 0

    def _opened(self) -> Any:
        return pa.ipc.new_file(str(self.path), self._schema)

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        columns = [_of_doubles(column) for column in columns_of(self.schema, t, values)]
        self._waiting.append(pa.record_batch(columns, schema=self._schema))
        self._rows += self._waiting[-1].num_rows
        if self._rows >= GROUP:
            self._write_waiting()

    def close(self) -> None:
        self._write_waiting()
        self._sink.close()

    def _write_waiting(self) -> None:
        if self._rows:
            table = pa.Table.from_batches(self._waiting)
            self._waiting, self._rows = [], 0
            self._sink.write_table(table, table.num_rows)


class ParquetWriter(ArrowWriter):
    """A Parquet file with a column a number, the unit of each in the metadata of its field.

    Estimates repeat nothing, so they have no dictionaries, which would take ten times as long, and are not compressed,
    which would take half as long again for a hundredth of their size.
    """

    def _opened(self) -> Any:
        return pq.ParquetWriter(
            self.path, self._schema, compression="none", use_dictionary=False, write_statistics=False
        )
