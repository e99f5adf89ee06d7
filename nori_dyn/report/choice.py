"""What is said of sensors that were chosen, in words, once: text, JSON and the page lay it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.workspace import describe_worst
from nori_dyn.tables import listed, number

SHOWN = 8
"""Most outputs that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class ChoiceLine:
    """A sensor that was chosen: its name, its cost, and what could be had instead of it; "" where that is not known."""

    name: str
    cost: str
    instead: str


@dataclass(frozen=True, slots=True)
class Choice:
    """All that is said of sensors that were chosen.

    Attributes:
        heading: how many, and what they cost or what makes them the best.
        verdict: whether anything is better.
        is_best: whether nothing is, for certain.
        purpose: what they determine.
        accuracy: the outputs that are known least, at the worst pose and at the median; "" where that is not known.
        lines: the sensors.
        method: how they were found, and among how many.
    """

    heading: str
    verdict: str
    is_best: bool
    purpose: str
    accuracy: str
    lines: tuple[ChoiceLine, ...]
    method: str


def describe_placement(found: Placement) -> Choice:
    """Return what is said of the cheapest sensors."""
    outputs = "everything" if found.outputs == ("all",) else listed(found.outputs, SHOWN)
    return Choice(
        heading=f"{_sensors(found)} for {found.cost:,g}",
        verdict="the cheapest there is" if found.is_optimal else f"the cheapest costs at least {number(found.bound)}",
        is_best=found.is_optimal,
        purpose=f"They determine {outputs} at almost every pose.",
        accuracy=describe_worst(found.bought.expected),
        lines=tuple(
            ChoiceLine(name, f"{cost:,g}", _describe_others(found.exchanges.get(name), found.bought.offered))
            for name, cost in found.costs.items()
        ),
        method=_method(found),
    )


def describe_design(found: Design) -> Choice:
    """Return what is said of the best sensors."""
    what = "sum of variances" if found.criterion == "A" else "determinant of the covariance"
    gap = "no choice is better" if found.gap == 0 else f"at best deviations {found.gap:.1%} smaller are possible"
    return Choice(
        heading=f"{_sensors(found)} of the least {what}",
        verdict=gap,
        is_best=found.gap == 0,
        purpose=f"They cost {found.cost:,g}.",
        accuracy=describe_worst(found.bought.expected),
        lines=tuple(ChoiceLine(name, f"{cost:,g}", "") for name, cost in found.costs.items()),
        method=_method(found),
    )


def _sensors(found: Placement | Design) -> str:
    return "1 sensor" if len(found.chosen) == 1 else f"{len(found.chosen):,} sensors"


def _method(found: Placement | Design) -> str:
    return f"Found among {len(found.bought.offered):,} candidates by: {found.method}."


def _describe_others(others: Sequence[str] | None, costs: Mapping[str, float]) -> str:
    """Return in words what could be had instead of a sensor."""
    if others is None:
        return ""
    if not others:
        return "nothing"
    least = others[0]
    return f"{least} for {costs[least]:,g}" + (f", or {len(others) - 1:,} others" if len(others) > 1 else "")
