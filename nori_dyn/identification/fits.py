"""How well parameters explain the readings of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.moments import LEAST
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True)
class ReadingFit:
    """How well a reading is explained.

    Attributes:
        name: the reading, or the row of known value.
        unit: its SI unit.
        n: number of samples, each by the share of it that unknown wrenches leave.
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
    fits = []
    for k, name in enumerate(names):
        if not any(log.rows[k].n for log in logs):
            continue  # unknown wrenches explain whatever it reads
        log, by = (held_out[-1], values_without) if held_out else (logs[-1], values)
        m, reading = log.rows[k], log.rows[k].unit("reading")
        fits.append(
            ReadingFit(
                name=name,
                unit=units.get(name, ""),
                n=round(sum(log.rows[k].n for log in logs)),
                spread=m.spread(reading),
                before=_rms(k, logs, before),
                after=_rms(k, logs, values),
                held_out=_rms(k, held_out, values_without) if held_out else None,
                correlation=m.correlation(reading, log.residual(k, by) + reading),
                sigma=float(sigma[k]),
                delay=delays.get(name),
            )
        )
    return tuple(fits)


def _rms(row: int, logs: Sequence[Evidence], values: Floats) -> float:
    """Root mean square over some logs of the residuals of a row, in units of its reading."""
    total = sum(log.rows[row].rms(log.residual(row, values)) ** 2 * log.rows[row].n for log in logs)
    return float(np.sqrt(total / max(sum(log.rows[row].n for log in logs), LEAST)))
