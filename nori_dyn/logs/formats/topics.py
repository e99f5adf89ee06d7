"""Logs of messages: the common part of MCAP and bags of ROS."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.source import BLOCK, LogSource, SampleBlock, Stream
from nori_dyn.logs.formats.writer import FileSchema, Writer
from nori_dyn.logs.messages.estimates import ABOUT, ABOUT_KIND, EstimateMessages, read_about, times_of
from nori_dyn.logs.messages.kinds import VENDORS, Encoding, MalformedMessage, Types, standard_types
from nori_dyn.logs.messages.topic import LOG_TIME, Topic
from nori_dyn.typing import Floats

LOOKED = 10
"""Messages of a topic that are looked at to learn which columns it has."""

LARGE = 100_000
"""Bytes of a message from which on one of them is looked at: a picture or a cloud, whose lengths are of no interest."""

WAITING = 1 << 25
"""Bytes of messages that wait to be decoded, at most."""

ONE_SECOND = 10**9

OTHER_VERSION = (
    " (the file lacks the definition, and the robot's firmware has another one than is known here: record MCAP, which "
    "holds it)"
)
"""What to do about messages of a vendor that are not as they are known here."""

Recorded = tuple[str, int, bytes]
"""A message: its topic, when it was recorded [ns], and its bytes."""


class MessageSource(LogSource):
    """A log of messages: a stream a topic. Where the topic `ABOUT` says so, columns have the names of estimates.

    A format opens the file, tells its topics to `_tell`, and yields messages.
    """

    @abstractmethod
    def messages(self, topics: Iterable[str]) -> Iterator[Recorded]:
        """Yield the messages of some topics, as they stand in the file.

        Raises:
            FileFormatError: it is damaged.
        """

    def heads(self, topic: str) -> Iterator[bytes]:
        """Yield the first messages of a topic."""
        return (data for _, _, data in islice(self.messages([topic]), LOOKED))

    def _tell(
        self,
        decoders: Iterable[tuple[str, Callable[[], Topic]]],
        counts: Mapping[str, int],
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Tell what the file holds.

        Args:
            decoders: topics, some more than once, with what makes a decoder.
            counts: how many messages each topic has, where that is known.
            metadata: what it says of itself.

        Raises:
            FileFormatError: none of its topics can be read.
        """
        self._topics, refused = _readable(decoders)
        about: dict[str, str] = {}
        known_units: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        streams: list[Stream] = []
        for name, topic in list(self._topics.items()):
            try:
                for data in self.heads(name):
                    if name == ABOUT and topic.kind == ABOUT_KIND:
                        about, self._labels, known_units = read_about(data, topic.encoding)
                    topic.look(data)
                    if len(data) > LARGE:
                        break
            except MalformedMessage as error:
                is_known_here = topic.types is standard_types(topic.encoding)
                refused[name] = f"{error}{OTHER_VERSION if is_known_here and topic.kind in VENDORS else ''}"
                del self._topics[name]
        self._paths = {label: path for path, label in self._labels.items()}
        for name, topic in self._topics.items():
            if name == ABOUT and self._labels:
                continue
            columns = [self._labels.get(column, column) for column in topic.columns]
            units = {column: known_units.get(column, "s" if column == topic.clock else "") for column in columns}
            clock = self._labels.get(topic.clock, topic.clock)
            own_units = {column: unit for column, unit in units.items() if unit}
            streams.append(Stream(name, tuple(columns), clock, counts.get(name), own_units, topic.kind))
        if refused and not self._topics:
            raise FileFormatError(f"{self.path}: none of its topics can be read: {_reasons(refused)}.")
        if refused:
            note = f"{self.path}: some of its topics are not read: {_reasons(refused)}."
            warnings.warn(note, NoriWarning, stacklevel=2)
        self.streams, self.refused = tuple(streams), refused
        self.metadata = {**metadata, **about}

    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        paths = {name: [self._paths.get(column, column) for column in columns] for name, columns in wanted.items()}
        total = sum(each.samples or 0 for each in self.streams if each.name in wanted)
        waiting: dict[str, tuple[list[int], list[bytes]]] = {}
        counts = dict.fromkeys(wanted, 0)
        size = 0
        for read, (name, time, data) in enumerate(self.messages(wanted), start=1):
            times, messages = waiting.setdefault(name, ([], []))
            times.append(time)
            messages.append(data)
            size += len(data)
            if size >= WAITING or len(messages) == BLOCK:
                yield from self._blocks(waiting, paths, counts)
                self._share = read / total if total else None
                size = 0
        yield from self._blocks(waiting, paths, counts)
        indexed = {each.name: each.samples for each in self.streams}
        for name, n in counts.items():
            if indexed[name] not in (None, n):
                message = f"{self.path}: '{name}' has {n} messages, and the file's index says {indexed[name]}."
                warnings.warn(message, NoriWarning, stacklevel=2)

    def _blocks(
        self,
        waiting: dict[str, tuple[list[int], list[bytes]]],
        paths: Mapping[str, Sequence[str]],
        counts: dict[str, int],
    ) -> Iterator[SampleBlock]:
        """Yield what waits, a block a topic, and let it wait no longer."""
        for name, (times, messages) in sorted(waiting.items(), key=lambda item: item[1][0][0]):
            try:
                values = self._topics[name].decode(messages, paths[name])
            except MalformedMessage as error:
                raise FileFormatError(f"{self.path}: {error} (counted from message {counts[name]}).") from None
            of_log = [k for k, path in enumerate(paths[name]) if path == name + LOG_TIME]
            if of_log:
                seconds, ns = np.divmod(np.array(times, dtype=np.int64), ONE_SECOND)
                values[of_log] = seconds + ns / 1e9
            yield SampleBlock(name, counts[name], tuple(values))
            counts[name] += len(messages)
        waiting.clear()


def _readable(decoders: Iterable[tuple[str, Callable[[], Topic]]]) -> tuple[dict[str, Topic], dict[str, str]]:
    """Decoders of the topics that can be read, and why the others cannot; see `MessageSource._tell`."""
    topics, refused = dict[str, Topic](), dict[str, str]()
    for name, make in decoders:
        try:
            topic = make()
        except MalformedMessage as error:
            refused[name] = str(error)
            continue
        known = topics.setdefault(name, topic)
        if known.kind != topic.kind:
            refused[name] = f"its messages are of two kinds, {known.kind} and {topic.kind}"
    return {name: topic for name, topic in topics.items() if name not in refused}, refused


def topic_of(name: str, kind: str, types: Types, encoding: Encoding) -> Topic:
    """Decoder of a topic, by the definitions in the file or those that come with ROS.

    Raises:
        MalformedMessage: its kind is defined in neither.
    """
    if kind not in types:
        types = standard_types(encoding)
    if kind not in types:
        raise MalformedMessage(f"{kind} is not defined in the file, and does not come with ROS")
    return Topic(name, kind, types, encoding)


def _reasons(refused: Mapping[str, str]) -> str:
    more = f"; and {len(refused) - 4} more" if len(refused) > 4 else ""
    return "; ".join(f"'{name}', as {why}" for name, why in list(refused.items())[:4]) + more


class MessageWriter(Writer):
    """Estimates as messages, sample by sample. A format says how a message is put into its file."""

    encoding: ClassVar[Encoding] = "cdr"

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        self._estimates = EstimateMessages(schema, self.encoding)
        self._n = 0
        self._open([(ABOUT, ABOUT_KIND), *((each.topic, each.kind) for each in self._estimates.published)])
        self._begun = False

    @abstractmethod
    def _open(self, topics: Sequence[tuple[str, str]]) -> None:
        """Begin the file, with topics and the kinds of their messages."""

    @abstractmethod
    def _put(self, topic: str, time: int, data: bytes) -> None:
        """Put a message into the file; `time` is in nanoseconds."""

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        n = len(next(iter(values.values())))
        times = times_of(t, self._n, n)
        self._begin(times[0] if n else 0)
        encoded = [(each.topic, messages) for each, messages in self._estimates.encode(t, values)]
        for k, time in enumerate(times):
            for topic, messages in encoded:
                self._put(topic, time, messages[k])
        self._n += n

    def _begin(self, time: int) -> None:
        if not self._begun:
            self._begun = True
            self._put(ABOUT, time, self._estimates.about)
