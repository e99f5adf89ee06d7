"""Entries of a mapping: how columns of a log make numbers of a sample."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nori_dyn.errors import MappingError
from nori_dyn.logs.formats.source import Stream, suggestion
from nori_dyn.logs.mapping.conversions import VELOCITY, Conversion, factor, frame_matrix, known_units, oriented
from nori_dyn.logs.mapping.log_mapping import Axes, MappingEntry
from nori_dyn.logs.mapping.naming import column_named
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.measurements.contacts import CONTACT
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
        convert, order, units = self._conversion(entry, names)
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
        self, entry: MappingEntry, names: tuple[str, ...]
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
            given = [*units[:-4], "rad", "rad", "rad"] if entry.orientation == "rpy" else units
            return oriented(entry.orientation, len(names) - 4), everything, given
        if entry.orientation != "xyzw":
            raise self.wrong(f"`orientation` is for q of free and spherical joints, and '{entry.of}' is none.")
        if entry.above is not None:
            if not entry.of.startswith(CONTACT):
                raise self.wrong(f"`above` is for contacts, and '{entry.of}' is none.")
            return _above(entry.above), everything, units
        own = self._components(entry, names)
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

    def _components(self, entry: MappingEntry, names: tuple[str, ...]) -> list[str]:
        """Names of the components of a quantity; the velocity of a free joint is numbered in the record."""
        is_free = entry.of.startswith("qd:") and len(names) == len(VELOCITY)
        return list(VELOCITY) if is_free else [name.rpartition(".")[2] for name in names]

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


def _above(threshold: float) -> Conversion:
    return lambda values: np.where(np.isnan(values), np.nan, (values > threshold).astype(float))
