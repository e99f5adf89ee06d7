"""Resampling of streams to one clock: by linear interpolation, or by holding the last sample."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.formats.source import BLOCK, SampleBlock
from nori_dyn.logs.mapping.binding import Binding, BoundStream
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.typing import Booleans, Floats

BRIDGED = 5.0
"""How many usual steps of a stream are bridged where its mapping says nothing."""

AHEAD = 16 * BLOCK
"""Samples of the clock that wait for a stream before it is taken for silent."""

DAY = 86_400.0
"""Seconds by which a time is off from both of its neighbours, which agree, where it is taken for none."""

LARGEST = 1e50
"""Numbers of a log from which on they are none: no robot has such in any unit, and their squares end in nothing."""

NO_TIME, TWICE = "with an invalid time", "that repeat the one before, its time too"

SLOWER = 2
"""As many times more samples than a stream has are warned of, where they are differentiated."""

MOST_TIMES = 1 << 26
"""Times that a clock of so many a second makes between two samples, at most: 18 hours of 1 kHz."""


@dataclass(slots=True)
class StreamCounts:
    """Counts of the times of a stream.

    Attributes:
        samples: samples.
        wrong: samples at times that are none, see `invalid_times`, left alone.
        repeated: samples at the time of the one before, left alone where streams are resampled.
        backwards: samples before the one before, likewise.
        gaps: times between two samples that are longer than what is bridged.
        longest: the longest time between two samples [s].
        last: the latest time [s].
    """

    samples: int = 0
    wrong: int = 0
    repeated: int = 0
    backwards: int = 0
    gaps: int = 0
    longest: float = 0.0
    last: float = -np.inf

    def count(self, t: Floats, gap: float) -> Booleans:
        """Count samples at times (n,), and return which of them come after all before them (n,)."""
        wrong = invalid_times(t, self.last)
        self.samples += len(t)
        self.wrong += int(np.count_nonzero(wrong))
        goes_on = ~wrong
        t = t[goes_on]
        before = np.maximum.accumulate(np.concatenate([[self.last], t[:-1]])) if len(t) else t
        self.repeated += int(np.count_nonzero(t == before))
        self.backwards += int(np.count_nonzero(t < before))
        steps = (t - before)[np.isfinite(before)]
        self.gaps += int(np.count_nonzero(steps > gap))
        self.longest = max(self.longest, float(steps.max(initial=0.0)))
        if len(t):
            self.last = max(float(before[-1]), float(t[-1]))
        goes_on[goes_on] = t > before
        return np.asarray(goes_on)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Numbers of successive samples on one clock.

    Attributes:
        first: the number of the first of them.
        t: their times (n,) [s], where they are known.
        numbers: the numbers of the record (m, n); nan where nothing gives them.
        silent: where the stream of a number says nothing at that time (n, m); None where all do.
        left_out: samples that are none (n,), by the reason.
    """

    first: int
    t: Floats | None
    numbers: Floats
    silent: Booleans | None = None
    left_out: Mapping[str, Booleans] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.numbers.shape[1])


def median_step(t: Floats) -> float:
    """Median time between samples at times (n,); infinite if there are fewer than two."""
    t = t[:1000]
    steps = np.diff(t[np.isfinite(t)])
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else np.inf


def is_wrong(values: Floats) -> Booleans:
    """Mask of invalid numbers of a log."""
    return ~(np.abs(values) < LARGEST)


def invalid_times(t: Floats, last: float = -np.inf) -> Booleans:
    """Mask (n,) of invalid times: no finite number, or a day off both neighbours, which agree.

    Args:
        t: the times [s].
        last: the time before them.
    """
    wrong = is_wrong(t)
    which = np.flatnonzero(~wrong)
    known = np.concatenate([[last], t[which]])
    if len(known) > 2 and not (np.abs(np.diff(known[1:])) <= DAY).all():
        with np.errstate(invalid="ignore"):
            is_far = np.abs(np.diff(known)) > DAY
            agree = np.abs(known[2:] - known[:-2]) <= DAY
        wrong[which[:-1]] = is_far[:-1] & is_far[1:] & agree
    return wrong


def _repeated(t: Floats, values: Sequence[Floats], last: Sequence[float]) -> Booleans:
    """Mask (n,) of samples that repeat the one before, time included.

    Args:
        t: their times [s].
        values: their columns.
        last: the time and the columns of the sample before them.
    """
    with np.errstate(invalid="ignore"):
        again: Booleans = np.diff(t, prepend=last[0]) == 0
    for column, before in zip(values, last[1:], strict=True):
        if not again.any():
            break
        again &= np.isclose(column, np.concatenate([[before], column[:-1]]), rtol=0, atol=0, equal_nan=True)
    return again


def rows_of(binding: Binding, blocks: Iterable[SampleBlock], counts: dict[str, StreamCounts]) -> Iterator[Rows]:
    """Yield the numbers of all samples, on one clock.

    Args:
        binding: what is taken of each stream.
        blocks: what was read of them.
        counts: takes what is counted, by the names of streams.
    """
    if binding.is_resampled:
        counts |= {name: StreamCounts() for name in binding.streams}
        yield from _resampled(binding, blocks, counts)
        return
    (bound,) = binding.streams.values()
    gap, counted = bound.settings.gap, counts.setdefault(bound.stream.name, StreamCounts())
    last: Sequence[float] | None = None
    for block, t in _timed(binding, blocks):
        left_out = dict[str, Booleans]()
        if t is None and binding.rate is not None:
            t = (block.first + np.arange(len(block))) / binding.rate
        if t is not None and len(t):
            gap = BRIDGED * median_step(t) if gap is None else gap
            wrong = invalid_times(t, counted.last)
            counted.count(t, gap)
            twice = _repeated(t, block.values, last or (np.nan,) * (len(block.values) + 1))
            left_out = {reason: which for reason, which in ((NO_TIME, wrong), (TWICE, twice)) if which.any()}
            last = [float(column[-1]) for column in (t, *block.values)]
        else:
            counted.samples += len(block)
        numbers = _constants(binding, len(block))
        numbers[bound.targets] = bound.numbers(block.values)
        yield Rows(block.first, t, numbers, left_out=left_out)


def slower_streams(
    binding: Binding, differentiated: Container[int], counts: Mapping[str, StreamCounts], n: int
) -> Iterator[str]:
    """Yield warnings about streams that are differentiated between their samples, on straight lines.

    Args:
        binding: of a log.
        differentiated: the numbers of a record that are differentiated.
        counts: of its streams, that have been read.
        n: how many samples of a record there were.
    """
    for name, bound in binding.streams.items():
        own = counts[name].samples if name in counts else n
        if SLOWER * own < n and any(int(k) in differentiated for k in bound.targets):
            of, better = f"'{name}'" if name else "the log", f"{{stream: {name}}}"
            if name == binding.reference and binding.rate is not None:
                better = f"{{rate: {binding.rate * own / n:.3g}}}"
            yield (
                f"{binding.where}: {of} has {own:,} samples, of which {n:,} are made on the lines between: velocities "
                "and accelerations that it lacks are those of lines. About as many as it has are better: "
                f"`clock: {better}` in the mapping."
            )


def _timed(binding: Binding, blocks: Iterable[SampleBlock]) -> Iterator[tuple[SampleBlock, Floats | None]]:
    """Yield blocks with the times of their samples (n,) [s], where their stream has any."""
    begins: dict[str, float] = {}
    for block in blocks:
        t = binding.streams[block.stream].times(block.values, block.first, begins.get(block.stream))
        if t is not None and len(t):
            begins.setdefault(block.stream, float(t[0]))
        yield block, t


def _constants(binding: Binding, n: int) -> Floats:
    """Numbers of the record (m, n) that no column gives; nan for all others."""
    return np.repeat(binding.constants[:, None], n, axis=1)


class _StreamBuffer:
    """The samples of one stream that are still needed.

    Args:
        bound: what is taken of the stream.
        record: the numbers of a sample.
        counts: takes what is counted.
    """

    def __init__(self, bound: BoundStream, record: SampleRecord, counts: StreamCounts) -> None:
        self._bound, self._counts, self._gap = bound, counts, bound.settings.gap
        self.targets = bound.targets
        self._t, self._values = np.zeros(0), np.zeros((len(self.targets), 0))
        place = {int(target): k for k, target in enumerate(self.targets)}
        of_quaternions = [[place.get(k) for k in range(part.start, part.stop)] for part in record.quaternions]
        self._quaternions = [np.array(part) for part in of_quaternions if None not in part]
        is_held = bound.settings.resample == "hold"
        self._held = np.array([is_held or record.closed.start <= k for k in self.targets], dtype=bool)

    @property
    def latest(self) -> float:
        """The time of the last sample; minus infinity where there was none."""
        return float(self._t[-1]) if len(self._t) else -np.inf

    def push(self, t: Floats, values: Sequence[Floats]) -> Floats:
        """Take samples, their times (n,) and columns, and return the times of those that go on."""
        if self._gap is None and len(t) > 1:
            self._gap = BRIDGED * median_step(t)
        goes_on = self._counts.count(t, np.inf if self._gap is None else self._gap)
        numbers = self._bound.numbers(values)
        self._t = np.concatenate([self._t, t[goes_on]])
        self._values = np.concatenate([self._values, numbers[:, goes_on]], axis=1)
        return t[goes_on]

    def at(self, times: Floats) -> tuple[Floats, Booleans]:
        """The numbers (m, n) at times (n,), and a mask (n,) of the times at which the stream has none."""
        if not len(self._t):
            return np.full((len(self.targets), len(times)), np.nan), np.ones(len(times), dtype=bool)
        gap = np.inf if self._gap is None else self._gap
        k = np.searchsorted(self._t, times, side="right") - 1
        before, after = np.maximum(k, 0), np.minimum(k + 1, len(self._t) - 1)
        past, span = times - self._t[before], self._t[after] - self._t[before]
        is_there = past == 0
        held = self._values[:, before]
        if self._held.all():
            silent = (k < 0) | (past > gap)
            found = held
        else:
            silent = (k < 0) | ~(is_there | ((after > before) & (span <= gap)))
            share = np.where(is_there | (span == 0), 0.0, past / np.where(span == 0, 1.0, span))
            following = self._values[:, after]
            for part in self._quaternions:  # q and -q are the same orientation
                turned = np.einsum("in,in->n", held[part], following[part]) < 0
                following[part] = np.where(turned, -following[part], following[part])
            found = np.where(self._held[:, None] | (share == 0), held, held + share * (following - held))
            for part in self._quaternions:
                found[part] /= np.linalg.norm(found[part], axis=0)
        return np.where(silent, np.nan, found), silent

    def forget(self, before: float) -> None:
        """Let go of the samples that no later time needs."""
        k = max(int(np.searchsorted(self._t, before, side="right")) - 1, 0)
        self._t, self._values = self._t[k:], self._values[:, k:]


def _resampled(binding: Binding, blocks: Iterable[SampleBlock], counts: Mapping[str, StreamCounts]) -> Iterator[Rows]:
    """Yield samples at the times of the reference stream, or so many a second while it lasts."""
    tracks = {name: _StreamBuffer(bound, binding.record, counts[name]) for name, bound in binding.streams.items()}
    pending, made, start = np.zeros(0), 0, None
    done = 0

    def rows(times: Floats) -> Rows:
        numbers = _constants(binding, len(times))
        silent = np.zeros(numbers.T.shape, dtype=bool)
        for track in tracks.values():
            numbers[track.targets], is_silent = track.at(times)
            silent[:, track.targets] = is_silent[:, None]
            track.forget(float(times[-1]))
        return Rows(done, times, numbers, silent if silent.any() else None)

    for block, t in _timed(binding, blocks):
        assert t is not None  # `bind` sees to it
        new = tracks[block.stream].push(t, block.values)
        if block.stream == binding.reference and len(new):
            if binding.rate is not None:
                start = float(new[0]) if start is None else start
                n_times = (float(new[-1]) - start) * binding.rate
                if not n_times - made < MOST_TIMES:
                    raise InputError(
                        f"{binding.where}: the times of '{block.stream}' go from {start:g} to {new[-1]:g} s, in which "
                        f"`rate: {binding.rate:g}` would make {n_times - made:.3g} samples. Is the unit of the clock "
                        "right? Without `rate` in the mapping, estimates are at the stream's own samples."
                    )
                until = int(np.floor(n_times + 1e-9)) + 1
                last, until = new[-1], max(until, made)
                new = np.minimum(
                    start + np.arange(made, until) / binding.rate, last
                )  # rounding is no time after the last
                made = until
            pending = np.concatenate([pending, new])
        heard = min(track.latest for track in tracks.values())
        n = max(int(np.searchsorted(pending, heard, side="right")), len(pending) - AHEAD)
        if n >= BLOCK // 2:
            yield rows(pending[:n])
            pending, done = pending[n:], done + n
    for k in range(0, len(pending), BLOCK):
        part = pending[k : k + BLOCK]
        yield rows(part)
        done += len(part)
