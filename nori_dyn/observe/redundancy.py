"""Which sensors may fail: the critical ones, and the smallest sets whose failure together loses an output.

With M the rows of all sensors, an output g = λ M is still determined without the rows F if and only if λ_F lies in the
row space of L_F, the columns F of the parity vectors L M = 0: then other rows stand in for them. So a failure of few
sensors is a question about a few columns, exact for almost all q over the prime field.

Source: dual matroids, Oxley, Matroid Theory, ch. 2; own derivation (tests/unit/observe/test_redundancy.py).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.errors import InputError
from nori_dyn.observe.field import Span, Vector, is_real
from nori_dyn.observe.readings import Readings, readings
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_system
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar


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
        progress: True to show it, or what is told of it, see `nori_dyn.tables.progress`; on a terminal when None.

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
