"""Interface of logs of any format: streams of columns, each on its own clock, read in blocks."""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np

from nori_dyn.errors import FileFormatError, NoriError
from nori_dyn.io.files import reason
from nori_dyn.typing import Floats

BLOCK = 1 << 14
"""Samples of a block, at most: of a robot with many sensors what is done with them fits the processor's caches."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Columns of a log on one clock: a table, a topic, a group of arrays of one length.

    Attributes:
        name: its name, "/joint_states"; "" for the only table of a file.
        columns: the full names of its columns of numbers, each once in the whole log: "tau_J[0]",
            "/joint_states.position:panda_joint1", "/imu.angular_velocity.x".
        clock: the column with its times, where there is one; of messages that of their stamps, or of the log.
        samples: how many it has, where that is known without reading them.
        units: the units of columns, where the file tells them.
        kind: what it is, where the file tells: "sensor_msgs/msg/JointState".
    """

    name: str
    columns: tuple[str, ...]
    clock: str | None = None
    samples: int | None = None
    units: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SampleBlock:
    """Successive samples of one stream.

    Attributes:
        stream: the name of the stream.
        first: the number of the first of them, from 0 at the beginning of the stream.
        values: the columns (n,) that were asked for, in that order; nan where there is no number.
    """

    stream: str
    first: int
    values: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.values[0])


class LogSource(ABC):
    """An open log. It reads the columns that are asked for, a few blocks at a time.

    Laws, tested over the registry in tests/contracts/test_log_formats.py:
    the blocks of a stream follow each other without a gap and have `samples` samples in all where that is known; the
    blocks of several streams come in about the order of their times; a file that is damaged raises `FileFormatError`,
    before or while it is read, never another error.

    Attributes:
        path: the file.
        streams: what it holds.
        metadata: what the file says of itself.
        refused: what it holds that is not read, such as a topic, and why.
        rate: how many samples a second [Hz] a single number of the file says, by its name; None if there is none.
    """

    path: Path
    streams: tuple[Stream, ...]
    metadata: Mapping[str, str] = MappingProxyType({})
    refused: Mapping[str, str] = MappingProxyType({})
    rate: float | None = None
    _share: float | None = None

    @abstractmethod
    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        """Yield the wanted columns of streams, {stream: columns}, in blocks of at most `BLOCK` samples.

        Args:
            wanted: at least one column of each stream that is wanted.

        Raises:
            FileFormatError: the file is damaged; says where.
        """

    def table(self, stream: Stream) -> dict[str, Floats]:
        """Read a stream as a whole: its columns (n,), by name.

        Raises:
            FileFormatError: the file is damaged; says where.
        """
        blocks = [block.values for block in self.read({stream.name: stream.columns})]
        return {name: np.concatenate([np.zeros(0), *(b[k] for b in blocks)]) for k, name in enumerate(stream.columns)}

    def place(self, stream: str, sample: int) -> str:
        """Location of a sample: "log.csv:17", "log.npz, sample 15" (from 0)."""
        return f"{self.path}, sample {sample}" + (f" of {stream}" if stream else "")

    def done(self) -> float | None:
        """Share of the file that has been read, or None."""
        return self._share

    def _twice(self, column: str) -> FileFormatError:
        """The error of two columns of one name."""
        return FileFormatError(f"{self.path}: has two columns '{column}'. Rename or remove one of the two.")

    def close(self) -> None:  # noqa: B027  (most sources hold nothing open)
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def columns(self) -> Mapping[str, Stream]:
        """The stream of each column."""
        return {column: stream for stream in self.streams for column in stream.columns}


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Make errors of the libraries of formats, which raise all kinds of them for damaged files, `FileFormatError`.

    Args:
        what: what is wrong with which file: "log.mat: is damaged".
    """
    try:
        yield
    except NoriError:
        raise
    except Exception as error:
        raise FileFormatError(f"{what}: {reason_of(error)}.") from None


def reason_of(error: Exception) -> str:
    """What an error says, in one line without a point at its end."""
    return " ".join(reason(error).split()).rstrip(".") or "a record in it is not what it should be"


def suggestion(columns: Iterable[str], name: str, known: Iterable[str] = ()) -> str:
    """A sentence that proposes a column for one that is missing; columns of known kinds are not proposed."""
    columns = list(columns)
    others = [each for each in columns if re.split(r"[:\[]", each)[0] not in known]
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.5)
    if close:
        return f"Did you mean its column '{close[0]}'?"
    names = abbreviated(columns)
    return f"Its columns are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}."


TIMES = ("t", "time", "times", "timestamp", "timestamps", "stamp", "stamps", "tstamp", "tstamps")
"""What times are called, in small letters or capitals."""


def time_column(columns: Iterable[str]) -> str | None:
    """Column with the times of a table, by its name, or None."""
    return next((name for name in columns if name.lower() in TIMES), None)


def whole_seconds(clock: str | None, columns: Iterable[str]) -> str | None:
    """Column with the whole seconds of times whose nanoseconds are the clock: stamp.sec of stamp.nanosec; or None."""
    whole = re.sub(r"n(?:ano)?(?=sec(?:ond)?s?$)", "", clock or "")
    return whole if whole != clock and whole in columns else None


def goes_on(t: Floats) -> bool:
    """Whether numbers (n,) are times: most of them are later than the one before, and hardly any earlier."""
    steps = np.diff(t)
    return len(t) < 2 or bool(np.mean(steps > 0) > 0.5 and np.mean(steps < 0) < 0.05)


def abbreviated(names: Iterable[str]) -> tuple[str, ...]:
    """Names, those that differ by numbers or a joint only as one: "q_d (7 columns)", "motor[].mode (9 columns)"."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"(\[\]|:[^.\[]*|_?\d+)$", "", re.sub(r"\[\d+\]", "[]", name)), []).append(name)
    return tuple(own[0] if len(own) == 1 else f"{kind} ({len(own)} columns)" for kind, own in alike.items() if kind)
