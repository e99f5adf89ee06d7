"""Byte layout of a message, found by walking through it as its definition says."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nori_dyn.logs.messages.kinds import Encoding, MalformedMessage, Types
from nori_dyn.typing import Floats, Indices

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


@dataclass(frozen=True, slots=True)
class FieldSlot:
    """Slot of a number in a message; a time is seconds and then nanoseconds.

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
class MessageLayout:
    """Byte layout of a message.

    Attributes:
        data: the message.
        order: "<" or ">", which byte of a number comes first.
        places: of each number by its path, ".position:l_knee".
        decisive: the bytes that the layout depends on.
        runs: numbers that were asked for, those that stand one after the other together.
    """

    data: bytes
    order: str
    places: Mapping[str, FieldSlot]
    decisive: Indices
    runs: dict[tuple[str, ...], list[tuple[slice, FieldSlot, int]]] = field(default_factory=dict)

    def fits(self, table: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask (n,) of the messages (n, size) that have this layout."""
        own = np.frombuffer(self.data, np.uint8)[self.decisive]
        return np.asarray((table[:, self.decisive] == own).all(axis=1))

    def take(self, table: np.ndarray[Any, np.dtype[np.uint8]], paths: Sequence[str]) -> Floats:
        """Extract numbers (paths, n) from messages (n, size); nan where they have none."""
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

    def _runs(self, paths: Sequence[str]) -> list[tuple[slice, FieldSlot, int]]:
        """Runs of contiguous numbers: their rows, the slot of the first, and their count."""
        known = self.runs.get(key := tuple(paths))
        if known is not None:
            return known
        runs = self.runs[key] = self._found_runs(key)
        return runs

    def _found_runs(self, paths: Sequence[str]) -> list[tuple[slice, FieldSlot, int]]:
        runs: list[tuple[slice, FieldSlot, int]] = []
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
    return MessageLayout(walk.data, walk.order, walk.places, decisive)


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
        self.places[path] = FieldSlot(self.at, dtype)
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
