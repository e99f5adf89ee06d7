"""What `print` shows of a monitor's findings: whether the readings fit together, and how well the outputs are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nori_dyn.solve.summary import trust, value_tables
from nori_dyn.tables import Document, Facts, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.solve.diagnosis import Diagnosis

FALSE_ALARMS = 1e-3
MOST_NAMES = 12


def diagnosis_document(found: Diagnosis) -> Document:
    """Return what is shown of a monitor's findings."""
    estimate = found.estimate
    suspects = found.suspects() if found.residuals.ndim == 1 and not found.is_consistent(FALSE_ALARMS) else ()
    rows = tuple((unbroken(s.sensor), unbroken(s.reading), number(s.normalised), number(s.explains)) for s in suspects)
    columns = ("sensor", "reading", "residual / spread", "chi-square explained")
    tables = (Table("Who explains most of what does not fit", columns, rows, left=(0, 1)),) if rows else ()
    values = value_tables(estimate.system, estimate.outputs, estimate.values, found.deviations)
    return Document((Facts(tuple(_facts(found))), *tables, *values))


def _facts(found: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "robot", unbroken(found.estimate.system.tree.name)
    yield from trust(found.estimate)
    consistent = np.asarray(found.is_consistent(FALSE_ALARMS))
    p, squares, freedom = (np.asarray(x) for x in (found.p_value, found.chi_square, found.degrees_of_freedom))
    if found.residuals.ndim == 1:
        verdict = "fit together" if consistent else "do not fit together"
        chi = f"chi-square {number(float(squares))} with {int(freedom):,} degrees of freedom"
        yield "readings", f"{len(found.readings):,} weighed; they {verdict}: {chi}, p = {number(float(p), 2)}"
    else:
        n = int(np.count_nonzero(consistent))
        yield "readings", f"{len(found.readings):,} weighed; they fit together in {n:,} of {len(p):,} states"
    yield "unchecked", listed(found.unchecked, MOST_NAMES) or "none"
