"""What an observability report says, in words, once: text, JSON and the page lay it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from nori_dyn.observe.null_space import Unseen
from nori_dyn.system.variables import SOURCES
from nori_dyn.tables import number

if TYPE_CHECKING:
    from nori_dyn.observe.conditioning import Conditioning
    from nori_dyn.observe.report import ObservabilityReport

NEARLY_SINGULAR = 1e-5
"""Smallest singular value, relative to the largest, below which a pose is called nearly singular."""

Level: TypeAlias = Literal["yes", "sometimes", "no"]

Margin: TypeAlias = Callable[[float], str]
"""How a margin is written."""


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
class PoseLine:
    """What becomes of the rank at special poses."""

    meaning: str
    level: Level
    outcome: str
    margin: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a report says.

    Attributes:
        verdict: whether the sensors suffice.
        reason: why, in one sentence.
        unseen: what they do not see, whatever the pose.
        undetermined: the variables that are not determined, with how many numbers where there are several: those that
            determine all others first.
        poses: what becomes of the rank at special poses.
        unseen_at_poses: what else they do not see there.
        lost: what the poses lose, explained.
        given: what became of the configurations that were given; "" where there are none.
    """

    verdict: Verdict
    reason: str
    unseen: tuple[UnseenLine, ...]
    undetermined: tuple[str, ...]
    poses: tuple[PoseLine, ...]
    unseen_at_poses: tuple[UnseenLine, ...]
    lost: str
    given: str


def margin_as_number(smallest: float) -> str:
    """Return a margin as text."""
    return number(smallest, 1)


def findings(
    report: ObservabilityReport, conditioning: Conditioning | None = None, margin: Margin = margin_as_number
) -> Findings:
    """Return what a report says.

    Args:
        report: the report.
        conditioning: what was found over many configurations, where they were looked at.
        margin: how a margin is written.
    """
    known = {part.words for part in report.unseen}
    at_poses = {part.words: part for c in report.loses_rank for part in c.unseen if part.words not in known}
    beside = ", beside those above" if report.unseen else ""
    return Findings(
        verdict=_verdict(report, conditioning),
        reason=_reason(report),
        unseen=tuple(map(_line, report.unseen)),
        undetermined=tuple(_by_variable(report.unobservable)),
        poses=tuple(_poses(report, margin)),
        unseen_at_poses=tuple(map(_line, at_poses.values())),
        lost=(
            f"What is lost are combinations of the unknowns that the sensors do not tell{beside}. Margin: how far the "
            f"pose is from losing one more, from 1 (far) to 0; below {margin(NEARLY_SINGULAR)} it is nearly singular."
        ),
        given=_given(report, margin),
    )


def _verdict(report: ObservabilityReport, conditioning: Conditioning | None) -> Verdict:
    n = report.n_variables
    unknowns = f"all {n:,} unknowns of the robot's motion and forces"
    lacking = 0 if conditioning is None else len(conditioning.lacking)
    given = int(np.sum(report.rank_at < n))
    if not report.is_observable:
        return Verdict(
            "no",
            "No, these sensors do not suffice",
            f"Whatever the pose, {len(report.unobservable):,} of the {n:,} unknowns of the robot's motion and forces "
            "cannot be told from the readings.",
        )
    if report.numerical_rank < n:
        return Verdict(
            "no",
            "No, these sensors suffice on paper only",
            f"Exact arithmetic would tell {unknowns} from the readings, but some of them by so little that a computer "
            f"cannot: in doubles the rank is {report.numerical_rank:,} of {n:,}.",
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
    """Return the reason in one sentence: how many equations there are, and how many of them count."""
    n = report.n_variables
    there = f"The equations of motion and of the sensors are {report.n_rows:,}, for {n:,} unknowns"
    if report.is_observable:
        return f"{there}; at almost every pose {n:,} of them are independent, as many as it takes."
    return f"{there}, but at most {report.generic_rank:,} of them are independent: {report.deficiency:,} too few."


def _line(part: Unseen) -> UnseenLine:
    several = part.dimension > 1 and not part.words.startswith(f"{part.dimension} ")
    words = f"{part.words} ({part.dimension} independent)" if several else part.words
    return UnseenLine(words, tuple(map(str, part.vectors)))


def _poses(report: ObservabilityReport, margin: Margin) -> Iterator[PoseLine]:
    for c in report.conditions:
        smallest = float(c.smallest.min(initial=1.0))
        nearly = smallest < NEARLY_SINGULAR
        outcome = f"{c.lost} combination{'' if c.lost == 1 else 's'} lost" if c.lost else "nothing lost"
        if c.lost and not c.always:
            outcome += ", at the worst"
        if nearly:
            outcome += ", nearly more" if c.lost else ", but nearly"
        level: Level = "no" if c.lost else "sometimes" if nearly else "yes"
        yield PoseLine(c.meaning, level, outcome, margin(smallest))


def _given(report: ObservabilityReport, margin: Margin) -> str:
    N = len(report.rank_at)
    if not N:
        return ""
    short = int(np.sum(report.rank_at < report.n_variables))
    nearly = int(np.sum(report.smallest_at < NEARLY_SINGULAR))
    return (
        f"Of the {N:,} configurations given, {few(short)} lack rank and {few(nearly)} are nearly singular; "
        f"the smallest margin is {margin(float(report.smallest_at.min()))}."
    )


def _by_variable(names: Iterable[str]) -> Iterator[str]:
    """Yield numbers of d by their variables, with how many where there are several.

    Names of links may have dots: only what is known to be of six numbers is taken together.
    """
    counts: dict[str, int] = {}
    for name in names:
        variable = name.rpartition(".")[0] if name.partition(":")[0] in ("a", "f", "fx") else name
        counts[variable] = counts.get(variable, 0) + 1
    for variable in sorted(counts, key=lambda variable: variable.partition(":")[0] not in SOURCES):
        yield f"{variable} ({counts[variable]})" if counts[variable] > 1 else variable


def few(n: int) -> str:
    """Return a number, or "none"."""
    return f"{n:,}" if n else "none"
