"""What `print` shows of reports, of what was found over the workspace, and of sensors that may fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nori_dyn.observe.findings import NEARLY_SINGULAR, few, findings, margin_as_number
from nori_dyn.tables import Bullets, Document, Facts, Paragraph, Part, Table, listed, number, unbroken
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    from nori_dyn.observe.conditioning import Conditioning
    from nori_dyn.observe.redundancy import Redundancy
    from nori_dyn.observe.report import ObservabilityReport

SHOWN = 6
"""Most names, and lines of a table, that are listed where lines have a width."""

WORST_SHOWN = 5
"""Most poses that are listed as the worst."""

FEW = 7
"""Most numbers of q that are printed in a line."""


def report_document(report: ObservabilityReport, found: Conditioning | None = None) -> Document:
    """Return what is shown of a report: the verdict, why, what is not determined, and the special poses.

    Args:
        report: the report.
        found: what was found over the workspace, where it was looked at.
    """
    said = findings(report, found)
    rank = f"{report.generic_rank:,} of {report.n_variables:,}"
    numerical = f"; {report.numerical_rank:,} in doubles" if report.numerical_rank < report.generic_rank else ""
    facts = (
        ("robot", unbroken(report.robot)),
        ("sensors", unbroken(report.sensors)),
        ("rank", f"{rank}, {report.deficiency:,} short{numerical}" if report.deficiency else f"{rank}{numerical}"),
        ("why", said.reason),
        ("exact", f"the verdict, but for a chance of {number(report.error, 1)}; what is said of poses is numerical"),
    )
    parts: list[Part | str] = [Paragraph(said.verdict.words, f"{said.verdict.heading}."), Facts(facts)]
    if said.unseen:
        parts.append(Bullets(tuple(line.words for line in said.unseen), "What the sensors do not see:"))
        parts.append(f"Not determined: {listed(said.undetermined, SHOWN)}.")
    if said.poses:
        rows = tuple((line.meaning, line.outcome, line.margin) for line in said.poses)
        parts.append(Table("Special poses", ("pose", "result", "margin"), rows, (said.lost,), left=(0, 1)))
    if said.unseen_at_poses:
        also = "also " if said.unseen else ""
        title = f"What the sensors {also}do not see at special poses:"
        parts.append(Bullets(tuple(line.words for line in said.unseen_at_poses), title))
    return Document((*parts, *((said.given,) if said.given else ())))


def conditioning_document(
    found: Conditioning, poses: str = "configurations", rank: int | None = None, title: str = ""
) -> Document:
    """Return what is shown of what was found over the workspace: margins, the worst poses, expected deviations.

    Args:
        found: what was found.
        poses: what the configurations are, in words.
        rank: the rank at almost every pose; the largest that was found when None.
        title: what it is.
    """
    N, lacking = len(found.ranks), len(found.lacking)
    rank = int(found.ranks.max()) if rank is None else rank
    parts: list[Part | str] = []
    if rank < found.n_variables:
        further = few(int(np.sum(found.ranks < rank)))
        said = f"All of {N:,} {poses} lack rank, as almost every pose does; {further} lack more than most."
        parts.append(Paragraph(said, title))
    else:
        nearly = int(np.sum(found.smallest < NEARLY_SINGULAR)) - lacking
        median, worst = margin_as_number(float(np.median(found.smallest))), margin_as_number(found.smallest.min())
        said = f"Of {N:,} {poses}, {few(lacking)} lack rank and {few(nearly)} are nearly singular. The margin is "
        parts += [Paragraph(f"{said}{median} at the median and {worst} at the worst.", title), _worst_poses(found)]
    if found.sigma is None:
        parts.append("No sensor has a sigma: give them one, and what their noise does to the outputs is shown here.")
    return Document((*parts, *_deviations(found)))


def _worst_poses(found: Conditioning) -> Table:
    is_short = found.configurations.shape[1] <= FEW
    rows = []
    for k in found.worst.tolist():
        q = " ".join(f"{x:.2f}" for x in found.configurations[k])
        short = int(found.n_variables - found.ranks[k])
        rows.append((str(k), short, margin_as_number(found.smallest[k]), *((q,) * is_short)))
    notes = (
        "Poses are counted from 0. short: how many combinations of the unknowns the sensors do not tell there. margin: "
        f"from 1, far from losing one more, to 0; below {margin_as_number(NEARLY_SINGULAR)} a pose is nearly singular.",
    )
    columns = ("pose", "short", "margin", *(("q",) * is_short))
    return Table("Worst poses", columns, tuple(rows), notes, most=WORST_SHOWN)


def _deviations(found: Conditioning) -> Iterator[Part | str]:
    medians, worsts = found.median_sigma, found.worst_sigma
    if medians is None or worsts is None:
        return
    first, others = _largest(worsts, medians, found.units)
    rows = [(unbroken(found.outputs[k]), _figure(medians[k]), _figure(worsts[k]), found.units[k]) for k in first]
    rows += [(unbroken(found.outputs[k]), _figure(medians[k]), _figure(worsts[k]), found.units[k]) for k in others]
    known, lost = int(np.sum(worsts == 0.0)), int(np.sum(np.isinf(medians)))
    rest = [f"{known:,} known exactly" if known else "", f"{lost:,} not determined at most poses" if lost else ""]
    further = f" Further outputs: {', '.join(filter(None, rest))}." if any(rest) else ""
    note = "From the sigmas of the sensors, over these poses" + (", the largest first." if rows else ".") + further
    if not rows:
        yield note
        return
    columns = ("output", "median", "worst", "unit")
    yield Table("Expected standard deviations", columns, tuple(rows), (note,), left=(0, 3), most=len(first))


def _largest(worsts: Floats, medians: Floats, units: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the numbers of the outputs whose deviations are largest, unit by unit, and of the others."""
    shown = (worsts > 0) & np.isfinite(medians)
    kinds = [*dict.fromkeys(unit for unit, is_shown in zip(units, shown, strict=True) if is_shown)]
    first: list[int] = []
    others: list[int] = []
    for kind in kinds:
        own = [k for k, unit in enumerate(units) if unit == kind and shown[k]]
        own.sort(key=lambda k: (-worsts[k], -medians[k]))
        some = max(2, SHOWN // len(kinds))
        first += own[:some]
        others += own[some:]
    return first, others


def _figure(value: float) -> str:
    return number(value, 2) if np.isfinite(value) else "unknown"


def redundancy_document(found: Redundancy, wanted: Sequence[str] | None = None, title: str = "") -> Document:
    """Return what is shown of sensors that may fail.

    Args:
        found: which may.
        wanted: the outputs as they were asked for; those that were looked at when None.
        title: what it is.
    """
    outputs = listed(wanted or found.outputs, SHOWN) or "the outputs"
    n, critical = len(found.sensors), len(found.critical)
    parts: list[Part | str] = []
    if not found.outputs:
        parts.append(Paragraph(f"None of {outputs} is determined: there is nothing to lose.", title))
    elif critical == n:
        said = f"None of the {n:,} sensors may fail: without any one, some of {outputs} is lost."
        parts.append(Paragraph(said, title))
    elif critical:
        parts.append(Paragraph(f"Any one of {n - critical:,} of the {n:,} sensors may fail.", title))
        bullets = (f"{unbroken(name)}: {listed(found.lost[name], 2)}" for name in found.critical)
        parts.append(Bullets(tuple(bullets), f"{critical:,} may not, and each takes with it:", SHOWN))
    else:
        parts.append(Paragraph(f"Any one of the {n:,} sensors may fail: {outputs} stays determined.", title))
    together = [failing for failing in found.failing_sets if len(failing) > 1]
    if together:
        sets = tuple(" and ".join(map(unbroken, failing)) for failing in together)
        parts.append(Bullets(sets, f"These sets of up to {found.size} may not fail together either:", SHOWN))
    elif found.size > 1 and critical < n and found.outputs:
        parts.append(f"Nothing is lost by {found.size} of these together either.")
    return Document(tuple(parts))
