"""Which sensors may fail: the critical ones, and the smallest sets whose failure together loses an output.

With M the rows of all sensors, an output g = λ M is still determined without the rows F if and only if λ_F lies in the
row space of L_F, the columns F of the parity vectors L M = 0: then other rows stand in for them. So a failure of few
sensors is a question about a few columns, exact for almost all q over the prime field.

Rows of sensors and outputs count beyond what is known without any sensor.

Source: dual matroids, Oxley, Matroid Theory, ch. 2; own derivation (tests/unit/observe/test_redundancy.py).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import InputError
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import REAL_ZERO, Span, Vector, field_rows, is_real
from nori_dyn.observe.generic import closed_looks
from nori_dyn.observe.numeric import Reduction
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_system
from nori_dyn.system.rows import RowKey
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Redundancy(Shown):
    """Which sensors may fail without losing an output, for almost all q.

    Attributes:
        outputs: names of the numbers of d that are looked at: those asked for that are determined.
        sensors: names of all sensors.
        critical: those whose failure alone loses an output.
        lost: by critical sensor the outputs that its failure loses.
        failing_sets: the smallest sets whose failure together loses an output, the critical sensors among them.
        size: the largest size of a set that was looked for.
        undetermined: those asked for that are not determined, whatever fails.
    """

    outputs: tuple[str, ...]
    sensors: tuple[str, ...]
    critical: tuple[str, ...]
    lost: Mapping[str, tuple[str, ...]]
    failing_sets: tuple[tuple[str, ...], ...]
    size: int
    undetermined: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, critical = len(self.sensors), len(self.critical)
        return f"Redundancy({n} sensors, {critical} critical, {len(self.failing_sets)} failing sets)"

    @property
    def spare(self) -> tuple[str, ...]:
        """The sensors of which any one may fail."""
        return tuple(name for name in self.sensors if name not in self.lost)


def redundancy(
    system: System,
    outputs: Sequence[str] | None = None,
    size: int = 2,
    seed: int = 0,
    progress: Watched = None,
) -> Redundancy:
    """Find which sensors may fail without losing an output: exactly, for almost all q.

    Of a robot with loops or couplings that is numerical, at a closed configuration that is nothing special.

    A sensor is all rows of one name that take a reading; rows of a known value cannot fail.

    Args:
        system: the robot with its sensors.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them; None for all.
        size: the largest size of a failing set that is looked for.
        seed: seed of the random point of the field.
        progress: True to show it, or what receives its stages, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: not a system.
        UnknownOutputError: an output that does not exist.
        InputError: a size below 1.

    Example:
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> imu = {"type": "angular_accelerometer", "links": "link1"}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> sensors = nd.SensorSet.from_dict({"name": "spare", "measurements": [motion, imu, unloaded]})
        >>> found = nd.redundancy(nd.System(nd.autotree(2), sensors), outputs=["tau"])
        >>> found.critical, found.spare
        (('qdd:joint2',), ('qdd:joint1', 'angular_acc:link1'))
    """
    check_system(system, "nd.redundancy")
    if size < 1:
        raise InputError(f"size is {size}: failing sets have at least 1 sensor.")
    with progress_bar(f"redundancy of {system.sensors.name}", progress) as stage:
        found = readings(system, outputs, seed=seed)
        parity = _Parity.of(found, seed)
        names = tuple(found.sensors)
        lost = {name: gone for name in names if (gone := parity.lost_without(name))}
        failing: list[tuple[str, ...]] = [(name,) for name in lost]
        others = [name for name in names if name not in lost]
        for k in range(2, min(size, len(others)) + 1):
            smaller = [set(known) for known in failing]
            for number, some in enumerate(itertools.combinations(others, k)):
                if not number % 512:
                    stage(f"failures of {k} sensors", number / math.comb(len(others), k))
                if not any(known <= {*some} for known in smaller) and parity.loses_without(some):
                    failing.append(some)
        return Redundancy(
            outputs=tuple(parity.outputs),
            sensors=names,
            critical=tuple(lost),
            lost=MappingProxyType(lost),
            failing_sets=tuple(failing),
            size=min(size, len(names)),
            undetermined=tuple(name for name in found.outputs if name not in parity.outputs),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Parity:
    """How the rows of sensors depend on one another, and outputs on them.

    Attributes:
        columns: by sensor the numbers of its rows.
        parity: a basis of the vectors L with L M = 0.
        outputs: by name the vector λ of each output that is determined.
        any_output: a random combination of them.
    """

    columns: Mapping[str, range]
    parity: Sequence[Vector]
    outputs: Mapping[str, Vector]
    any_output: Vector

    @staticmethod
    def of(found: Readings, seed: int) -> _Parity:
        """The parity of the rows of some sensors."""
        rng = random.Random(seed)
        columns, start = {}, 0
        for name, rows in found.sensors.items():
            columns[name] = range(start, start + len(rows))
            start += len(rows)
        first = 1 + max((column for rows in found.sensors.values() for row in rows for column in row), default=0)
        span = Span(end=first)
        parity: list[Vector] = []
        for k, row in enumerate(itertools.chain(*found.sensors.values())):
            tagged = {**row, first + k: type(next(iter(row.values())))(1)}
            if not span.add(tagged):
                parity.append({column - first: value for column, value in span.remainder(tagged).items()})
        outputs: dict[str, Vector] = {}
        for name, row in found.outputs.items():
            left = span.remainder(row)
            if min(left, default=first) >= first:
                outputs[name] = {column - first: value for column, value in left.items()}
        return _Parity(columns, parity, outputs, _combine(outputs.values(), rng))

    def lost_without(self, sensor: str) -> tuple[str, ...]:
        """The outputs that the failure of one sensor loses."""
        columns = set(self.columns[sensor])
        stand_ins = self._stand_ins(columns)
        return tuple(name for name, row in self.outputs.items() if stand_ins.remainder(_part(row, columns)))

    def loses_without(self, sensors: Iterable[str]) -> bool:
        """Whether the failure of some sensors together loses an output."""
        columns = {k for sensor in sensors for k in self.columns[sensor]}
        return bool(self._stand_ins(columns).remainder(_part(self.any_output, columns)))

    def _stand_ins(self, columns: set[int]) -> Span:
        span = Span()
        for row in self.parity:
            if span.dimension == len(columns):
                break
            span.add(_part(row, columns))
        return span


def _part(row: Vector, columns: set[int]) -> Vector:
    return {column: row[column] for column in columns if column in row}


def _combine(rows: Iterable[Vector], rng: random.Random) -> Vector:
    """A random combination of row vectors."""
    total: dict[int, int | float] = {}
    for row in filter(None, rows):
        factor = rng.uniform(0.5, 1.0) if is_real(row) else rng.randrange(1, PRIME)
        for column, value in row.items():
            added = total.get(column, 0) + factor * value
            total[column] = added if isinstance(added, float) else added % PRIME
    return total


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
    _, (q, *_), _ = closed_looks(reduction, seed)
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
    for found in reduction.at_each(Q):
        measured = _vectors(dict(zip(split.measured.tolist(), found.M * scale, strict=True)))
        yield _readings(reduction.system, outputs, sensors, measured, _vectors(dict(enumerate(found.X * scale))))


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
