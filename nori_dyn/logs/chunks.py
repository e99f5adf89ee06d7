"""Samples of a robot from a log, chunk by chunk, in constant memory."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from nori_dyn.errors import InputError, NoriWarning
from nori_dyn.logs.clock import Rows, StreamCounts, is_wrong, rows_of, slower_streams
from nori_dyn.logs.formats.source import BLOCK, LogSource, Stream, suggestion
from nori_dyn.logs.mapping.binding import Binding
from nori_dyn.logs.mapping.naming import KINDS
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.motion.presliding import DeflectedJoints
from nori_dyn.logs.samples import Samples, shown_value
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.joints import Joint
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.over_ticks import joined
from nori_dyn.solve.plausibility.motion import step, unwrapped
from nori_dyn.typing import Floats, Indices

LOOKED_AT = 32
"""Blocks of a log, at most, of whose velocities the noise of joints is found."""


@dataclass(slots=True)
class LogCounts:
    """Counts of a log that was read.

    Attributes:
        streams: of the times of each stream.
        left_out: how many samples were left out, by the reason.
        differentiated: what was made by differentiating: velocities of positions, readings of velocities.
        deflected: deflections of joints that were made of positions.
        dt: the time between samples that was taken to differentiate [s].
        made_by: what is to be told of how they were made; "" where nothing is.
        unused: what else the log holds.
        ignored: what else the mapping speaks of.
    """

    streams: dict[str, StreamCounts] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    differentiated: tuple[str, ...] = ()
    deflected: tuple[str, ...] = ()
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
        differentiation: how to make joint accelerations that the log lacks, and velocities where it makes them as well;
            None refuses a log without them.
        closed: the contacts that are closed throughout, where the log need not say it.
        counts: takes what is counted.

    Raises:
        InputError: q or qd are not in the log, or it holds no samples; readings that are needed are not in it.
        FileFormatError: the log is damaged.
    """
    counts = LogCounts() if counts is None else counts
    record = binding.record
    _check_has("q", source, binding)
    rates = () if differentiation is None or not differentiation.makes_velocities else binding.derivable_velocities
    _check_has("qd", source, binding, rates)
    made = [] if differentiation is None else [record.places[name] for name in (*rates, *binding.derivable)]
    counts.differentiated = tuple(record.names[k] for k in made)
    parts: list[_Differentiated] = []
    if made and differentiation is not None:
        for part in _differentiated(record, rates, differentiation, has_accelerations=len(made) > len(rates)):
            by = part.by.fitted(partial(_motion, source, binding, part, counts))
            parts.append(replace(part, by=by))
        counts.made_by = "; ".join(filter(None, (part.by.remark() for part in parts)))
    rows = rows_of(binding, source.read(binding.wanted), counts.streams)
    chunks = _chunked(_valid_samples(rows, source, binding, closed, counts.left_out))
    if parts:
        chunks = _with_derivatives(chunks, made, parts, counts, binding)
    counts.deflected = binding.deflections
    if binding.deflections:
        dt = (differentiation and differentiation.dt) or (None if binding.rate is None else 1 / binding.rate)
        chunks = _with_deflections(chunks, DeflectedJoints(record, binding.deflections, dt))
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
    parts = list(raw_samples(source, binding))
    if not parts:
        raise InputError(f"{binding.where}: holds no samples.")
    found = joined(parts)
    for k, j in np.argwhere(~np.isfinite(found.q))[:1].tolist():
        value = found.q[k, j]
        raise InputError(f"{found.place(k)}: column '{found.called(binding.record.names[j])}' is {shown_value(value)}.")
    return found.q


def raw_samples(source: LogSource, binding: Binding) -> Iterator[Samples]:
    """Yield the samples of a log as they are, which may lack anything.

    Raises:
        FileFormatError: the log is damaged.
    """
    for rows in rows_of(binding, source.read(binding.wanted), {}):
        yield _built(rows, source, binding, None)


def lacking(binding: Binding, state: ContactState, made: Iterable[str] = ()) -> tuple[str, ...]:
    """Readings that a contact state needs, and that neither the log nor its motion provides."""
    needed, given = set(binding.record.systems[state].measurement_names), {*made, *binding.deflections}
    return tuple(name for name in binding.lacking if name in needed and name not in given)


def lacks(binding: Binding, names: Sequence[str], columns: Mapping[str, Stream], of: str) -> InputError:
    """The error of numbers that are needed, and that a log or a stream has no columns for.

    Args:
        binding: what is taken of it.
        names: the numbers.
        columns: its columns.
        of: of how many of what they are: "of 12 measurements".
    """
    freedoms, shown = binding.record.freedoms, quoted(names)
    is_derivative = any(name in freedoms and freedoms[name].kind == "qdd" for name in names)
    hint = " Joint accelerations can be made from the velocities: --differentiate auto." if is_derivative else ""
    mapped = f" The mapping has entries for {', '.join(binding.ignored[:6])}." if binding.ignored else ""
    what, how = ("the mapping lacks", "") if binding.is_mapped else ("lacks", " A mapping says what they are called.")
    return InputError(
        f"{binding.where}: {what} {len(names)} {of}: {shown}.{hint}{mapped} {suggestion(columns, names[0], KINDS)}{how}"
    )


def quoted(names: Sequence[str]) -> str:
    """Some names, the first of many."""
    return ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")


def _check_has(kind: str, source: LogSource, binding: Binding, made: Sequence[str] = ()) -> None:
    """Check that the log has q, or qd, but for what is made.

    Raises:
        InputError: it lacks some.
    """
    record = binding.record
    names = record.names[record.q if kind == "q" else record.qd]
    missing = [name for name in names if name in binding.lacking and name not in made]
    if not missing:
        return
    k = names.index(missing[0])
    of_q = kind == "qd" and set(missing) <= set(binding.derivable_velocities)
    or_made = " Or --differentiate smoother makes velocities of the positions." if of_q else ""
    hint = suggestion(source.columns, f"{kind}[{k}]", KINDS)
    if binding.is_mapped:
        raise InputError(
            f"{binding.where}: the mapping has no entry for '{missing[0]}' ({len(missing)} of {len(names)} numbers of "
            f"{kind} are missing). {hint} A constant is given by `value`.{or_made}"
        )
    raise InputError(
        f"{binding.where}: has no column '{missing[0]}' or '{kind}[{k}]' ({len(names)} numbers of {kind} are needed). "
        f"{hint} If they have other names, map them: nori-dyn info LOG --robot ROBOT drafts a mapping."
        f"{or_made}"
    )


def _built(rows: Rows, source: LogSource, binding: Binding, closed: ContactState | None) -> Samples:
    """Samples from numbers on one clock."""
    record, n = binding.record, len(rows)
    binding.complete(rows.numbers)
    q, qd, y, contacts = (rows.numbers[part].T for part in (record.q, record.qd, record.y, record.closed))
    if closed is not None:
        contacts = np.tile([float(name in closed) for name in record.contacts], (n, 1))

    def place(k: int) -> str:
        if binding.is_resampled and rows.t is not None:
            return f"{binding.where}, at {rows.t[k]:.6f} s"
        return source.place(binding.reference, rows.first + k)

    which = np.arange(rows.first, rows.first + n)
    return Samples(
        record, which, rows.t, q, qd, y, contacts if record.contacts else None, rows.silent, place, binding.columns
    )


def _valid_samples(
    rows: Iterable[Rows], source: LogSource, binding: Binding, closed: ContactState | None, left_out: Counter[str]
) -> Iterator[Samples]:
    """Yield the samples that numbers on one clock make, but those that are none, which are counted."""
    for each in rows:
        samples, left = _built(each, source, binding, closed), np.zeros(len(each), dtype=bool)
        for reason, which in each.left_out.items():
            left_out[reason] += int(np.count_nonzero(which & ~left))
            left |= which
        if not left.all():
            yield samples.at(~left) if left.any() else samples


def _chunked(parts: Iterable[Samples]) -> Iterator[Samples]:
    """Yield samples in chunks that are not much smaller than a block, however small those were that were read."""
    waiting: list[Samples] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= BLOCK // 4:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


@dataclass(frozen=True, slots=True, eq=False)
class _Differentiated:
    """Freedoms whose motion is differentiated.

    Attributes:
        freedoms: which of qd.
        joints: those of whose positions velocities are made, in their order; None where velocities are read.
        by: what makes it.
    """

    freedoms: Indices
    joints: tuple[int, ...] | None
    by: Differentiator = field(repr=False)

    def taken(self, samples: Samples) -> Floats:
        """The numbers of samples that it is made of (N, m); nan where one is no number of a robot."""
        slices = samples.record.tree.q_slices
        of_q = None if self.joints is None else [samples.q[:, slices[i]] for i in self.joints]
        values = samples.qd[:, self.freedoms] if of_q is None else np.hstack(of_q)
        return np.where(is_wrong(values), np.nan, values)

    def read(self, taken: Floats, tree: KinematicTree) -> Floats:
        """What is differentiated (N, n), of the numbers of successive samples (N, m)."""
        if self.joints is None:
            return taken
        joints = [tree.joints[i] for i in self.joints]
        parts = np.split(taken, np.cumsum([joint.nq for joint in joints])[:-1], axis=1)
        return np.hstack([_travelled(joint, q) for joint, q in zip(joints, parts, strict=True)])

    def places(self, record: SampleRecord) -> set[int]:
        """The numbers of a record that are differentiated."""
        if self.joints is None:
            return {record.qd.start + k for k in self.freedoms.tolist()}
        return {k for i in self.joints for k in range(record.tree.nq)[record.tree.q_slices[i]]}


def _travelled(joint: Joint, q: Floats) -> Floats:
    """What has the velocity of a joint (N, nv) for its rate: positions (N, nq), of angles without jumps by a turn.

    Where the joint turns freely, the way that it has come from sample to sample, in its own axes.
    """
    found = np.full((len(q), joint.nv), np.nan)
    if "quaternion" in joint.coordinates:
        known = np.flatnonzero(np.isfinite(q).all(axis=1) & (np.linalg.norm(q[:, -4:], axis=1) > 0))
        found[known[:1]] = 0.0
        if len(known) > 1:
            found[known[1:]] = np.cumsum(joint.difference(q[known[:-1]].T, q[known[1:]].T), axis=1).T
        return found
    for k, kind in enumerate(joint.coordinates):
        is_known = np.isfinite(q[:, k])
        found[is_known, k] = unwrapped(q[is_known, k]) if kind == "angle" and is_known.any() else q[is_known, k]
    return found


def _differentiated(
    record: SampleRecord, rates: Sequence[str], by: Differentiator, has_accelerations: bool
) -> Iterator[_Differentiated]:
    """Yield the freedoms of which velocities are made, and those of which they are read."""
    own = [record.places[name] - record.qd.start for name in rates]
    if own:
        joints = tuple(i for i, at in enumerate(record.tree.v_slices) if at.start in own and at.stop > at.start)
        yield _Differentiated(np.array(own), joints, by.on_positions())
    others = np.setdiff1d(np.arange(record.tree.nv), own)
    if has_accelerations and len(others):
        yield _Differentiated(others, None, by)


def _with_derivatives(
    chunks: Iterable[Samples],
    made: Sequence[int],
    parts: Sequence[_Differentiated],
    counts: LogCounts,
    binding: Binding,
) -> Iterator[Samples]:
    """Yield samples with what filters make of the motion of those around them.

    Raises:
        InputError: fewer samples than the window of a filter, or nothing says how far apart they are.
    """
    record, window = binding.record, max(part.by.window for part in parts)
    readings = [k for k in made if k >= record.y.start]
    freedoms = [record.freedoms[record.names[k]] for k in readings]
    kept: Samples | None = None
    told = n = 0  # how many of what is kept have been yielded, and how many there were

    def filled(until: int) -> Samples:
        assert kept is not None
        counts.dt = _step(kept.t, parts[0].by, counts, binding)
        qd, qdd, y = kept.qd.copy(), np.zeros(kept.qd.shape), kept.y.copy()
        deviations, sigma = np.full(qd.shape, np.nan), None
        for part in parts:
            found = part.by.derivatives(kept.t, part.read(part.taken(kept), record.tree), counts.dt)
            qdd[:, part.freedoms] = found.qdd
            if found.qd is not None:
                qd[:, part.freedoms] = found.qd
            if found.sigma is not None:
                deviations[:, part.freedoms] = found.sigma
                sigma = np.full(y.shape, np.nan)
        for k, freedom in zip(readings, freedoms, strict=True):
            places, factors = list(freedom.places), np.array(freedom.factors)
            y[:, k - record.y.start] = qdd[:, places] @ factors
            if sigma is not None:
                sigma[:, k - record.y.start] = np.sqrt(deviations[:, places] ** 2 @ factors**2)
        return replace(kept, qd=qd, y=y, sigma=sigma).at(slice(told, until))

    for chunk in chunks:
        n += len(chunk)
        kept = chunk if kept is None else joined([kept, chunk])
        until = len(kept) - window // 2
        if len(kept) - told >= BLOCK // 2 and until > max(told, window):
            yield filled(until)
            before = max(until - window, 0)
            kept, told = kept.at(slice(before, None)), until - before
    if kept is not None:
        yield filled(len(kept))
    for slower in slower_streams(binding, set().union(*(part.places(record) for part in parts)), counts.streams, n):
        warnings.warn(slower, NoriWarning, stacklevel=2)


def _with_deflections(chunks: Iterable[Samples], joints: DeflectedJoints) -> Iterator[Samples]:
    """Yield samples with what their positions make of the deflections of joints."""
    for chunk in chunks:
        y = chunk.y.copy()
        y[:, [place - chunk.record.y.start for place in joints.places]] = joints.follow(chunk.t, chunk.q)
        yield replace(chunk, y=y)


def _step(t: Floats | None, differentiation: Differentiator, counts: LogCounts, binding: Binding) -> float:
    """Time between samples [s] for differentiation.

    Raises:
        InputError: nothing says it.
    """
    dt = counts.dt or differentiation.dt or (None if binding.rate is None else 1 / binding.rate)
    dt = step(t) if dt is None and t is not None else dt
    if dt is None:
        lacking, n = binding.derivable, len(binding.record.names[binding.record.y])
        raise InputError(
            f"{binding.where}: lacks {len(lacking)} of {n} measurements: {quoted(lacking)}. To make them of the "
            "velocities, the time between samples must be known: the log has no column 't' that increases. Give it: "
            "--dt 0.001, in seconds."
        )
    return dt


def _motion(
    source: LogSource, binding: Binding, part: _Differentiated, counts: LogCounts
) -> tuple[Floats, Floats, float]:
    """Read times and what is differentiated of a log, parts of a long one, and the time between samples.

    Raises:
        InputError: nothing says how far apart samples are, or there are none.
        FileFormatError: the log is damaged.
    """
    parts: list[tuple[Floats, Floats]] = []
    dt, every = 0.0, 1
    for k, rows in enumerate(rows_of(binding, source.read(binding.wanted), {})):
        if k % every:
            continue
        for samples in _valid_samples([rows], source, binding, (), Counter()):
            dt = dt or _step(samples.t, part.by, counts, binding)
            even = np.asarray(dt * samples.numbers)
            t = even if samples.t is None or part.by.dt is not None else samples.t
            parts.append((t, part.taken(samples)))
        if len(parts) > LOOKED_AT:
            parts, every = parts[::2], 2 * every
    if not parts:
        raise InputError(f"{binding.where}: holds no samples.")
    t, taken = (np.concatenate(each) for each in zip(*parts, strict=True))
    return t, part.read(taken, binding.record.tree), dt
