"""What an observability report says, in words, once: text, JSON and the page lay it out.

What was found over the workspace is in `workspace.py`, likewise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from nori_dyn.observe.additions import MOST_LOOKS, Addable, Addition
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.null_space import SHOWN, UnobservableSubspace, list_names
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport, RankWhere
from nori_dyn.report.learned import LearnedFindings, over_time
from nori_dyn.report.workspace import MARGIN, NEARLY_SINGULAR, describe_margins, describe_worst
from nori_dyn.system.rows import GIVEN
from nori_dyn.tables import Table, listed, number, unbroken

OF_SEVERAL = ("a", "f", "fx", "loop")
"""Kinds of variables that are of several numbers, each with a name of its own."""

LISTED = 6
"""Most outputs, sensors and combinations that are listed."""

MOST_RANKS = 8
"""Most ranks over several poses that are listed."""

Level: TypeAlias = Literal["yes", "sometimes", "no"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the sensors suffice, in one line and in one sentence."""

    level: Level
    heading: str
    words: str


@dataclass(frozen=True, slots=True)
class UnseenLine:
    """What the sensors do not see, in words, and in numbers: the changes of d that no row sees."""

    words: str
    vectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to add.

    Attributes:
        lead: what for.
        words: what, and what is determined with it.
        others: what does as well, each instead of it.
        others_title: what these are.
    """

    lead: str
    words: str
    others: tuple[str, ...] = ()
    others_title: str = "Instead of it, any one of these does as well:"


@dataclass(frozen=True, slots=True)
class PoseLine:
    """What becomes at special poses of what is determined at almost every other."""

    meaning: str
    level: Level
    outcome: str
    margin: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a report says.

    Attributes:
        verdict: whether the sensors suffice.
        advice: what to add where they do not.
        accuracy: the outputs that are known least, at the worst pose and at the median; "" where that is not known.
        reason: why, in one sentence.
        unseen: what they do not see, whatever the pose.
        undetermined: the variables that are not determined, with how many numbers where there are several: those that
            determine all others first.
        poses: what becomes of the rank at special poses.
        unseen_at_poses: what else they do not see there.
        given: what became of the configurations that were given; "" where there are none.
        over_time: what is learned of what persists; None where nothing does.
        facts: names and sizes.
    """

    verdict: Verdict
    advice: tuple[Advice, ...]
    accuracy: str
    reason: str
    unseen: tuple[UnseenLine, ...]
    undetermined: tuple[str, ...]
    poses: tuple[PoseLine, ...]
    unseen_at_poses: tuple[UnseenLine, ...]
    given: str
    over_time: LearnedFindings | None
    facts: tuple[tuple[str, str], ...]


def findings(report: ObservabilityReport, conditioning: Conditioning | None = None) -> Findings:
    """The findings of a report.

    Args:
        report: the report.
        conditioning: what was found over many configurations, where they were looked at.
    """
    known = {part.words for part in report.unseen}
    at_poses = {part.words: part for c in report.loses_rank for part in c.unseen if part.words not in known}
    return Findings(
        verdict=_verdict(report, conditioning),
        advice=tuple(_advice(report)),
        accuracy="" if conditioning is None else describe_worst(conditioning),
        reason=_reason(report),
        unseen=tuple(map(_line, report.unseen)),
        undetermined=by_variable(report.unobservable),
        poses=tuple(map(_describe_pose, report.conditions, itertools.repeat(report.is_observable))),
        unseen_at_poses=tuple(map(_line, at_poses.values())),
        given=_given(report),
        over_time=_over_time(report),
        facts=tuple(_facts(report)),
    )


def _verdict(report: ObservabilityReport, conditioning: Conditioning | None) -> Verdict:
    n = report.n_variables
    unknowns = f"all {n:,} unknowns of the robot's motion and forces"
    lacking = 0 if conditioning is None else len(conditioning.lacking)
    given = int(np.sum(report.rank_at < n))
    if not report.is_observable and report.over_time is not None and report.over_time.suffices:
        return Verdict(
            "sometimes",
            "Yes, but not at once",
            f"At one pose {len(report.unobservable):,} of the {n:,} unknowns of the robot's motion and forces do not "
            "follow from the readings; all of them do as soon as the memory is learned.",
        )
    if not report.is_observable:
        return Verdict(
            "no",
            "No, these sensors do not suffice",
            f"Whatever the pose, {len(report.unobservable):,} of the {n:,} unknowns of the robot's motion and forces "
            "do not follow from the readings.",
        )
    if report.numerical_rank < n:
        return Verdict(
            "no",
            "No, these sensors suffice on paper only",
            f"In exact arithmetic {unknowns} follow from the readings, but some of them so weakly that in double "
            f"precision they do not: there the rank is {report.numerical_rank:,} of {n:,}.",
        )
    if report.loses_rank or given or lacking:
        where = []
        if report.loses_rank:
            kinds = "kind" if len(report.loses_rank) == 1 else "kinds"
            where.append(f"{len(report.loses_rank)} {kinds} of special pose")
        if given:
            where.append(f"{given:,} of the {len(report.rank_at):,} given configurations")
        if conditioning is not None and lacking:
            where.append(f"{lacking:,} of the {len(conditioning.ranks):,} configurations looked at")
        return Verdict(
            "sometimes",
            "Yes, but not at every pose",
            f"At almost every pose {unknowns} follow from the readings; at {' and at '.join(where)} some do not.",
        )
    return Verdict("yes", "Yes, these sensors suffice", f"At almost every pose {unknowns} follow from the readings.")


def _reason(report: ObservabilityReport) -> str:
    """The reason in one sentence: how many equations there are, and how many of them count."""
    n = report.n_variables
    there = f"The equations of motion and of the sensors are {report.n_rows:,}, for {n:,} unknowns"
    if report.is_observable:
        return f"{there}; at almost every pose {n:,} of them are independent, as many as it takes."
    return f"{there}, but at most {report.generic_rank:,} of them are independent: {report.deficiency:,} too few."


def _line(part: UnobservableSubspace) -> UnseenLine:
    several = part.dimension > 1 and not part.words.startswith(f"{part.dimension} ")
    words = f"{part.words} ({part.dimension} independent)" if several else part.words
    return UnseenLine(words, tuple(map(str, part.vectors)))


def _advice(report: ObservabilityReport) -> Iterator[Advice]:
    """Yield what to add for almost every pose, and for the special poses as well."""
    for k, addition in enumerate(report.additions):
        at_once = report.suffices_over_time and not report.is_observable
        first = "To know all at once, add this." if at_once else "Add this."
        lead = "Or this, for the special poses as well." if k else first
        yield Advice(lead, _describe_addition(addition), tuple(_group_by_type(addition.others, "one of ")))
    if not report.suffices_over_time and not report.additions:
        given_up = f"So much is missing that the search for additions was given up after {MOST_LOOKS:,} steps."
        yield Advice("What to add?", given_up)


def _describe_addition(addition: Addition) -> str:
    what = list_names([*_group_by_type(addition.sensors, "each of ", most=None)])
    where = "also at the special poses that were looked at" if addition.at_poses else "at almost every pose"
    fewer = "" if addition.is_smallest else " Fewer may suffice."
    return f"{what[0].upper()}{what[1:]}: then everything is determined, {where}.{fewer}"


def _group_by_type(sensors: Iterable[Addable], several: str, most: int | None = SHOWN) -> Iterator[str]:
    """Yield sensors of one type together, with so many of their places: "a torque sensor in one of l_knee, r_knee"."""
    places: dict[str, list[str]] = {}
    for sensor in sensors:
        places.setdefault(sensor.type, []).append(sensor.place)
    for type_, own in places.items():
        yield f"{type_} {several if len(own) > 1 else ''}{list_names(own, most)}"


def _describe_pose(where: RankWhere, is_observable: bool) -> PoseLine:
    smallest = float(where.smallest.min(initial=1.0))
    nearly = smallest < NEARLY_SINGULAR
    if where.lost:
        links = [*dict.fromkeys(link for part in where.unseen for link in part.links)]
        joints = [*dict.fromkeys(joint for part in where.unseen for joint in part.joints)]
        moved = [f"the external wrenches on {list_names(links)}"] if links else []
        moved += [f"the accelerations of {list_names(joints)}"] if joints else []
        added = [*dict.fromkeys(name for part in where.unseen for name in part.added)]
        moved += [f"the forces {list_names(added)}"] if added else []
        further = "" if is_observable else "further "
        combinations = f"{where.lost} {further}combination{'' if where.lost == 1 else 's'}"
        outcome = f"{combinations} of {' and '.join(moved)} not determined"
        outcome += "" if where.always else ", at the worst"
        outcome += ", nearly one more" if nearly else ""
    else:
        outcome = "all determined" if is_observable else "nothing more lost"
        outcome += ", but only just" if nearly else ""
    level: Level = "no" if where.lost else "sometimes" if nearly else "yes"
    return PoseLine(where.meaning, level, outcome, number(smallest, 1))


def special_poses(said: Findings) -> Table:
    """Table of the rank at special poses."""
    rows = tuple((line.meaning, line.outcome, line.margin) for line in said.poses)
    levels = tuple(line.level for line in said.poses)
    return Table("Special poses", ("pose", "result", "margin"), rows, (MARGIN,), left=(0, 1), levels=levels)


def _given(report: ObservabilityReport) -> str:
    if not len(report.rank_at):
        return ""
    n = report.n_variables
    return describe_margins("configurations given", report.rank_at, report.smallest_at, report.generic_rank, n)


def _over_time(report: ObservabilityReport) -> LearnedFindings | None:
    found = report.over_time
    return None if found is None else over_time(found, report.system.tree, report.n_variables)


def _facts(report: ObservabilityReport) -> Iterator[tuple[str, str]]:
    tree = report.system.tree
    short = f", {report.deficiency:,} short" if report.deficiency else ""
    numerical = f"; {report.numerical_rank:,} in doubles" if report.numerical_rank < report.generic_rank else ""
    pattern = f"; the pattern would allow {report.structural_rank:,}" if report.deficiency else ""
    yield "robot", f"{unbroken(report.robot)}: {tree.n_links} links, {tree.nv} freedoms"
    yield "sensors", f"{unbroken(report.sensors)}: {report.system.ny:,} numbers read"
    yield "rank", f"{report.generic_rank:,} of {report.n_variables:,}{short}{numerical}{pattern}"
    if report.error is None:
        yield "numerical", f"all ranks, {_describe_looks(report)}"
    else:
        exact = f"the rank, wrong with a probability below {number(report.error, 1)}; poses are judged numerically"
        yield "exact", exact
    if report.over_time is not None:
        told = listed([f"{rank:,}" for rank in report.over_time.ranks], MOST_RANKS)
        yield "memory", f"{len(report.over_time.names):,} numbers; rank after 1, 2, ... poses: {told}"
    if report.repeated:
        yield "repeated", f"{listed(report.repeated)}: redundant wherever loops and couplings are closed"
    if report.skipped and report.system.tree.closing_parts:
        yield "left out", f"poses at which no loop is closed: {listed(report.skipped)}"


def _describe_looks(report: ObservabilityReport) -> str:
    """Where ranks were taken that are not exact, and how clearly they are told."""
    told = f"; the smallest singular value that counts is {number(report.gap, 1)} times the largest taken as zero"
    return f"at closed configurations of the loops and couplings{told if np.isfinite(report.gap) else ''}"


def by_variable(names: Iterable[str]) -> tuple[str, ...]:
    """Numbers of d by their variables, with how many where there are several, sources first.

    Names of links may have dots: only what is known to be of several numbers is taken together.
    """
    counts: dict[str, int] = {}
    for name in names:
        variable = name.rpartition(".")[0] if name.partition(":")[0] in OF_SEVERAL else name
        counts[variable] = counts.get(variable, 0) + 1
    order = sorted(counts, key=lambda variable: variable.partition(":")[0] in GIVEN)
    return tuple(f"{variable} ({counts[variable]})" if counts[variable] > 1 else variable for variable in order)


@dataclass(frozen=True, slots=True)
class Failures:
    """What the failure of sensors takes away.

    Attributes:
        words: how many may fail.
        critical: those that may not, and what is lost without each.
        together: sets of others that may not fail together.
        further: what else is said of sets, in one sentence.
    """

    words: str
    critical: tuple[tuple[str, tuple[str, ...]], ...]
    together: tuple[str, ...]
    further: str


def failures(found: Redundancy, wanted: Sequence[str] | None = None) -> Failures:
    """What the failure of sensors loses, in words.

    Args:
        found: which may fail.
        wanted: the outputs as they were asked for; those that were looked at when None.
    """
    outputs = listed(wanted or found.outputs, LISTED) or "the outputs"
    n, n_critical = len(found.sensors), len(found.critical)
    if not found.outputs:
        words = f"Nothing of {outputs} is determined, so nothing can be lost."
    elif n_critical == n:
        words = f"None of the {n:,} sensors may fail: without any one of them, some of {outputs} is lost."
    elif n_critical:
        words = f"Any one of {n - n_critical:,} of the {n:,} sensors may fail; {n_critical:,} may not."
    else:
        words = f"Any one of the {n:,} sensors may fail: {outputs} stays determined."
    together = tuple(_list_sets(found.failing_sets))
    further = ""
    if together:
        further = f"Of the others, these may not fail together (sets of up to {found.size}):"
    elif found.size > 1 and n_critical < n and found.outputs:
        further = f"Any {found.size} of these may also fail together."
    critical = tuple((name, by_variable(found.lost[name])) for name in found.critical)
    return Failures(words, critical, together, further)


def _list_sets(sets: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield sets of several sensors, those that differ in the last one only as one."""
    several = (failing for failing in sets if len(failing) > 1)
    for first, own in itertools.groupby(several, key=lambda failing: failing[:-1]):
        last = [failing[-1] for failing in own]
        yield " and ".join((*map(unbroken, first), f"{'any one of ' if len(last) > 1 else ''}{listed(last)}"))
