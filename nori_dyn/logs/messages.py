"""Messages of ROS as columns of numbers: where in its bytes each number stands, and many of them at once.

The bytes of most messages of a topic differ in their numbers alone: names and lengths stay. So the first of them is
walked through, field by field as its definition says; what is found is its layout, which serves for all that agree with
it in what decides on it, and NumPy takes their numbers out, or puts them in, without a loop over messages.

Columns are named by path, as Foxglove does: `/imu.angular_velocity.x`, `/arm.data[3]`. Where a message names the
elements of its arrays, as JointState does, so do the columns: `/joint_states.position:panda_joint1`. A time is one
column [s].
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from nori_dyn.errors import MissingExtraError
from nori_dyn.typing import Floats, Indices

Encoding: TypeAlias = Literal["cdr", "ros1"]
"""How messages of ROS 2 and of ROS 1 stand in bytes."""

Types: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The definition of each kind of message, "sensor_msgs/msg/JointState", as rosbags parses it."""

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
STAMP = ".header.stamp"
"""The column, of its topic, with the time at which a message was made."""

LOG_TIME = ".log_time"
"""The column, of its topic, with the time at which a message was recorded."""

NAMES = ("name", "names", "joint_names", "interface_names")
"""Fields that name the elements of the arrays beside and below them."""


class MalformedMessage(ValueError):
    """Bytes that are no message of their kind."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a number stands in a message; of times, seconds and then nanoseconds.

    Attributes:
        offset: in which byte it begins.
        dtype: of which type it is; "time" for two integers.
    """

    offset: int
    dtype: str

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return 8 if self.dtype == "time" else int(self.dtype[1:])


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the numbers of a message stand.

    Attributes:
        data: the message.
        order: "<" or ">", which byte of a number comes first.
        places: of each number by its path, ".position:l_knee".
        decisive: the bytes that the layout depends on.
        runs: numbers that were asked for, those that stand one after the other together.
    """

    data: bytes
    order: str
    places: Mapping[str, Place]
    decisive: Indices
    runs: dict[tuple[str, ...], list[tuple[slice, Place, int]]] = field(default_factory=dict)

    def fits(self, table: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which messages (n, size) have this layout."""
        own = np.frombuffer(self.data, np.uint8)[self.decisive]
        return np.asarray((table[:, self.decisive] == own).all(axis=1))

    def take(self, table: np.ndarray[Any, np.dtype[np.uint8]], paths: Sequence[str]) -> Floats:
        """Return numbers (paths, n) of messages (n, size); nan where they have none."""
        found = np.full((len(paths), len(table)), np.nan)
        for rows, place, count in self._runs(paths):
            content = np.ascontiguousarray(table[:, place.offset : place.offset + count * place.size])
            if place.dtype == "time":
                parts = content.view([("s", f"{self.order}i4"), ("ns", f"{self.order}u4")])
                found[rows] = (parts["s"] + parts["ns"] / 1e9).T
            else:
                found[rows] = content.view(self.order + place.dtype).T
        return found

    def put(self, table: np.ndarray[Any, np.dtype[np.uint8]], paths: Sequence[str], values: Floats) -> None:
        """Put numbers (paths, n) into messages (n, size)."""
        for rows, place, count in self._runs(paths):
            content = np.ascontiguousarray(values[rows].T)
            if place.dtype == "time":
                parts = np.zeros(content.shape, [("s", f"{self.order}i4"), ("ns", f"{self.order}u4")])
                whole = np.floor(content)
                ns = np.rint((content - whole) * 1e9)
                parts["s"], parts["ns"] = whole + (ns >= 1e9), ns % 1e9
            else:
                parts = content.astype(self.order + place.dtype)
            table[:, place.offset : place.offset + count * place.size] = parts.view(np.uint8).reshape(len(table), -1)

    def _runs(self, paths: Sequence[str]) -> list[tuple[slice, Place, int]]:
        """Return which numbers stand one after the other, where the first of them is, and how many they are."""
        known = self.runs.get(key := tuple(paths))
        if known is not None:
            return known
        runs = self.runs[key] = self._found_runs(key)
        return runs

    def _found_runs(self, paths: Sequence[str]) -> list[tuple[slice, Place, int]]:
        runs: list[tuple[slice, Place, int]] = []
        for k, path in enumerate(paths):
            place = self.places.get(path)
            if place is None:
                continue
            rows, first, count = runs[-1] if runs else (slice(0), place, 0)
            if (
                count
                and rows.stop == k
                and first.dtype == place.dtype
                and first.offset + count * first.size == place.offset
            ):
                runs[-1] = slice(rows.start, k + 1), first, count + 1
            else:
                runs.append((slice(k, k + 1), place, 1))
        return runs


def layout_of(data: bytes, kind: str, types: Types, encoding: Encoding) -> Layout:
    """Return where the numbers of a message stand.

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
    return Layout(walk.data, walk.order, walk.places, decisive)


@dataclass(slots=True)
class _Walk:
    """The way through a message."""

    data: bytes
    types: Types
    encoding: Encoding
    at: int = 0
    order: str = "<"
    places: dict[str, Place] = field(default_factory=dict)
    decisive: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.encoding == "cdr":
            if self.data[:2] not in (b"\0\0", b"\0\1"):
                raise MalformedMessage(f"{len(self.data)} bytes are no message in CDR")
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
            self._number(path, "time", 8)
            return names
        for name, (node, told) in self.types[kind][1]:
            below = f"{path}.{name}"
            if name == FILLER:
                self.at += self.encoding == "cdr"
            elif node == NAME:
                inside = self.message(told, below, names)
                names = inside if told.endswith("/MultiArrayLayout") else names
            elif node == BASE:
                if told[0] == "string":
                    self._text()
                else:
                    self._numbers(below, told[0], [""])
            else:
                (sub, inner), fixed = told
                size = fixed if node == ARRAY else self._length()
                if sub == BASE and inner[0] == "string":
                    is_names = name in NAMES
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
                    for k in range(size):
                        self.message(inner, below + own[k] if k < LONGEST else "", ())
        return names

    def _dimension(self, kind: str, path: str) -> tuple[str, ...]:
        """Return the names that the label of a dimension gives its elements, "tau:hip,tau:knee"."""
        names = tuple(self._text(is_decisive=True).split(","))
        names = names if len(set(names)) == len(names) else ()
        for name, (_, told) in self.types[kind][1][1:]:
            self._numbers(f"{path}.{name}", told[0], [""])
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
        dtype = DTYPES.get(kind) or f"{'f' if kind[0] == 'f' else kind[0]}{size}"
        begin = self.at
        for k, key in enumerate(keys):
            self.at = begin + k * size
            self._number(path + key, dtype, size)
        self.at = begin + count * size

    def _number(self, path: str, dtype: str, size: int) -> None:
        if self.at + size > len(self.data):
            raise MalformedMessage(f"{len(self.data)} bytes end before '{path[1:]}'")
        self.places[path] = Place(self.at, dtype)
        self.at += size

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


class Topic:
    """What a topic carries, as columns; it learns from messages which there are.

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
        self._layouts: dict[int, list[Layout]] = {}
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self._columns, self.name + LOG_TIME)

    @property
    def clock(self) -> str:
        """The column with the times of messages: when they were made, where they tell."""
        return self.name + (STAMP if self.is_stamped else LOG_TIME)

    def look(self, data: bytes) -> None:
        """Learn from a message what columns there are.

        Raises:
            MalformedMessage: it is none.
        """
        layout = self._layout(data)
        self._columns.update(dict.fromkeys(self.name + path for path in layout.places))
        if STAMP in layout.places:
            self.is_stamped |= bool(self.decode([data], [self.name + STAMP])[0, 0])

    def decode(self, messages: Sequence[bytes], columns: Sequence[str]) -> Floats:
        """Return columns (columns, n) of messages; nan where one has no such number.

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

    def _decode_alike(self, messages: Sequence[bytes], numbers: Indices, paths: Sequence[str]) -> Floats:
        """Return numbers (paths, n) of messages of one length."""
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
                layout = next(known, None) or self._layout(messages[first])
            except MalformedMessage as error:
                raise MalformedMessage(f"message {numbers[first]} of {self.name}: {error}") from None
            own = left & layout.fits(table)
            if own.all():
                return layout.take(table, paths)
            found[:, own] = layout.take(table[own], paths)
            left &= ~own
        return found

    def _layout(self, data: bytes) -> Layout:
        layout = layout_of(data, self.kind, self.types, self.encoding)
        known = self._layouts.setdefault(len(data), [])
        known.insert(0, layout)
        del known[16:]  # a topic whose messages all differ
        return layout


@cache
def standard_types(encoding: Encoding) -> Types:
    """Return the definitions of the messages that come with ROS.

    Raises:
        MissingExtraError: rosbags is not installed.
    """
    return typestore_of(encoding).fielddefs  # type: ignore[no-any-return]


def parsed_types(text: str, kind: str) -> Types:
    """Return the definition of a kind of message, and of those that it is made of, as a file tells it.

    Raises:
        MalformedMessage: it is no definition.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    bar = "=" * 80 + "\n"
    try:
        if not text.startswith(f"{bar}IDL: ") and "module " not in text:
            return get_types_from_msg(text, kind)
        types: dict[str, tuple[Any, Any]] = {}
        for part in text.split(bar) if text.startswith(bar) else [text]:
            if part.strip():
                types.update(get_types_from_idl(part.split("\n", 1)[1] if part.startswith("IDL: ") else part))
        return types
    except Exception as error:  # the parser raises all kinds of them
        raise MalformedMessage(f"its definition cannot be read: {error}") from None


@cache
def typestore_of(encoding: Encoding) -> Any:
    """Return rosbags' store of the messages that come with ROS.

    Raises:
        MissingExtraError: rosbags is not installed.
    """
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtraError("messages of ROS", "logs") from None
    return get_typestore(Stores.ROS1_NOETIC if encoding == "ros1" else Stores.ROS2_JAZZY)
