"""The bytes of one message as numbers, quickly: where they stand is found once, and looked up from then on."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.logs.messages.kinds import MalformedMessage, standard_types
from nori_dyn.logs.messages.layout import MessageLayout, layout_of
from nori_dyn.logs.messages.topic import LOG_TIME, Topic
from nori_dyn.typing import Floats, Indices

SIGNATURES = {
    "sensor_msgs/msg/JointState": (".position:", ".velocity:", ".effort:"),
    "sensor_msgs/msg/Imu": (".orientation.", ".angular_velocity.", ".linear_acceleration."),
    "geometry_msgs/msg/WrenchStamped": (".wrench.",),
    "geometry_msgs/msg/AccelStamped": (".accel.",),
    "nav_msgs/msg/Odometry": (".pose.pose.", ".twist.twist."),
    "geometry_msgs/msg/PoseStamped": (".pose.",),
    "geometry_msgs/msg/TwistStamped": (".twist.",),
    "std_msgs/msg/Float64MultiArray": (".data[", ".data:"),
    "std_msgs/msg/Float64": (".data",),
}
"""How the columns of each type begin: by these the type of a topic is known where nothing tells it."""

STATES = "/joint_states"
"""The topic that is listened to where nothing else is said."""

LARGEST = 1 << 18
"""Bytes of a message, at most: one of the state of a robot has far fewer, and estimates wait while it is read."""

LAYOUTS = 16
"""Layouts of one topic that are remembered: publishers of parts of a robot have one each."""


def topics_of(mapping: LogMapping | None, named: Iterable[str] = ()) -> dict[str, str]:
    """Return the topics to listen to, and the types of their messages.

    Args:
        mapping: what ties columns to a robot: its topics are those that its columns and streams name.
        named: more topics, "/ft", or with the type of their messages, "/ft=geometry_msgs/msg/WrenchStamped".

    Raises:
        InputError: what is named is no topic, or nothing tells of what type its messages are.
        UnknownNameError: a type that does not come with ROS.
    """
    given = dict(each.partition("=")[::2] for each in named)
    columns = [column for entry in (mapping.columns if mapping else ()) for column in _listed(entry.source)]
    streams = [] if mapping is None else [*mapping.streams, *filter(None, [mapping.clock.stream])]
    told = {} if mapping is None else {name: settings.type for name, settings in mapping.streams.items()}
    names = dict.fromkeys([*given, *(column.partition(".")[0] for column in columns), *streams])
    found: dict[str, str] = {}
    for name in names or {STATES: None}:
        if not name.startswith("/") or name == "/":
            raise InputError(
                f"'{name}' is no topic: a column of a live stream is named like '/joint_states.position:{{joint}}', "
                "and a topic like '/joint_states'."
            )
        own = [column.removeprefix(name) for column in columns if column.partition(".")[0] == name]
        found[name] = given.get(name) or told.get(name) or _kind(name, own)
        if found[name] not in standard_types("cdr"):
            raise UnknownNameError("type of messages", found[name], standard_types("cdr"), f"topic '{name}'")
    return found


def _kind(topic: str, columns: Sequence[str]) -> str:
    """Return the type that has such columns.

    Raises:
        InputError: none has them, or there are none.
    """
    if not columns and topic.rpartition("/")[2] == STATES[1:]:
        return "sensor_msgs/msg/JointState"
    for kind, beginnings in SIGNATURES.items():
        if columns and all(column.startswith(beginnings) for column in columns):
            return kind
    raise InputError(f"of what type are the messages of '{topic}'? Say it: --topic {topic}=sensor_msgs/msg/Imu.")


def _listed(source: str | list[str] | None) -> list[str]:
    return [] if source is None else [source] if isinstance(source, str) else source


class Decoder:
    """The messages of one topic.

    Attributes:
        topic: what it carries, as far as it was looked at.
        columns: what `decode` returns; see `choose`.

    Args:
        name: the topic.
        kind: the type of its messages.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.topic = Topic(name, kind, standard_types("cdr"), "cdr")
        self.columns: tuple[str, ...] = ()
        self._takers: dict[int, list[_Taker]] = {}

    @property
    def stream(self) -> Stream:
        """What there is of it as a stream of a log."""
        return Stream(self.topic.name, self.topic.columns, clock=self.topic.clock, kind=self.topic.kind)

    @property
    def is_known(self) -> bool:
        """Whether a message was looked at."""
        return self.topic.columns != (self.topic.name + LOG_TIME,)

    def look(self, payload: bytes) -> bool:
        """Learn from a message what there is; whether there is anything new.

        Raises:
            MalformedMessage: it is none.
        """
        _check_size(payload)
        before = len(self.topic.columns), self.topic.is_stamped
        self.topic.look(payload)
        return before != (len(self.topic.columns), self.topic.is_stamped)

    def choose(self, columns: Sequence[str]) -> None:
        """Choose the columns to decode."""
        self.columns, self._takers = tuple(columns), {}

    def decode(self, payload: bytes, arrived: float) -> Floats:
        """Return the columns of a message (k,); nan where it has no such number.

        Args:
            payload: the message.
            arrived: when it came [s since 1970].

        Raises:
            MalformedMessage: it is none, or one of these numbers is not finite.
        """
        known = self._takers.get(len(payload), [])
        taker = next((taker for taker in known if taker.fits(payload)), None)
        if taker is None:
            _check_size(payload)
            layout = layout_of(payload, self.topic.kind, self.topic.types, "cdr")
            paths = [column.removeprefix(self.topic.name) for column in self.columns]
            taker = _Taker(layout, self.topic.name, paths)
            known.insert(0, taker)
            del known[LAYOUTS:]
            others = self._takers if len(self._takers) < LAYOUTS else {}
            self._takers = {**others, len(payload): known}
        return taker.take(payload, arrived)


def _check_size(payload: bytes) -> None:
    if len(payload) > LARGEST:
        raise MalformedMessage(f"it has {len(payload):,} bytes, and more than {LARGEST:,} are not read")


class _Taker:
    """Takes chosen numbers out of messages of one layout: which bytes they are is known.

    Raises:
        MalformedMessage: it has not as many numbers as names.
    """

    def __init__(self, layout: MessageLayout, name: str, paths: Sequence[str]) -> None:
        self._name, self._paths, self._decisive = name, paths, layout.decisive
        self._own = np.frombuffer(layout.data, np.uint8)[layout.decisive].tobytes()
        self._blank = np.full(len(paths), np.nan)
        places = {k: layout.places[path] for k, path in enumerate(paths) if path in layout.places}
        for path in paths:
            field, _, element = path.rpartition(":")
            if element and path not in layout.places and f"{field}[0]" in layout.places:
                raise MalformedMessage(f"'{name}{field}' has not as many numbers as there are names")
        self._present = np.array(list(places), dtype=np.intp)
        self._arrival = [k for k, path in enumerate(paths) if path == LOG_TIME]
        self._time = struct.Struct(f"{layout.order}iI")
        self._times = [(k, place.offset) for k, place in places.items() if place.dtype == "time"]
        self._numbers: list[tuple[np.dtype[Any], Indices, Indices]] = []
        for dtype in dict.fromkeys(place.dtype for place in places.values() if place.dtype != "time"):
            rows = [k for k, place in places.items() if place.dtype == dtype]
            offsets = np.array([[places[k].offset] for k in rows], dtype=np.intp)
            bytes_of = offsets + np.arange(places[rows[0]].size)
            self._numbers.append((np.dtype(layout.order + dtype), np.array(rows, dtype=np.intp), bytes_of))

    def fits(self, payload: bytes) -> bool:
        """Return whether a message of the same length has this layout."""
        return np.frombuffer(payload, np.uint8)[self._decisive].tobytes() == self._own

    def take(self, payload: bytes, arrived: float) -> Floats:
        """Return the numbers (k,).

        Raises:
            MalformedMessage: one of them is not finite.
        """
        table, values = np.frombuffer(payload, np.uint8), self._blank.copy()
        for dtype, rows, bytes_of in self._numbers:
            values[rows] = table[bytes_of].view(dtype)[:, 0]
        for k, offset in self._times:
            seconds, nanoseconds = self._time.unpack_from(payload, offset)
            values[k] = seconds + 1e-9 * nanoseconds
        for k in self._arrival:
            values[k] = arrived
        present = values[self._present]
        if not np.isfinite(present).all():
            wrong = int(self._present[np.argmin(np.isfinite(present))])
            raise MalformedMessage(f"'{self._name}{self._paths[wrong]}' is {values[wrong]}")
        return values
