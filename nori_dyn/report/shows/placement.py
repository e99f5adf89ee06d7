"""What `print` shows of sensors that were chosen."""

from __future__ import annotations

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.choice import Choice, describe_design, describe_placement
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.tables import Document, Paragraph, Part, Table, shows, unbroken


@shows(Placement)
def placement_document(found: Placement) -> Document:
    """Return what is shown of the cheapest sensors."""
    return choice_document(describe_placement(found), found.bought.expected)


@shows(Design)
def design_document(found: Design) -> Document:
    """Return what is shown of the best sensors."""
    return choice_document(describe_design(found), found.bought.expected)


def choice_document(said: Choice, expected: Conditioning) -> Document:
    """Return what is shown of sensors that were chosen, and how exact the outputs are with them."""
    has_others = any(line.instead for line in said.lines)
    columns = ("sensor", "cost", *(("instead of it",) * has_others))
    rows = tuple((unbroken(line.name), line.cost, *((line.instead,) * has_others)) for line in said.lines)
    parts: list[Part | str] = [Paragraph(f"{said.verdict}.", f"{said.heading}:")]
    parts += [said.purpose, *([said.accuracy] if said.accuracy else [])]
    parts += [Table("", columns, rows, left=(0, 2)), *deviations_parts(expected), said.method]
    return Document(tuple(parts))
