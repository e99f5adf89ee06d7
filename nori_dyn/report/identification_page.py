"""What the page of identified parameters says and draws; `templates/identification.html` lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.identification.curves import Curves
from nori_dyn.identification.findings import Identification
from nori_dyn.report.curves import Bins
from nori_dyn.report.log_page import BINS, BUDGET, EACH_BIN
from nori_dyn.report.shows.identification import (
    IN_SUMS,
    OPEN,
    by_unit,
    described_sum,
    facts,
    joint_table,
    least_identified,
    left_of,
    link_table,
    load_table,
    next_words,
    range_of,
    verdict,
    with_deviation,
    worst_table,
)
from nori_dyn.report.time_plots import Curve, DrawnPanel, Panel, Plots
from nori_dyn.tables import Table, number

SHOWN = 8
"""Most panels, and most combinations, that are shown at once."""

HOW = {"identified": "identified", "open": OPEN, "combined": IN_SUMS, "known": "known"}
"""What is said of how a parameter is identified."""


@dataclass(frozen=True, slots=True)
class IdentificationPage:
    """All that the page says.

    Attributes:
        robot: its name.
        level: "yes", or "sometimes" where something is odd.
        heading: how well it fits.
        sentences: what is identified in all.
        doubts: what is odd.
        fits: unit by unit.
        tables: parameters of joints and readings, of links, and of the load, where they were looked for.
        next: what to excite next.
        worst: the combinations that are identified least.
        parameters, combinations: all of them.
        facts: names and words.
        notes: what else there is to say.
        log: name of the log whose curves are drawn; "" where none are.
        first, others: its panels: those that are shown at once, and those that are unfolded.
        span: the time at the left and at the right.
        unit: of the time.
        ticks: labels along the time, and how far right they are, in percent.
    """

    robot: str
    level: str
    heading: str
    sentences: tuple[str, ...]
    doubts: tuple[str, ...]
    fits: tuple[Table, ...]
    tables: tuple[Table, ...]
    next: str
    worst: Table | None
    parameters: Table
    combinations: Table
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    log: str
    first: tuple[DrawnPanel, ...]
    others: tuple[DrawnPanel, ...]
    span: tuple[float, float]
    unit: str
    ticks: tuple[tuple[str, float], ...]


def identification_page(found: Identification) -> IdentificationPage:
    """Make the page of identified parameters; equal findings give equal pages."""
    curves = found.curves[-1] if found.curves else None
    plots, panels = (None, ()) if curves is None else _drawn(found, curves)
    words, lead = verdict(found)
    tables = (joint_table(found), link_table(found), load_table(found))
    return IdentificationPage(
        robot=found.problem.tree.name,
        level="sometimes" if found.doubts else "yes",
        heading=_heading(found),
        sentences=(f"{lead} {words}",),
        doubts=found.doubts,
        fits=tuple(_fit_tables(found)),
        tables=tuple(table for table in tables if table is not None),
        next=next_words(found),
        worst=_worst(found),
        parameters=_all_parameters(found),
        combinations=_all_combinations(found),
        facts=tuple(facts(found)),
        notes=found.remarks,
        log="" if curves is None else curves.log,
        first=panels[:SHOWN],
        others=panels[SHOWN:],
        span=(0.0, 1.0) if plots is None else plots.span,
        unit="" if curves is None else curves.unit,
        ticks=() if plots is None else plots.ticks,
    )


def _heading(found: Identification) -> str:
    """How large errors are, and how large they were, of the most common unit."""
    unit, fits = max(by_unit(found.fits).items(), key=lambda each: len(each[1]))
    before, after = range_of([fit.before for fit in fits]), range_of([fit.after for fit in fits])
    kept = [fit.held_out for fit in fits if fit.held_out is not None]
    if kept:
        return f"Errors of {range_of(kept)} {unit} on what was held out, {before} {unit} before"
    return f"Errors of {after} {unit} now, {before} {unit} before"


def _fit_tables(found: Identification) -> Iterator[Table]:
    """Yield the errors of the readings of each unit."""
    for unit, fits in by_unit(found.fits).items():
        rows = tuple((fit.name, fit.before, fit.after, fit.held_out, f"{fit.correlation:.4f}") for fit in fits)
        most = [max(fit.before, fit.after) or 1.0 for fit in fits]
        bars = tuple((fit.before / one, fit.after / one) for fit, one in zip(fits, most, strict=True))
        columns = (f"reading [{unit}]" if unit else "reading", "before", "found", "held out", "correlation")
        yield Table(f"Errors of readings in {unit}", columns, rows, bars=bars)


def _worst(found: Identification) -> Table | None:
    """The combinations that are identified least; None where there are none."""
    table = worst_table(found)
    if table is None:
        return None
    shown = least_identified(found)[:SHOWN]
    bars = tuple((min(each.left, 1.0),) for each in shown)
    rows, levels = tuple((described_sum(each), left_of(each)) for each in shown), ("low",) * len(shown)
    return replace(table, rows=rows, most=None, bars=bars, levels=levels)


def _all_parameters(found: Identification) -> Table:
    rows = tuple(
        (
            each.name,
            number(each.before),
            with_deviation(each.value, each.deviation) if each.how == "identified" else number(each.value),
            number(each.plain),
            each.unit,
            HOW[each.how],
        )
        for each in found.estimates
    )
    columns = ("parameter", "before", "found", "by least squares alone", "unit", "how")
    notes = (
        f"{IN_SUMS}: identified only together with others, and what is found is the nearest to the model that fits; "
        f"{OPEN}: the log says less of it than was known.",
    )
    return Table("All parameters", columns, rows, notes, left=(0, 4, 5))


def _all_combinations(found: Identification) -> Table:
    rows = tuple(
        (
            described_sum(each, None),
            number(each.before),
            with_deviation(each.value, each.deviation),
            each.unit,
            left_of(each),
        )
        for each in found.combinations
    )
    return Table("All combinations", ("combination", "before", "found", "unit", "left"), rows, left=(0, 3))


def _drawn(found: Identification, curves: Curves) -> tuple[Plots, tuple[DrawnPanel, ...]]:
    """The time that panels share, and a panel of each reading: as read, before, and as found."""
    n = max(len(found.fits), 1)
    count = int(np.clip(BUDGET / (EACH_BIN * 3 * n), *BINS))
    step = float(np.median(np.diff(curves.t))) if len(curves.t) > 1 else 1.0
    breaks = np.flatnonzero(np.diff(curves.t) > 5 * step)
    plots = Plots(Bins.of(curves.t, count, breaks))
    return plots, tuple(plots.drawn(panel) for panel in _panels(found, curves))


def _panels(found: Identification, curves: Curves) -> Sequence[Panel]:
    drawn = zip(found.fits, curves.read, curves.before, curves.found, strict=True)
    return [
        Panel(
            fit.name,
            fit.unit,
            (
                Curve("by the model", before, mark="c1"),
                Curve("found", after, mark="c0"),
                Curve("read", read, mark="c0 measured"),
            ),
        )
        for fit, read, before, after in drawn
    ]
