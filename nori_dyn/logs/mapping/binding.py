"""A mapping bound to a robot and to a log or live streams: the source of each number of a sample."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nori_dyn.errors import InputError, MappingError
from nori_dyn.logs.formats.source import Stream, suggestion, time_column, whole_seconds
from nori_dyn.logs.mapping.conversions import (
    VELOCITY,
    Conversion,
    at_origin,
    body_velocity,
    factor,
    frame_matrix,
    known_units,
    oriented,
)
from nori_dyn.logs.mapping.log_mapping import Axes, Calibration, LogMapping, MappingEntry, StreamSettings
from nori_dyn.logs.mapping.record import KINDS, SampleRecord, column_named, usual_names
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.recursions.rnea import gravity_force
from nori_dyn.system.variables import LOAD
from nori_dyn.typing import Floats, Indices


@dataclass(frozen=True, eq=False)
class Piece:
    """Numbers of a stream that make numbers of a sample together: convert(numbers * factors + offsets).

    Attributes:
        columns: the columns (k).
        targets: the places in the record (m).
        factors: (k,).
        offsets: (k,).
        convert: what takes (k, n) to (m, n); None where they are the same.
    """

    columns: tuple[str, ...]
    targets: Indices
    factors: Floats
    offsets: Floats
    convert: Conversion | None = None

    @staticmethod
    def joined(pieces: Sequence[Piece]) -> Piece:
        """The numbers of pieces without a conversion as one."""
        columns = tuple(column for piece in pieces for column in piece.columns)
        targets = np.concatenate([piece.targets for piece in pieces])
        factors, offsets = (
            np.concatenate(each) for each in zip(*((p.factors, p.offsets) for p in pieces), strict=True)
        )
        return Piece(columns, targets, factors, offsets)

    def apply(self, values: Floats) -> Floats:
        """Numbers of the record (m, n) from columns (k, n), which are overwritten."""
        if not self._is_in_si:
            values *= self.factors[:, None]
            values += self.offsets[:, None]
        return values if self.convert is None else self.convert(values)

    @cached_property
    def _is_in_si(self) -> bool:
        return bool((self.factors == 1).all() and (self.offsets == 0).all())


@dataclass(frozen=True, slots=True)
class MappingEntries:
    """Resolves entries of a mapping, for a log and a robot.

    Attributes:
        columns: the stream of each column of the log.
        record: the numbers of a sample.
        where: the log, for errors.
        ignored: takes the readings that are mapped and that the sensors do not take.
    """

    columns: Mapping[str, Stream]
    record: SampleRecord
    where: str
    ignored: list[str] = field(default_factory=list)

    def wrong(self, message: str) -> MappingError:
        """A `MappingError` that names the log."""
        return MappingError(f"{self.where}: {message}")

    def pieces(self, entry: MappingEntry) -> Iterator[tuple[list[int], Piece | None]]:
        """Yield what an entry gives: the places in the record, and what makes them; None for constants.

        Raises:
            MappingError: it fits neither the log nor the robot.
        """
        if "{joint}" not in entry.of:
            names = self._names(entry.of)
            if names is None:
                return
            yield self._quantity(entry, names, _sources(entry, _width(entry, names)), None)
            return
        joints = entry.joints or [joint for joint in self.record.tree.joint_names if self._fits(entry, joint)]
        for k, joint in enumerate(joints):
            names = self._names(entry.of.replace("{joint}", joint)) if joint else None
            if names is None:
                continue
            sources = _sources(entry, _width(entry, names), joint, k, len(joints))
            yield self._quantity(entry, names, sources, (k, len(joints)))

    def axes(self, entry: MappingEntry) -> dict[int, Axes]:
        """Axes in which the velocities of free joints are given, by body."""
        if entry.axes == "body":
            return {}
        tree = self.record.tree
        free = {f"qd:{name}": i for i, name in enumerate(tree.joint_names) if tree.joints[i].nq == 7}
        if entry.of not in free:
            raise self.wrong(f"`axes` is for the velocity of a free joint, and '{entry.of}' is none.")
        return {free[entry.of]: entry.axes}

    def torques(self, entry: MappingEntry, targets: Sequence[int]) -> list[str]:
        """The names of torques of joints, whose gravity the model tells.

        Raises:
            MappingError: they are no such torques; or gravity depends on what is estimated, or on loops.
        """
        names, record = [self.record.names[k] for k in targets], self.record
        if any(name not in record.freedoms or record.freedoms[name].kind not in ("tau", LOAD) for name in names):
            raise self.wrong(f"`without` is for torques of joints, and '{entry.of}' is none.")
        if record.estimated or record.tree.closing_parts:
            of = "the attitude of its base is estimated" if record.estimated else "it has loops"
            raise self.wrong(f"`without: {entry.without}` of '{entry.of}' does not go with this robot: {of}.")
        return names

    def _fits(self, entry: MappingEntry, joint: str) -> bool:
        """Whether {joint} of an entry without `joints` includes a joint: of one number, and with a column."""
        by_name = isinstance(entry.source, str) and "{joint}" in entry.source
        has_column = not by_name or column_named(self.columns, [str(entry.source).replace("{joint}", joint)])
        return bool(has_column) and len(self.record.groups.get(entry.of.replace("{joint}", joint), ())) == 1

    def _names(self, of: str) -> tuple[str, ...] | None:
        """Numbers of the record of a quantity; None for what nobody takes: a reading of no sensor, an estimated root.

        Raises:
            MappingError: it is of the robot's motion, and the robot has no such joint.
        """
        names = self.record.groups.get(of) or ((of,) if of in self.record.places else None)
        is_estimated = names is not None and self.record.places[names[0]] in self.record.estimated
        if names is not None and not is_estimated:
            return names
        if is_estimated or not of.startswith(("q:", "qd:")):
            self.ignored.append(of)
            return None
        groups = list(self.record.groups)
        close = difflib.get_close_matches(of, [*groups, *self.record.places], n=1, cutoff=0.5)
        hint = f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(groups[:6])} and others."
        raise self.wrong(
            f"the mapping has an entry for '{of}', but robot '{self.record.tree.name}' has no such joint. {hint}"
        )

    def _quantity(
        self, entry: MappingEntry, names: tuple[str, ...], sources: list[str] | None, nth: tuple[int, int] | None
    ) -> tuple[list[int], Piece | None]:
        """Indices of one quantity in the record, and the `Piece` that computes it; None for a constant.

        Args:
            entry: the entry.
            names: the numbers of the record that it is.
            sources: its columns.
            nth: which joint it is of how many, where the entry is of several.
        """
        places = [self.record.places[name] for name in names]
        if sources is None:
            return places, None
        convert, order, units = self._conversion(entry, names, len(sources))
        if len(sources) != len(units):
            raise self.wrong(
                f"'{entry.of}' is {len(units)} numbers, and the mapping names {len(sources)} columns for it."
            )
        found = [column_named(self.columns, [source]) for source in sources]
        for source, column in zip(sources, found, strict=True):
            if column is None:
                hint = suggestion(self.columns, source)
                raise self.wrong(f"has no column '{source}', which the mapping names for '{entry.of}'. {hint}")
        targets = [places[k] for k in order]
        factors = self._factors(entry, units) * self._each(entry, "scale", entry.scale, len(units), nth)
        offsets = self._each(entry, "offset", entry.offset, len(units), nth)
        return targets, Piece(tuple(filter(None, found)), np.array(targets, dtype=np.intp), factors, offsets, convert)

    def _conversion(
        self, entry: MappingEntry, names: tuple[str, ...], n_columns: int
    ) -> tuple[Conversion | None, list[int], list[str]]:
        """Conversion of the columns of a quantity, the order of its numbers, and the units of the columns."""
        units = [self.record.units[self.record.places[name]] for name in names]
        everything = list(range(len(names)))
        last = self.record.places[names[-1]]
        if entry.orientation in ("cos_sin", "modulo"):
            how = entry.orientation
            if not entry.of.startswith("q:") or units != ["rad"]:
                raise self.wrong(f"`orientation: {how}` is for q of a joint that turns, and '{entry.of}' is none.")
            if how == "modulo":
                return (lambda values: (values + np.pi) % (2 * np.pi) - np.pi), everything, units
            return (lambda values: np.arctan2(values[1:], values[:1])), everything, ["", ""]
        if len(names) >= 4 and any(part.stop - 1 == last for part in self.record.quaternions):
            before, given = units[:-4], ["rad"] * 3 if entry.orientation == "rpy" else units[-4:]
            if n_columns == len(given):
                return at_origin(oriented(entry.orientation, 0), len(before)), everything, given
            return oriented(entry.orientation, len(before)), everything, [*before, *given]
        if entry.orientation != "xyzw":
            raise self.wrong(f"`orientation` is for q of free and spherical joints, and '{entry.of}' is none.")
        if entry.above is not None:
            if not entry.of.startswith(CONTACT):
                raise self.wrong(f"`above` is for contacts, and '{entry.of}' is none.")
            above = entry.above
            return (lambda x: np.where(np.isnan(x), np.nan, (x > above).astype(float))), everything, units
        is_free = entry.of.startswith("qd:") and len(names) == len(VELOCITY)  # numbered in the record
        own = list(VELOCITY) if is_free else [name.rpartition(".")[2] for name in names]
        parts = entry.components or own
        if len(set(parts)) != len(parts) or not set(parts) <= set(own):
            raise self.wrong(f"the components of '{entry.of}' are {', '.join(own)}, not {', '.join(parts)}.")
        order = [own.index(part) for part in parts]
        if entry.frame is None:
            return None, order, [units[k] for k in order]
        try:
            matrix = frame_matrix(entry.frame, parts, parts)
        except MappingError as error:
            raise self.wrong(f"'{entry.of}': {error}") from None
        return (lambda values: np.asarray(matrix @ values)), order, [units[k] for k in order]

    def _factors(self, entry: MappingEntry, units: Sequence[str]) -> Floats:
        """Factor of each column to SI; lengths beside angles in degrees are in SI already.

        Raises:
            MappingError: the unit is none of such a quantity.
        """
        if entry.unit is None:
            return np.ones(len(units))
        sizes = [factor(entry.unit, unit) for unit in units]
        if all(size is None for size in sizes):
            known = ", ".join(dict.fromkeys(name for unit in units if unit for name in known_units(unit)))
            raise self.wrong(
                f"'{entry.of}' cannot be in '{entry.unit}'. {f'Known: {known}. ' if known else ''}"
                "For any other, leave `unit` out and give `scale`: the size of its unit in SI."
            )
        return np.array([1.0 if size is None else size for size in sizes])

    def _each(
        self, entry: MappingEntry, what: str, given: float | list[float], n: int, nth: tuple[int, int] | None
    ) -> Floats:
        """One number a column of a quantity, from one for all, one a joint, or one a column."""
        if not isinstance(given, list):
            return np.full(n, float(given))
        if nth is not None and len(given) == nth[1]:
            return np.full(n, float(given[nth[0]]))
        if len(given) == n:
            return np.array(given, dtype=float)
        expected = nth[1] if nth else n
        raise self.wrong(f"`{what}` of '{entry.of}' has {len(given)} numbers, expected one or {expected}.")


def _width(entry: MappingEntry, names: Sequence[str]) -> int:
    """How many columns a quantity takes, which is these numbers of the record."""
    return 2 if entry.orientation == "cos_sin" else len(entry.components or names)


def _sources(entry: MappingEntry, n: int, joint: str = "", k: int = 0, n_joints: int = 1) -> list[str] | None:
    """Columns of a quantity of n numbers of the k-th joint; None for a constant."""
    if entry.source is None:
        return None
    if isinstance(entry.source, list):
        return entry.source[k * n : (k + 1) * n] if len(entry.source) == n * n_joints else list(entry.source)
    source = entry.source.replace("{joint}", joint)
    if n == 1:
        return [source.replace("{k}", str(k))]
    parts = entry.components or [""] * n
    numbered = [source.replace("{k}", str(j)).replace("{component}", part) for j, part in enumerate(parts)]
    return list(dict.fromkeys(numbered))


@dataclass(frozen=True, eq=False)
class BoundStream:
    """The mapped columns of a stream.

    Attributes:
        stream: the stream.
        settings: what the mapping says of it.
        clock: the column with its times; None where it has none. Of nanoseconds alone, `whole` has the seconds.
        unit: what one of these times is in seconds.
        pieces: what its numbers make; those without a conversion are one, the first.
    """

    stream: Stream
    settings: StreamSettings
    clock: str | None
    unit: float
    pieces: tuple[Piece, ...]

    @cached_property
    def whole(self) -> str | None:
        """The column with the whole seconds of its times, where these are in two."""
        return whole_seconds(self.clock, self.stream.columns)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, each once; those of the times first, where there are any."""
        wanted = [column for column in (self.clock, self.whole) if column is not None]
        return tuple(dict.fromkeys([*wanted, *(column for piece in self.pieces for column in piece.columns)]))

    @cached_property
    def targets(self) -> Indices:
        """The places in the record of the numbers that `numbers` returns (m,)."""
        return np.concatenate([piece.targets for piece in self.pieces])

    @cached_property
    def places(self) -> tuple[Indices, ...]:
        """Where the columns of each piece are among `columns`."""
        at = {column: k for k, column in enumerate(self.columns)}
        return tuple(np.array([at[column] for column in piece.columns], dtype=np.intp) for piece in self.pieces)

    def stamps(self, values: Sequence[Floats] | Floats) -> Floats:
        """What the clock says (n,) [s], from the columns."""
        t = np.asarray(values[0] * self.unit)
        return t if self.whole is None else values[1] + t

    def times(self, values: Sequence[Floats], first: int = 0, begin: float | None = None) -> Floats | None:
        """Times (n,) [s] of samples from their columns; None if the stream has no clock.

        Args:
            values: the columns.
            first: the number of the first of them in the stream.
            begin: the time of the very first sample [s]; None where it is among these.
        """
        if self.clock is None:
            return None
        t, step = self.stamps(values) - self.settings.delay, self.settings.step
        if step is None or not len(t):
            return t
        return np.asarray((t[0] if begin is None else begin) + step * np.arange(first, first + len(t)))

    def numbers(self, values: Sequence[Floats]) -> Floats:
        """Numbers of the record (m, n), from the columns (k of (n,))."""
        parts = zip(self.pieces, self.places, strict=True)
        made = [piece.apply(np.array([values[k] for k in places.tolist()])) for piece, places in parts]
        return made[0] if len(made) == 1 else np.concatenate(made)


@dataclass(frozen=True, eq=False)
class Binding:
    """The source of each number of a sample.

    Attributes:
        record: the numbers of a sample.
        where: the log, for errors.
        streams: what is taken of each stream, by its name.
        constants: the numbers that do not change (m of the record,); nan for all others.
        reference: the stream whose samples, or whose extent, the samples have.
        rate: how many samples a second [Hz]; None where they are those of the reference. Without times its own.
        axes: in which axes the velocity of a free joint is given, by the number of its body.
        weightless: the names of the torques that are given without gravity.
        calibration: of readings, by their places among the numbers.
        lacking: the numbers of the record that nothing gives.
        unused: the columns that are not used.
        ignored: what the mapping speaks of and nobody asks for: readings, the root of a robot whose base is state.
        is_mapped: whether a mapping says what each column is; otherwise they go by their usual names.
    """

    record: SampleRecord
    where: str
    streams: Mapping[str, BoundStream]
    constants: Floats
    reference: str
    rate: float | None
    axes: Mapping[int, Axes]
    weightless: tuple[str, ...]
    calibration: Mapping[int, Calibration]
    lacking: tuple[str, ...]
    unused: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    is_mapped: bool = False

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The column of each number of the record that is one."""
        pieces = (piece for bound in self.streams.values() for piece in bound.pieces)
        plain = (piece for piece in pieces if piece.convert is None)
        return {self.record.names[k]: c for p in plain for k, c in zip(p.targets.tolist(), p.columns, strict=True)}

    @property
    def derivable(self) -> tuple[str, ...]:
        """The readings that nothing gives and that differentiating velocities does: joint accelerations."""
        freedoms, unknown = self.record.freedoms, self._unknown_velocities
        known = (name for name in self.lacking if name in freedoms and unknown.isdisjoint(freedoms[name].places))
        return tuple(name for name in known if freedoms[name].kind == "qdd")

    @cached_property
    def _unknown_velocities(self) -> frozenset[int]:
        """The freedoms of bases that move whose velocity a constant stands for: a gyroscope tells the others."""
        tree, is_constant = self.record.tree, np.isfinite(self.constants[self.record.qd])
        floating = [own for joint, own in zip(tree.joints, tree.v_slices, strict=True) if joint.nq == 7]
        moving = [own for own in floating if not is_constant[own].all()]
        return frozenset(k for own in moving for k in range(own.start, own.stop) if is_constant[k])

    @property
    def deflections(self) -> tuple[str, ...]:
        """The deflections of joints that nothing gives, and that their positions do."""
        return tuple(name for name in self.lacking if name in self.record.deflections)

    @property
    def derivable_velocities(self) -> tuple[str, ...]:
        """The velocities that nothing gives and that differentiating positions does: those of whole joints."""
        groups, lacking = self.record.groups, set(self.lacking)
        return tuple(
            rate
            for joint in self.record.tree.joint_names
            if {*groups[f"qd:{joint}"]} <= lacking and not {*groups[f"q:{joint}"]} & lacking
            for rate in groups[f"qd:{joint}"]
        )

    def lacking_in(self, state: ContactState, made: Iterable[str] = ()) -> tuple[str, ...]:
        """The readings that a contact state needs, and that neither columns nor motion provide.

        Args:
            state: the contact state.
            made: what is made by differentiating.
        """
        needed, given = set(self.record.systems[state].measurement_names), {*made, *self.deflections}
        return tuple(name for name in self.lacking if name in needed and name not in given)

    def lacks(self, names: Sequence[str], columns: Iterable[str], of: str) -> InputError:
        """The error of numbers that are needed, and that a log or a stream has no columns for.

        Args:
            names: the numbers.
            columns: its columns.
            of: of how many of what they are: "of 12 measurements".
        """
        freedoms, shown = self.record.freedoms, quoted(names)
        is_derivative = any(name in freedoms and freedoms[name].kind == "qdd" for name in names)
        hint = " Joint accelerations can be made from the velocities: --differentiate auto." if is_derivative else ""
        if any(name in freedoms and not self._unknown_velocities.isdisjoint(freedoms[name].places) for name in names):
            hint = (
                " A velocity that is given by `value` does not tell how a base accelerates. Without entries for the "
                "base, `nori-dyn identify` estimates it of gyroscope, accelerometer, encoders and torques."
            )
        if all(name.startswith("fx:") for name in names):
            hint = " Wrenches that nobody measures are unknown: leave their entry out of --sensors."
        mapped = f" The mapping has entries for {', '.join(self.ignored[:6])}." if self.ignored else ""
        what, how = ("the mapping lacks", "") if self.is_mapped else ("lacks", " A mapping says what they are called.")
        close = suggestion(columns, names[0], KINDS)
        return InputError(f"{self.where}: {what} {len(names)} {of}: {shown}.{hint}{mapped} {close}{how}")

    def complete(self, numbers: Floats) -> None:
        """Have samples (m, n), as the log gives them, as a solver takes them, in place.

        Velocities of free joints are turned into the axes of their bodies; gravity is added to torques without it;
        readings are calibrated.
        """
        record = self.record
        q, qd = numbers[record.q], numbers[record.qd]
        for body, axes in self.axes.items():
            own, free = record.tree.q_slices[body], record.tree.v_slices[body]
            qd[free] = body_velocity(axes, q[own.stop - 4 : own.stop], qd[free])
        if self.weightless:
            held = np.asarray(gravity_force(record.tree, q), dtype=float)
            for name in self.weightless:
                of = record.freedoms[name]
                numbers[record.places[name]] += np.array(of.factors) @ held[[*of.places]]
        for place, each in self.calibration.items():
            numbers[place] = each.gain * numbers[place] - each.offset

    @property
    def is_resampled(self) -> bool:
        """Whether samples are made between those of the log."""
        return len(self.streams) > 1 or (self.rate is not None and any(each.clock for each in self.streams.values()))

    @property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """The columns to read of each stream."""
        return {name: bound.columns for name, bound in self.streams.items()}


def quoted(names: Sequence[str]) -> str:
    """Some names, the first of many."""
    return ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")


def bind(
    columns: Mapping[str, Stream], mapping: LogMapping | None, record: SampleRecord, where: str = "the log"
) -> Binding:
    """Bind the columns of a log to the numbers of a sample.

    Args:
        columns: the stream of each column that there is.
        mapping: what ties them to the robot; without one, or without `columns` in it, they go by their usual names.
        record: the numbers of a sample.
        where: the log, for errors.

    Raises:
        MappingError: the mapping fits neither the log nor the robot; says which entry.
    """
    mapping = mapping or LogMapping()
    entries = MappingEntries(columns, record, where)
    constants = np.full(len(record.names), np.nan)
    constants[list(record.estimated)] = list(record.estimated.values())
    axes: dict[int, Axes] = {}
    weightless: list[str] = []
    found: dict[str, list[Piece]] = {}
    taken: dict[int, str] = {}
    for entry in mapping.columns:
        for targets, piece in entries.pieces(entry):
            twice = next((place for place in targets if place in taken), None)
            if twice is not None:
                raise entries.wrong(
                    f"'{record.names[twice]}' is mapped twice: by '{taken[twice]}' and by '{entry.of}'. Leave one out."
                )
            taken |= dict.fromkeys(targets, entry.of)
            if entry.without is not None:
                weightless += entries.torques(entry, targets)
            if piece is None:
                constants[targets] = entry.value
            else:
                found.setdefault(_stream_of(piece, entries, entry.of), []).append(piece)
        if entry.of not in entries.ignored:
            axes |= entries.axes(entry)
    if not mapping.columns:
        for name, names in usual_names(record, columns):
            column = column_named(columns, names)
            if column is not None and record.places[name] not in record.estimated:
                place = np.array([record.places[name]], dtype=np.intp)
                taken[int(place[0])] = name
                found.setdefault(columns[column].name, []).append(Piece((column,), place, np.ones(1), np.zeros(1)))
    for name in mapping.streams:
        if name not in (known := dict.fromkeys(stream.name for stream in columns.values())):
            listed = ", ".join(repr(each) for each in list(known)[:8])
            raise entries.wrong(f"has no stream '{name}', which the mapping names. It has {listed}.")
    streams = {name: _bound(name, mapping, pieces, entries) for name, pieces in found.items()}
    of_readings = record.places.keys() & {*record.measurement_names}
    calibration = {record.places[name]: each for name, each in mapping.calibration.items() if name in of_readings}
    read = {column for bound in streams.values() for column in bound.columns}
    return Binding(
        record=record,
        where=where,
        streams=streams,
        constants=constants,
        reference=_reference(mapping, streams, entries),
        rate=mapping.clock.rate,
        axes=axes,
        weightless=tuple(weightless),
        calibration=calibration,
        lacking=tuple(name for k, name in enumerate(record.names) if k not in taken and k not in record.estimated),
        unused=tuple(column for column in columns if column not in read),
        ignored=(*entries.ignored, *(name for name in mapping.calibration if name not in of_readings)),
        is_mapped=bool(mapping.columns),
    )


def _stream_of(piece: Piece, entries: MappingEntries, of: str) -> str:
    names = list(dict.fromkeys(entries.columns[column].name for column in piece.columns))
    if len(names) > 1:
        raise entries.wrong(
            f"the columns of '{of}' are from several streams, {', '.join(map(repr, names))}. "
            "Those of one quantity must be from one stream."
        )
    return names[0]


def _bound(name: str, mapping: LogMapping, pieces: Sequence[Piece], entries: MappingEntries) -> BoundStream:
    settings = mapping.streams.get(name, StreamSettings())
    stream, clock = entries.columns[pieces[0].columns[0]], settings.clock
    if clock is not None and clock not in entries.columns:
        hint = suggestion(entries.columns, clock)
        raise entries.wrong(f"has no column '{clock}' for the times of '{name}'. {hint}")
    if clock is None and settings.stamps == "log" and f"{name}.log_time" in entries.columns:
        clock = f"{name}.log_time"
    clock = clock or stream.clock or time_column(stream.columns)
    unit = factor(settings.unit, "s")
    if unit is None:
        known = ", ".join(known_units("s"))
        raise entries.wrong(f"times of '{name}' cannot be in '{settings.unit}'. Known: {known}.")
    plain, converted = ([p for p in pieces if (p.convert is None) == is_plain] for is_plain in (True, False))
    return BoundStream(stream, settings, clock, unit, (*([Piece.joined(plain)] if plain else ()), *converted))


def _reference(mapping: LogMapping, streams: Mapping[str, BoundStream], entries: MappingEntries) -> str:
    """Reference stream: the one that the mapping names, or that of the first number of q."""
    named = mapping.clock.stream
    if named is not None and named not in streams:
        taken = ", ".join(map(repr, streams))
        raise entries.wrong(
            f"the mapping takes the clock from stream '{named}', but none of its columns. It takes columns of {taken}."
        )
    without = next((name for name, bound in streams.items() if bound.clock is None), None)
    if without is not None and len(streams) > 1:
        raise entries.wrong(
            f"stream '{without}' has no times, so it cannot be resampled with others. Name the "
            f"column with them in the mapping: streams: {{'{without}': {{clock: COLUMN}}}}."
        )
    if named is not None or not streams:
        return named or ""
    return min(streams.values(), key=lambda bound: int(bound.targets.min())).stream.name
