"""The page of identified parameters: which parts and plots, in which sections."""

from __future__ import annotations

from collections.abc import Sequence

from nori_dyn.identification.findings import Identification
from nori_dyn.identification.fits import Curves
from nori_dyn.report.layout import Box, Fold, Note, Page, PagePart, Section, Verdict, side_by_side
from nori_dyn.report.shows import identification as shown
from nori_dyn.report.time_plots import Curve, Panel, Plots
from nori_dyn.tables import Bullets, Facts, Table, number

SHOWN = 8
"""Most panels, and most combinations, that are shown at once."""

PREDICTED = "Readings as dots, with the predictions of the original and of the identified model."

HOW = {"identified": "identified", "open": shown.OPEN, "combined": shown.IN_SUMS, "known": "known"}
"""How a parameter is identified, in words."""


def identification_page(found: Identification) -> Page:
    """Make the page of identified parameters; equal findings give equal pages."""
    robot, curves = found.problem.tree.name, found.curves[-1] if found.curves else None
    words, lead = shown.verdict(found)
    answer = Verdict("sometimes" if found.doubts else "yes", _heading(found), (f"{lead} {words}",))
    worst = shown.worst_table(found)
    notes = [Bullets(found.remarks)] if found.remarks else []
    first = (
        Section("Fit", (shown.fit_table(found.fits),), "fit"),
        Section("What to excite next", (shown.next_words(found), *([worst] if worst else [])), "next"),
        Section("Facts", (Facts(tuple(shown.facts(found))), *notes), "facts"),
    )
    second = (Section(own.title, (own,), f"table{k}") for k, own in enumerate(shown.tables(found), 1))
    doubts = Section("Look at this first", (Bullets(found.doubts),), "doubts", "advice")
    parts: list[PagePart] = [*([doubts] if found.doubts else []), Box(first, "column"), Box(tuple(second), "column")]
    plots = None if curves is None else Plots.of(curves.t, 3 * len(found.fits))
    if curves is not None and plots is not None:
        title = f"Measured and predicted: {curves.log}"
        parts.append(Section(title, (Note(PREDICTED), *side_by_side(_panels(found, curves), SHOWN)), "curves", "plots"))
    every = (_all_combinations(found), _all_parameters(found))
    folds = tuple(Fold(f"{own.title}: {len(own.rows)}", (own,)) for own in every)
    parts.append(Section("Everything", folds, "all", "plots"))
    about = ("The parameters of ", robot, ", identified from its logs")
    unit = "" if curves is None else curves.unit
    return Page(f"{answer.heading}: {robot}", about, answer, tuple(parts), plots, unit)


def _heading(found: Identification) -> str:
    """How large errors are, and how large they were, of the most common unit."""
    unit, fits = max(shown.by_unit(found.fits).items(), key=lambda each: len(each[1]))
    before, after = shown.range_of([fit.before for fit in fits]), shown.range_of([fit.after for fit in fits])
    kept = [fit.held_out for fit in fits if fit.held_out is not None]
    if kept:
        return f"Errors of {shown.range_of(kept)} {unit} on what was held out, {before} {unit} before"
    return f"Errors of {after} {unit} now, {before} {unit} before"


def _all_parameters(found: Identification) -> Table:
    rows = tuple(
        (
            each.name,
            number(each.before),
            shown.with_deviation(each.value, each.deviation) if each.how == "identified" else number(each.value),
            number(each.plain),
            each.unit,
            HOW[each.how],
        )
        for each in found.estimates
    )
    columns = ("parameter", "before", "found", "by least squares alone", "unit", "how")
    notes = (
        f"{shown.IN_SUMS}: identified only together with others, and what is found is the nearest to the model that "
        f"fits; {shown.OPEN}: the log says less of it than was known.",
    )
    return Table("All parameters", columns, rows, notes, left=(0, 4, 5))


def _all_combinations(found: Identification) -> Table:
    rows = tuple(
        (
            shown.described_sum(each, None),
            number(each.before),
            shown.with_deviation(each.value, each.deviation),
            each.unit,
            shown.left_of(each),
        )
        for each in found.combinations
    )
    return Table("All combinations", ("combination", "before", "found", "unit", "left"), rows, left=(0, 3))


def _panels(found: Identification, curves: Curves) -> Sequence[Panel]:
    """A panel of each reading: as read, by the model before, and as found."""
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
