"""Samples of a log that can be estimated: read, brought to one clock, checked."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path

import numpy as np

from nori_dyn.errors import InputError, NoriWarning, SaturatedReadingError
from nori_dyn.logs.ahead import prefetched
from nori_dyn.logs.clock import LARGEST, Rows, StreamCounts, is_wrong, rows_of, slower_streams
from nori_dyn.logs.drafts.families import OF_BASE, words_of
from nori_dyn.logs.formats.source import BLOCK, LogSource, abbreviated, suggestion
from nori_dyn.logs.log import Log
from nori_dyn.logs.mapping.binding import Binding
from nori_dyn.logs.mapping.record import ALWAYS, KINDS
from nori_dyn.logs.motion.derived import DerivedMotion
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.samples import Samples, samples_by_state, shown_value
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.solve.over_ticks import joined
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(slots=True)
class LogCounts:
    """Counts of a log that was read.

    Attributes:
        streams: of the times of each stream.
        left_out: how many samples were left out, by the reason.
        differentiated: what was made by differentiating: velocities of positions, readings of velocities.
        deflected: deflections of joints that were made of positions.
        dt: the time between samples that was taken to differentiate [s].
        made_by: the note on how they were made; "" where nothing is.
        unused: what else the log holds.
        ignored: what else the mapping speaks of.
        done: the share of the log that has been read, where that is known.
    """

    streams: dict[str, StreamCounts] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    differentiated: tuple[str, ...] = ()
    deflected: tuple[str, ...] = ()
    dt: float | None = None
    made_by: str = ""
    unused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    done: float | None = None


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
    derived = DerivedMotion(binding, differentiation)
    _check_has("q", source, binding)
    _check_has("qd", source, binding, derived.velocities)
    counts.differentiated, counts.deflected = derived.differentiated, binding.deflections
    counts.made_by = derived.learn(lambda: _valid_samples(source, binding, (), LogCounts()))
    n = 0
    for chunk in derived.over(_chunked(_valid_samples(source, binding, closed, counts))):
        n, counts.dt = n + len(chunk), derived.dt
        yield chunk
    if not n and not counts.left_out:
        raise InputError(f"{binding.where}: holds no samples.")
    for slower in slower_streams(binding, derived.sources, counts.streams, n):
        warnings.warn(slower, NoriWarning, stacklevel=2)


def configurations_in(path: str | os.PathLike[str], system: System) -> Floats:
    """Read the configurations (N, nq) of a log; other columns are ignored, and may be missing.

    Raises:
        FileFormatError: the file cannot be read.
        InputError: columns of q are missing, or hold what is no number, or there are no samples.
    """
    with Log(Path(path), None, ()).opened({ALWAYS: system}) as (source, binding):
        _check_has("q", source, binding)
        parts = list(raw_samples(source, binding))
        if not parts:
            raise InputError(f"{binding.where}: holds no samples.")
        found = joined(parts)
        for k, j in np.argwhere(~np.isfinite(found.q))[:1].tolist():
            called, value = found.called(binding.record.names[j]), shown_value(found.q[k, j])
            raise InputError(f"{found.place(k)}: column '{called}' is {value}.")
    return found.q


def raw_samples(source: LogSource, binding: Binding) -> Iterator[Samples]:
    """Yield the samples of a log as they are, which may lack anything.

    Raises:
        FileFormatError: the log is damaged.
    """
    for rows in rows_of(binding, source.read(binding.wanted), {}):
        yield _built(rows, source, binding, None)


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
    base = [name for name, joint in zip(record.tree.joint_names, record.tree.joints, strict=True) if joint.nq == 7]
    of_base = [name for joint in base for name in record.groups[f"{kind}:{joint}"] if name in missing]
    if of_base:
        raise InputError(_without_base(kind, of_base, missing, source, binding))
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


def _without_base(
    kind: str, of_base: Sequence[str], missing: Sequence[str], source: LogSource, binding: Binding
) -> str:
    """What to say of a log that holds nothing of a floating base: which columns may be of it, and what else does."""
    what, n = ("pose", binding.record.tree.nq) if kind == "q" else ("velocity", binding.record.tree.nv)
    clocks = {stream.clock for stream in source.streams}
    theirs = abbreviated(name for name in binding.unused if OF_BASE & {*words_of(name)} and name not in clocks)
    may = "No column is named as of a base or an IMU."
    if theirs:
        may = f"By their names {', '.join(theirs)} may be of it, or of an IMU."
    if others := len(missing) - len(of_base):
        may += f" Of the joints {others} numbers are missing as well."
    return (
        f"{binding.where}: has no {what} of the base, '{of_base[0]}' to '{of_base[-1]}' ({len(missing)} of {n} numbers "
        f"of {kind} are missing). {may} {OTHERWISE}"
    )


OTHERWISE = (
    "A mapping says which they are (nori-dyn info LOG --robot ROBOT --base floating drafts one): for a pose an "
    "orientation will do; what nothing reads of a velocity may be `value: 0`, where its acceleration is not needed. "
    "Or the base is estimated, of gyroscope, accelerometer, encoders and torques: `nori-dyn identify` does so by "
    "itself, nd.identify by "
    "contacts=nd.estimate(log, robot).history, all else by sensors with `memory: {base: {of: base}}`."
)
"""What to do where a log holds nothing of a floating base."""


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
    source: LogSource, binding: Binding, closed: ContactState | None, counts: LogCounts
) -> Iterator[Samples]:
    """Yield the samples of a log but those that are none, which are counted."""
    for rows in rows_of(binding, source.read(binding.wanted), counts.streams):
        samples, left = _built(rows, source, binding, closed), np.zeros(len(rows), dtype=bool)
        for reason, which in rows.left_out.items():
            counts.left_out[reason] += int(np.count_nonzero(which & ~left))
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
class SampleReader:
    """Reader of the samples of a log for some systems.

    Attributes:
        systems: what is solved in each contact state.
        contacts: the names of the contacts, where there are some.
        closed: those that are closed throughout; None takes them from the log.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        missing: "drop" lets readings pass that are not numbers, or saturated, where they have a weight, and leaves
            samples out whose q or qd is not a number.
    """

    systems: Mapping[ContactState, System]
    contacts: Sequence[str] = ()
    closed: ContactState | None = None
    differentiation: Differentiator | None = None
    missing: Missing = "refuse"

    def states(self, log: Log) -> set[ContactState]:
        """The contact states that occur in a log.

        Raises:
            InputError: the log does not tell which contacts are closed.
            FileFormatError: it is damaged.
            MappingError: the mapping fits neither the log nor the robot.
        """
        found: set[ContactState] = set()
        with log.opened(self.systems, self.contacts) as (source, binding):
            self._check_contacts(binding)
            for samples in raw_samples(source, binding):
                assert samples.contacts is not None
                is_known = np.isin(samples.contacts, (0, 1)).all(axis=1)
                rows = np.unique(samples.contacts[is_known], axis=0) == 1
                found |= {tuple(compress(self.contacts, row)) for row in rows.tolist()}
        return found

    def chunks(self, log: Log, counts: LogCounts) -> Iterator[Samples]:
        """Yield the samples of a log that can be estimated.

        Args:
            log: the log.
            counts: takes what is counted.

        Raises:
            InputError: the log lacks what is needed, or holds what is no number, or no sample that can be estimated.
            UnplannedStateError: a contact state that has no system.
            FileFormatError: the log is damaged.
            MappingError: the mapping fits neither the log nor the robot.
        """
        is_empty = True
        with log.opened(self.systems, self.contacts) as (source, binding):
            self._check_contacts(binding)
            counts.unused, counts.ignored = abbreviated(binding.unused), abbreviated(binding.ignored)
            read = samples_of(source, binding, self.differentiation, self.closed, counts)
            with closing(prefetched(read)) as chunks:  # its thread stops before the log is closed
                for chunk in chunks:
                    made = counts.differentiated
                    samples = usable(chunk, self.missing, made, counts.left_out)
                    if not len(samples):
                        continue
                    for state, places in samples_by_state(samples).items():
                        without = binding.lacking_in(state, made)
                        if without:
                            of = f"of {len(self.systems[state].measurement_names)} measurements"
                            raise binding.lacks(without, source.columns, of)
                        own = binding.record.own_readings(state, samples.y[places])
                        check_readings(samples, self.systems[state], own, places, self.missing)
                    is_empty, counts.done = False, source.done()
                    yield samples
        if is_empty:
            reasons = "; ".join(f"{n:,} {reason}" for reason, n in counts.left_out.items())
            raise InputError(f"{log.path}: no sample of it can be estimated: {reasons}.")

    def _check_contacts(self, binding: Binding) -> None:
        """Check that the log tells which contacts are closed, where nothing else does.

        Raises:
            InputError: it does not.
        """
        without = next((name for name in self.contacts if f"{CONTACT}{name}" in binding.lacking), None)
        if without is not None and self.closed is None:
            raise InputError(
                f"{binding.where}: has no column '{CONTACT}{without}', 1 where that contact is closed and 0 where it "
                f"is open. Or say which contacts are closed throughout: --contacts {','.join(self.contacts)}, or none."
            )


def _is_any_wrong(values: Floats) -> bool:
    return not (np.max(values, initial=0.0) < LARGEST and np.min(values, initial=0.0) > -LARGEST)


def usable(samples: Samples, missing: Missing, differentiated: tuple[str, ...], left_out: Counter[str]) -> Samples:
    """The samples that can be estimated, without those in gaps of streams or without a motion.

    Args:
        samples: the samples.
        missing: "drop" leaves samples out whose q or qd is not a number; "refuse" refuses the log.
        differentiated: velocities and readings that were made: there may be none where time begins, or jumps.
        left_out: takes how many are left out, by the reason.

    Raises:
        InputError: q or qd are not numbers, and are not to be dropped; says where.
    """
    record = samples.record
    left = np.zeros(len(samples), dtype=bool)

    def leave_out(reason: str, which: Booleans | np.bool_) -> None:
        new = np.asarray(which & ~left)
        if new.any():
            left_out[reason] += int(np.count_nonzero(new))
            left[new] = True

    if samples.silent is not None:
        leave_out("in a gap of a stream with q or qd", samples.silent[:, : record.y.start].any(axis=1))
        if record.contacts:
            leave_out("in a gap of a stream with contacts", samples.silent[:, record.closed].any(axis=1))
        is_needed = np.ones(record.y.stop - record.y.start, dtype=bool) if missing == "refuse" else _exact(samples)
        leave_out("in a gap of a stream with readings", (samples.silent[:, record.y] & is_needed).any(axis=1))
    if differentiated:
        places = [record.places[name] for name in differentiated]
        rates = [k - record.qd.start for k in places if k < record.y.start]
        has_motion = ~is_wrong(np.delete(samples.qd, rates, axis=1)).any(axis=1)
        made = [samples.qd[:, rates], samples.y[:, [k - record.y.start for k in places if k >= record.y.start]]]
        is_lacking = ~np.isfinite(np.hstack(made)).all(axis=1)
        what = "velocities" if rates else "accelerations"
        leave_out(f"without {what}, where time begins or jumps", is_lacking & has_motion)
    for kind, values, part in (("q", samples.q, record.q), ("qd", samples.qd, record.qd)):
        if not _is_any_wrong(values):
            continue
        wrong = is_wrong(values) & ~left[:, None]
        if missing == "drop":
            leave_out(f"{kind} is not a number", wrong.any(axis=1))
            continue
        for k, j in np.argwhere(wrong)[:1].tolist():
            called = samples.called(record.names[part.start + j])
            n = int(np.count_nonzero(wrong[:, j]))
            raise InputError(
                f"{samples.place(k)}: column '{called}' is {shown_value(values[k, j])}. Without q and qd nothing can "
                f"be estimated: --missing drop leaves such samples out ({n} of {len(samples)} read), or fill them in."
            )
    samples = samples if not left.any() else samples.at(~left)
    if missing == "drop" and _is_any_wrong(samples.y):
        samples = replace(samples, y=np.where(is_wrong(samples.y), np.nan, samples.y))
    return samples


def check_readings(samples: Samples, system: System, own: Floats, places: Indices | slice, missing: Missing) -> None:
    """Check the readings (n, ny) of one contact state at its samples (n,).

    Raises:
        InputError: one is no number, or saturated, and cannot be dropped, or is not to be; says where.
    """
    is_any_wrong = _is_any_wrong(own)
    if system.ranges is None and not is_any_wrong:
        return
    is_exact = system.weight_of_readings < 0
    counts = is_exact if missing == "drop" else np.ones(system.ny, dtype=bool)
    for k, j in np.argwhere(is_wrong(own) & counts)[:1].tolist():
        advice = "The sensor is exact and cannot be left out: give it a `sigma`; then" if is_exact[j] else "With"
        raise InputError(
            f"{samples.at(places).place(k)}: '{system.measurement_names[j]}' is {shown_value(own[k, j])}. {advice} "
            "--missing drop the estimate does without it."
        )
    for k, j in np.argwhere(system.saturated(own) & counts)[:1].tolist():
        low, high = system.ranges[:, j].tolist() if system.ranges is not None else (-np.inf, np.inf)
        name, value = system.measurement_names[j], float(own[k, j])
        raise SaturatedReadingError(samples.at(places).place(k), name, value, (low, high), bool(is_exact[j]))


def _exact(samples: Samples) -> Booleans:
    """Mask (ny,) of readings without a sigma in some contact state, which cannot be dropped."""
    found: set[str] = set()
    for system in samples.record.systems.values():
        found |= {name for name, k in zip(system.measurement_names, system.weight_of_readings, strict=True) if k < 0}
    return np.array([name in found for name in samples.record.measurement_names], dtype=bool)
