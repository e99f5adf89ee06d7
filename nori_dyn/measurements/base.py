"""Shared parts of all sensors: the fields of their configs, and the row that reads one variable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, Field, FiniteFloat, ValidationInfo, field_validator

from nori_dyn.algebra.spatial import add, zeros
from nori_dyn.errors import SensorConfigError
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree, NamedFrame
from nori_dyn.system.equation import Equation, Ranges
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.variables import Unknown, Variable, VariableKey
from nori_dyn.typing import Array

Positive = Annotated[FiniteFloat, Field(gt=0)]
Ends = Annotated[list[FiniteFloat | None], Field(min_length=2, max_length=2)]


def _increasing(
    ends: list[float | None] | list[list[float | None]],
) -> list[float | None] | list[list[float | None]]:
    for low, high in _pairs(ends):
        if not low < high:
            raise ValueError(f"the range from {low:g} to {high:g} holds nothing")
    return ends


Range = Annotated[Ends | Annotated[list[Ends], Field(min_length=1)], AfterValidator(_increasing)]
"""The readings between which a sensor works: one pair of ends, or one a component."""


class Offset(ConfigPart):
    """Prior of a sensor's offset, which is estimated too: reading = true value + offset.

    Attributes:
        sigma: standard deviation about the mean: one number, or one a component.
        mean: its prior mean: one number, or one a component.
    """

    sigma: Positive | list[Positive]
    mean: FiniteFloat | list[FiniteFloat] = 0.0


class Measurement(ConfigPart, ABC):
    """One entry of a sensor config: its fields are those of the YAML.

    A subclass has a field `type: Literal["its_name"]` and yields its equations from `on`.
    Laws, tested over the registry in tests/contracts/test_measurements.py: the equations obey those of
    `Equation`; with the true value as reading, D d + b = 0 holds for a true d.

    Attributes:
        type: the kind of sensor.
        name: the name of its reading, in y and in messages, in place of the default; for a sensor that reads one
            thing.
        value: a known constant instead of a reading: one number, or one a component.
        sigma: standard deviation: one number, or one a component; None is exact.
        range: the readings between which the sensor works, [lowest, highest], or one such pair a component; null where
            there is no end. A reading at an end or beyond is saturated.
        offset: that the sensor reads the true value and an offset, a variable "offset:NAME" of its own, with a prior.
    """

    type: str
    name: Annotated[str, Field(min_length=1)] | None = None
    value: FiniteFloat | list[FiniteFloat] | None = None
    sigma: Positive | list[Positive] | None = None
    range: Range | None = None
    offset: Offset | None = None

    @field_validator("range", "offset")
    @classmethod
    def _is_of_a_reading(cls, given: Any, info: ValidationInfo) -> Any:
        if given is not None and info.data.get("value") is not None:
            has = {"range": "takes no reading: leave the range out", "offset": "has no offset: leave it out"}
            raise ValueError(f"a known value {has[str(info.field_name)]}, or set `value: null`")
        return given

    @abstractmethod
    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        """Yield the equations of this sensor on a robot, without its offset, see `bound`.

        Raises:
            SensorConfigError: a name or number of values that does not fit the robot.
        """

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """The sensors that its entry stands for, of which each has an offset of its own; usually itself."""
        return (self,)

    def each(self, tree: KinematicTree) -> Iterator[Measurement]:
        """Yield a sensor for each link, joint or frame that this one reads on a robot; itself where it selects none.

        Raises:
            SensorConfigError: a name that does not fit the robot.
        """
        yield self

    def numbers(self, name: str, components: Sequence[str]) -> dict[str, Any]:
        """Its value, sigma and ranges for a reading of a name, one a component each, as `VariableReading` takes them.

        Raises:
            SensorConfigError: a list of another length.
        """
        return {
            "value": per_component(f"the value of '{name}'", self.value, components),
            "sigma": per_component(f"the sigma of '{name}'", self.sigma, components),
            "ranges": range_per_component(name, self, components),
        }

    def called(self, by_place: Sequence[str]) -> list[str]:
        """The names of readings: the sensor's where it has one, else derived from what each reads.

        Raises:
            SensorConfigError: the sensor has a name, and reads several things, or none.
        """
        if self.name is None:
            return list(by_place)
        if len(by_place) != 1:
            shown = ", ".join(by_place[:4]) + (", ..." if len(by_place) > 4 else "")
            reads = f"{len(by_place)} things ({shown})" if by_place else "nothing"
            raise SensorConfigError(
                f"the name '{self.name}' is for one reading, and this sensor reads {reads}. "
                "Leave the name out, or name one joint or link."
            )
        return [self.name]


@dataclass(frozen=True, slots=True)
class VariableReading:
    """The rows M d_k - y = 0 (or - value) on one variable d_k, with a constant M.

    Attributes:
        name: "qdd:l_knee".
        source: where it stands in the literature.
        group: the sensor's type.
        components: the name of each row.
        key: the variable that is read.
        matrix: M (rows, size of the variable).
        value: the known values (rows); None when the rows take a reading.
        sigma: standard deviations (rows); None is exact.
        ranges: the readings between which the sensor works (rows); None is all.
        units: the SI unit of each row; None where they are not known.
        frame: the frame in whose coordinates a spatial vector is read; None is the link's own.
    """

    name: str
    source: str
    group: str
    components: tuple[str, ...]
    key: VariableKey
    matrix: Array
    value: tuple[float, ...] | None
    sigma: tuple[float, ...] | None
    ranges: Ranges | None = None
    units: tuple[str, ...] | None = None
    frame: NamedFrame | None = None

    @classmethod
    def of(
        cls,
        variable: Variable | Unknown,
        name: str,
        source: str,
        group: str,
        value: tuple[float, ...] | None,
        sigma: tuple[float, ...] | None,
        ranges: Ranges | None = None,
    ) -> Self:
        """The rows d_k - y = 0 (or - value) of all numbers of a variable."""
        components = variable.components
        matrix = np.eye(len(components))
        return cls(name, source, group, components, variable.key, matrix, value, sigma, ranges, variable.units)

    @property
    def is_measured(self) -> bool:
        """Whether each row takes a number of y."""
        return self.value is None

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return {self.key: self.matrix}

    def bias(self, at: Kinematics, y: Array) -> Array:
        return add(zeros((len(self.components),), at.v[self.key.body]), known_terms(self.value, y))


def known_terms(value: tuple[float, ...] | None, y: Array) -> Array:
    """The known part of rows: minus their known values (rows), or minus their readings y (rows, ...)."""
    return -y if value is None else -np.array(value)


def per_component(
    what: str, values: float | Sequence[float] | None, components: Sequence[str]
) -> tuple[float, ...] | None:
    """One number a component from one for all, or as many.

    Raises:
        SensorConfigError: a list of another length.
    """
    if values is None:
        return None
    if not isinstance(values, Sequence):
        return (float(values),) * len(components)
    if len(values) != len(components):
        raise SensorConfigError(f"{what} has {len(values)} numbers, expected one or {len(components)}.")
    return tuple(map(float, values))


def range_per_component(what: str, sensor: Measurement, components: Sequence[str]) -> Ranges | None:
    """The range of a sensor's reading, one pair a component, infinite where there is no end.

    Raises:
        SensorConfigError: a list of another length.
    """
    pairs = _pairs(sensor.range)
    if not pairs:
        return None
    if len(pairs) == 1:
        return tuple(pairs) * len(components)
    if len(pairs) != len(components):
        raise SensorConfigError(f"the range of '{what}' has {len(pairs)} pairs, expected one or {len(components)}.")
    return tuple(pairs)


def _pairs(ends: Sequence[float | None] | Sequence[Sequence[float | None]] | None) -> list[tuple[float, float]]:
    """The ends of one range, or of several, as pairs."""
    one = [end for end in ends or () if not isinstance(end, Sequence)]
    pairs = [end for end in ends or () if isinstance(end, Sequence)] + ([one] if one else [])
    return [(-math.inf if low is None else low, math.inf if high is None else high) for low, high in pairs]
