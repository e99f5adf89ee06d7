"""Logs that were run through an estimator: what was estimated, what was left out, and what came of many logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from nori_dyn.logs.clock import NO_TIME
from nori_dyn.logs.report import LogReport
from nori_dyn.report.shows.trackers import summary_document
from nori_dyn.tables import Cell, Document, Table, attributes, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.many_logs import LogOutcome  # which loads what starts processes


def log_report_document(report: LogReport, log: str = "the log") -> Document:
    """The document of a log that was run, by the name that it goes by."""
    return Document(
        (*_sentences(report, log), *(summary_document(report.summary).parts if report.summary else ())),
        _figures(report),
    )


def _sentences(report: LogReport, log: str) -> Iterator[str]:
    rates = sum(name.startswith("qd:") for name in report.counts.differentiated)
    kinds = (rates, "velocities"), (len(report.counts.differentiated) - rates, "accelerations")
    made = " and ".join(f"{n} {what}" for n, what in kinds if n)
    derived = f", {made} {report.counts.made_by or 'by differentiating'}" if made else ""
    derived += f", {len(report.counts.deflected)} deflections of the positions" if report.counts.deflected else ""
    worst, residual = report.largest_residual, ""
    each = 1e6 * report.seconds / max(report.samples, 1)
    if worst is not None:
        residual = f" Largest relative residual {number(worst, 2)}."
    elif report.summary is None:
        residual = " The residual is not computed, as the plan leaves out a part of the unknowns."
    yield (
        f"{report.samples:,} samples{derived}, backend {report.backend}: {number(each)} us a sample, after "
        f"{number(report.preparing, 2)} s to compile or load.{residual} {report.fell_back:,} fell back to pivoting."
    )
    if report.counts.ignored:
        yield f"Mapped, but not read by these sensors: {', '.join(map(unbroken, report.counts.ignored))}."
    if report.counts.unused:
        yield f"Not used of {log}: {', '.join(map(unbroken, report.counts.unused))}."


def report_warnings(report: LogReport) -> Iterator[str]:
    """Yield what people should know besides: what was left out, dropped, singular, and out of order."""
    if report.dropped:
        shown = ", ".join(f"'{name}' {times}" for name, times in report.dropped.items())
        yield f"dropped, of {report.samples} samples: {shown}"
    yield from notes_on_streams(report)
    if report.n_singular:
        first = report.singular[0]
        yield f"singular (nan): {report.n_singular} of {report.samples} samples, the first is {first}"


def notes_on_streams(report: LogReport) -> Iterator[str]:
    """Yield which samples of the log were left out, repeated, or out of order, and where it has gaps."""
    for reason, n in report.counts.left_out.items():
        yield f"left out: {n:,} samples {reason}"
    for name, stream in report.counts.streams.items():
        what = f"stream {name}" if name else "the log"
        odd = [
            f"{n:,} {words}"
            for n, words in (
                (0 if NO_TIME in report.counts.left_out else stream.wrong, NO_TIME),
                (stream.repeated, "at a repeated time"),
                (stream.backwards, "at a time before an earlier sample"),
                (stream.gaps, f"gaps, the longest {number(stream.longest, 3)} s"),
            )
            if n
        ]
        if odd:
            yield f"of {stream.samples:,} samples of {what}: {', '.join(odd)}"


def outcomes_document(outcomes: Sequence[LogOutcome]) -> Document:
    """The document of many logs, a row each."""
    rows: list[tuple[Cell, ...]] = []
    figures: list[dict[str, object]] = []
    for each in outcomes:
        log, report = str(each.log), each.report
        if each.error:
            figures.append({"log": log, "error": each.error})
        else:
            figures.append(
                {"log": log, "out": str(each.out), "was_there": report is None, **(_figures(report) if report else {})}
            )
        if report is None:
            rows.append((unbroken(log), *(None,) * 5, "failed" if each.error else "was there"))
            continue
        left_out, dropped = sum(report.counts.left_out.values()), sum(report.dropped.values())
        notes = ", ".join(dict.fromkeys(doubt.check for doubt in report.doubts))
        counts = (f"{report.samples:,}", f"{left_out:,}", f"{dropped:,}", f"{report.fell_back:,}")
        rows.append((unbroken(log), *counts, report.largest_residual, f"doubts: {notes}" if notes else ""))
    columns = ("log", "samples", "left out", "dropped", "fell back", "largest residual", "")
    return Document((Table("", columns, tuple(rows), left=(0, 6)),), {"logs": figures})


def _figures(report: LogReport) -> dict[str, object]:
    return {
        **attributes(report, "samples", "backend", "seconds", "largest_residual", "fell_back", "n_singular"),
        **attributes(report, "singular", "dropped"),
        "preparing_seconds": report.preparing,
        **attributes(report.counts, "differentiated", "deflected", "left_out", "ignored", "unused"),
        "differentiated_by": report.counts.made_by,
        "streams": {
            name: {k: v for k, v in asdict(stream).items() if k != "last"}
            for name, stream in report.counts.streams.items()
        },
        "warnings": [asdict(doubt) for doubt in report.doubts],
        **({} if report.summary is None else report.summary.to_dict()),
    }
