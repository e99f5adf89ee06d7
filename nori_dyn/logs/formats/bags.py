"""Bags of ROS 1 and ROS 2, read and written by rosbags, without ROS."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag1 import Reader as Bag1
from rosbags.rosbag1 import Writer as Bag1File
from rosbags.rosbag2 import Reader as Bag2
from rosbags.rosbag2 import Writer as Bag2File

from nori_dyn.logs.formats.source import LogSource, reason_of, refusing
from nori_dyn.logs.formats.topics import MessageSource, MessageWriter, Recorded, topic_of
from nori_dyn.logs.messages.kinds import Encoding, parsed_types, typestore_of
from nori_dyn.logs.messages.topic import Topic


class BagSource(MessageSource):
    """A bag: of ROS 1 a file, of ROS 2 a folder with `metadata.yaml`, or one file of such a folder by itself.

    A file that is compressed by gzip is unpacked into a folder for what is temporary while it is open.
    """

    encoding: ClassVar[Encoding] = "cdr"

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as self._held:
            with refusing(f"{path}: is damaged, or no bag"):
                self._bag = self._opened(path)
            self._held.callback(self._bag.close)
            self._learn()
            self._held = self._held.pop_all()

    def _opened(self, path: Path) -> Any:
        if path.name.endswith(".gz"):
            unpacked = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="nori_dyn-"))) / path.stem
            with gzip.open(path) as packed, unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 22)
            path = unpacked
        if path.is_dir() and not (path / "metadata.yaml").exists():
            files = sorted(each for each in path.iterdir() if each.suffix in (".db3", ".mcap"))
            if len(files) != 1:
                raise ValueError(f"it has no metadata.yaml, and {len(files)} files .db3 or .mcap; name one of them")
            path = files[0]
        bag = Bag2(path)
        bag.open()
        return bag

    def _learn(self) -> None:
        counts: dict[str, int] = {}
        self._connections: dict[str, list[Any]] = {}
        for each in self._bag.connections:
            self._connections.setdefault(each.topic, []).append(each)
            counts[each.topic] = counts.get(each.topic, 0) + each.msgcount
        self._tell(((each.topic, partial(self._topic, each)) for each in self._bag.connections), counts)

    def _topic(self, connection: Any) -> Topic:
        """Decoder of a connection."""
        text, how = connection.msgdef.data, connection.msgdef.format
        is_idl = how == MessageDefinitionFormat.IDL
        types = parsed_types(text, connection.msgtype, is_idl) if how != MessageDefinitionFormat.NONE else {}
        return topic_of(connection.topic, connection.msgtype, types, self.encoding)

    def messages(self, topics: Iterable[str]) -> Iterator[Recorded]:
        connections = [each for topic in topics for each in self._connections.get(topic, ())]
        if not connections:
            return
        with refusing(f"{self.path}: is damaged"):
            for connection, time, data in self._bag.messages(connections):
                yield connection.topic, time, data

    def close(self) -> None:
        self._held.close()


def open_folder(path: Path) -> LogSource:
    """Open the bag of ROS 2 in a folder; one MCAP file is opened as such.

    Raises:
        FileFormatError: it cannot be read, or is no bag.
    """
    files = sorted(each for each in path.iterdir() if each.name != "metadata.yaml") if path.is_dir() else []
    if len(files) == 1 and files[0].suffix == ".mcap":
        from nori_dyn.logs.formats.mcap_files import McapSource

        return McapSource(files[0])
    return BagSource(path)


class Bag1Source(BagSource):
    """A bag of ROS 1."""

    encoding: ClassVar[Encoding] = "ros1"

    def _opened(self, path: Path) -> Any:
        try:
            bag = Bag1(path)
            bag.open()
        except Exception as error:  # the index is at its end
            raise ValueError(
                f"{reason_of(error)}. If its recording was cut off, `rosbag reindex` writes a new index"
            ) from None
        return bag


@contextmanager
def _of_the_disk() -> Iterator[None]:
    """Make errors of SQLite those of a disk that they are of."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(str(error)) from None


class Bag2Writer(MessageWriter):
    """Estimates as a bag of ROS 2: a folder with an SQLite file and `metadata.yaml`."""

    def _open(self, topics: Sequence[tuple[str, str]]) -> None:
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self._bag = self._new()
        store = typestore_of(self.encoding)
        with _of_the_disk():
            self._bag.open()
            add = self._bag.add_connection
            self._connections = {topic: add(topic, kind, typestore=store) for topic, kind in topics}

    def _new(self) -> Any:
        bag = Bag2File(self.path, version=9)
        for key, value in self.schema.metadata.items():
            bag.set_custom_data(key, value)
        return bag

    def _put(self, topic: str, time: int, data: bytes) -> None:
        with _of_the_disk():
            self._bag.write(self._connections[topic], time, data)

    def close(self) -> None:
        with _of_the_disk():
            self._begin(0)
            self._bag.close()


class Bag1Writer(Bag2Writer):
    """Estimates as a bag of ROS 1."""

    encoding: ClassVar[Encoding] = "ros1"

    def _new(self) -> Any:
        self.path.unlink(missing_ok=True)
        return Bag1File(self.path)
