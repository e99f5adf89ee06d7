"""What `print` shows of sensors that were chosen."""

from __future__ import annotations

from typing import Any

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.choice import Choice, describe_design, describe_placement
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.tables import Document, Paragraph, Part, Table, shows, unbroken


@shows(Placement)
def placement_document(found: Placement) -> Document:
    """Return what is shown of the cheapest sensors."""
    others = {name: list(others) for name, others in found.exchanges.items()}
    figures = {**_figures(found), "is_optimal": found.is_optimal, "exchanges": others}
    return Document(_parts(describe_placement(found), found.bought.expected), figures)


@shows(Design)
def design_document(found: Design) -> Document:
    """Return what is shown of the best sensors."""
    sigma = dict(zip(found.outputs, found.sigma.tolist(), strict=True))
    figures = {**_figures(found), "criterion": found.criterion, "value": found.value, "gap": found.gap, "sigma": sigma}
    return Document(_parts(describe_design(found), found.bought.expected), figures)


def _parts(said: Choice, expected: Conditioning) -> tuple[Part | str, ...]:
    """Return what is shown of sensors that were chosen, and how exact the outputs are with them."""
    has_others = any(line.instead for line in said.lines)
    columns = ("sensor", "cost", *(("instead of it",) * has_others))
    rows = tuple((unbroken(line.name), line.cost, *((line.instead,) * has_others)) for line in said.lines)
    parts: list[Part | str] = [Paragraph(f"{said.verdict}.", f"{said.heading}:")]
    parts += [said.purpose, *([said.accuracy] if said.accuracy else [])]
    parts += [Table("", columns, rows, left=(0, 2)), *deviations_parts(expected), said.method]
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
