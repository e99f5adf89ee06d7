"""Drafts of mappings: likely meanings of the columns of a log, by names and magnitudes, with reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

import numpy as np

from nori_dyn.logs.drafts.drafting import DraftEntry, Drafting
from nori_dyn.logs.drafts.families import UNIT_IN_NAME, Family, families_of, words_of
from nori_dyn.logs.drafts.free_joints import poses, split
from nori_dyn.logs.drafts.sensors import contacts, imus, wrenches
from nori_dyn.logs.drafts.unnamed import TIME, recognised
from nori_dyn.logs.formats.source import TIMES, LogSource, Stream, abbreviated, goes_on, whole_seconds
from nori_dyn.logs.mapping.conversions import factor
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.typing import Floats

UNIT_AFTER = re.compile(r"_([num]?s)$")
"""How a unit ends the name of a column of times: time_ms."""

LOOKED_AT = 20_000
"""Samples that are looked at for units, at most."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A likely mapping, and the columns without a guess.

    Attributes:
        robot: the robot that it is for.
        guesses: its entries.
        streams: what is to be known of streams, by their names, and why.
        rate: how many samples a second [Hz] a log without times has: a number of its file says it, or positions and
            velocities; or None.
        lacking: what the sensors need and no column was found for.
        still: the joints of one number that no column is of, where columns are of others.
        left_over: the columns that were not taken.
        ranges: between which numbers they are, of logs whose columns have no names.
    """

    robot: str
    guesses: tuple[DraftEntry, ...]
    streams: Mapping[str, tuple[Mapping[str, object], str]]
    rate: float | None
    lacking: tuple[str, ...]
    still: tuple[str, ...]
    left_over: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]

    @property
    def lacks_velocities(self) -> bool:
        """Whether there is a velocity that no column was found for."""
        return any(re.match("qd[^d]", name) for name in self.lacking)

    def holds(self, kind: str) -> bool:
        """Whether columns were found for what begins so: tau, torques of joints."""
        return any(str(guess.entry["of"]).startswith(kind) for guess in self.guesses)

    def data(self) -> dict[str, object]:
        """The mapping as data."""
        content: dict[str, object] = {"robot": self.robot}
        if self.rate is not None:
            content["clock"] = {"rate": self.rate}
        if self.streams:
            content["streams"] = {name: dict(settings) for name, (settings, _) in self.streams.items()}
        return content | {"columns": [dict(guess.entry) for guess in self.guesses]}


def draft(
    source: LogSource,
    record: SampleRecord,
    order: Sequence[str] = (),
    called: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Draft:
    """Draft a mapping for a log and a robot with sensors.

    Args:
        source: the log; some of its samples are read.
        record: the numbers of a sample.
        order: the joints in the order in which the robot's messages number them, where that is known.
        called: what joints are called besides.

    Raises:
        FileFormatError: the log is damaged.
    """
    names = [name for stream in source.streams for name in stream.columns if name != stream.clock]
    joints = [n for n, j in zip(record.tree.joint_names, record.tree.joints, strict=True) if j.nq == j.nv == 1]
    values = _sample(source)
    families = [*split(recognised(families_of(names, joints, order, called), record.tree, values), record.tree)]
    times_of = {source.columns[f.columns[0]].name: f for f in families if f.words == (TIME,)}
    clocks = {s.name: found for s in source.streams if (found := _clock(s, values, times_of.get(s.name))) is not None}
    times = {column: t for s in source.streams for t in _times(s, clocks, values) for column in s.columns}
    of = Drafting(names, joints, record, families, values, times)
    for kind in ("q", "qd", "qdd", "tau", "current"):
        of.guesses.extend(of.joint_entries(kind))
    beside = {source.columns[column].name for guess in of.guesses for column in guess.columns}
    of.guesses.extend(
        one  # streams without times do not go with others
        for one in (*wrenches(of), *imus(of), *contacts(of))
        if all(column in times or source.columns[column].name in beside for column in one.columns) or not beside
    )
    rate = of.rate(source.rate)
    if not record.estimated:
        of.guesses[:0] = poses(of, rate)
    given = of.given
    own = [str(settings["clock"]) for settings, _ in clocks.values() if "clock" in settings]
    taken = of.taken | {*own, *(whole_seconds(clock, names) for clock in own)}
    moving = {joint for joint in joints if any(f"{kind}:{joint}" in given for kind in ("q", "qd", "tau"))}
    return Draft(
        robot=record.tree.name,
        guesses=tuple(of.guesses),
        streams=clocks,
        rate=rate,
        lacking=abbreviated(
            name
            for k, name in enumerate(record.names)
            if name not in given and k not in record.estimated and name not in record.deflections
        ),
        still=tuple(joint for joint in joints if joint not in moving) if any(n.startswith("q:") for n in given) else (),
        left_over=(left_over := tuple(name for name in names if name not in taken)),
        ranges={
            name: (float(np.nanmin(values[name])), float(np.nanmax(values[name])))
            for name in left_over
            if name.startswith("column[") and name in values and np.isfinite(values[name]).any()
        },
    )


def _sample(source: LogSource) -> dict[str, Floats]:
    """The first samples of all columns."""
    found: dict[str, Floats] = {}
    for stream in source.streams:
        if stream.columns:
            for block in islice(source.read({stream.name: stream.columns}), 1):
                found |= {n: v[:LOOKED_AT] for n, v in zip(stream.columns, block.values, strict=True)}
    return found


def _times(
    stream: Stream, clocks: Mapping[str, tuple[Mapping[str, object], str]], values: Mapping[str, Floats]
) -> Iterator[Floats]:
    """Yield the times of a stream [s], where they are known."""
    settings = clocks.get(stream.name, ({}, ""))[0]
    clock = str(settings.get("clock") or stream.clock)
    size = factor(str(settings.get("unit") or stream.units.get(clock, "s")), "s")
    if clock in values and size is not None:
        whole = whole_seconds(clock, stream.columns)
        yield size * values[clock] + (0 if whole is None else values[whole])


def _clock(
    stream: Stream, values: Mapping[str, Floats], unnamed: Family | None
) -> tuple[Mapping[str, object], str] | None:
    """Settings of the clock of a stream, and the reason; None if it needs none, or if there is none."""
    clock = stream.clock
    settings: dict[str, object] = {}
    why = ""
    if clock is None:
        why = "named as times are"
        named = [c for c in stream.columns if {"duration", *TIMES[1:]} & set(words_of(c))]
        clock = next((c for c in named if whole_seconds(c, named) is not None), None)
        clock = clock or next((c for c in named if c not in values or goes_on(values[c])), None)
        if clock is None and unnamed is not None:
            clock, why = unnamed.columns[0], unnamed.why
        if clock is None:
            return None
        settings["clock"] = clock
    match = UNIT_IN_NAME.search(clock) or UNIT_AFTER.search(clock)
    if whole_seconds(clock, stream.columns) is not None:
        settings["unit"] = "ns"
    elif match and factor(match[1], "s") is not None:
        settings["unit"] = match[1]
    elif clock in values and stream.units.get(clock, "s") == "s" and len(values[clock]) > 2:
        step = float(np.nanmedian(np.diff(values[clock])))
        unit = next((u for low, u in ((1e5, "ns"), (1e2, "us"), (0.5, "ms")) if step >= low), None)
        if unit is not None:
            settings["unit"], why = unit, f"{why}{'; ' if why else ''}a step is {step:g}: {unit}"
    return (settings, why) if settings else None
