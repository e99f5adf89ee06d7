"""Samples of a robot from a log, chunk by chunk, in constant memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.clock import Rows, StreamCounts, rows_of
from nori_dyn.logs.formats.source import BLOCK, LogSource, suggestion
from nori_dyn.logs.mapping.binding import Binding
from nori_dyn.logs.mapping.conversions import body_velocity
from nori_dyn.logs.mapping.naming import KINDS
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.samples import Samples, shown_value
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.plausibility.motion import step
from nori_dyn.typing import Floats

LOOKED_AT = 32
"""Blocks of a log, at most, of whose velocities the noise of joints is found."""


@dataclass(slots=True)
class LogCounts:
    """Counts of a log that was read.

    Attributes:
        streams: of the times of each stream.
        left_out: how many samples were left out, by the reason.
        differentiated: the readings that were made by differentiating velocities.
        dt: the time between samples that was taken to differentiate [s].
        made_by: what is to be told of how they were made; "" where nothing is.
        unused: what else the log holds.
        ignored: what else the mapping speaks of.
    """

    streams: dict[str, StreamCounts] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    differentiated: tuple[str, ...] = ()
    dt: float | None = None
    made_by: str = ""
    unused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def samples_of(
    source: LogSource,
    binding: Binding,
    differentiation: Differentiator | None = None,
    closed: ContactState | None = None,
    counts: LogCounts | None = None,
) -> Iterator[Samples]:
    """Yield the samples of a log in chunks of about `BLOCK`.

    Args:
        source: the log.
        binding: what is taken of it.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        closed: the contacts that are closed throughout, where the log need not say it.
        counts: takes what is counted.

    Raises:
        InputError: q or qd are not in the log, or it holds no samples; readings that are needed are not in it.
        FileFormatError: the log is damaged.
    """
    counts = LogCounts() if counts is None else counts
    record = binding.record
    made = [] if differentiation is None else [record.places[name] for name in binding.derivable]
    _check_has("q", source, binding)
    _check_has("qd", source, binding)
    counts.differentiated = tuple(record.names[k] for k in made)
    if made and differentiation is not None:
        differentiation = differentiation.fitted(partial(_velocities, source, binding, differentiation, counts))
        counts.made_by = differentiation.remark()
    rows = rows_of(binding, source.read(binding.wanted), counts.streams)
    chunks = _chunked(_valid_samples(rows, source, binding, closed, counts.left_out))
    if made and differentiation is not None:
        chunks = _with_accelerations(chunks, made, differentiation, counts, binding)
    n = 0
    for chunk in chunks:
        n += len(chunk)
        yield chunk
    if not n and not counts.left_out:
        raise InputError(f"{binding.where}: holds no samples.")


def configurations(source: LogSource, binding: Binding) -> Floats:
    """Read all configurations (N, nq) of a log, which may hold nothing else.

    Raises:
        InputError: the log lacks q, holds no samples, or what is no number.
        FileFormatError: the log is damaged.
    """
    _check_has("q", source, binding)
    parts = [
        _built(rows, source, binding, (), BufferPool()) for rows in rows_of(binding, source.read(binding.wanted), {})
    ]
    if not parts:
        raise InputError(f"{binding.where}: holds no samples.")
    found = Samples.joined(parts)
    for k, j in np.argwhere(~np.isfinite(found.q))[:1].tolist():
        value = found.q[k, j]
        raise InputError(f"{found.place(k)}: column '{found.called(binding.record.names[j])}' is {shown_value(value)}.")
    return found.q


def lacking(binding: Binding, state: ContactState, made: Iterable[str] = ()) -> tuple[str, ...]:
    """Readings that a contact state needs and neither the log nor differentiation provides."""
    needed, given = set(binding.record.systems[state].measurement_names), set(made)
    return tuple(name for name in binding.lacking if name in needed and name not in given)


def _check_has(kind: str, source: LogSource, binding: Binding) -> None:
    """Check that the log has q, or qd.

    Raises:
        InputError: it lacks some.
    """
    record = binding.record
    names = record.names[record.q if kind == "q" else record.qd]
    missing = [name for name in names if name in binding.lacking]
    if not missing:
        return
    k = names.index(missing[0])
    hint = suggestion(source.columns, f"{kind}[{k}]", KINDS)
    if binding.is_mapped:
        raise InputError(
            f"{binding.where}: the mapping has no entry for '{missing[0]}' ({len(missing)} of {len(names)} numbers of "
            f"{kind} are missing). {hint} A constant is given by `value`."
        )
    raise InputError(
        f"{binding.where}: has no column '{missing[0]}' or '{kind}[{k}]' ({len(names)} numbers of {kind} are needed). "
        f"{hint} If they have other names, map them: nori-dyn info LOG --robot ROBOT drafts a mapping."
    )


def _built(rows: Rows, source: LogSource, binding: Binding, closed: ContactState | None, memory: BufferPool) -> Samples:
    """Samples from numbers on one clock."""
    record, n = binding.record, len(rows)
    numbers = memory.take(len(record.names), n)
    for k, constant in enumerate(binding.constants):
        numbers[k] = rows.values.get(k, constant)
    q, qd, y, contacts = (numbers[part].T for part in (record.q, record.qd, record.y, record.closed))
    for body, axes in binding.axes.items():
        own, free = record.tree.q_slices[body], record.tree.v_slices[body]
        qd[:, free] = body_velocity(axes, q[:, own.stop - 4 : own.stop].T, qd[:, free].T).T
    if closed is not None:
        contacts = np.tile([float(name in closed) for name in record.contacts], (n, 1))
    silent = None
    if rows.silent:
        silent = np.zeros((n, len(record.names)), dtype=bool)
        for targets, is_silent in rows.silent:
            silent[:, targets] |= is_silent[:, None]

    def place(k: int) -> str:
        if binding.is_resampled and rows.t is not None:
            return f"{binding.where}, at {rows.t[k]:.6f} s"
        return source.place(binding.reference, rows.first + k)

    which = np.arange(rows.first, rows.first + n)
    return Samples(
        record, which, rows.t, q, qd, y, contacts if record.contacts else None, silent, place, binding.columns
    )


def _valid_samples(
    rows: Iterable[Rows], source: LogSource, binding: Binding, closed: ContactState | None, left_out: dict[str, int]
) -> Iterator[Samples]:
    """Yield the samples that numbers on one clock make, but those that are none, which are counted."""
    memory = BufferPool()
    for each in rows:
        samples, left = _built(each, source, binding, closed, memory), np.zeros(len(each), dtype=bool)
        for reason, which in each.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + int(np.count_nonzero(which & ~left))
            left |= which
        if not left.all():
            yield samples.at(~left) if left.any() else samples


def _chunked(parts: Iterable[Samples]) -> Iterator[Samples]:
    """Yield samples in chunks that are not much smaller than a block, however small those were that were read."""
    waiting: list[Samples] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= BLOCK // 4:
            yield Samples.joined(waiting)
            waiting = []
    if waiting:
        yield Samples.joined(waiting)


def _with_accelerations(
    chunks: Iterable[Samples],
    made: Sequence[int],
    differentiation: Differentiator,
    counts: LogCounts,
    binding: Binding,
) -> Iterator[Samples]:
    """Yield samples with the accelerations that a filter makes of the velocities of those around them.

    Raises:
        InputError: fewer samples than the window of the filter, or nothing says how far apart they are.
    """
    record, window = binding.record, differentiation.window
    freedoms = [record.freedoms[record.names[k]] for k in made]
    kept: Samples | None = None
    told = 0  # how many of what is kept have been yielded

    def filled(until: int) -> Samples:
        assert kept is not None
        counts.dt = _step(kept.t, differentiation, counts, binding)
        found = differentiation.accelerations(kept.t, kept.qd, counts.dt)
        y, sigma = kept.y.copy(), None if found.sigma is None else np.full(kept.y.shape, np.nan)
        for k, freedom in zip(made, freedoms, strict=True):
            places, factors = list(freedom.places), np.array(freedom.factors)
            y[:, k - record.y.start] = found.qdd[:, places] @ factors
            if sigma is not None and found.sigma is not None:
                sigma[:, k - record.y.start] = np.sqrt(found.sigma[:, places] ** 2 @ factors**2)
        return replace(kept, y=y, sigma=sigma).at(slice(told, until))

    for chunk in chunks:
        kept = chunk if kept is None else Samples.joined([kept, chunk])
        until = len(kept) - window // 2
        if len(kept) - told >= BLOCK // 2 and until > max(told, window):
            yield filled(until)
            before = max(until - window, 0)
            kept, told = kept.at(slice(before, None)), until - before
    if kept is not None:
        yield filled(len(kept))


def _step(t: Floats | None, differentiation: Differentiator, counts: LogCounts, binding: Binding) -> float:
    """Time between samples [s] for differentiation.

    Raises:
        InputError: nothing says it.
    """
    dt = counts.dt or differentiation.dt or (None if binding.rate is None else 1 / binding.rate)
    dt = step(t) if dt is None and t is not None else dt
    if dt is None:
        lacking, n = binding.derivable, len(binding.record.names[binding.record.y])
        shown = ", ".join(f"'{name}'" for name in lacking[:6]) + (", ..." if len(lacking) > 6 else "")
        raise InputError(
            f"{binding.where}: lacks {len(lacking)} of {n} measurements: {shown}. To make them of the velocities, the "
            "time between samples must be known: the log has no column 't' that increases. Give it: --dt 0.001, in "
            "seconds."
        )
    return dt


def _velocities(
    source: LogSource, binding: Binding, differentiation: Differentiator, counts: LogCounts
) -> tuple[Floats, Floats, float]:
    """Read times and velocities of a log, parts of a long one, and the time between samples.

    Raises:
        InputError: nothing says how far apart samples are, or there are none.
        FileFormatError: the log is damaged.
    """
    parts: list[tuple[Floats, Floats]] = []
    dt, every = 0.0, 1
    for k, rows in enumerate(rows_of(binding, source.read(binding.wanted), {})):
        if k % every:
            continue
        for samples in _valid_samples([rows], source, binding, (), {}):
            dt = dt or _step(samples.t, differentiation, counts, binding)
            even = np.asarray(dt * samples.numbers)
            parts.append((even if samples.t is None or differentiation.dt is not None else samples.t, samples.qd))
        if len(parts) > LOOKED_AT:
            parts, every = parts[::2], 2 * every
    if not parts:
        raise InputError(f"{binding.where}: holds no samples.")
    return np.concatenate([t for t, _ in parts]), np.concatenate([qd for _, qd in parts]), dt


@dataclass(frozen=True, slots=True, eq=False)
class BufferPool:
    """Pool of buffers, each reused when the last array that views it is gone."""

    unused: list[Floats] = field(default_factory=list)

    def take(self, rows: int, columns: int) -> Floats:
        """An uninitialised array (rows, columns)."""
        size = rows * columns
        block = next((each for each in self.unused if len(each) >= size), None)
        if block is None:
            self.unused.clear()  # all of them are too small
            block = np.empty(size)
        else:
            self.unused[:] = [each for each in self.unused if each is not block]
        # Views know their memory by the first array on it, this one: while there are views, it is there.
        first = np.frombuffer(block.data, count=size)
        weakref.finalize(first, self.unused.append, block).atexit = False
        return first.reshape(rows, columns)
