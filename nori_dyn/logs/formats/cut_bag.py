"""What is whole of a bag of ROS 1 without an index, as one has that was cut off while it was recorded.

A bag is records one after the other: a header of fields `name=value`, and data, each with its length before it. Chunks
hold messages, and the connections that these are of (http://wiki.ros.org/Bags/Format/2.0).
"""

from __future__ import annotations

import bz2
import struct
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import lz4.frame
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.typesys.msg import normalize_msgtype

from nori_dyn.errors import NoriWarning

MAGIC = b"#ROSBAG V2.0\n"
MESSAGE, CHUNK, CONNECTION = 2, 5, 7
"""What `op` says of a record."""

LARGEST = 1 << 31
"""Bytes of a record, at most: what claims more is damaged."""

LENGTH = struct.Struct("<I")
TIME = struct.Struct("<II")

DECOMPRESS = {b"none": bytes, b"bz2": bz2.decompress, b"lz4": lz4.frame.decompress}


@dataclass(slots=True, eq=False)
class Connection:
    """A connection, as rosbags has them."""

    id: int
    topic: str
    msgtype: str
    msgdef: MessageDefinition
    msgcount: int = 0


@dataclass(slots=True, eq=False)
class CutBag:
    """A bag that is read from its beginning, as far as it is whole; used as a reader of rosbags is.

    Attributes:
        path: the file.
        connections: those of its messages.
        is_open: whether it has been gone through.
    """

    path: Path
    known: dict[int, Connection] = field(default_factory=dict)
    is_open: bool = False

    @property
    def connections(self) -> list[Connection]:
        """Those of its messages."""
        return list(self.known.values())

    def open(self) -> None:
        """Go through it, count its messages, and warn of what is not there.

        Raises:
            ValueError: nothing of it is whole.
        """
        read = 0
        tells: list[str] = []
        for connection, _, _ in self._messages(tells):
            connection.msgcount += 1
            read += 1
        if not read:
            raise ValueError("nothing in it is whole")
        self.is_open = True
        warnings.warn(
            f"{self.path}: has no index, as it was cut off, or is damaged{''.join(tells)}. The {read} messages before "
            "that are whole are read.",
            NoriWarning,
            stacklevel=2,
        )

    def close(self) -> None:
        """Let go of it: nothing is held open."""
        self.is_open = False

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield the messages of some connections, with their times [ns]."""
        wanted = {each.id for each in connections}
        return (each for each in self._messages([]) if each[0].id in wanted)

    def _messages(self, tells: list[str]) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield all messages that are whole; `tells` is told where they end."""
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("it is no bag of ROS 1")
            begin = file.tell()
            try:
                while (record := _record(file)) is not None:
                    header, data = record
                    if header.get(b"op") == bytes([CHUNK]):
                        yield from self._in_chunk(DECOMPRESS[header[b"compression"]](data))
                    else:
                        yield from self._learned(header, data)
                    begin = file.tell()
            except Exception as error:  # what a damaged record leads to depends on where it is
                why = f"{type(error).__name__} {error}".strip()
                tells.append(f" from byte {begin} on ({why})")

    def _in_chunk(self, content: bytes) -> Iterator[tuple[Connection, int, bytes]]:
        at = 0
        while at < len(content):
            (n,) = LENGTH.unpack_from(content, at)
            header = _fields(content[at + 4 : at + 4 + n])
            (size,) = LENGTH.unpack_from(content, at + 4 + n)
            at += 8 + n + size
            yield from self._learned(header, content[at - size : at])

    def _learned(self, header: dict[bytes, bytes], data: bytes) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield the message that a record is; learn the connection that it is."""
        if header.get(b"op") == bytes([CONNECTION]):
            (number,) = LENGTH.unpack(header[b"conn"])
            told = _fields(data)
            definition = MessageDefinition(MessageDefinitionFormat.MSG, told[b"message_definition"].decode())
            kind = normalize_msgtype(told[b"type"].decode())
            self.known.setdefault(number, Connection(number, header[b"topic"].decode(), kind, definition))
        elif header.get(b"op") == bytes([MESSAGE]):
            (number,) = LENGTH.unpack(header[b"conn"])
            seconds, ns = TIME.unpack(header[b"time"])
            yield self.known[number], seconds * 10**9 + ns, data


def _record(file: IO[bytes]) -> tuple[dict[bytes, bytes], bytes] | None:
    """Read the header and data of the next record; None at the end.

    Raises:
        ValueError: it is cut off, or no record.
    """
    parts: list[bytes] = []
    for what in ("header", "data"):
        length = file.read(4)
        if not length and not parts:
            return None
        if len(length) < 4 or (size := LENGTH.unpack(length)[0]) > LARGEST:
            raise ValueError(f"the {what} of a record is not there")
        parts.append(content := file.read(size))
        if len(content) < size:
            raise ValueError(f"the {what} of a record is cut off")
    return _fields(parts[0]), parts[1]


def _fields(content: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(content):
        (n,) = LENGTH.unpack_from(content, at)
        name, equals, value = content[at + 4 : at + 4 + n].partition(b"=")
        if not equals:
            raise ValueError("a field of a record has no value")
        found[name] = value
        at += 4 + n
    return found
