"""What `print` shows of reports, of what was found over the workspace, and of sensors that may fail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.learned import Learned
from nori_dyn.observe.null_space import UnobservableSubspace
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.observe.touches import AT_A_POINT, TouchedLink, TouchObservability
from nori_dyn.report import findings
from nori_dyn.report.layout import Verdict
from nori_dyn.tables import (
    Bullets,
    Document,
    Facts,
    Paragraph,
    Part,
    Table,
    attributes,
    listed,
    number,
    spaced,
    unbroken,
)

WORST_SHOWN = 5
"""Most poses that are listed as the worst."""

FEW = 7
"""Most numbers of q that are printed in a line."""

MOST_NAMED = 12
"""Most outputs that are named in a sentence."""

MOST_LINKS = 6
"""Links that are listed in a sentence, or a cell."""

DEVIATIONS = "Expected standard deviations"


def observability_report_document(
    report: ObservabilityReport, found: Conditioning | None = None, is_given: bool = False
) -> Document:
    """The document of a report: the verdict, what to add, why, what is not determined, and the special poses.

    Args:
        report: the report.
        found: what was found over the workspace, where it was looked at.
        is_given: whether that is at configurations that were given.
    """
    answer, learned = findings.verdict(report, found), report.over_time
    words, *accuracy = answer.sentences
    parts: list[Part | str] = [Paragraph(words, f"{answer.heading}."), *accuracy]
    if learned is not None:
        parts.append(Paragraph(findings.memory_words(learned, report.n_variables), "Over time."))
    parts += [part for own in findings.advice(report) for part in own]
    parts.append(Facts((("why", findings.reason(report)), *findings.facts(report))))
    if report.unseen:
        parts.append(Bullets(tuple(map(findings.describe_unseen, report.unseen)), "Unobservable:"))
        parts.append(f"Not determined: {listed(findings.by_variable(report.unobservable), findings.LISTED)}.")
    if learned is not None:
        parts += [*findings.memory_lists(learned), " ".join(findings.memory_notes(learned, report.system.tree))]
    if report.conditions:
        parts.append(findings.special_poses(report))
    if at_poses := tuple(map(findings.describe_unseen, findings.unseen_at_poses(report))):
        parts.append(Bullets(at_poses, f"{'Also u' if report.unseen else 'U'}nobservable at special poses:"))
    given, note = findings.describe_given(report), report.system.note_on_offsets
    parts += [*([given] if given else []), *([f"note: {note}"] if note else [])]
    figures = {**_report_figures(report, answer), "rank_at": [], "margin_at": []}
    if found is not None and is_given:
        figures |= {"rank_at": found.ranks.tolist(), "margin_at": found.smallest.tolist()}
    return Document(tuple(parts), figures)


def _report_figures(report: ObservabilityReport, answer: Verdict) -> dict[str, Any]:
    return {
        "verdict": {"level": answer.level, "heading": answer.heading, "words": answer.sentences[0]},
        "additions": [
            {
                "words": findings.describe_addition(addition),
                **attributes(addition, "at_poses", "is_smallest"),
                "sensors": [dict(sensor.entry) for sensor in addition.sensors],
                "others": [dict(sensor.entry) for sensor in addition.others],
            }
            for addition in report.additions
        ],
        "reason": findings.reason(report),
        "rows": report.n_rows,
        "variables": report.n_variables,
        **attributes(report, "sensors", "is_observable", "generic_rank", "structural_rank", "numerical_rank"),
        **attributes(report, "deficiency", "error", "gap", "unobservable", "repeated", "skipped"),
        "asked": {name: [each for each in own if each in report.unobservable] for name, own in report.asked.items()},
        "unseen": _unseen(report.unseen),
        "conditions": [
            {
                **attributes(c, "condition", "frames", "ranks", "lost", "configurations"),
                "margins": c.smallest.tolist(),
                "outcome": outcome,
                "unseen": _unseen(c.unseen),
            }
            for c, (_, outcome, _) in zip(report.conditions, findings.special_poses(report).rows, strict=True)
        ],
        "over_time": None if report.over_time is None else _over_time_figures(report.over_time, report.n_variables),
    }


def _over_time_figures(found: Learned, n_variables: int) -> dict[str, Any]:
    """Figures of what is learned over time; factors of a sum that depend on the poses are null."""
    return {
        "words": findings.memory_words(found, n_variables),
        "lines": [spaced(line) for line in next(findings.memory_lists(found)).items],
        **attributes(found, "ranks", "states", "untold", "undetermined", "undetermined_at_first", "error", "gap"),
        "seen_after": dict(zip(found.names, (after or None for after in found.seen_after), strict=True)),
        "sums": [{name: factor or None for name, factor in each.terms.items()} for each in found.sums],
        "needs": asdict(found.needs),
    }


def _unseen(parts: Sequence[UnobservableSubspace]) -> list[dict[str, Any]]:
    return [
        {
            **attributes(part, "words", "dimension", "links", "joints", "added"),
            "vectors": [dict(vector.coefficients) for vector in part.vectors],
        }
        for part in parts
    ]


def conditioning_document(found: Conditioning, rank: int | None = None, title: str = "") -> Document:
    """The document of conditioning over the workspace: margins, the worst poses, expected deviations.

    Args:
        found: what was found.
        rank: the rank at almost every pose; the largest that was found when None.
        title: what it is.
    """
    rank = int(found.ranks.max()) if rank is None else rank
    words = findings.describe_margins(found.poses, found.ranks, found.smallest, rank, found.n_variables)
    parts: list[Part | str] = [Paragraph(words, title)]
    if rank == found.n_variables:
        parts.append(_worst_poses(found))
    return Document((*parts, *deviations_parts(found)), _conditioning_figures(found))


def _conditioning_figures(found: Conditioning) -> dict[str, Any]:
    medians, worsts = found.median_sigma, found.worst_sigma
    deviations = None
    if found.sigma is not None and medians is not None and worsts is not None:
        worst_poses = found.sigma.argmax(axis=0).tolist()
        sizes = attributes(found, "median_sigma", "worst_sigma").values()
        names = ("output", "unit", "median", "worst", "worst_pose")
        columns = zip(found.outputs, found.units, *sizes, worst_poses, strict=True)
        deviations = [dict(zip(names, row, strict=True)) for row in columns]
    return {
        "poses": len(found.ranks),
        "lacking_rank": len(found.lacking),
        "nearly_singular": int(np.sum(found.smallest < findings.NEARLY_SINGULAR)) - len(found.lacking),
        "median_margin": float(np.median(found.smallest)),
        "worst_margin": float(found.smallest.min()),
        **attributes(found, "worst", "ranks", "sigma", "configurations"),
        "known_least": spaced(findings.describe_worst(found)),
        "deviations": deviations,
        "margins": found.smallest.tolist(),
    }


def _worst_poses(found: Conditioning) -> Table:
    is_short = found.configurations.shape[1] <= FEW
    rows = []
    for k in found.worst.tolist():
        q = " ".join(f"{x:.2f}" for x in found.configurations[k])
        short = int(found.n_variables - found.ranks[k])
        rows.append((str(k), short, number(found.smallest[k], 1), *((q,) * is_short)))
    notes = (
        "Poses are counted from 0. missing: how many combinations of the unknowns the sensors do not tell there.",
        findings.MARGIN,
    )
    columns = ("pose", "missing", "margin", *(("q",) * is_short))
    return Table("Worst poses", columns, tuple(rows), notes, most=WORST_SHOWN)


def deviations_parts(found: Conditioning, most: int | None = None) -> Iterator[Part | str]:
    """Yield what is shown of expected deviations: of each unit so many outputs that are known least first."""
    if found.sigma is None:
        yield findings.NO_SIGMA
        return
    by_unit, rows = findings.deviations_of(found), []
    for unit, own in by_unit.items():  # bars are shares of the largest of the unit
        known = [one for one in own if one.is_known]
        largest = max((one.worst for one in known if one.worst < math.inf), default=1.0)
        rows.append([(_deviation_row(one, unit), tuple(min(x / largest, 1.0) for x in one.sizes)) for one in known])
    most = most or max(2, findings.LISTED // max(1, sum(map(bool, rows))))
    first, others = [row for own in rows for row in own[:most]], [row for own in rows for row in own[most:]]
    note = f"From the sigmas of the sensors, over {len(found.ranks):,} {found.poses}."
    for words, at, size in (("Known exactly", 0, 0.0), ("Not determined at most poses", 1, math.inf)):
        names = [one.output for own in by_unit.values() for one in own if one.sizes[at] == size]
        note += f" {words}: {listed(names, MOST_NAMED)}." if names else ""
    if not first:
        yield note
        return
    columns = ("output", "at the worst", "at the median", "unit", "worst pose")
    cells, bars = zip(*first, *others, strict=True)
    yield Table(DEVIATIONS, columns, cells, (note,), left=(0, 3), most=len(first), bars=bars)


def _deviation_row(one: findings.Deviation, unit: str) -> tuple[str, ...]:
    worst, median = map(findings.format_deviation, one.sizes)
    return unbroken(one.output), worst, median, unit, str(one.pose)


def redundancy_document(found: Redundancy, wanted: Sequence[str] | None = None, title: str = "") -> Document:
    """The document of redundancy: which sensors may fail.

    Args:
        found: which may.
        wanted: the outputs as they were asked for; those that were looked at when None.
        title: what it is.
    """
    words, together = findings.describe_failures(found, wanted), findings.failing_together(found)
    parts: list[Part | str] = [Paragraph(words, title)]
    if found.critical and len(found.critical) < len(found.sensors):
        bullets = tuple(f"{unbroken(name)}: {listed(lost, 2)}" for name, lost in findings.lost_without(found))
        parts.append(Bullets(bullets, "Lost without each of those that may not:", findings.LISTED))
    parts += [together] if together else []
    figures = {
        "words": spaced(words),
        **attributes(found, "outputs", "undetermined", "sensors", "failing_sets", "size"),
        "critical": {name: list(found.lost[name]) for name in found.critical},
    }
    return Document(tuple(parts), figures)


def touch_observability_document(found: TouchObservability) -> Document:
    """The document of what sensors tell of touches."""
    n, localized = len(found.links), found.localized
    words = [
        f"Sensors '{found.sensors}' determine force and line of action of a touch on "
        + ("each link." if len(localized) == n else f"{listed(localized, MOST_LINKS)}." if localized else "no link.")
    ]
    groups = {frozenset((one.link, *one.same)): None for one in found.links if one.same}
    apart = [f"No reading tells apart: {listed(sorted(group), MOST_LINKS)}." for group in groups]
    words += apart or ["All links are distinguished, but by touches that read alike by coincidence."]
    columns = ("link", "of 6 numbers", "a force at a point", "each touch reads like some on")
    rows = tuple((one.link, str(one.rank), _told(one), listed(one.like, MOST_LINKS) or "none") for one in found.links)
    note = f"At almost every pose; wrong with a probability below {number(found.error, 1)}."
    figures = {
        **attributes(found, "robot", "sensors", "localized", "suffices", "error"),
        "links": [attributes(one, "link", "rank", "like", "same") for one in found.links],
    }
    return Document(
        (Paragraph(" ".join(words), "Touches"), Table("By link", columns, rows, (note,), left=(0, 2, 3))), figures
    )


def _told(one: TouchedLink) -> str:
    if one.is_localized:
        return "with its line of action"
    return f"but for {AT_A_POINT - one.rank} of {AT_A_POINT}" if one.rank else "not at all"
