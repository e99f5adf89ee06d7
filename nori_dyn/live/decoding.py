"""Topics of a live stream: which are listened to, and the numbers of their messages, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.logs.messages.kinds import MalformedMessage, standard_types
from nori_dyn.logs.messages.topic import LAYOUTS, LOG_TIME, MessageLayout, Topic
from nori_dyn.typing import Floats

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
"""The topic that is listened to by default."""

LARGEST = 1 << 18
"""Bytes of a message, at most: one of the state of a robot has far fewer, and estimates wait while it is read."""


def topics_of(mapping: LogMapping | None, named: Iterable[str] = ()) -> dict[str, str]:
    """The topics to listen to, and the types of their messages.

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
    declared = {} if mapping is None else {name: settings.type for name, settings in mapping.streams.items()}
    names = dict.fromkeys([*given, *(column.partition(".")[0] for column in columns), *streams])
    found: dict[str, str] = {}
    for name in names or {STATES: None}:
        if not name.startswith("/") or name == "/":
            raise InputError(
                f"'{name}' is no topic: a column of a live stream is named like '/joint_states.position:{{joint}}', "
                "and a topic like '/joint_states'."
            )
        own = [column.removeprefix(name) for column in columns if column.partition(".")[0] == name]
        found[name] = given.get(name) or declared.get(name) or _kind(name, own)
        if found[name] not in standard_types("cdr"):
            raise UnknownNameError("type of messages", found[name], standard_types("cdr"), f"topic '{name}'")
    return found


def _kind(topic: str, columns: Sequence[str]) -> str:
    """The type that has such columns.

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


class LiveTopic(Topic):
    """A topic whose messages come one by one.

    Attributes:
        chosen: the columns that are taken of a message; see `choose`.

    Args:
        name: the topic.
        kind: the type of its messages, of those that come with ROS.
    """

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, standard_types("cdr"), "cdr")
        self.choose(())

    @property
    def stream(self) -> Stream:
        """What there is of it as a stream of a log."""
        return Stream(self.name, self.columns, clock=self.clock, kind=self.kind)

    @property
    def is_known(self) -> bool:
        """Whether a message was looked at."""
        return bool(self._columns)

    def choose(self, columns: Sequence[str]) -> None:
        """Choose the columns that are taken of a message."""
        self.chosen, self._own = tuple(columns), tuple(column.removeprefix(self.name) for column in columns)
        self._arrival = [k for k, path in enumerate(self._own) if path == LOG_TIME]
        self._layouts.clear()

    def numbers(self, payload: bytes, arrived: float) -> Floats:
        """The chosen columns of a message (k,); nan where it has no such number.

        Args:
            payload: the message.
            arrived: when it came [s since 1970].

        Raises:
            MalformedMessage: it is none, or one of these numbers is not finite.
        """
        layout = self.layout(payload)
        values = layout.take_one(payload, self._own)
        for k in self._arrival:
            values[k] = arrived
        if not np.isfinite(values).all():
            for k in np.flatnonzero(~np.isfinite(values)).tolist():
                if self._own[k] in layout.places:
                    raise MalformedMessage(f"'{self.chosen[k]}' is {values[k]}")
        return values

    def _new(self, data: bytes) -> MessageLayout:
        if len(data) > LARGEST:
            raise MalformedMessage(f"it has {len(data):,} bytes, and more than {LARGEST:,} are not read")
        if len(self._layouts) >= LAYOUTS:
            self._layouts.clear()
        layout = super()._new(data)
        for path in self._own:
            field, _, element = path.rpartition(":")
            if element and path not in layout.places and f"{field}[0]" in layout.places:
                del self._layouts[len(data)][0]
                raise MalformedMessage(f"'{self.name}{field}' has not as many numbers as there are names")
        return layout
