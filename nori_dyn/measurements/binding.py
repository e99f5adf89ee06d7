"""The equations of a sensor on a robot, with the variables and rows that its offset adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nori_dyn.errors import SensorConfigError
from nori_dyn.measurements.base import Measurement, Offset, VariableReading, per_component
from nori_dyn.model.kinematics import Kinematics, positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation, EquationOf, Ranged, WithUnits
from nori_dyn.system.parts import robot_variables
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import OFFSET, Unknown, VariableKey
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True)
class OffsetReading(EquationOf):
    """The rows of a sensor that reads the true value and an offset: true + offset - y = 0.

    Attributes:
        equation: the rows of the true value.
        unknown: the offset.
    """

    unknown: Unknown

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The offset, see `WithUnknowns`."""
        return (self.unknown,)

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return {**self.equation.blocks(at), self.unknown.key: np.eye(len(self.components))}


def bound(measurement: Measurement, tree: KinematicTree) -> list[Equation]:
    """The equations of a sensor on a robot, after each the prior of its offset where it has one.

    Raises:
        SensorConfigError: a name or number of values that does not fit the robot; a range that the sensor cannot have.
    """
    found: list[Equation] = []
    for part in measurement.parts:
        equations = list(part.on(tree))
        if part.range is not None and not all(isinstance(e, Ranged) and e.ranges is not None for e in equations):
            raise SensorConfigError(f"a '{part.type}' takes no range. Leave it out.")
        if part.offset is None:
            found += equations
            continue
        at = positions(tree, tree.neutral_configuration())
        is_force = {variable.key: variable.is_force for variable in robot_variables(tree)}
        for equation in equations:
            read = next(iter(equation.blocks(at)))  # an offset is as large as the first variable that is read
            offset = OffsetReading(equation, _unknown(equation, read.body, is_force.get(read, False)))
            found += [offset, _prior(offset, part.offset)]
    return found


def without_offset(equation: Equation) -> Equation:
    """The rows of the true value that an equation of a sensor reads, with or without an offset."""
    return equation.equation if isinstance(equation, OffsetReading) else equation


def scalar_rows(system: System, rows: Iterable[RowBlock], *kinds: str) -> Iterator[tuple[RowBlock, int, int, float]]:
    """Yield block, number in it, freedom and factor of those of some rows that read one joint variable each."""
    for row in rows:
        equation = without_offset(row.equation)
        if isinstance(equation, VariableReading) and equation.key.kind in kinds:
            first = system.tree.v_slices[equation.key.body].start
            for k, own in enumerate(np.asarray(equation.matrix)):
                (at,) = np.nonzero(own)
                if len(at) == 1:
                    yield row, k, first + int(at[0]), float(own[at[0]])


def _unknown(reading: Equation, body: int, is_force: bool) -> Unknown:
    """The offset of a reading."""
    units = (reading.units if isinstance(reading, WithUnits) else None) or ("",) * len(reading.components)
    return Unknown(VariableKey(OFFSET, body, reading.name), reading.components, units, is_force)


def _prior(offset: OffsetReading, known: Offset) -> Equation:
    """The rows of the prior of an offset."""
    name, components = f"{OFFSET}:{offset.name}", offset.components
    mean = per_component(f"the mean of '{name}'", known.mean, components)
    sigma = per_component(f"the sigma of '{name}'", known.sigma, components)
    return VariableReading.of(offset.unknown, f"prior:{name}", offset.source, "prior", mean, sigma)
