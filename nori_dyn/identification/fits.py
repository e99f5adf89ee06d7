"""How well parameters explain the readings of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.moments import Moments
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True)
class ReadingFit:
    """How well a reading is explained.

    Attributes:
        name: the reading, or the row of known value.
        unit: its SI unit.
        n: number of samples.
        spread: standard deviation of what was read.
        before: rms of the residual by the model as it was.
        after: by the parameters found.
        held_out: by parameters found without the samples held out, on these; None where none were.
        correlation: of what was read with what is explained, on samples held out where there are some.
        sigma: standard deviation of the residual by which the reading was weighed.
        delay: by how much the reading seems to come after the motion [s]; None where that explains nothing.
    """

    name: str
    unit: str
    n: int
    spread: float
    before: float
    after: float
    held_out: float | None
    correlation: float
    sigma: float
    delay: float | None


def fits_of(
    names: Sequence[str],
    units: Mapping[str, str],
    logs: Sequence[Evidence],
    held_out: Sequence[Evidence],
    before: Floats,
    values: Floats,
    values_without: Floats,
    sigma: Floats,
    delays: Mapping[str, float],
) -> tuple[ReadingFit, ...]:
    """Fit of each reading.

    Args:
        names: of the rows.
        units: of those that are readings.
        logs: evidence of all samples.
        held_out: evidence of samples that were held out.
        before: parameters by the model as it was.
        values: those found.
        values_without: those found without what was held out.
        sigma: standard deviation of each row.
        delays: by how much readings are late, where they are.
    """
    found = []
    for k, name in enumerate(names):
        own = [(log, log.rows[k]) for log in logs]
        kept = [(log, log.rows[k]) for log in held_out]
        n = sum(m.n for _, m in own)

        log, m = (kept or own)[-1]
        by = values_without if kept else values
        reading = m.unit("reading")
        found.append(
            ReadingFit(
                name=name,
                unit=units.get(name, ""),
                n=n,
                spread=m.spread(reading),
                before=_rms(k, own, before),
                after=_rms(k, own, values),
                held_out=_rms(k, kept, values_without) if kept else None,
                correlation=m.correlation(reading, _expected(k, log, m, by)),
                sigma=float(sigma[k]),
                delay=delays.get(name),
            )
        )
    return tuple(found)


def _expected(row: int, log: Evidence, m: Moments, values: Floats) -> Floats:
    """Combination of columns that is the predicted reading: true value and offset, over its gain."""
    return m.residual(log.beta(values)) / log.gain(row, values) + m.unit("reading")


def _rms(row: int, rows: Sequence[tuple[Evidence, Moments]], values: Floats) -> float:
    """Root mean square over some logs of the residuals of a row, in units of its reading."""
    total = sum((m.rms(m.residual(log.beta(values))) / log.gain(row, values)) ** 2 * m.n for log, m in rows)
    return float(np.sqrt(total / max(sum(m.n for _, m in rows), 1)))
