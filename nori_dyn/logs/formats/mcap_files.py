"""MCAP: messages of ROS 2, ROS 1 or JSON with their definitions beside them, in chunks that may be compressed."""

from __future__ import annotations

import json
import struct
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.records import Channel, Chunk, ChunkIndex, Message
from mcap.records import Schema as Definition
from mcap.stream_reader import StreamReader, get_chunk_data_stream
from mcap.writer import CompressionType
from mcap.writer import Writer as McapFile

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.source import refusing
from nori_dyn.logs.formats.topics import LOOKED, MessageSource, MessageWriter, Recorded, topic_of
from nori_dyn.logs.messages.kinds import MalformedMessage, parsed_types, typestore_of
from nori_dyn.logs.messages.topic import Topic
from nori_dyn.typing import Floats

LARGEST = 1 << 31
"""Bytes of a record, at most: what claims more is damaged."""

RECORD = struct.Struct("<BQ")
MESSAGE = struct.Struct("<HIQQ")


class McapSource(MessageSource):
    """An MCAP file. Of one that is cut off what is whole is read, with a warning that says how much it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._index: list[ChunkIndex] | None = None
        with ExitStack() as stack:
            self._file = stack.enter_context(path.open("rb"))
            self._learn()
            stack.pop_all()

    def _learn(self) -> None:
        counts: dict[str, int] = {}
        self._first: dict[str, list[bytes]] = defaultdict(list)
        try:
            summary = SeekingReader(self._file, record_size_limit=LARGEST).get_summary()
        except Exception:  # the end is missing: what the library raises depends on where
            summary = None
        if summary is not None and summary.chunk_indexes and summary.channels:
            self._index = sorted(
                summary.chunk_indexes, key=lambda each: (each.message_start_time, each.chunk_start_offset)
            )
            self._channels, definitions = dict(summary.channels), dict(summary.schemas)
            of_channels = summary.statistics.channel_message_counts if summary.statistics is not None else {}
            for channel in self._channels.values():
                counts[channel.topic] = counts.get(channel.topic, 0) + of_channels.get(channel.id, 0)
        else:
            self._channels, definitions = {}, {}
            for name, _, data in self._whole(definitions, is_first=True):
                counts[name] = counts.get(name, 0) + 1
                if counts[name] <= LOOKED:
                    self._first[name].append(data)
        each = ((one.topic, partial(_topic, one, definitions.get(one.schema_id))) for one in self._channels.values())
        self._tell(each, counts if any(counts.values()) else {}, self._metadata(summary))

    def heads(self, topic: str) -> Iterator[bytes]:
        return iter(self._first[topic]) if self._index is None else super().heads(topic)

    def messages(self, topics: Iterable[str]) -> Iterator[Recorded]:
        wanted = {each.id: each.topic for each in self._channels.values() if each.topic in set(topics)}
        if self._index is None:
            names = set(wanted.values())
            yield from (each for each in self._whole({}) if each[0] in names)
            return
        for each in self._index:
            if not each.message_index_offsets or wanted.keys() & each.message_index_offsets.keys():
                yield from self._chunk(each, wanted)

    def close(self) -> None:
        self._file.close()

    def _chunk(self, index: ChunkIndex, wanted: Mapping[int, str]) -> Iterator[Recorded]:
        """Yield the wanted messages of a chunk."""
        with refusing(f"{self.path}: is damaged: the chunk at byte {index.chunk_start_offset} cannot be read"):
            self._file.seek(index.chunk_start_offset)
            opcode, length = RECORD.unpack(self._file.read(RECORD.size))
            if opcode != Opcode.CHUNK or length > LARGEST:
                raise McapError("there is no chunk")
            stream, size = get_chunk_data_stream(Chunk.read(ReadDataStream(self._file)), validate_crc=True)
            content = stream.read(size)
        yield from self._records(content, wanted, index.chunk_start_offset)

    def _records(self, content: bytes, wanted: Mapping[int, str], offset: int) -> Iterator[Recorded]:
        """Yield the wanted messages among records."""
        at, end = 0, len(content)
        unpack_record, unpack_message = RECORD.unpack_from, MESSAGE.unpack_from
        with refusing(f"{self.path}: the chunk at byte {offset} is damaged"):
            while at < end:
                opcode, length = unpack_record(content, at)
                at += 9
                if opcode == 5:
                    channel, _, time, _ = unpack_message(content, at)
                    if channel in wanted:
                        yield wanted[channel], time, content[at + 22 : at + length]
                at += length

    def _whole(self, definitions: dict[int, Definition], is_first: bool = False) -> Iterator[Recorded]:
        """Yield all messages of a file without an index, as far as it is whole; learn its channels on the way."""
        self._file.seek(0)
        read, why = 0, ""
        try:
            for record in StreamReader(self._file, validate_crcs=True, record_size_limit=LARGEST).records:
                if isinstance(record, Channel):
                    self._channels[record.id] = record
                elif isinstance(record, Definition):
                    definitions[record.id] = record
                elif isinstance(record, Message) and record.channel_id in self._channels:
                    read += 1
                    yield self._channels[record.channel_id].topic, record.log_time, record.data
        except Exception as error:  # the library, and those of compression, raise all kinds of them
            why = f"{type(error).__name__} {error}".strip()
        if why and is_first:
            at = self._file.tell()
            if not self._channels or not read:
                raise FileFormatError(f"{self.path}: is damaged, or no MCAP file: no record in it is complete ({why}).")
            warnings.warn(
                f"{self.path}: is cut off, or damaged, before byte {at}: {why}. The {read} messages before are read.",
                NoriWarning,
                stacklevel=2,
            )

    def _metadata(self, summary: Any) -> dict[str, str]:
        if summary is None or not summary.metadata_indexes:
            return {}
        with refusing(f"{self.path}: is damaged: its metadata cannot be read"):
            found = SeekingReader(self._file, record_size_limit=LARGEST).iter_metadata()
            return {key: value for each in found if each.name == "nori_dyn" for key, value in each.metadata.items()}


def _topic(channel: Channel, definition: Definition | None) -> Topic:
    """Decoder of a channel.

    Raises:
        MalformedMessage: nothing here does; says why.
    """
    encoding = channel.message_encoding
    if encoding == "json":
        return JsonTopic(channel.topic, definition.name if definition is not None else "json")
    if encoding not in ("cdr", "ros1") or definition is None:
        raise MalformedMessage(f"its messages are in '{encoding}', which is not read (but cdr, ros1 and json are)")
    kind = definition.name if definition.name.count("/") != 1 else definition.name.replace("/", "/msg/")
    if definition.encoding not in ("ros2msg", "ros1msg", "ros2idl", ""):
        raise MalformedMessage(f"its definition is in '{definition.encoding}', which is not read (but ros2msg is)")
    text, is_idl = definition.data.decode(errors="replace"), definition.encoding == "ros2idl"
    types = parsed_types(text, kind, is_idl) if text else {}
    return topic_of(channel.topic, kind, types, "cdr" if encoding == "cdr" else "ros1")


class McapWriter(MessageWriter):
    """Estimates as messages of ROS 2 in an MCAP file, compressed by LZ4; its metadata holds those of the estimates."""

    def _open(self, topics: Sequence[tuple[str, str]]) -> None:
        self._raw = self.path.open("wb")
        self._file = McapFile(self._raw, chunk_size=1 << 22, compression=CompressionType.LZ4)
        self._file.start(profile="ros2", library="nori_dyn")
        store = typestore_of("cdr")
        definitions: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        for topic, kind in topics:
            if kind not in definitions:
                text = store.generate_msgdef(kind, ros_version=2)[0]
                definitions[kind] = self._file.register_schema(kind, "ros2msg", text.encode())
            self._channels[topic] = self._file.register_channel(topic, "cdr", definitions[kind])
        self._file.add_metadata("nori_dyn", dict(self.schema.metadata))

    def _put(self, topic: str, time: int, data: bytes) -> None:
        self._file.add_message(self._channels[topic], time, data, time)

    def close(self) -> None:
        with self._raw:
            self._begin(0)
            self._file.finish()  # type: ignore[no-untyped-call]


class JsonTopic(Topic):
    """A topic with messages in JSON."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, {}, "cdr")

    def look(self, data: bytes) -> bool:
        before = len(self._columns)
        self._columns.update(dict.fromkeys(self._numbers(data)))
        return len(self._columns) > before

    def decode(self, messages: Sequence[bytes], columns: Sequence[str]) -> Floats:
        """Decode columns (columns, n) of messages."""
        found = np.full((len(columns), len(messages)), np.nan)
        for k, data in enumerate(messages):
            numbers = self._numbers(data)
            found[:, k] = [numbers.get(column, np.nan) for column in columns]
        return found

    def _numbers(self, data: bytes) -> dict[str, float]:
        found: dict[str, float] = {}

        def walk(value: Any, path: str) -> None:
            if isinstance(value, dict):
                for key, each in value.items():
                    walk(each, f"{path}.{key}")
            elif isinstance(value, list):
                for k, each in enumerate(value):
                    walk(each, f"{path}[{k}]")
            elif isinstance(value, int | float):
                found[path] = float(value)

        try:
            walk(json.loads(data), self.name)
        except (ValueError, RecursionError, OverflowError) as error:
            raise MalformedMessage(f"{len(data)} bytes of {self.name} are no JSON: {error}") from None
        return found
