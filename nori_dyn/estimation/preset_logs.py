"""Logs of robots with a preset: what their columns are, and what of that is open to doubt."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from nori_dyn.errors import MappingError, ModelError
from nori_dyn.estimation.legged import MOTION, POSE
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.preset_data import PresetData, VendorLog
from nori_dyn.estimation.presets import Preset
from nori_dyn.estimation.run_options import RECOGNISE
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.logs.drafts.draft import Draft, draft
from nori_dyn.logs.drafts.drafting import DraftEntry
from nori_dyn.logs.drafts.families import words_of
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.formats.source import LogSource
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.mapping.binding import bind
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.differentiation import Differentiate
from nori_dyn.tables import listed

LESS = (
    ("tau", MOTION, "joint torques", "columns that say which feet stand"),
    (("acc:", "gyro:"), POSE, "readings of the whole IMU", "columns of the pose of the base"),
)
"""What a log may lack, by how its numbers begin; what is estimated without; what it lacks; and by what instead."""

MOST_NAMES = 6
"""Joints that a question names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TiedLog:
    """A log whose columns are tied to a robot.

    Attributes:
        log: the log, with its mapping.
        reasons: what each entry of the mapping rests on, one line each.
        questions: what of it names and numbers leave open.
        kind: the log as a preset knows it; None of one that a mapping, names or a draft tie to the robot.
        made: the draft; None without one.
    """

    log: Log
    reasons: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    kind: VendorLog | None = None
    made: Draft | None = None

    @property
    def mapping(self) -> LogMapping | None:
        """Its mapping, as a file of its own says it."""
        own = self.log.mapping
        return own.mapping if isinstance(own, VendorLog) else own

    def way(self, differentiate: Differentiate, dt: float | None) -> tuple[Differentiate, float | None]:
        """How to differentiate and the time between samples, as asked, or else as the log is best read."""
        best: Differentiate = "auto" if self.made is None or not self.made.lacks_velocities else "smoother"
        if self.kind is not None:
            best, dt = self.kind.differentiate or best, dt or self.kind.dt
        return best if differentiate == "auto" else differentiate, dt


@dataclass(frozen=True, kw_only=True, eq=False)
class PresetLog(TiedLog):
    """A log and the plan that it is estimated by.

    Attributes:
        plan: the plan.
        contacts: as for `nd.estimate`.
        alarms: as for `nd.estimate`.
    """

    plan: Plan
    contacts: str | None = None
    alarms: Alarms | None = None


def preset_log(preset: Preset, log: Log | str | os.PathLike[str], what: str | Iterable[str] | None = None) -> PresetLog:
    """Tie a log to a robot with a preset: by its own mapping, by one of the preset's, or by a draft.

    Args:
        preset: the preset.
        log: the log, or its file; a mapping without columns adds clocks, streams and calibration.
        what: what is to be estimated, see `Preset.estimand`.

    Raises:
        FileFormatError: the log cannot be read.
        MappingError: it holds no torques, and there is an estimate without them; nothing of joints that are needed.
        ModelError, UnknownPresetError, PlanError: as `Preset.plan`.
    """
    given = log if isinstance(log, Log) else read_log(log)
    wanted = preset.estimand(what)
    if given.mapping is not None and given.mapping.columns:
        with open_log(given.path) as source:
            preset, bare = _without_torques(preset, what, source, given.mapping)
        tied = TiedLog(log=given, reasons=("as its mapping says", *bare))
    else:
        with open_log(given.path) as source:
            known = vendor_log(preset.data, source, preset.record(what))
            if known is not None:
                tied = _by_vendor(given, *known)
            else:
                preset, tied = _drafted(preset, given, source, what)
    reasons = tied.reasons
    if preset.model is not None and wanted.robot is not None and preset.components is None:
        reasons += (f"links, friction and rotors as identified, {', '.join(wanted.robot)}, in place of {preset.model}",)
    own = {each.name: getattr(tied, each.name) for each in fields(TiedLog)} | {"reasons": reasons}
    contacts = wanted.contacts and RECOGNISE
    return PresetLog(**own, plan=preset.plan(what), contacts=contacts, alarms=wanted.alarms)


def vendor_log(preset: PresetData, source: LogSource, record: SampleRecord) -> tuple[str, VendorLog] | None:
    """The mapping of a preset that lacks least of what is read of a log, and its name; None of logs it does not know.

    It knows those whose positions are among the columns.
    """
    fitting = min(_fitting(preset.logs, source, record), key=lambda found: found[0], default=None)
    return None if fitting is None else fitting[1:]


def tied_log(
    log: Log,
    record: SampleRecord,
    preset: PresetData | None,
    doubts: Mapping[str, str] = MappingProxyType({}),
    still: Sequence[str] = (),
) -> TiedLog:
    """Tie a log to what is read of it: by its own mapping, by one of a preset, or by a draft where names do less.

    Args:
        log: the log.
        record: what is read of it.
        preset: what is known of the robot; None of one that has no preset.
        doubts: what is asked of a draft, see `_questions_of`.
        still: joints that the log says nothing of.
    """
    if log.mapping is not None and log.mapping.columns:
        return TiedLog(log=log)
    with open_log(log.path) as source:
        known = None if preset is None else vendor_log(preset, source, record)
        if known is not None:
            return _by_vendor(log, *known)
        by_name = _lacking(source, log.mapping, record)
        if not by_name:
            return TiedLog(log=log)
        made = draft(source, record) if preset is None else draft(source, record, preset.order, preset.called)
        tied = _by_draft(log, made, doubts, still)
        by_draft = _lacking(source, tied.log.mapping, record)
    ties_more = len(by_draft) < len(by_name) or any(name.startswith(("q:", "qd:")) for name in by_name)
    return tied if ties_more else TiedLog(log=log)


def _by_vendor(log: Log, name: str, kind: VendorLog) -> TiedLog:
    """A log tied by one of a preset's mappings."""
    tied = replace(log, mapping=_completed(kind, log.mapping))
    return TiedLog(log=tied, reasons=(f"{name}: {kind.about}",), questions=(kind.doubt,) * bool(kind.doubt), kind=kind)


def _by_draft(log: Log, made: Draft, doubts: Mapping[str, str], still: Sequence[str]) -> TiedLog:
    """A log tied by a draft."""
    tied = replace(log, mapping=_completed(LogMapping.from_dict(made.data()), log.mapping))
    return TiedLog(log=tied, reasons=(*_reasons_of(made),), questions=(*_questions_of(made, doubts, still),), made=made)


def _drafted(preset: Preset, log: Log, source: LogSource, what: str | Iterable[str] | None) -> tuple[Preset, TiedLog]:
    """A log tied by a draft, and the robot, whose joints stand still where the log says nothing of them.

    Raises:
        MappingError: it holds nothing of joints that are needed, or lacks what another estimate does without.
    """

    def made_for(preset: Preset, what: str | Iterable[str] | None = what) -> Draft:
        return draft(source, preset.record(what), preset.data.order, preset.data.called)

    asked, made = preset.runs(what)[0], made_for(preset)
    still = made.still
    preset, bare = _without_torques(preset, what, source, LogMapping.from_dict(made.data()), still)
    if still or bare:
        if not {*asked} <= {*preset.data.estimates}:
            raise MappingError(
                f"{log.path}: the estimate of {', '.join(asked)} takes the torques of six joints or more that carry "
                f"a single tool, which it does not hold. Without them: --what {next(iter(preset.data.estimates))}."
            )
        try:
            made = made_for(preset)
        except ModelError as error:
            raise MappingError(
                f"{log.path}: has no column of {listed(still, MOST_NAMES)}, which '{preset.name}' needs. "
                "Is it a log of this robot? If so, a mapping ties its columns to the joints."
            ) from error
    for lacked, wanted, what_it_lacks, by in LESS if made.holds("q:") else ():
        if wanted in {*preset.data.estimates} - {*asked} and _lacks(made, lacked):
            if any(_lacks(made_for(preset, wanted), each) for each, *_ in LESS):
                raise MappingError(
                    f"{log.path}: holds neither {' nor '.join(each for _, _, each, _ in LESS)}, without which "
                    f"'{preset.name}' estimates nothing. What a motion alone tells, the whole wrench of the ground "
                    "and the torques: nori-dyn plan ROBOT --base floating --sensors inverse_dynamics."
                )
            raise MappingError(
                f"{log.path}: holds no {what_it_lacks}, which the estimate of {', '.join(asked)} needs. Without: "
                f"--what {wanted}, in Python what='{wanted}', by {by}."
            )
    tied = _by_draft(log, made, preset.data.doubts, still)
    return preset, replace(tied, reasons=tied.reasons + bare)


def _without_torques(
    preset: Preset,
    what: str | Iterable[str] | None,
    source: LogSource,
    mapping: LogMapping,
    still: Collection[str] = (),
) -> tuple[Preset, tuple[str, ...]]:
    """A preset without the torques that a log does not hold, and what is said of that; some joints stand still."""
    unread, joints = list[str](), preset.tree.joint_names
    if preset.is_bare and not preset.walks:
        record = preset.record(what)
        lacking = {*bind(source.columns, mapping, record).lacking}
        silent = {name for name, numbers in record.groups.items() if lacking & {*numbers}}
        unread = [joint for joint in joints if f"tau:{joint}" in silent and joint not in still]
    whose = "joints" if len(unread) + len(still) == len(joints) else listed(unread, MOST_NAMES)
    said = (f"no torques of {whose}: those that the motion asks for",) if unread else ()
    return preset.fitted(still, unread) if still or unread else preset, said


def _lacks(made: Draft, numbers: str | tuple[str, ...]) -> bool:
    """Whether a draft lacks numbers that begin so."""
    return any(name.startswith(numbers) for name in made.lacking)


def _lacking(source: LogSource, mapping: LogMapping | None, record: SampleRecord) -> list[str]:
    """The numbers of a record that a log lacks, but for accelerations, which are made of velocities."""
    return [name for name in bind(source.columns, mapping, record).lacking if not name.startswith("qdd:")]


def _completed(mapping: LogMapping, more: LogMapping | None) -> LogMapping:
    """A mapping with what another, that has no columns, says of clocks, streams and calibration."""
    if more is None:
        return mapping
    known = mapping.streams
    streams = {
        name: known[name].model_copy(update=own.model_dump(exclude_unset=True)) if name in known else own
        for name, own in more.streams.items()
    }
    given = {name: getattr(more, name) for name in more.model_fields_set if name != "columns"}
    return mapping.model_copy(update={**given, "streams": {**known, **streams}})


def _fitting(
    logs: Mapping[str, VendorLog], source: LogSource, record: SampleRecord
) -> Iterator[tuple[int, str, VendorLog]]:
    """Yield the mappings whose columns a log has, with how many numbers of the record they lack, and their names."""
    for name, mapping in logs.items():
        try:
            binding = bind(source.columns, mapping, record)
        except MappingError:
            continue
        if not any(each.startswith("q:") for each in binding.lacking):
            yield len(binding.lacking), name, mapping


def _reasons_of(made: Draft) -> Iterator[str]:
    """Yield what each entry of a draft rests on, for people."""
    for guess in made.guesses:
        yield f"{_taken(guess)}: {guess.why}"
    for name, (settings, why) in made.streams.items():
        yield f"times of {name or 'the log'}, {settings}: {why}"
    if made.rate is not None:
        yield f"{made.rate:g} samples a second, without times: so its file says, or so positions and velocities agree"
    if made.guesses and made.lacks_velocities:
        yield "velocities that the log lacks: made of the positions, by a smoother"


def _questions_of(
    made: Draft, doubts: Mapping[str, str] = MappingProxyType({}), still: Sequence[str] = ()
) -> Iterator[str]:
    """Yield what a draft leaves open, for people.

    Args:
        made: the draft.
        doubts: what is asked by words in the names of columns, see `PresetData`.
        still: joints that the log says nothing of.
    """
    words = {"", *(word for guess in made.guesses for column in guess.columns for word in words_of(column))}
    if still:
        yield f"nothing of the log is of {listed(still, MOST_NAMES)}: taken to stand still at zero?"
    yield from (doubt for word, doubt in doubts.items() if word in words)
    doubtful: dict[str, list[str]] = {}
    for guess in made.guesses:
        if guess.is_doubtful:
            unit = guess.entry.get("unit")
            doubtful.setdefault(guess.why, []).append(f"{_taken(guess)}{f' [{unit}]' if unit else ''}")
    yield from (f"{', '.join(what)}? {why}." for why, what in doubtful.items())


def _taken(guess: DraftEntry) -> str:
    """What an entry of a draft takes from which columns."""
    source = guess.entry["from"]
    if isinstance(source, list):
        source = f"{source[0]} to {source[-1]}" if len(source) > 3 else ", ".join(source)
    return f"{guess.entry['of']} from {source}"
