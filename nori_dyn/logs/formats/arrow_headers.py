"""Sizes of the batches of Arrow's files and streams, from their headers: nothing is decompressed.

Each is a flatbuffer, which is read here as far as it takes. Of a compressed buffer the first eight bytes say what it
expands to; where they lie, decompressing fails, and needs no more than they say.

Source: Apache Arrow columnar format 1.5, "Serialization and Interprocess Communication", `Message.fbs`, `File.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

RECORD_BATCH, DICTIONARY_BATCH = "record batch", "dictionary"


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """Header of a batch.

    Attributes:
        is_dictionary: whether it is the dictionary of a column; all of these are in memory while a file is read.
        rows: how many rows it has.
        size: bytes of its buffers in memory.
    """

    is_dictionary: bool
    rows: int
    size: int


def batch_headers(file: Any, is_file: bool) -> list[BatchHeader]:
    """Headers of all batches.

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


def _header(message: Any) -> BatchHeader:
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
    return BatchHeader(is_dictionary, rows, size)


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
