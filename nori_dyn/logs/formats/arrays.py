"""Arrays of numbers on several clocks: the clock of each, and its sample axis."""

from __future__ import annotations

import heapq
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.source import BLOCK, TIMES, LogSource, SampleBlock, Stream, goes_on, refusing
from nori_dyn.typing import Array, Floats

CONSTANT = 10
"""Arrays without a clock that are as many times shorter than the longest are constants, no samples."""

CLOCKED = 1000
"""Numbers at the beginning of an array that are looked at for times."""

LONGEST, LARGEST_BLOCK = 1 << 16, BLOCK << 10
"""Numbers of a sample, and of a part that is read at once, at most: images are no readings."""

TEXT = ("string", "categorical", "function_handle")
"""Classes of MATLAB's objects that hold no numbers: they are left out without a word."""

SUFFIX = re.compile(
    rf"(?:(?:^|[._/\s-])(?i:{'|'.join(TIMES)})|(?<=[a-z0-9])(?:{'|'.join(time.capitalize() for time in TIMES[1:])}))$"
)
"""How the name of an array of times ends: `t`, `state_left_leg_t`, `arm/timestamps`, `estimatorJointsTime`."""

RATE = re.compile(r"(?i)(?:.*[._/])?(?:fps|(?:frame|sampl(?:e|ing))_?(?:rate|freq(?:uency)?)|fs)")
STEP = re.compile(r"(?i)(?:.*[._/])?(?:dt|time_?step|frame_?(?:duration|time)|sampl(?:e|ing)_?time)")
"""What a number is called that says how many samples there are in a second, and how long one lasts."""

RATES = (1.0, 1e5)
"""Samples a second [Hz] that are believed, at least and at most."""


@dataclass(frozen=True, slots=True, eq=False)
class ArraySeries:
    """An array of a file that may hold samples.

    Attributes:
        name: its name in the file, with the groups that it is in.
        shape: its shape there.
        take: reads a part of it, given the axis along which the samples are, the first, and the end.
        group: the group that it is in.
        labels: the names of its columns, where the file tells them.
        units: their units, or one for all, where the file tells them.
    """

    name: str
    shape: tuple[int, ...]
    take: Callable[[int, int, int], Array]
    group: str = ""
    labels: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, array: Array, group: str = "", labels: tuple[str, ...] = (), units: tuple[str, ...] = ()
    ) -> ArraySeries:
        """Series of an array in memory."""
        return cls(name, array.shape, partial(part_of, array), group, labels, units)

    @property
    def is_times(self) -> bool:
        """Whether it holds times, by its name and shape."""
        return max(self.shape, default=0) == math.prod(self.shape) and SUFFIX.search(self.name) is not None

    @property
    def stem(self) -> str:
        """How the names begin of what an array of times is for."""
        return SUFFIX.sub("", self.name)


@dataclass(frozen=True, slots=True, eq=False)
class _SampledArray:
    """An array with its sample axis."""

    series: ArraySeries
    axis: int
    turns: bool
    is_clock: bool

    @property
    def samples(self) -> int:
        return self.series.shape[self.axis]

    def read(self, start: int, stop: int) -> Floats:
        """Read samples (n, columns)."""
        part = np.moveaxis(self.series.take(self.axis, start, stop), self.axis, 0)
        return np.asarray(part, dtype=float).reshape(stop - start, self.width)

    @property
    def rest(self) -> tuple[int, ...]:
        """The shape of one sample."""
        shape = self.series.shape[: self.axis] + self.series.shape[self.axis + 1 :]
        return tuple(n for n in shape if n != 1) if self.turns or self.is_clock else shape

    @property
    def width(self) -> int:
        return math.prod(self.rest)

    @property
    def columns(self) -> tuple[str, ...]:
        if len(self.series.labels) == self.width:
            return self.series.labels
        return tuple(
            self.series.name + "".join(f"[{k}]" for k in indices) for indices in product(*map(range, self.rest))
        )


@dataclass(slots=True)
class _ClockGroup:
    """Arrays on one clock."""

    samples: int
    clock: _SampledArray | None
    members: list[_SampledArray] = field(default_factory=list)


class ArraySource(LogSource):
    """Arrays of one file.

    An array is on the clock of the array of times that has as many samples and is in the same group, or else whose name
    begins alike (`state_left_leg_t` is that of `state_left_leg_q`), or else is the only one of that length. Those that
    have no clock are together where they are as long.

    Args:
        path: the file.
        series: its arrays.
        metadata: what the file says of itself.
        turns: whether samples may stand along the last axis, as MATLAB has it: then along that whose length most arrays
            have, where no clock tells.
        refused: what of it holds no plain numbers, and why.
    """

    def __init__(
        self,
        path: Path,
        series: Sequence[ArraySeries],
        metadata: Mapping[str, str] = MappingProxyType({}),
        turns: bool = False,
        refused: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path, self.metadata, self.rate = path, metadata, _rate(series)
        placed = _placed(series, turns)
        self.refused = {**refused} | {
            each.series.name: f"it has {each.width:,} numbers a sample, and more than {LONGEST:,} are not read"
            for each in placed
            if each.width > LONGEST
        }
        groups = _grouped([each for each in placed if each.series.name not in self.refused])
        names = _names(groups)
        self._groups = dict(zip(names, groups, strict=True))
        self._places: dict[str, tuple[_SampledArray, int]] = {}
        streams: list[Stream] = []
        for name, group in self._groups.items():
            columns: list[str] = []
            units: dict[str, str] = {}
            for member in group.members:
                own = member.columns
                for k, column in enumerate(own):
                    if column in self._places:
                        raise self._twice(column)
                    self._places[column] = member, k
                own_units = member.series.units
                units.update(zip(own, own_units * len(own) if len(own_units) == 1 else own_units, strict=False))
                columns += own
            clock = group.clock.columns[0] if group.clock is not None else None
            units = {column: unit for column, unit in units.items() if unit}
            streams.append(Stream(name, tuple(columns), clock, group.samples, units))
        self.streams = tuple(streams)
        left = "; ".join(f"'{name}': {why}" for name, why in self.refused.items())
        if not streams:
            raise FileFormatError(f"{path}: holds no arrays of numbers. {left}".rstrip())
        if left:
            warnings.warn(f"{path}: some of its arrays are not read: {left}.", NoriWarning, stacklevel=2)

    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        total = sum(self._groups[name].samples for name in wanted)
        queue = [(0.0, k, name, 0) for k, name in enumerate(wanted)]
        read = 0
        while queue:
            _, k, name, start = heapq.heappop(queue)
            group = self._groups[name]
            widest = max(self._places[column][0].width for column in wanted[name])
            stop = min(start + max(1, min(BLOCK, LARGEST_BLOCK // widest)), group.samples)
            if start >= stop:
                continue
            yield SampleBlock(name, start, self._columns(wanted[name], start, stop))
            read += stop - start
            self._share = read / max(total, 1)
            if stop < group.samples:
                time = 0.0 if group.clock is None else float(self._read(group.clock, stop - 1, stop)[0, 0])
                heapq.heappush(queue, (time if np.isfinite(time) else 0.0, k, name, stop))

    def _columns(self, columns: Sequence[str], start: int, stop: int) -> tuple[Floats, ...]:
        tables: dict[str, Floats] = {}
        for column in columns:
            member, _ = self._places[column]
            if member.series.name not in tables:
                tables[member.series.name] = self._read(member, start, stop)
        return tuple(tables[member.series.name][:, k] for member, k in (self._places[column] for column in columns))

    def _read(self, member: _SampledArray, start: int, stop: int) -> Floats:
        where = f"samples {start} to {stop - 1} of '{member.series.name}'"
        with refusing(f"{self.path}: is damaged: {where} cannot be read"):
            return member.read(start, stop)


def _rate(series: Sequence[ArraySeries]) -> float | None:
    """How many samples a second [Hz] a single number says; None if none does."""
    for each in series:
        power = 1 if RATE.fullmatch(each.name) else -1 if STEP.fullmatch(each.name) else 0
        if power and math.prod(each.shape) == 1:
            value = float(np.asarray(each.take(0, 0, 1), dtype=float).ravel()[0])
            if value > 0 and RATES[0] <= value**power <= RATES[1]:
                return value**power
    return None


def _placed(series: Sequence[ArraySeries], turns: bool) -> list[_SampledArray]:
    """The arrays that hold samples, each with its sample axis."""
    series = [each for each in series if each.shape]
    most = max((max(each.shape) for each in series), default=0)
    clocks = {each.name for each in series if each.is_times and (max(each.shape) == most or _goes_on(each))}
    times = {max(each.shape) for each in series if each.name in clocks}
    ends = [(each.shape[0], each.shape[-1]) for each in series]
    common = Counter(n for pair in ends for n in {*pair})
    longer = {max(pair) for pair in ends if 1 < min(pair) < max(pair)}
    found: list[_SampledArray] = []
    for each in series:
        last = len(each.shape) - 1
        begin, end = each.shape[0], each.shape[-1]
        if turns and last and max(each.shape) == 1 and len(common) > 1:
            continue
        if turns and max(each.shape) == math.prod(each.shape):
            axis = int(np.argmax(each.shape))
        elif not last or begin in times or begin == end:
            axis = 0
        elif end in times:
            axis = last
        else:
            rank = {n: (n in longer or CONSTANT * n >= max(begin, end), common[n], n) for n in (begin, end)}
            axis = last if turns and rank[end] > rank[begin] else 0
        found.append(_SampledArray(each, axis, turns, each.name in clocks))
    return found


def _goes_on(each: ArraySeries) -> bool:
    """Whether an array that is called as times are begins as times do; k_T, a constant of each motor, does not."""
    axis = int(np.argmax(each.shape))
    try:
        return goes_on(np.asarray(each.take(axis, 0, min(each.shape[axis], CLOCKED)), dtype=float).ravel())
    except Exception:  # a damaged file, which reading tells of
        return True


def _grouped(placed: Sequence[_SampledArray]) -> list[_ClockGroup]:
    """Arrays grouped by clock."""
    clocks = {each.series.name: each for each in placed if each.is_clock}
    groups = {name: _ClockGroup(clock.samples, clock, [clock]) for name, clock in clocks.items()}
    others: dict[int, _ClockGroup] = {}
    for each in placed:
        if each.series.name in clocks or not each.width:
            continue
        clock = _clock_of(each, [clock for clock in clocks.values() if clock.samples == each.samples])
        if clock is not None:
            groups[clock.series.name].members.append(each)
        else:
            others.setdefault(each.samples, _ClockGroup(each.samples, None)).members.append(each)
    longest = max([group.samples for group in (*groups.values(), *others.values())], default=0)
    return [*groups.values(), *(group for group in others.values() if group.samples * CONSTANT >= longest)]


def _clock_of(each: _SampledArray, clocks: Sequence[_SampledArray]) -> _SampledArray | None:
    """Clock of an array, among those with as many samples, or None."""
    name, group = each.series.name, each.series.group
    alike = [clock for clock in clocks if clock.series.stem and name.startswith(clock.series.stem)]
    if alike:
        return max(alike, key=lambda clock: len(clock.series.stem))
    above = [clock for clock in clocks if clock.series.group == group] or list(clocks)
    return above[0] if len(above) == 1 else None


def _names(groups: Sequence[_ClockGroup]) -> list[str]:
    """A name for each group; "" for a single one."""
    if len(groups) == 1:
        return [""]
    names: list[str] = []
    for group in groups:
        first = group.members[0].series
        if group.clock is not None:
            name = group.clock.series.stem or group.clock.series.name
        else:
            name = first.name if len(group.members) == 1 else f"{group.samples} samples"
        names.append(name if name not in names else f"{name} ({group.samples} samples)")
    return names


def object_of(kind: str) -> str:
    """Why an object of MATLAB's is not read, by its class."""
    return f"it is an object of MATLAB's class {kind}: save what it holds as arrays there, as with x = log.Data"


def part_of(array: Any, axis: int, start: int, stop: int) -> Array:
    """Slice of an array, or of what is sliced like one, along an axis; all of a single number."""
    if not array.shape:
        return np.asarray(array)
    return np.asarray(array[(*(slice(None),) * axis, slice(start, stop))])
