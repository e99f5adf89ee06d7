"""A log read as samples of a robot, chunk by chunk: with flat memory, however long it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.binding import Binding
from nori_dyn.logs.clock import Rows, StreamCounts, rows_of
from nori_dyn.logs.conversions import body_velocity
from nori_dyn.logs.differentiation import Differentiation
from nori_dyn.logs.memory import Memory
from nori_dyn.logs.naming import KINDS
from nori_dyn.logs.samples import Samples, shown_value
from nori_dyn.logs.source import BLOCK, Source, suggestion
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.plausibility.motion import step
from nori_dyn.typing import Floats


@dataclass(slots=True)
class LogCounts:
    """What was counted on the way.

    Attributes:
        streams: of the times of each stream.
        left_out: how many samples were left out, by the reason.
        differentiated: the readings that were made by differentiating velocities.
        dt: the time between samples that was taken to differentiate [s].
        unused: what else the log holds.
        ignored: what else the mapping speaks of.
    """

    streams: dict[str, StreamCounts] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    differentiated: tuple[str, ...] = ()
    dt: float | None = None
    unused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def samples_of(
    source: Source,
    binding: Binding,
    differentiation: Differentiation | None = None,
    closed: ContactState | None = None,
    counts: LogCounts | None = None,
    first: int = 0,
) -> Iterator[Samples]:
    """Yield the samples of a log in chunks of about `BLOCK`.

    Args:
        source: the log.
        binding: what is taken of it.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        closed: the contacts that are closed throughout, where the log need not say it.
        counts: takes what is counted.
        first: how many samples to leave out at the beginning, of a log that is not resampled.

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
    context = differentiation.window if made and differentiation is not None else 0
    start = max(first - context, 0) if not binding.is_resampled else 0
    rows = rows_of(binding, source.read(binding.wanted, start), counts.streams)
    memory = Memory()
    chunks = _chunked(_built(each, source, binding, closed, memory) for each in rows)
    if made and differentiation is not None:
        chunks = _with_accelerations(chunks, made, differentiation, counts, binding)
    n = 0
    for chunk in chunks:
        n += len(chunk)
        yield chunk if chunk.numbers[0] >= first else chunk.at(chunk.numbers >= first)
    if not n and not first:
        raise InputError(f"{binding.where}: holds no samples.")


def configurations(source: Source, binding: Binding) -> Floats:
    """Return all configurations (N, nq) of a log, which may hold nothing else.

    Raises:
        InputError: the log lacks q, holds no samples, or what is no number.
        FileFormatError: the log is damaged.
    """
    _check_has("q", source, binding)
    parts = [_built(rows, source, binding, (), Memory()) for rows in rows_of(binding, source.read(binding.wanted), {})]
    if not parts:
        raise InputError(f"{binding.where}: holds no samples.")
    found = Samples.joined(parts)
    for k, j in np.argwhere(~np.isfinite(found.q))[:1].tolist():
        value = found.q[k, j]
        raise InputError(f"{found.place(k)}: column '{found.called(binding.record.names[j])}' is {shown_value(value)}.")
    return found.q


def lacking(binding: Binding, state: ContactState, made: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the readings that are needed in a contact state, and that neither the log gives nor differentiating."""
    needed, given = set(binding.record.systems[state].measurement_names), set(made)
    return tuple(name for name in binding.lacking if name in needed and name not in given)


def _check_has(kind: str, source: Source, binding: Binding) -> None:
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
            f"{binding.where}: the mapping does not say what '{missing[0]}' is ({len(missing)} of {len(names)} numbers "
            f"of {kind} are missing). {hint} What does not change is given by `value`."
        )
    raise InputError(
        f"{binding.where}: has no column '{missing[0]}' or '{kind}[{k}]' ({len(names)} numbers of {kind} are needed). "
        f"{hint} Where they are called otherwise, a mapping says how: nori-dyn map."
    )


def _built(rows: Rows, source: Source, binding: Binding, closed: ContactState | None, memory: Memory) -> Samples:
    """Return the samples that numbers on one clock make."""
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
    differentiation: Differentiation,
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
    dt = counts.dt or differentiation.dt or (None if binding.rate is None else 1 / binding.rate)

    def filled(until: int) -> Samples:
        assert kept is not None
        nonlocal dt
        if dt is None:
            dt = step(kept.t) if kept.t is not None else None
        if dt is None:
            raise InputError(
                "to differentiate, the time between samples must be known: the log has no column 't' that "
                "increases. Give it: --dt 0.001, in seconds."
            )
        counts.dt = dt
        derivative = differentiation.apply(kept.qd, dt)
        if kept.t is not None and differentiation.dt is None:
            derivative[differentiation.across(kept.t, dt)] = np.nan
        y = kept.y.copy()
        for k, freedom in zip(made, freedoms, strict=True):
            y[:, k - record.y.start] = derivative[:, list(freedom.places)] @ np.array(freedom.factors)
        return replace(kept, y=y).at(slice(told, until))

    for chunk in chunks:
        kept = chunk if kept is None else Samples.joined([kept, chunk])
        until = len(kept) - window // 2
        if len(kept) - told >= BLOCK // 2 and until > max(told, window):
            yield filled(until)
            before = max(until - window, 0)
            kept, told = kept.at(slice(before, None)), until - before
    if kept is not None:
        yield filled(len(kept))
