"""Drafts of the entries of joints: which columns are positions, velocities, torques, of which joints, in which unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.logs.drafts.families import (
    MEASURED,
    MOTORS,
    NOT_MEASURED,
    NUMBERED,
    STATE,
    UNIT_IN_NAME,
    Family,
    JointNaming,
    joints_of,
    kind_of,
    source_of,
    words_of,
)
from nori_dyn.logs.drafts.unnamed import AGREED, is_unit, step_between
from nori_dyn.logs.mapping.conversions import DEGREE, factor
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.solve.plausibility.motion import RELATED, compared
from nori_dyn.typing import Floats

UNLIMITED = 6 * np.pi
"""How far a joint without limits is taken to turn, either way [rad]."""

ANGLES = {
    "deg": {"deg", "degs", "degree", "degrees", "degps", "dps"},
    "rad": {"rad", "rads", "radian", "radians", "radps"},
}
"""Words in the names of columns that say the unit of angles, and of their rates."""

SI = {"q": "rad", "qd": "rad/s", "qdd": "rad/s^2", "tau": "N m"}
"""Units of SI of quantities of joints."""

IN_NAME = "the unit stands in the name"


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """A likely entry of a mapping.

    Attributes:
        entry: what it says, as in YAML.
        why: for what reason.
        columns: the columns that it takes.
        gives: the numbers of the record that it gives.
        is_doubtful: whether names and numbers leave it open: its order, sign or gain is to be checked.
    """

    entry: Mapping[str, object]
    why: str
    columns: tuple[str, ...]
    gives: tuple[str, ...]
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Drafting:
    """A log and a robot, with what has been found of it so far.

    Attributes:
        names: the columns, without clocks.
        joints: the joints of one number.
        record: the numbers of a sample.
        families: those of the columns.
        values: some samples of each column.
        times: the times of these [s], where they are known.
        guesses: the entries so far.
    """

    names: Sequence[str]
    joints: Sequence[str]
    record: SampleRecord
    families: Sequence[Family]
    values: Mapping[str, Floats]
    times: Mapping[str, Floats]
    guesses: list[DraftEntry] = field(default_factory=list)

    @property
    def taken(self) -> set[str]:
        """The columns that entries take."""
        return {column for guess in self.guesses for column in guess.columns}

    @property
    def given(self) -> set[str]:
        """The numbers of the record that they give."""
        return {name for guess in self.guesses for name in guess.gives}

    def are_together(self, columns: Sequence[str]) -> bool:
        """Whether columns were read at the same times."""
        first = columns[0]
        sizes = {len(self.values.get(column, ())) for column in columns}
        return len(sizes) == 1 and all(self.times.get(column) is self.times.get(first) for column in columns)

    def vectors(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield three columns each that are a vector, gyro_x to gyro_z or gyro[0] to gyro[2], and their stem."""
        for name in self.names:
            match = re.fullmatch(r"(.*)([xX])((?:_[A-Za-z]+)?\]?\s*(?:[\[(][^\])]*[\])])?)", name)
            if match:
                axes = "xyz" if match[2] == "x" else "XYZ"
                columns = tuple(f"{match[1]}{axis}{match[3]}" for axis in axes)
                if set(columns) <= set(self.names):
                    yield f"{match[1]} {match[3]}", columns
        yield from ((family.pattern, family.columns) for family in self.families if len(family.columns) == 3)

    def joint_entries(self, kind: str) -> Iterator[DraftEntry]:
        """Yield what holds positions, velocities, accelerations, torques or currents of joints."""
        target = "tau" if kind == "current" else kind
        wanted = [joint for joint in self.joints if f"{target}:{joint}" in self.record.places]
        covered = self.given
        taken, entry = self.taken, dict[str, object]()
        left = [family for family in self.families if not set(family.columns) & taken]
        alike = sorted((family for family in left if kind_of(family) == kind), key=_likeliest_first)
        beside = [f for f in left if "v" in f.words and kind_of(f) is None and not NOT_MEASURED & set(f.words)]
        for family in [*alike, *(beside if kind == "qd" else ())]:  # v is that of joints beside q, of feet beside dq
            free = [joint for joint in wanted if f"{target}:{joint}" not in covered]
            if kind == "q" and free == wanted and self._are_cosines(family, len(free)):
                why = f"cosine and sine of each of {len(free)} joints, in turn: check that these are in its order"
                entry = {"of": "q:{joint}", "from": [*family.columns], "joints": free, "orientation": "cos_sin"}
                gives = tuple(f"q:{joint}" for joint in free)
                covered |= {*gives}
                yield DraftEntry(entry, why, family.columns, gives, True)
                continue
            own, why, is_doubtful = joints_of(family, free, len(wanted))
            if not own:
                continue
            rank = _likeliest_first(family)
            columns = family.columns
            if family.joints is not None:
                columns = tuple(family.columns[family.joints.index(joint)] for joint in own)
            entry = {"of": f"{target}:{{joint}}", "from": source_of(family, columns)}
            if "{joint}" not in str(entry["from"]) or len(own) < len(wanted):
                entry["joints"] = own
            unit, note = self._unit(kind, columns, own)
            if unit:
                entry["unit"] = unit
                if family.pattern.startswith(STATE) and unit_in_name(columns[0], SI[kind]) is None:
                    note, is_doubtful = f"{note}; or a share of its range, as LeRobot's own arms record it", True
            if kind == "current":
                entry["scale"] = [1.0] * len(own)
                note, is_doubtful = "currents: write the drives' gains as `scale`, N m per A, one a joint", True
            others = [f for f in alike if f is not family and (f.joints, _likeliest_first(f)) == (family.joints, rank)]
            if others:
                either = f"or from {others[0].pattern}, which is as likely"
                note, is_doubtful = f"{note}; {either}" if note else either, True
            gives = tuple(f"{target}:{joint}" for joint in own)
            covered |= {*gives}
            yield DraftEntry(entry, "; ".join(filter(None, (family.why, why, note))), columns, gives, is_doubtful)

    def _are_cosines(self, family: Family, n: int) -> bool:
        """Whether columns are cosine and sine of so many joints, in turn."""
        known = [self.values[column] for column in family.columns if column in self.values]
        return len(known) == len(family.columns) == 2 * n > 0 and all(
            map(is_unit, zip(known[::2], known[1::2], strict=True))
        )

    def _unit(self, kind: str, columns: Sequence[str], joints: Sequence[str]) -> tuple[str, str]:
        """Unit of columns of joints if it is not that of SI, and the reason."""
        named = unit_in_name(columns[0], SI[kind]) if kind in SI else None
        if named is not None:
            return named, IN_NAME if named else ""
        if kind == "q":
            tree, known = self.record.tree, [self.values[c] for c in columns if c in self.values]
            sizes = [float(np.nanmax(np.abs(x))) for x in known if np.isfinite(x).any()]
            limits = [max(map(abs, getattr(tree.joints[tree.joint(joint)], "limits", (0.0, 0.0)))) for joint in joints]
            usual = max(np.pi, *(limit if np.isfinite(limit) else UNLIMITED for limit in limits))
            if sizes and max(sizes) > 2 * usual and max(sizes) * DEGREE <= 2 * usual:
                return "deg", f"up to {max(sizes):.0f}, beyond any joint's limit in rad: degrees"
        elif kind in ("qd", "qdd"):
            of, in_degrees = ("q", "deg/s") if kind == "qd" else ("qd", "deg/s^2")
            first = next((g for g in self.guesses if str(g.entry["of"]).startswith(f"{of}:")), None)
            is_in_degrees = first is not None and str(first.entry.get("unit", "")).startswith("deg")
            ratio = None if first is None else self._ratio(first.columns, columns)
            if ratio is not None and (scaled := _by_ratio(ratio, is_in_degrees)) is not None:
                why = f"{of} moves {ratio:.3g} times as far as they say" if scaled != is_in_degrees else ""
                return (in_degrees if scaled else ""), why
            if is_in_degrees:
                return in_degrees, f"as {'the positions' if kind == 'qd' else 'the velocities'} are in degrees"
        return "", ""

    def _ratio(self, moving: Sequence[str], rates: Sequence[str]) -> float | None:
        """Ratio of the motion of columns to the integral of their rates; None if the two do not correlate."""
        found, values = [], self.values
        for one, rate in zip(moving, rates, strict=False):
            t, q, qd = self.times.get(one), values.get(one), values.get(rate)
            if t is not None and q is not None and qd is not None and len(q) == len(qd) == len(t) > 2:
                correlation, slope = compared(q, qd, float(np.nanmedian(np.diff(t))))
                found += [slope] if correlation > RELATED[1] else []
        return float(np.median(found)) if found and len(moving) == len(rates) else None

    def rate(self, stated: float | None) -> float | None:
        """How many samples a second [Hz] a log without times has; None where nothing tells.

        Args:
            stated: what the file says, which counts unless positions and velocities contradict it. They show three
                digits of it.
        """
        guesses = {str(guess.entry["of"]): guess for guess in self.guesses}
        q, qd = guesses.get("q:{joint}"), guesses.get("qd:{joint}")
        if q is None or self.times.keys() & {*q.columns}:
            return None
        if qd is None or len(q.columns) != len(qd.columns) or not {*q.columns, *qd.columns} <= self.values.keys():
            return stated
        is_same = f"{q.entry.get('unit', 'rad')}/s" == qd.entry.get("unit", "rad/s")
        columns = ([self.values[column] for column in guess.columns] for guess in (q, qd))
        step = step_between(*columns) if is_same else None
        if step is None or (stated is not None and abs(stated * step - 1.0) < AGREED):
            return stated
        return float(f"{1 / step:.3g}")


def unit_in_name(column: str, si: str) -> str | None:
    """The unit that stands in the name of a column; "" where it is that of SI, None where there is none."""
    match = UNIT_IN_NAME.search(column)
    words, is_angle = set(words_of(column)), si.startswith("rad")
    unit = match[1] if match and factor(match[1], si) is not None else None
    if unit is None and is_angle and (angle := next((one for one, known in ANGLES.items() if known & words), None)):
        unit = si.replace("rad", angle)
    return "" if unit is not None and factor(unit, si) == 1 else unit


def _likeliest_first(family: Family) -> tuple[bool, bool, bool, bool, int, int]:
    """The order of families that may be one quantity."""
    words = set(family.words)
    is_bare = words <= NUMBERED
    is_open = family.joints is None or family.tie is JointNaming.NUMBERS
    return is_open, is_bare, not MEASURED & words, bool(MOTORS & words), -len(family.columns), len(family.words)


def _by_ratio(ratio: float, is_in_degrees: bool) -> bool | None:
    """Whether rates are in degrees, by that ratio; None if it does not tell."""
    for are_in_degrees in (True, False):
        expected = 1.0 if are_in_degrees == is_in_degrees else DEGREE ** (1 if are_in_degrees else -1)
        if 0.5 < ratio / expected < 2.0:
            return are_in_degrees
    return None
