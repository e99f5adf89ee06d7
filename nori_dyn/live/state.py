"""The latest numbers of all streams, and what was wrong with the times of messages."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from nori_dyn.logs.clock import BRIDGED
from nori_dyn.logs.mapping.binding import Binding, BoundStream
from nori_dyn.logs.mapping.log_mapping import StreamSettings
from nori_dyn.typing import Booleans, Floats

RESTART = 1.0
"""Seconds that time must go back to have begun anew, as a recording that is played again does; less is out of order."""

SETTLED = 10
"""Messages after which the usual time between them is known."""

MEMORY = 0.05
"""Share of a new time between messages in the usual one, both as logarithms."""

PARTS = 64
"""Sets of numbers that messages of one stream may tell, at most."""

WRONG = ("repeated", "out_of_order", "late", "restarts")
"""What is counted of the times of messages: those of the time of the one before, and of an earlier time, which are not
used; those that came after an estimate for which they would have been newer, which are used from then on; and how often
time began anew."""


@dataclass(slots=True)
class MessageTimes:
    """The times of the messages that tell the same numbers: two publishers of one topic have clocks of their own.

    Attributes:
        latest: the time of the last one [s]; minus infinity before the first.
        step: the usual time between them [s]; nan until it is known.
    """

    latest: float = -np.inf
    step: float = np.nan
    _steps: int = 0

    def gap(self, settings: StreamSettings) -> float:
        """How old such numbers may be [s]."""
        if settings.gap is not None:
            return settings.gap
        return BRIDGED * self.step if self._steps >= SETTLED else np.inf

    def order(self, t: float) -> str:
        """Fault of the time of a message, see `WRONG`, or ""."""
        if t > self.latest:
            if np.isfinite(self.latest):
                self._learn(t - self.latest)
            self.latest = t
            return ""
        return "repeated" if t == self.latest else "out_of_order" if t > self.latest - RESTART else "restarts"

    def _learn(self, step: float) -> None:
        """Learn of a time between messages [s]: one that is a gap counts for little, and a new rate in the end."""
        self._steps += 1
        if self._steps == 1:
            self.step = step
        else:
            share, change = max(MEMORY, 1 / self._steps), math.log(step / self.step)
            self.step *= math.exp(share * min(max(change, -1.0), 1.0))


class LiveStream:
    """The messages of one stream.

    Attributes:
        bound: what is taken of the stream.
        parts: the times of those that tell the same numbers, by which these are.
        counts: how many messages were late, and so on; see `WRONG`.

    Args:
        bound: what is taken of the stream.
    """

    def __init__(self, bound: BoundStream) -> None:
        self.bound = bound
        self.parts: dict[bytes, MessageTimes] = {}
        self.counts: Counter[str] = Counter()

    def part(self, known: Booleans) -> MessageTimes:
        """The messages that tell the same numbers of the record (m,)."""
        key = known.tobytes()
        if key not in self.parts:
            if len(self.parts) >= PARTS:
                self.parts.clear()
            self.parts[key] = MessageTimes()
        return self.parts[key]

    def time(self, values: Floats, arrived: float) -> float:
        """When a message is of [s]: what its clock says, or where that stands still at zero, when it came."""
        stamp = 0.0 if self.bound.clock is None else float(self.bound.stamps(values))
        return (stamp or arrived) - self.bound.settings.delay

    def write(self, values: Floats, record: Floats) -> None:
        """Write what the columns of a message (k,) say into the numbers of a sample; nan where they say nothing."""
        with np.errstate(all="ignore"):  # what is not finite then is not known
            for piece, places in zip(self.bound.pieces, self.bound.places, strict=True):
                record[piece.targets] = piece.apply(values[places][:, None])[:, 0]


class State:
    """The numbers of a sample as they are known now: the latest of each stream.

    Attributes:
        binding: where each number comes from.
        tracks: the streams, by name.
        values: the numbers (m,) of the record; nan where nothing is known yet.
        heard: when each was last received (m,) [s]; infinite of constants.
        ticked: the time of the last sample that was due [s].
    """

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.tracks = {name: LiveStream(bound) for name, bound in binding.streams.items()}
        self.values = binding.constants.copy()
        self.heard = np.where(np.isnan(self.values), -np.inf, np.inf)
        self._gaps = np.full(len(self.values), np.inf)
        self.ticked = -np.inf
        reference = binding.streams[binding.reference]
        self._first = int(reference.targets.min())
        self._pace = MessageTimes()
        self._next = -np.inf

    @property
    def period(self) -> float:
        """The time between samples [s]; nan until it is known."""
        return 1 / self.binding.rate if self.binding.rate is not None else self._pace.step

    def take(self, stream: str, values: Floats, arrived: float) -> float | None:
        """Take what a message says, and return the time of the sample that is due with it [s]; None where none is.

        Args:
            stream: its stream.
            values: the columns of the stream (k,), as its `BoundStream` names them; nan where it says nothing.
            arrived: when it came [s since 1970].
        """
        track = self.tracks[stream]
        numbers = np.full(len(self.values), np.nan)
        track.write(values, numbers)
        known = np.isfinite(numbers)
        if not known.any():
            return None
        t, part = track.time(values, arrived), track.part(known)
        wrong = part.order(t)
        if wrong:
            track.counts[wrong] += 1
            if wrong != "restarts":
                return None
            self.forget(None if stream == self.binding.reference else stream)
            part.order(t)
        if t < self.ticked:
            track.counts["late"] += 1
        self.values[known] = numbers[known]
        self.heard[known] = t
        self._gaps[known] = part.gap(track.bound.settings)
        if stream != self.binding.reference or not known[self._first]:
            return None
        self._pace = part
        return self._due(t)

    def _due(self, t: float) -> float | None:
        """The time of a sample, where one is due at the time of a message of the reference stream."""
        rate = self.binding.rate
        if t <= self.ticked:  # of another publisher, whose clock is behind
            return None
        if rate is not None:
            if t < self._next - 1e-3 / rate:
                return None
            self._next = t + 1 / rate if not np.isfinite(self._next) else max(self._next + 1 / rate, t)
        self.ticked = t
        return t

    def sample(self, t: float) -> Floats:
        """The numbers of a sample (m,); nan where their stream has been silent for too long."""
        values = np.where(t - self.heard > self._gaps, np.nan, self.values)
        self.binding.complete(values[:, None])
        return values

    def forget(self, stream: str | None = None) -> None:
        """Begin anew, with one stream or with all."""
        for name, track in self.tracks.items():
            for part in track.parts.values() if stream in (None, name) else ():
                part.latest = -np.inf
        if stream is None:
            self.values[:] = self.binding.constants
            self.heard[:] = np.where(np.isnan(self.values), -np.inf, np.inf)
            self.ticked = self._next = -np.inf
