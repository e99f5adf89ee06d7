"""Drafts of mappings: likely meanings of the columns of a log, by names and magnitudes, with reasons."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

import numpy as np

from nori_dyn.logs.formats.source import LogSource, Stream, abbreviated, goes_on
from nori_dyn.logs.mapping.conversions import DEGREE, STANDARD_GRAVITY, factor
from nori_dyn.logs.mapping.families import (
    MEASURED,
    NOT_MEASURED,
    NUMBERED,
    STATE,
    UNIT_IN_NAME,
    Family,
    families_of,
    inertial_kind,
    joints_of,
    kind_of,
    source_of,
    words_of,
)
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.mapping.unnamed import TIME, recognised, step_between
from nori_dyn.measurements.contacts import CONTACT
from nori_dyn.model.joints import FORCE
from nori_dyn.solve.plausibility.motion import RELATED, compared
from nori_dyn.typing import Floats

LOOKED_AT = 20_000
"""Samples that are looked at for units, at most."""

UNLIMITED = 6 * np.pi
"""How far a joint without limits is taken to turn, either way [rad]."""

AXES = ("x", "y", "z")

WRENCH_NAME = re.compile(
    r"(.*?)(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))((?i:force|torque|moment|f|t|m))[._ ]?([xyzXYZ])"
    r"(?:\s*[\[(][^\])]*[\])])?"
)
"""Columns of a wrench by component: what it is called, force or moment, the axis."""

MESSAGE = "a message of a wrench"
"""Why columns are of a wrench, without a doubt."""

CONTACTS = {"contact", "contacts", "stance", "support", "standing", "closed"}
"""Words in the names of columns that say whether a contact is closed."""

LOADS = {"force", "forces", "load", "fz", "pressure", "grf"}
"""Words in the names of columns of what a contact bears."""

FEET = {"foot", "feet", "sole", "leg"}
"""Words in the names of contacts that logs may leave out."""

ANGLES = {
    "deg": {"deg", "degs", "degree", "degrees", "degps", "dps"},
    "rad": {"rad", "rads", "radian", "radians", "radps"},
}
"""Words in the names of columns that say the unit of angles, and of their rates."""


@dataclass(frozen=True, slots=True)
class DraftEntry:
    """A likely entry of a mapping.

    Attributes:
        entry: what it says, as in YAML.
        why: for what reason.
        columns: the columns that it takes.
        is_doubtful: whether names and numbers leave it open: its order, sign or gain is to be checked.
    """

    entry: Mapping[str, object]
    why: str
    columns: tuple[str, ...]
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A likely mapping, and the columns without a guess.

    Attributes:
        robot: the robot that it is for.
        guesses: its entries.
        streams: what is to be known of streams, by their names, and why.
        rate: how many samples a second [Hz] positions and velocities of a log without times tell; or None.
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

    @property
    def has_torques(self) -> bool:
        """Whether columns were found for torques of joints."""
        return any(str(guess.entry["of"]).startswith("tau") for guess in self.guesses)

    def data(self) -> dict[str, object]:
        """The mapping as data."""
        said: dict[str, object] = {"robot": self.robot}
        if self.rate is not None:
            said["clock"] = {"rate": self.rate}
        if self.streams:
            said["streams"] = {name: dict(settings) for name, (settings, _) in self.streams.items()}
        return said | {"columns": [dict(guess.entry) for guess in self.guesses]}


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
    families = [*recognised(families_of(names, joints, order, called), len(joints), values)]
    times_of = {source.columns[f.columns[0]].name: f for f in families if f.words == (TIME,)}
    clocks = {s.name: found for s in source.streams if (found := _clock(s, values, times_of.get(s.name))) is not None}
    times = {column: t for s in source.streams for t in _times(s, clocks, values) for column in s.columns}
    of = _Drafting(names, joints, record, families, values, times)
    for kind in ("q", "qd", "qdd", "tau", "current"):
        of.guesses.extend(of.joint_entries(kind))
    of.guesses.extend([*of.wrenches(), *of.imus(), *of.contacts()])
    if not record.estimated:
        of.guesses[:0] = of.free_joints()
    given = {str(name) for guess in of.guesses for name in of.targets(guess)}
    taken = of.taken | {settings.get("clock") for settings, _ in clocks.values()}
    moving = {joint for joint in joints if any(f"{kind}:{joint}" in given for kind in ("q", "qd", "tau"))}
    return Draft(
        robot=record.tree.name,
        guesses=tuple(of.guesses),
        streams=clocks,
        rate=of.rate(),
        lacking=abbreviated(
            name for k, name in enumerate(record.names) if name not in given and k not in record.estimated
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


@dataclass(frozen=True, slots=True, eq=False)
class _Drafting:
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

    def joint_entries(self, kind: str) -> Iterator[DraftEntry]:
        """Yield what holds positions, velocities, accelerations, torques or currents of joints."""
        target = "tau" if kind == "current" else kind
        wanted = [joint for joint in self.joints if f"{target}:{joint}" in self.record.places]
        covered = {str(name) for guess in self.guesses for name in self.targets(guess)}
        taken = self.taken
        left = [family for family in self.families if not set(family.columns) & taken]
        alike = sorted((family for family in left if kind_of(family) == kind), key=_likeliest_first)
        beside = [f for f in left if "v" in f.words and kind_of(f) is None and not NOT_MEASURED & set(f.words)]
        for family in [*alike, *(beside if kind == "qd" else ())]:  # v is that of joints beside q, of feet beside dq
            free = [joint for joint in wanted if f"{target}:{joint}" not in covered]
            own, why, is_doubtful = joints_of(family, free, len(wanted))
            if not own:
                continue
            rank = _likeliest_first(family)
            columns = family.columns
            if family.joints is not None:
                columns = tuple(family.columns[family.joints.index(joint)] for joint in own)
            entry: dict[str, object] = {"of": f"{target}:{{joint}}", "from": source_of(family, columns)}
            if "{joint}" not in str(entry["from"]) or len(own) < len(wanted):
                entry["joints"] = own
            unit, told = self._unit(kind, columns, own)
            if unit:
                entry["unit"] = unit
                if family.pattern.startswith(STATE) and "name" not in told:
                    told, is_doubtful = f"{told}; or a share of its range, as LeRobot's own arms record it", True
            if kind == "current":
                entry["scale"] = [1.0] * len(own)
                told, is_doubtful = "currents: write the drives' gains as `scale`, N m per A, one a joint", True
            others = [f for f in alike if f is not family and (f.joints, _likeliest_first(f)) == (family.joints, rank)]
            if others:
                either = f"or from {others[0].pattern}, which is as likely"
                told, is_doubtful = f"{told}; {either}" if told else either, True
            covered |= {f"{target}:{joint}" for joint in own}
            yield DraftEntry(entry, "; ".join(filter(None, (family.why, why, told))), columns, is_doubtful)

    def _unit(self, kind: str, columns: Sequence[str], joints: Sequence[str]) -> tuple[str, str]:
        """Unit of columns of joints if it is not that of SI, and the reason."""
        si = {"q": "rad", "qd": "rad/s", "qdd": "rad/s^2", "tau": "N m"}.get(kind, "")
        match = UNIT_IN_NAME.search(columns[0])
        if match and si and (size := factor(match[1], si)) is not None:
            return (match[1], "the unit stands in the name") if size != 1 else ("", "")
        per = {"q": "", "qd": "/s", "qdd": "/s^2"}.get(kind)
        angle = next((unit for unit, names in ANGLES.items() if names & set(words_of(columns[0]))), None)
        if per is not None and angle is not None:
            return (f"{angle}{per}", "the unit stands in the name") if angle != "rad" else ("", "")
        if kind == "q":
            tree, known = self.record.tree, [self.values[c] for c in columns if c in self.values]
            sizes = [float(np.nanmax(np.abs(x))) for x in known if np.isfinite(x).any()]
            limits = [max(map(abs, getattr(tree.joints[tree.joint(joint)], "limits", (0.0, 0.0)))) for joint in joints]
            usual = max(np.pi, *(limit if np.isfinite(limit) else UNLIMITED for limit in limits))
            if sizes and max(sizes) > 2 * usual and max(sizes) * DEGREE <= 2 * usual:
                return "deg", f"up to {max(sizes):.0f}, beyond any joint's limit in rad: degrees"
        elif kind in ("qd", "qdd"):
            of = "q" if kind == "qd" else "qd"
            first = next((g for g in self.guesses if str(g.entry["of"]).startswith(f"{of}:")), None)
            is_in_degrees = first is not None and str(first.entry.get("unit", "")).startswith("deg")
            ratio = None if first is None else self._ratio(first.columns, columns)
            if ratio is not None and (told := _by_ratio(ratio, is_in_degrees)) is not None:
                why = f"{of} moves {ratio:.3g} times as far as they say" if told != is_in_degrees else ""
                return (f"deg{per}" if told else ""), why
            if is_in_degrees:
                return f"deg{per}", f"as {'the positions' if kind == 'qd' else 'the velocities'} are in degrees"
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

    def rate(self) -> float | None:
        """How many samples a second [Hz] positions and velocities tell, to three digits, where nothing else does."""
        guesses = {str(guess.entry["of"]): guess for guess in self.guesses}
        q, qd = guesses.get("q:{joint}"), guesses.get("qd:{joint}")
        if q is None or qd is None or len(q.columns) != len(qd.columns) or self.times.keys() & {*q.columns}:
            return None
        is_same = f"{q.entry.get('unit', 'rad')}/s" == qd.entry.get("unit", "rad/s")
        columns = ([self.values[column] for column in guess.columns] for guess in (q, qd))
        step = step_between(*columns) if is_same else None
        return step and float(f"{1 / step:.3g}")

    def wrenches(self) -> Iterator[DraftEntry]:
        """Yield what holds wrenches: columns that are named so, and arrays of six numbers."""
        sensors = {
            group: [name.rpartition(".")[2] for name in parts]
            for group, parts in self.record.groups.items()
            if len(parts) >= 3 and {name.rpartition(".")[2] for name in parts} <= set(FORCE)
        }
        taken, found = self.taken, dict(self._named_wrenches())
        for family in self.families:
            if len(family.columns) == 6 and not set(family.columns) & taken and kind_of(family) is None:
                components = [f"{letter}{axis}" for letter in "fm" for axis in AXES]
                by_component = dict(zip(components, family.columns, strict=True))
                found[family.pattern] = by_component, "six numbers: forces are taken to come first, check it"
        left = dict(sensors)
        for stem, (columns, why) in found.items():
            close = difflib.get_close_matches(stem.lower(), [each.lower() for each in left], n=1, cutoff=0.4)
            group = next((each for each in left if close and each.lower() == close[0]), None)
            if group is None and len(found) == len(sensors) == 1:
                group = next(iter(left), None)
            if group is None:
                continue
            wanted, why = left.pop(group), f"{why}, and of the likeliest name"
            own = {part: column for part, column in columns.items() if part in wanted}
            units = {part: _unit_in_name(column, "N m" if part[0] == "m" else "N") for part, column in own.items()}
            for unit in dict.fromkeys(units.values()):
                parts = [part for part in own if units[part] == unit]
                entry: dict[str, object] = {"of": group, "from": [own[part] for part in parts], "components": parts}
                told = f"; in {unit}, as the names say" if unit else ""
                entry |= {"unit": unit} if unit else {}
                yield DraftEntry(entry, why + told, tuple(own[part] for part in parts), MESSAGE not in why)

    def _named_wrenches(self) -> Iterator[tuple[str, tuple[dict[str, str], str]]]:
        """Yield columns named force.x to torque.z, Fx to Tz, f_x to m_z, by component, by their stems, and why."""
        found: dict[tuple[str, bool], dict[str, str]] = {}
        taken = self.taken
        for name in self.names:
            match = WRENCH_NAME.fullmatch(name)
            if match and name not in taken and not NOT_MEASURED & set(words_of(match[1])):
                part = ("f" if match[2][0] in "fF" else "m") + match[3].lower()
                found.setdefault((match[1].rstrip("._/ "), len(match[2]) > 1), {})[part] = name
        for (stem, is_spelled), of in found.items():
            if set(FORCE[3:]) <= set(of):
                own = {part: of[part] for part in FORCE if part in of}
                yield (
                    stem,
                    (own, MESSAGE if is_spelled else "named as forces and moments: check their sign"),
                )

    def imus(self) -> Iterator[DraftEntry]:
        """Yield what holds angular velocities and proper accelerations of inertial units: vectors, by their names."""
        taken, values, record = self.taken, self.values, self.record
        vectors = [(stem, own) for stem, own in self._vectors() if not set(own) & taken]
        for kind, letter, unit in (("accelerometer", "a", "m/s^2"), ("gyroscope", "w", "rad/s")):
            parts = [f"{letter}{axis}" for axis in AXES]
            groups = [
                group
                for group, own in record.groups.items()
                if (three := {f"{group}.{part}" for part in parts}) <= set(own)
                and all(record.units[record.places[name]] == unit for name in three)
            ]
            for stem, columns in vectors:
                if inertial_kind(words_of(stem)) != kind:
                    continue
                owner = stem.rstrip(" .").rpartition(".")[0] or stem  # of a message, without its field
                close = difflib.get_close_matches(owner.lower(), [g.lower() for g in groups], n=1, cutoff=0.3)
                group = next(
                    (g for g in groups if close and g.lower() == close[0]), groups[0] if len(groups) == 1 else None
                )
                if group is None:
                    continue
                groups.remove(group)
                entry: dict[str, object] = {"of": group, "from": list(columns), "components": parts}
                why = f"named as {'an' if letter == 'a' else 'a'} {kind}"
                if said := _unit_in_name(columns[0], unit):
                    entry["unit"], why = said, f"{why}; the unit stands in the name"
                elif letter == "w" and ANGLES["deg"] & set(words_of(stem)):
                    entry["unit"], why = "deg/s", f"{why}; the unit stands in the name"
                elif letter == "a" and all(column in values for column in columns):
                    size = float(np.nanmedian(np.linalg.norm([values[column] for column in columns], axis=0)))
                    if 0.7 < size < 1.4:
                        entry["unit"] = "g"
                        why += f"; its size is {size:.2f} and not {STANDARD_GRAVITY:.2f}: in g"
                yield DraftEntry(entry, why, columns, words_of(stem)[-1] == "g")

    def contacts(self) -> Iterator[DraftEntry]:
        """Yield what says which contacts are closed, by the contact's name: zeros and ones, or a force."""
        taken = self.taken
        for contact in self.record.contacts:
            called = {*words_of(contact)} - FEET
            near = {n: {*words_of(n)} for n in self.values if n not in taken and called and called <= {*words_of(n)}}
            flags = [name for name, words in near.items() if CONTACTS & words and self._is_flag(name)]
            forces = [name for name, words in near.items() if LOADS & words and not NOT_MEASURED & words]
            if len(flags) == 1:
                entry: dict[str, object] = {"of": f"{CONTACT}{contact}", "from": flags[0]}
                yield DraftEntry(entry, "named as this contact, zeros and ones", tuple(flags))
            elif len(forces) == 1:
                force = self.values[forces[0]]
                usual = float(np.median(force[force > np.nanmax(force) / 20])) if np.nanmax(force) > 0 else 0.0
                entry = {"of": f"{CONTACT}{contact}", "from": forces[0], "above": float(f"{usual / 5:.2g}")}
                why = "named as the force of this contact: closed above a fifth of what it usually bears, check it"
                yield DraftEntry(entry, why, tuple(forces), True)

    def _is_flag(self, name: str) -> bool:
        return bool(np.isin(self.values[name], (0.0, 1.0)).all())

    def _vectors(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield three columns each that are a vector, gyro_x to gyro_z or gyro[0] to gyro[2], and their stem."""
        for name in self.names:
            match = re.fullmatch(r"(.*)([xX])((?:_[A-Za-z]+)?\]?\s*(?:[\[(][^\])]*[\])])?)", name)
            if match:
                axes = "xyz" if match[2] == "x" else "XYZ"
                columns = tuple(f"{match[1]}{axis}{match[3]}" for axis in axes)
                if set(columns) <= set(self.names):
                    yield f"{match[1]} {match[3]}", columns
        yield from ((family.pattern, family.columns) for family in self.families if len(family.columns) == 3)

    def free_joints(self) -> list[DraftEntry]:
        """Columns with the pose of a free joint: a message with position and orientation."""
        tree, taken = self.record.tree, self.taken
        free = [n for n, j in zip(tree.joint_names, tree.joints, strict=True) if j.nq == 7]
        for name in self.names:
            if free and name.endswith("position.x") and name not in taken:
                stem = name.removesuffix("position.x")
                columns = [*(f"{stem}position.{a}" for a in AXES), *(f"{stem}orientation.{a}" for a in (*AXES, "w"))]
                if all(column in self.names for column in columns):
                    return [
                        DraftEntry({"of": f"q:{free[0]}", "from": columns}, "a message with a pose", tuple(columns))
                    ]
        return []

    def targets(self, guess: DraftEntry) -> Iterator[str]:
        """Yield the numbers of the record that an entry gives."""
        of = str(guess.entry["of"])
        named = guess.entry.get("joints", self.joints)
        for joint in named if isinstance(named, list | tuple) and "{joint}" in of else [""]:
            whole = of.replace("{joint}", str(joint))
            parts = guess.entry.get("components")
            if isinstance(parts, list):
                yield from (f"{whole}.{part}" for part in parts)
            elif "{joint}" not in of or guess.entry.get("joints") or whole.partition(":")[2] in "".join(guess.columns):
                yield from self.record.groups.get(whole, (whole,))


def _likeliest_first(family: Family) -> tuple[bool, bool, bool, int, int]:
    """The order of families that may be one quantity."""
    words = set(family.words)
    is_bare = words <= NUMBERED
    return family.joints is None, is_bare, not MEASURED & words, -len(family.columns), len(family.words)


def _by_ratio(ratio: float, is_in_degrees: bool) -> bool | None:
    """Whether rates are in degrees, by that ratio; None if it does not tell."""
    for are_in_degrees in (True, False):
        expected = 1.0 if are_in_degrees == is_in_degrees else DEGREE ** (1 if are_in_degrees else -1)
        if 0.5 < ratio / expected < 2.0:
            return are_in_degrees
    return None


def _times(
    stream: Stream, clocks: Mapping[str, tuple[Mapping[str, object], str]], values: Mapping[str, Floats]
) -> Iterator[Floats]:
    """Yield the times of a stream [s], where they are known."""
    settings = clocks.get(stream.name, ({}, ""))[0]
    clock = str(settings.get("clock") or stream.clock)
    size = factor(str(settings.get("unit") or stream.units.get(clock, "s")), "s")
    if clock in values and size is not None:
        yield size * values[clock]


def _unit_in_name(column: str, si: str) -> str:
    """The unit that stands in the name of a column, where it is not that of SI; "" otherwise."""
    match = UNIT_IN_NAME.search(column)
    return match[1] if match and factor(match[1], si) not in (None, 1.0) else ""


def _clock(
    stream: Stream, values: Mapping[str, Floats], unnamed: Family | None
) -> tuple[Mapping[str, object], str] | None:
    """Settings of the clock of a stream, and the reason; None if it needs none, or if there is none."""
    clock = stream.clock
    settings: dict[str, object] = {}
    why = ""
    if clock is None:
        why = "named as times are"
        named = (c for c in stream.columns if {"time", "duration", "stamp"} & set(words_of(c)))
        clock = next((c for c in named if c not in values or goes_on(values[c])), None)
        if clock is None and unnamed is not None:
            clock, why = unnamed.columns[0], unnamed.why
        if clock is None:
            return None
        settings["clock"] = clock
    match = UNIT_IN_NAME.search(clock)
    if match and factor(match[1], "s") is not None:
        settings["unit"] = match[1]
    elif clock in values and stream.units.get(clock, "s") == "s" and len(values[clock]) > 2:
        step = float(np.nanmedian(np.diff(values[clock])))
        unit = next((u for low, u in ((1e5, "ns"), (1e2, "us"), (0.5, "ms")) if step >= low), None)
        if unit is not None:
            settings["unit"], why = unit, f"{why}{'; ' if why else ''}a step is {step:g}: {unit}"
    return (settings, why) if settings else None
