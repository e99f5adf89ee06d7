"""What each sensor says, and what each output is, beyond what is known without any sensor.

Source: own derivation (tests/unit/observe/test_redundancy.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.algebra.ranges import numbers
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import FieldVector, Span, field_rows
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowKey


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Rows of sensors and outputs over the field, modulo the rows that are known.

    Attributes:
        sensors: by name the rows of each sensor, those left out that say nothing new.
        outputs: by name the row of each number of d that is asked for; empty where it is known.
    """

    sensors: Mapping[str, tuple[FieldVector, ...]]
    outputs: Mapping[str, FieldVector]


def readings(
    system: System, outputs: Sequence[str] | None = None, sensors: Mapping[RowKey, str] | None = None, seed: int = 0
) -> Readings:
    """Return what sensors and outputs say beyond the rows that are no sensor's, for almost all q.

    Args:
        system: the robot with its sensors.
        outputs: kinds or names of variables; None for all.
        sensors: by equation the sensor that it is of, for all that count as a sensor's; None for those that take a
            reading, each name a sensor.
        seed: seed of the random point of the field.

    Raises:
        UnknownOutputError: an output that does not exist.
    """
    rows = field_rows(system, exact_system(system, seed))
    if sensors is None:
        sensors = {row.key: row.name for row in system.measurements}
    columns = output_columns(system, resolve_outputs(system, outputs)).tolist()
    own: dict[str, list[FieldVector]] = {}
    known = Span()
    for row in system.sensor_rows:
        vectors = [rows.measured[k] for k in numbers(row.slice)]
        if row.key in sensors:
            own.setdefault(sensors[row.key], []).extend(vectors)
        else:
            known.extend(vectors)
    found = {name: tuple(filter(None, map(known.remainder, vectors))) for name, vectors in own.items()}
    names = system.variable_names
    return Readings(found, {names[k]: known.remainder(rows.variables[k]) for k in dict.fromkeys(columns)})
