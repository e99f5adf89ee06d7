"""Findings as tables: one of all, and for each data set one with the numbers of every component."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.real.finding import Figure, Finding
from nori_dyn.tables import Document, Paragraph, Table, number

OVERVIEW = ("data", "estimated", "held against", "rms error", "spread of what was measured", "correlation")

DIGITS = 4
"""Digits of figures that stand for themselves."""

Findings = Sequence[Finding | Figure]


def overview(found: Iterable[Findings]) -> Table:
    """The table of all data sets: a row a finding, with the range of its components."""
    rows = []
    for findings in found:
        for one in (one for one in findings if isinstance(one, Finding) and not one.is_detail):
            parts = [[k for k, unit in enumerate(one.units) if unit == each] for each in dict.fromkeys(one.units)]
            cells = [
                "; ".join(_range(values, part, one.units[part[0]]) for part in parts)
                for values in (one.rms, one.spread)
            ]
            correlation = _range(one.correlation, range(len(one.components)), "", _correlation)
            rows.append((one.data, one.estimated, one.against, *cells, correlation))
    return Table("Real robots", OVERVIEW, tuple(rows), left=(0, 1, 2))


def details(findings: Findings) -> list[Table]:
    """The tables of a data set: of findings with the same components one, and one of single figures."""
    tables = []
    groups = dict.fromkeys((one.components, one.units) for one in findings if isinstance(one, Finding))
    for components, units in groups:
        own = [
            one for one in findings if isinstance(one, Finding) and (one.components, one.units) == (components, units)
        ]
        heads = [f"{name} [{unit}]" if unit else name for name, unit in zip(components, units, strict=True)]
        columns = ("rms error (correlation)", "held against", *heads)
        rows: list[tuple[str, ...]] = []
        for one in own:
            cells = [f"{number(r, 2)} ({_correlation(c)})" for r, c in zip(one.rms, one.correlation, strict=True)]
            rows.append((one.estimated, one.against, *cells))
            spread = ("spread of what was measured", "", *(number(s, 2) for s in one.spread))
            last = own[-1] is one
            if last or own[own.index(one) + 1].spread != one.spread:
                rows.append(spread)
        tables.append(Table("", columns, tuple(rows), left=(0, 1)))
    figures = [one for one in findings if isinstance(one, Figure)]
    if figures:
        rows = [
            (
                f.what,
                f"{number(f.value, DIGITS)}{_deviation(f)} {f.unit}".strip(),
                "" if math.isnan(f.expected) else f"{number(f.expected, DIGITS)} {f.unit}".strip(),
            )
            for f in figures
        ]
        tables.append(Table("", ("figure", "found", "expected"), tuple(rows)))
    return tables


def document(title: str, findings: Findings) -> Document:
    """What is printed of a data set."""
    return Document((Paragraph(title), *details(findings)))


def _deviation(figure: Figure) -> str:
    return "" if math.isnan(figure.deviation) else f" ± {number(figure.deviation, 2)}"


def _range(values: Sequence[float], chosen: Iterable[int], unit: str, text: object = None) -> str:
    """The least and the largest of some values."""
    write = _correlation if text is not None else (lambda x: number(x, 2))
    ends = [write(x) for x in (min(values[k] for k in chosen), max(values[k] for k in chosen))]
    said = " to ".join(dict.fromkeys(ends))
    return f"{said} {unit}".strip()


def _correlation(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
