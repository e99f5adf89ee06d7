"""Small Feather files whose headers lie took all memory, or the processor for minutes; they are refused by name now."""

import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.registry import open_log
from tests.peers import Peer

pa = Peer("pyarrow")

ROOM = 400 << 20
"""Bytes of memory beyond those of the process in which all of this is done."""

N = 1000
NUMBERS = {"t": np.arange(N) / 100, "q": np.ones(N), "small": np.arange(N) % 100}


@contextmanager
def little_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def written(path: Path, table=None, compression: str | None = "zstd", stream: bool = False) -> bytearray:
    """Write a table, and return its bytes."""
    table = pa.table(NUMBERS) if table is None else table
    options = pa.ipc.IpcWriteOptions(compression=compression)
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as file, opened(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytearray(path.read_bytes())


class Batch:
    """The first record batch of a file, by the flatbuffers of `Message.fbs`: places of its numbers."""

    def __init__(self, content: bytearray) -> None:
        self.content = content
        at = 8 if content.startswith(b"ARROW1") else 0
        while True:
            (size,) = struct.unpack_from("<i", content, at + 4)
            root = at + 8 + struct.unpack_from("<I", content, at + 8)[0]
            self.body, body_length = at + 8 + size, self.entry(root, 3)
            if content[self.entry(root, 1)] == 3:
                break
            at = self.body + (struct.unpack_from("<q", content, body_length)[0] if body_length else 0)
        header = self.entry(root, 2)
        self.batch = header + struct.unpack_from("<I", content, header)[0]

    def entry(self, table: int, number: int) -> int:
        vtable = table - struct.unpack_from("<i", self.content, table)[0]
        size, place = struct.unpack_from("<H", self.content, vtable)[0], 4 + 2 * number
        (offset,) = struct.unpack_from("<H", self.content, vtable + place) if place < size else (0,)
        return table + offset if offset else 0

    def vector(self, number: int) -> list[int]:
        at = self.entry(self.batch, number)
        start = at + struct.unpack_from("<I", self.content, at)[0]
        return [start + 4 + 16 * k for k in range(struct.unpack_from("<I", self.content, start)[0])]

    def put(self, at: int, number: int) -> None:
        struct.pack_into("<q", self.content, at, number)

    def set_rows(self, number: int) -> None:
        for at in (self.entry(self.batch, 0), *self.vector(1)):
            self.put(at, number)

    def set_lengths(self, number: int) -> None:
        for at in self.vector(2):
            self.put(at + 8, number)

    def set_expanded(self, number: int) -> None:
        for at in self.vector(2):
            offset, length = struct.unpack_from("<qq", self.content, at)
            if length:
                self.put(self.body + offset, number)


LIES: dict[str, tuple[Callable[[Batch], None], str | None, str]] = {
    "rows": (lambda batch: batch.set_rows(1 << 40), "zstd", r"expand to [\d,.]+ GB at once"),
    "rows below zero": (lambda batch: batch.set_rows(-1), "zstd", "it has a batch of -1 rows"),
    "more rows than there are": (lambda batch: batch.set_rows(N + 1), None, "Buffer #1 too small"),
    "lengths": (lambda batch: batch.set_lengths(1 << 40), None, r"expand to [\d,.]+ GB at once"),
    "lengths below zero": (lambda batch: batch.set_lengths(-8), None, "it has a buffer of -8 bytes"),
    "what expands": (lambda batch: batch.set_expanded(1 << 31), "zstd", r"kB of it expand to [\d.]+ GB at once"),
    "much that expands": (lambda batch: batch.set_expanded(1 << 62), "lz4", r"expand to [\d,.]+ GB at once"),
    "what expands to less than nothing": (lambda batch: batch.set_expanded(-2), "zstd", "expands to -2 bytes"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("name", LIES)
def test_lengths_in_headers_are_checked_before_they_are_believed(name, stream, tmp_path):
    lie, compression, words = LIES[name]
    content = written(path := tmp_path / "log.feather", compression=compression, stream=stream)
    lie(Batch(content))
    path.write_bytes(content)
    with little_memory(), pytest.raises(FileFormatError, match=words), open_log(str(path)) as log:
        list(log.read({"": log.streams[0].columns}))


def test_a_batch_of_few_rows_whose_buffers_expand_without_bounds(tmp_path):
    """66 kB took 2.1 GB: the rows were counted, and not what is decompressed."""
    table = pa.table({"t": pa.array(np.zeros((1 << 30) + 1, dtype=np.int8))})
    content = written(path := tmp_path / "log.feather", table)
    del table
    Batch(content).set_rows(10)
    path.write_bytes(content)
    with little_memory(), pytest.raises(FileFormatError, match=r"kB of it expand to 1\.1 GB at once"):
        open_log(str(path))


def test_dictionaries_that_expand_without_bounds(tmp_path):
    """34 kB took 1 GB, though text is left out."""
    values = pa.array(np.zeros((1 << 30) + 1, dtype=np.int8))
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), values)
    written(tmp_path / "log.feather", pa.table({"t": [0.0], "q": [1.0], "d": column}))
    del values, column
    with little_memory(), pytest.raises(FileFormatError, match=r"kB of it expand to 1\.1 GB at once"):
        open_log(str(tmp_path / "log.feather"))


def test_a_batch_that_the_footer_names_is_looked_at_wherever_it_lies(tmp_path):
    """A file is read by its footer: what lies in the order of messages may be another one."""
    honest, lying = written(tmp_path / "a"), written(tmp_path / "log.feather")
    Batch(lying).set_expanded(1 << 40)
    footer = len(honest) - 10 - struct.unpack_from("<i", honest, len(honest) - 10)[0]
    body = bytes(lying[8:footer])
    content = honest[:footer] + body + honest[footer:]
    (offset,) = (k for k in range(footer, len(honest) - 8) if honest[k : k + 8] == struct.pack("<q", _first(honest)))
    struct.pack_into("<q", content, offset + len(body), _first(honest) + footer - 8)
    (tmp_path / "log.feather").write_bytes(content)
    with little_memory(), pytest.raises(FileFormatError, match=r"expand to [\d,.]+ GB at once"):
        open_log(str(tmp_path / "log.feather"))


def _first(content: bytearray) -> int:
    """Where the message of the first record batch begins."""
    with pa.BufferReader(bytes(content)) as file:
        file.seek(8)
        pa.ipc.read_message(file)
        return file.tell()


def test_lists_of_many_numbers_are_refused_and_longer_ones_than_the_first_are_cut(tmp_path):
    """A list type of 2^28 numbers kept the processor busy for minutes; one long list among short ones took 130 GB."""
    path = tmp_path / "log.feather"
    empty = pa.table({"t": pa.array([], pa.float64()), "q": pa.array([], pa.list_(pa.float64(), 1 << 28))})
    long = pa.table({"t": [0.0], "q": pa.array([np.zeros(1 << 20)])})
    for table in (empty, long):
        written(path, table)
        with (
            little_memory(),
            pytest.raises(FileFormatError, match=r"'q' has [\d,]+ numbers in a sample, and more than"),
        ):
            open_log(str(path))
    ends = np.concatenate([[0, 2, 4, 5], np.arange(5, 15_992), [1 << 20]]).astype(np.int32)
    lists = pa.ListArray.from_arrays(ends, np.arange(float(1 << 20)))
    written(path, pa.table({"t": np.arange(len(lists)) / 100, "q": lists}))
    with little_memory(), open_log(str(path)) as log:
        assert log.streams[0].columns == ("t", "q[0]", "q[1]")
        blocks = list(log.read({"": ("q[0]", "q[1]")}))
    first, second = (np.concatenate([block.values[k] for block in blocks]) for k in (0, 1))
    expected = [values[:2] + [np.nan] * (2 - len(values)) for values in lists[:-1].to_pylist()]
    np.testing.assert_array_equal(np.column_stack([first, second])[:-1], expected)
    assert (first[-1], second[-1]) == (15_991.0, 15_992.0)


def test_a_footer_that_names_the_end_of_the_batches_as_one(tmp_path):
    """It was a traceback: Arrow's own library raises EOFError there."""
    content = written(path := tmp_path / "log.feather")
    end = content.rindex(b"\xff\xff\xff\xff\0\0\0\0")
    first = Batch(content).body  # of the first batch, whose header begins before it
    block = max(
        place
        for start in range(first)
        if (place := content.find(struct.pack("<q", start), end + 8)) >= 0 and content[start : start + 4] == b"\xff" * 4
    )
    struct.pack_into("<q", content, block, end)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="is damaged, or not what its name says"):
        open_log(str(path))
