"""Sensors that were chosen, in words: what they cost, whether anything is better, and how exact the outputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.report.workspace import describe_worst
from nori_dyn.tables import Document, Paragraph, Part, Table, listed, number, shows, unbroken

SHOWN = 8
"""Most outputs that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class Choice:
    """All that is said of sensors that were chosen.

    Attributes:
        heading: how many, and what they cost or what makes them the best.
        verdict: whether anything is better.
        is_best: whether nothing is, for certain.
        purpose: what they determine.
        accuracy: the outputs that are known least, at the worst pose and at the median; "" where that is not known.
        table: the sensors: names, costs, and what could be had instead where that is known.
        method: how they were found, and among how many.
    """

    heading: str
    verdict: str
    is_best: bool
    purpose: str
    accuracy: str
    table: Table
    method: str


def describe_placement(found: Placement) -> Choice:
    """The cheapest sensors, in words."""
    others = [_describe_others(found.exchanges.get(name), found.bought.offered) for name in found.costs]
    outputs = "everything" if found.outputs == ("all",) else listed(found.outputs, SHOWN)
    return Choice(
        heading=f"{_sensors(found)} for {found.cost:,g}",
        verdict="the cheapest possible" if found.is_optimal else f"the cheapest costs at least {number(found.bound)}",
        is_best=found.is_optimal,
        purpose=f"They determine {outputs} at almost every pose.",
        accuracy=describe_worst(found.bought.expected),
        table=_table(found.costs, others),
        method=_method(found),
    )


def describe_design(found: Design) -> Choice:
    """The most precise sensors, in words."""
    what = "sum of variances" if found.criterion == "A" else "determinant of the covariance"
    gap = "no choice is better" if found.gap == 0 else f"no choice has deviations more than {found.gap:.1%} smaller"
    return Choice(
        heading=f"{_sensors(found)} of the least {what}",
        verdict=gap,
        is_best=found.gap == 0,
        purpose=f"They cost {found.cost:,g}.",
        accuracy=describe_worst(found.bought.expected),
        table=_table(found.costs, ()),
        method=_method(found),
    )


def _sensors(found: Placement | Design) -> str:
    return "1 sensor" if len(found.chosen) == 1 else f"{len(found.chosen):,} sensors"


def _table(costs: Mapping[str, float], others: Sequence[str]) -> Table:
    """The sensors with their costs, and what could be had instead of each where that is known."""
    rows = [(unbroken(name), f"{cost:,g}") for name, cost in costs.items()]
    if not any(others):
        return Table("", ("sensor", "cost"), tuple(rows))
    both = tuple((*row, other) for row, other in zip(rows, others, strict=True))
    return Table("", ("sensor", "cost", "instead of it"), both, left=(0, 2))


def _method(found: Placement | Design) -> str:
    return f"Found among {len(found.bought.offered):,} candidates by: {found.method}."


def _describe_others(others: Sequence[str] | None, costs: Mapping[str, float]) -> str:
    """In words what could be had instead of a sensor."""
    if others is None:
        return ""
    if not others:
        return "nothing"
    least = others[0]
    return f"{least} for {costs[least]:,g}" + (f", or {len(others) - 1:,} others" if len(others) > 1 else "")


@shows(Placement)
def placement_document(found: Placement) -> Document:
    """The document of the cheapest sensors."""
    others = {name: list(others) for name, others in found.exchanges.items()}
    figures = {**_figures(found), "is_optimal": found.is_optimal, "exchanges": others}
    return Document(_parts(describe_placement(found), found.bought.expected), figures)


@shows(Design)
def design_document(found: Design) -> Document:
    """The document of the best sensors."""
    sigma = dict(zip(found.outputs, found.sigma.tolist(), strict=True))
    figures = {**_figures(found), "criterion": found.criterion, "value": found.value, "gap": found.gap, "sigma": sigma}
    return Document(_parts(describe_design(found), found.bought.expected), figures)


def _parts(said: Choice, expected: Conditioning) -> tuple[Part | str, ...]:
    """Parts on chosen sensors, and how exact the outputs are with them."""
    parts: list[Part | str] = [Paragraph(f"{said.verdict}.", f"{said.heading}:")]
    parts += [said.purpose, *([said.accuracy] if said.accuracy else [])]
    parts += [said.table, *deviations_parts(expected), said.method]
    return tuple(parts)


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
