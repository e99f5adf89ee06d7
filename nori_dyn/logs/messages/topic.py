"""Messages of ROS as columns of numbers, many messages decoded at once.

The bytes of most messages of a topic differ in their numbers alone: names and lengths stay. So the first of them is
walked through, field by field as its definition says; what is found is its layout, which serves for all that agree with
it in what decides on it, and NumPy takes their numbers out, or puts them in, without a loop over messages.

Columns are named by path, as Foxglove does: `/imu.angular_velocity.x`, `/arm.data[3]`. Where a message names the
elements of its arrays, as JointState does, so do the columns: `/joint_states.position:panda_joint1`. A time is one
column [s].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nori_dyn.logs.messages.kinds import Encoding, MalformedMessage, Types
from nori_dyn.logs.messages.layout import MessageLayout, layout_of
from nori_dyn.typing import Floats, Indices

LAYOUTS = 16
"""Layouts of messages of one length that are remembered: publishers of parts of a robot have one each."""

STAMP = ".header.stamp"
"""The column, of its topic, with the time at which a message was made."""

LOG_TIME = ".log_time"
"""The column, of its topic, with the time at which a message was recorded."""


class Topic:
    """A topic as columns; it learns from messages which there are.

    Args:
        name: of the topic, "/joint_states".
        kind: of its messages, "sensor_msgs/msg/JointState".
        types: their definitions.
        encoding: how they stand in bytes.

    Attributes:
        columns: the names of the columns of the messages that were looked at, "/joint_states.position:l_knee", and of
            the times at which they were recorded.
        is_stamped: whether these messages tell when they were made.
    """

    def __init__(self, name: str, kind: str, types: Types, encoding: Encoding) -> None:
        self.name, self.kind, self.types, self.encoding = name, kind, types, encoding
        self.is_stamped = False
        self._columns: dict[str, None] = {}
        self._layouts: dict[int, list[MessageLayout]] = {}
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self._columns, self.name + LOG_TIME)

    @property
    def clock(self) -> str:
        """The column with the times of messages: when they were made, where they tell."""
        return self.name + (STAMP if self.is_stamped else LOG_TIME)

    def look(self, data: bytes) -> bool:
        """Learn from a message what columns there are; whether there is anything new.

        Raises:
            MalformedMessage: it is none.
        """
        layout, before = self.layout(data), (len(self._columns), self.is_stamped)
        self._columns.update(dict.fromkeys(self.name + path for path in layout.places))
        if STAMP in layout.places:
            self.is_stamped |= bool(layout.take_one(data, (STAMP,))[0])
        return before != (len(self._columns), self.is_stamped)

    def decode(self, messages: Sequence[bytes], columns: Sequence[str]) -> Floats:
        """Decode columns (columns, n) of messages; nan where one has no such number.

        Raises:
            MalformedMessage: one of them is none; says which.
        """
        paths = self._paths.get(key := tuple(columns))
        if paths is None:
            paths = self._paths[key] = tuple(column.removeprefix(self.name) for column in columns)
        sizes = np.array([len(data) for data in messages])
        if (sizes[:1] == sizes).all():
            return self._decode_alike(messages, np.arange(len(messages)), paths)
        found = np.empty((len(paths), len(messages)))
        for size in np.unique(sizes):
            own = np.flatnonzero(sizes == size)
            found[:, own] = self._decode_alike([messages[k] for k in own.tolist()], own, paths)
        return found

    def layout(self, data: bytes) -> MessageLayout:
        """Layout of a message: one that is known, or what its definition says of it.

        Raises:
            MalformedMessage: it is none.
        """
        known = self._layouts.get(len(data), ())
        for each in known:
            if each.fits(data):
                return each
        return self._new(data)

    def _decode_alike(self, messages: Sequence[bytes], numbers: Indices, paths: tuple[str, ...]) -> Floats:
        """Decode numbers (paths, n) of messages of one length."""
        n = len(messages)
        if not n:
            return np.empty((len(paths), 0))
        table = np.frombuffer(b"".join(messages), np.uint8).reshape(n, -1)
        left = np.ones(n, dtype=bool)
        found = np.full((len(paths), n), np.nan)
        known = iter(list(self._layouts.get(len(messages[0]), ())))
        while left.any():
            first = int(np.argmax(left))
            try:
                layout = next(known, None) or self._new(messages[first])
            except MalformedMessage as error:
                raise MalformedMessage(f"message {numbers[first]} of {self.name}: {error}") from None
            own = left & layout.fitting(table)
            if own.all():
                return layout.take(table, paths)
            found[:, own] = layout.take(table[own], paths)
            left &= ~own
        return found

    def _new(self, data: bytes) -> MessageLayout:
        """Layout of a message, which is remembered."""
        layout = layout_of(data, self.kind, self.types, self.encoding)
        known = self._layouts.setdefault(len(data), [])
        known.insert(0, layout)
        del known[LAYOUTS:]
        return layout
