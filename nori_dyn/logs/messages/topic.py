"""Messages of ROS as columns of numbers, many messages decoded at once.

The bytes of most messages of a topic differ in their numbers alone: names and lengths stay. So the first of them is
walked through, field by field as its definition says; what is found is its layout, which serves for all that agree with
it in what decides on it, and NumPy takes their numbers out, or puts them in, without a loop over messages.

Columns are named by path, as Foxglove does: `/imu.angular_velocity.x`, `/arm.data[3]`. Where a message names the
elements of its arrays, as JointState does, so do the columns: `/joint_states.position:panda_joint1`. A time is one
column [s].
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nori_dyn.logs.messages.kinds import Encoding, MalformedMessage, Types
from nori_dyn.typing import Booleans, Floats, Indices

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

BASE, NAME, ARRAY = 1, 2, 3
"""What rosbags calls the nodes of a definition: a number or text, a message, an array of a length that is known."""

LONGEST = 4096
"""Elements of an array, at most: pictures and clouds of points are no columns."""

SIZES = {
    **{"bool": 1, "byte": 1, "char": 1, "octet": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2},
    **{"int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float32": 4, "float64": 8},
}
DTYPES = {"bool": "u1", "byte": "u1", "char": "u1", "octet": "u1"}

FILLER = "structure_needs_at_least_one_member"
"""The field of a message without fields: a byte in ROS 2, none in ROS 1."""

TIME_KINDS = ("builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration")
NAMES = ("name", "names", "joint_names", "interface_names")
"""Fields that name the elements of the arrays beside and below them."""


class FieldSlot(NamedTuple):
    """Slot of a number in a message.

    Attributes:
        offset: in which byte it begins.
        dtype: of which type it is; of a time, its seconds `s` and nanoseconds `ns`.
    """

    offset: int
    dtype: np.dtype[Any]


Run: TypeAlias = tuple[slice, FieldSlot, int]
"""Numbers of one type at even distances: which they are of those that are asked for, the first, bytes to the next."""

Group: TypeAlias = tuple[np.dtype[Any], Indices, Indices]
"""Numbers of one type, which they are of those that are asked for (m,), and their bytes (m, size)."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageLayout:
    """Byte layout of a message.

    Attributes:
        data: the message.
        places: of each number by its path, ".position:l_knee".
        decisive: the bytes that the layout depends on.
        key: these bytes.
    """

    data: bytes
    places: Mapping[str, FieldSlot]
    decisive: Indices
    key: bytes
    _runs: dict[tuple[str, ...], list[Run]] = field(default_factory=dict)
    _groups: dict[tuple[str, ...], list[Group]] = field(default_factory=dict)

    def fits(self, data: bytes) -> bool:
        """Whether a message of as many bytes has this layout."""
        return np.frombuffer(data, np.uint8)[self.decisive].tobytes() == self.key

    def fitting(self, table: Bytes) -> Booleans:
        """Mask (n,) of the messages (n, size) that have this layout."""
        return np.asarray((table[:, self.decisive] == np.frombuffer(self.key, np.uint8)).all(axis=1))

    def take(self, table: Bytes, paths: tuple[str, ...]) -> Floats:
        """Extract numbers (paths, n) from messages (n, size); nan where they have none."""
        found = np.full((len(paths), len(table)), np.nan)
        for rows, numbers in self._views(table, paths):
            found[rows] = (numbers if numbers.dtype.names is None else numbers["s"] + numbers["ns"] / 1e9).T
        return found

    def take_one(self, data: bytes, paths: tuple[str, ...]) -> Floats:
        """Extract numbers (paths,) from one message, faster than `take`; nan where it has none."""
        content, found = np.frombuffer(data, np.uint8), np.empty(len(paths))
        found.fill(np.nan)
        for dtype, rows, places in self.groups(paths):
            numbers = content[places].view(dtype)
            if dtype.names is None:
                found[rows] = numbers[:, 0]
                continue
            for k, (seconds, ns) in zip(rows.tolist(), numbers[:, 0].tolist(), strict=True):
                found[k] = seconds + ns / 1e9
        return found

    def put(self, table: Bytes, paths: tuple[str, ...], values: Floats) -> None:
        """Put numbers (paths, n) into messages (n, size)."""
        for rows, numbers in self._views(table, paths):
            content = values[rows].T
            if numbers.dtype.names is None:
                numbers[...] = content
            else:
                whole = np.floor(content)
                ns = np.rint((content - whole) * 1e9)
                numbers["s"], numbers["ns"] = whole + (ns >= 1e9), ns % 1e9

    def _views(self, table: Bytes, paths: tuple[str, ...]) -> Iterator[tuple[slice, np.ndarray[Any, Any]]]:
        """Yield rows of paths, and their numbers in messages (n, size) as a view (n, rows)."""
        for rows, (offset, dtype), stride in self.runs(paths) if len(table) else ():
            shape, steps = (len(table), rows.stop - rows.start), (table.strides[0], stride)
            yield rows, np.ndarray(shape, dtype, table, offset, steps)

    def runs(self, paths: tuple[str, ...]) -> list[Run]:
        """Numbers of a message, those at even distances together."""
        if paths in self._runs:
            return self._runs[paths]
        found = self._runs[paths] = list[Run]()
        for k, place in ((k, self.places[path]) for k, path in enumerate(paths) if path in self.places):
            rows, first, stride = found[-1] if found else (slice(0, 0), place, 0)
            n, way = rows.stop - rows.start, place.offset - first.offset
            if n and rows.stop == k and first.dtype == place.dtype and way > 0 and (n == 1 or way == n * stride):
                found[-1] = slice(rows.start, k + 1), first, way // n
            else:
                found.append((slice(k, k + 1), place, place.dtype.itemsize))
        return found

    def groups(self, paths: tuple[str, ...]) -> list[Group]:
        """Numbers of a message, those of one type together."""
        if (known := self._groups.get(paths)) is not None:
            return known
        offsets: dict[np.dtype[Any], dict[int, int]] = {}
        for k, place in ((k, self.places[path]) for k, path in enumerate(paths) if path in self.places):
            offsets.setdefault(place.dtype, {})[k] = place.offset
        found = self._groups[paths] = [
            (dtype, np.array([*own]), np.array([*own.values()])[:, None] + np.arange(dtype.itemsize))
            for dtype, own in offsets.items()
        ]
        return found


def layout_of(data: bytes, kind: str, types: Types, encoding: Encoding) -> MessageLayout:
    """Layout of a message.

    Raises:
        MalformedMessage: it is no message of that kind.
    """
    walk = _Walk(bytes(data), types, encoding)
    try:
        walk.message(kind, "", ())
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessage(f"{len(data)} bytes are no {kind}: {error}") from None
    except KeyError as error:
        raise MalformedMessage(f"{kind} has fields of the kind {error}, which is not defined") from None
    if not walk.at <= len(data) <= walk.at + (3 if encoding == "cdr" else 0):
        raise MalformedMessage(f"{len(data)} bytes are no {kind}: it ends after {walk.at}")
    decisive = np.array([k for begin, end in walk.decisive for k in range(begin, end)], dtype=np.intp)
    key = np.frombuffer(walk.data, np.uint8)[decisive].tobytes()
    return MessageLayout(walk.data, walk.places, decisive, key)


@dataclass(slots=True)
class _Walk:
    """Walk through a message."""

    data: bytes
    types: Types
    encoding: Encoding
    at: int = 0
    order: str = "<"
    places: dict[str, FieldSlot] = field(default_factory=dict)
    decisive: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.encoding == "cdr":
            if self.data[:2] not in (b"\0\0", b"\0\1"):
                raise MalformedMessage(f"{len(self.data)} bytes are not a message in CDR")
            self.order = "<" if self.data[1] else ">"
            self.at = 4
            self.decisive.append((0, 2))

    def message(self, kind: str, path: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Walk through a message whose first byte is next, and return the names of elements of arrays at its end.

        Args:
            kind: its kind.
            path: how the paths of its numbers begin.
            names: those of the elements of its arrays, at its beginning.
        """
        if kind in TIME_KINDS:
            self._aligned(4)
            self._number(path, [("s", f"{self.order}i4"), ("ns", f"{self.order}u4")])
            return names
        for name, (node, form) in self.types[kind][1]:
            below = f"{path}.{name}"
            if name == FILLER:
                self.at += self.encoding == "cdr"
            elif node == NAME:
                inside = self.message(form, below, names)
                names = inside if form.endswith("/MultiArrayLayout") else names
            elif node == BASE:
                if form[0] == "string":
                    self._text()
                else:
                    self._numbers(below, form[0], [""])
            else:
                (sub, inner), fixed = form
                size = fixed if node == ARRAY else self._length()
                if sub == BASE and inner[0] == "string":
                    is_names = name in NAMES
                    if is_names and size > LONGEST:
                        what = f"'{below[1:]}' has {size:,} names"
                        raise MalformedMessage(f"{what}, and more than {LONGEST:,} are not read")
                    texts = tuple(self._text(is_names) for _ in range(size))
                    names = texts if is_names and len(set(texts)) == size else names
                    continue
                own = (
                    [f":{each}" for each in names]
                    if len(names) == size
                    else [f"[{k}]" for k in range(min(size, LONGEST))]
                )
                if sub == BASE:
                    self._numbers(below, inner[0], own if size <= LONGEST else [], size)
                elif inner.endswith("/MultiArrayDimension"):
                    for key in own:
                        names = self._dimension(inner, below + key)
                else:
                    before = dict(self.places) if size > LONGEST else self.places
                    for k in range(size):
                        self.message(inner, below + own[min(k, LONGEST - 1)], ())
                    self.places = before
        return names

    def _dimension(self, kind: str, path: str) -> tuple[str, ...]:
        """Names that the label of a dimension gives its elements, "tau:hip,tau:knee"."""
        names = tuple(self._text(is_decisive=True).split(","))
        names = names if len(set(names)) == len(names) else ()
        for name, (_, form) in self.types[kind][1][1:]:
            self._numbers(f"{path}.{name}", form[0], [""])
        return names

    def _numbers(self, path: str, kind: str, keys: Sequence[str], count: int | None = None) -> None:
        if kind not in SIZES:
            raise MalformedMessage(f"'{path[1:]}' is of the type {kind}, which is not read")
        size = SIZES[kind]
        count = len(keys) if count is None else count
        if count:
            self._aligned(size)
        if self.at + count * size > len(self.data):
            raise MalformedMessage(f"{len(self.data)} bytes end before '{path[1:]}'")
        begin, dtype = self.at, self.order + (DTYPES.get(kind) or f"{kind[0]}{size}")
        for k, key in enumerate(keys):
            self.at = begin + k * size
            self._number(path + key, dtype)
        self.at = begin + count * size

    def _number(self, path: str, form: Any) -> None:
        dtype = np.dtype(form)
        if self.at + dtype.itemsize > len(self.data):
            raise MalformedMessage(f"{len(self.data)} bytes end before '{path[1:]}'")
        self.places[path] = FieldSlot(self.at, dtype)
        self.at += dtype.itemsize

    def _length(self) -> int:
        self._aligned(4)
        (length,) = struct.unpack_from(f"{self.order}I", self.data, self.at)
        self.decisive.append((self.at, self.at + 4))
        self.at += 4
        if length > len(self.data):
            raise MalformedMessage(f"{len(self.data)} bytes cannot hold {length} elements")
        return int(length)

    def _text(self, is_decisive: bool = False) -> str:
        length = self._length()
        text = self.data[self.at : self.at + length]
        if len(text) < length:
            raise MalformedMessage(f"{len(self.data)} bytes end in a text")
        if is_decisive:
            self.decisive.append((self.at, self.at + length))
        self.at += length
        return text.rstrip(b"\0").decode(errors="replace")

    def _aligned(self, size: int) -> None:
        if self.encoding == "cdr":
            self.at = 4 + (self.at - 4 + size - 1) // size * size


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
