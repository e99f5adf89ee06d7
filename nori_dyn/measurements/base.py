"""What all sensors share: the fields of their configs, and the row that reads one variable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from nori_dyn.algebra.spatial import Array, add, zeros
from nori_dyn.errors import SensorConfigError
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey

Positive = Annotated[FiniteFloat, Field(gt=0)]


class Measurement(BaseModel, ABC):
    """One entry of a sensor config: its fields are what the YAML may say.

    A subclass has a field `type: Literal["its_name"]` and yields its equations from `on`.
    Laws, tested over the registry in tests/contracts/test_measurements.py: the equations obey those of
    `Equation`; with the true value as reading, D d + b = 0 holds for a true d.

    Attributes:
        type: the kind of sensor.
        name: what to call its reading, in y and in messages, instead of by what it reads; for a sensor that reads one
            thing.
        value: a known constant instead of a reading: one number, or one a component.
        sigma: standard deviation: one number, or one a component; None is exact.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    name: Annotated[str, Field(min_length=1)] | None = None
    value: FiniteFloat | list[FiniteFloat] | None = None
    sigma: Positive | list[Positive] | None = None

    @abstractmethod
    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        """Yield the equations of this sensor on a robot.

        Raises:
            SensorConfigError: a name or number of values that does not fit the robot.
        """

    def called(self, by_place: Sequence[str]) -> list[str]:
        """Return the names of readings: the sensor's own where it has one, else those by what each reads.

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
    """

    name: str
    source: str
    group: str
    components: tuple[str, ...]
    key: VariableKey
    matrix: Array
    value: tuple[float, ...] | None
    sigma: tuple[float, ...] | None

    @property
    def is_measured(self) -> bool:
        """Whether each row takes a number of y."""
        return self.value is None

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return {self.key: self.matrix}

    def bias(self, at: Kinematics, y: Array) -> Array:
        return add(zeros((len(self.components),), at.v[self.key.body]), known_terms(self.value, y))


def known_terms(value: tuple[float, ...] | None, y: Array) -> Array:
    """Return the known part of rows: minus their known values (rows), or minus their readings y (rows, ...)."""
    return -y if value is None else -np.array(value)


def per_component(
    what: str, values: float | Sequence[float] | None, components: Sequence[str]
) -> tuple[float, ...] | None:
    """Return one number a component from one for all, or as many.

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
