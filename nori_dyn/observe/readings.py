"""What each sensor says, and what each output is, beyond what is known without any sensor.

Source: own derivation (tests/unit/observe/test_redundancy.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.ranges import numbers
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import REAL_ZERO, Span, Vector, field_rows
from nori_dyn.observe.generic import closed_looks
from nori_dyn.observe.numeric import Reduction
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowKey
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Rows of sensors and outputs, modulo the rows that are known.

    Attributes:
        sensors: by name the rows of each sensor, those left out that say nothing new.
        outputs: by name the row of each number of d that is asked for; empty where it is known.
    """

    sensors: Mapping[str, tuple[Vector, ...]]
    outputs: Mapping[str, Vector]


def readings(
    system: System, outputs: Sequence[str] | None = None, sensors: Mapping[RowKey, str] | None = None, seed: int = 0
) -> Readings:
    """Rows of sensors and outputs modulo the rows that are no sensor's, for almost all q, or all closed ones.

    For arguments and errors see `readings_at`.
    """
    if not system.tree.closing_parts:
        rows = field_rows(system, exact_system(system, seed))
        return _readings(system, outputs, sensors, rows.measured, rows.variables)
    reduction = Reduction(system, seed)
    q = closed_looks(reduction, seed).configurations[0]
    return next(readings_at(reduction, q[None], outputs, sensors))


def readings_at(
    reduction: Reduction,
    Q: Floats,
    outputs: Sequence[str] | None = None,
    sensors: Mapping[RowKey, str] | None = None,
) -> Iterator[Readings]:
    """Yield rows of sensors and outputs modulo the rows that are no sensor's, in doubles, at configurations (N, nq).

    Args:
        reduction: the robot with its sensors.
        Q: the configurations.
        outputs: kinds or names of variables; None for all.
        sensors: by equation the sensor that it is of, for all that count as a sensor's; None for those that take a
            reading, each name a sensor.

    Raises:
        UnknownOutputError: an output that does not exist.
    """
    split, scale = reduction.split, reduction.column_scale
    of_sources = dict(zip(split.sources.tolist(), np.eye(len(split.sources)), strict=True))
    for found in reduction.at_each(Q):
        of_others = dict(zip(split.others.tolist(), found.X * scale, strict=True))
        measured = _vectors(dict(zip(split.measured.tolist(), found.M * scale, strict=True)))
        yield _readings(reduction.system, outputs, sensors, measured, _vectors(of_sources | of_others))


def _readings(
    system: System,
    outputs: Sequence[str] | None,
    sensors: Mapping[RowKey, str] | None,
    measured: Mapping[int, Vector],
    variables: Mapping[int, Vector],
) -> Readings:
    """Rows of sensors and outputs, of the vectors over the sources of what is measured and of the numbers of d."""
    if sensors is None:
        sensors = {row.key: row.name for row in system.measurements}
    columns = output_columns(system, resolve_outputs(system, outputs)).tolist()
    own: dict[str, list[Vector]] = {}
    known = Span()
    for row in system.sensor_rows:
        vectors = [measured[k] for k in numbers(row.slice)]
        if row.key in sensors:
            own.setdefault(sensors[row.key], []).extend(vectors)
        else:
            known.extend(vectors)
    found = {name: tuple(filter(None, map(known.remainder, vectors))) for name, vectors in own.items()}
    names = system.variable_names
    return Readings(found, {names[k]: known.remainder(variables[k]) for k in dict.fromkeys(columns)})


def _vectors(rows: Mapping[int, Floats]) -> dict[int, Vector]:
    """Rows as vectors whose largest number is 1."""
    found: dict[int, Vector] = {}
    for k, row in rows.items():
        scaled = row / (np.abs(row).max(initial=0.0) or 1.0)
        found[k] = {int(c): float(scaled[c]) for c in np.flatnonzero(np.abs(scaled) > REAL_ZERO)}
    return found
