"""What `print` shows of sensors that were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nori_dyn.tables import Document, Paragraph, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.placement.design import Design
    from nori_dyn.placement.selection import Placement

SHOWN = 8
"""Most outputs that are listed where lines have a width."""


def placement_document(found: Placement) -> Document:
    """Return what is shown of the cheapest sensors."""
    verdict = "the cheapest there is" if found.is_optimal else f"the cheapest costs at least {number(found.bound)}"
    outputs = "everything" if found.outputs == ("all",) else listed(found.outputs, SHOWN)
    return Document(
        (
            Paragraph(f"for {found.cost:,g}: {verdict}.", _sensors(found)),
            f"They determine {outputs} at almost every pose.",
            _chosen(found),
            f"Found by: {found.method}.",
        )
    )


def design_document(found: Design) -> Document:
    """Return what is shown of the best sensors."""
    what = "sum of variances" if found.criterion == "A" else "determinant of the covariance"
    verdict = "no choice is better" if found.gap == 0 else f"at best deviations {found.gap:.1%} smaller are possible"
    order = np.argsort(-found.sigma, kind="stable").tolist()
    rows = tuple((unbroken(found.outputs[k]), float(found.sigma[k]), found.units[k]) for k in order)
    title = "Expected standard deviations, the largest first"
    return Document(
        (
            Paragraph(f"of the least {what}: {verdict}.", _sensors(found)),
            _chosen(found),
            Table(title, ("output", "sigma", "unit"), rows, left=(0, 2), most=SHOWN),
            f"Found by: {found.method}.",
        )
    )


def _sensors(found: Placement | Design) -> str:
    return "1 sensor" if len(found.chosen) == 1 else f"{len(found.chosen):,} sensors"


def _chosen(found: Placement | Design) -> Table:
    rows = tuple((unbroken(name), f"{cost:,g}") for name, cost in found.costs.items())
    return Table("", ("sensor", "cost"), rows)
