"""Sensors that were chosen, in words: what they cost, whether anything is better, and how exact the outputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.layout import Verdict
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.report.workspace import describe_worst
from nori_dyn.tables import Document, Paragraph, Part, Table, listed, number, shows, unbroken

SHOWN = 8
"""Most outputs that are named in a sentence."""


def verdict(found: Placement | Design) -> Verdict:
    """How many sensors, and for what; whether anything is better, what they determine, and how exactly."""
    if isinstance(found, Placement):
        is_best, heading = found.is_optimal, f"{_sensors(found)} for {found.cost:,g}"
        better = "the cheapest possible" if is_best else f"the cheapest costs at least {number(found.bound)}"
        outputs = "everything" if found.outputs == ("all",) else listed(found.outputs, SHOWN)
        purpose = f"They determine {outputs} at almost every pose."
    else:
        what = "sum of variances" if found.criterion == "A" else "determinant of the covariance"
        is_best, heading = found.gap == 0, f"{_sensors(found)} of the least {what}"
        better = "no choice is better" if is_best else f"no choice has deviations more than {found.gap:.1%} smaller"
        purpose = f"They cost {found.cost:,g}."
    return Verdict("yes" if is_best else "sometimes", heading, (better, purpose, describe_worst(found.bought.expected)))


def _sensors(found: Placement | Design) -> str:
    return "1 sensor" if len(found.chosen) == 1 else f"{len(found.chosen):,} sensors"


def chosen_table(found: Placement | Design) -> Table:
    """The sensors with their costs, and what could be had instead of each where that is known."""
    rows = tuple((unbroken(name), f"{cost:,g}") for name, cost in found.costs.items())
    exchanges = found.exchanges if isinstance(found, Placement) else {}
    others = [_describe_others(exchanges.get(name), found.bought.offered) for name in found.costs]
    if not any(others):
        return Table("", ("sensor", "cost"), rows)
    both = tuple((*row, other) for row, other in zip(rows, others, strict=True))
    return Table("", ("sensor", "cost", "instead of it"), both, left=(0, 2))


def method(found: Placement | Design) -> str:
    """How they were found, and among how many."""
    return f"Found among {len(found.bought.offered):,} candidates by: {found.method}."


def _describe_others(others: Sequence[str] | None, costs: Mapping[str, float]) -> str:
    """In words what could be had instead of a sensor."""
    if others is None:
        return ""
    if not others:
        return "irreplaceable"
    least = others[0]
    return f"{least} for {costs[least]:,g}" + (f", or {len(others) - 1:,} others" if len(others) > 1 else "")


@shows(Placement)
def placement_document(found: Placement) -> Document:
    """The document of the cheapest sensors."""
    others = {name: list(others) for name, others in found.exchanges.items()}
    figures = {**_figures(found), "is_optimal": found.is_optimal, "exchanges": others}
    return Document(_parts(found), figures)


@shows(Design)
def design_document(found: Design) -> Document:
    """The document of the best sensors."""
    sigma = dict(zip(found.outputs, found.sigma.tolist(), strict=True))
    figures = {**_figures(found), "criterion": found.criterion, "value": found.value, "gap": found.gap, "sigma": sigma}
    return Document(_parts(found), figures)


def _parts(found: Placement | Design) -> tuple[Part | str, ...]:
    """Parts on chosen sensors, and how exact the outputs are with them."""
    answer = verdict(found)
    better, *others = answer.sentences
    sentences = [sentence for sentence in others if sentence]
    deviations = deviations_parts(found.bought.expected)
    return Paragraph(f"{better}.", f"{answer.heading}:"), *sentences, chosen_table(found), *deviations, method(found)


def _figures(found: Placement | Design) -> dict[str, Any]:
    return {
        "chosen": list(found.chosen),
        "costs": dict(found.costs),
        "cost": found.cost,
        "outputs": list(found.outputs),
        "method": found.method,
        "bound": found.bound,
        "candidates": dict(found.bought.offered),
        "expected": found.bought.expected.to_dict(),
        "sensors": found.sensors.to_dict(),
    }
