"""Blocks of rows of D and b, and their keys, which do not depend on names."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nori_dyn.algebra.ranges import width
from nori_dyn.model.tree import NamedFrame
from nori_dyn.system.equation import Equation, Ranged, Ranges, WithFrame, WithUnits
from nori_dyn.system.variables import component_names

Given: TypeAlias = Literal["a", "f", "tau_J", "tau"]
"""A variable that an equation of motion gives: Nori (3a), (3f), (3tau), which is two where a joint has components."""

GIVEN: tuple[Given, ...] = ("a", "f", "tau_J", "tau")
"""All of these, in the order of the rows of D."""


@dataclass(frozen=True, slots=True)
class NewtonEuler:
    """An equation of motion, known by the variable that it gives: the one on which it has -1.

    Attributes:
        gives: "a" is Nori (3a), "f" is (3f), "tau" is (3tau); "tau_J" is the torque in a joint with components.
        body: whose.
    """

    gives: Given
    body: int


@dataclass(frozen=True, slots=True)
class SensorRow:
    """An equation of a sensor, or of a known value, by its number among these."""

    number: int


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """An equation of a component, by its number among these."""

    number: int


RowKey: TypeAlias = NewtonEuler | ComponentRow | SensorRow


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The rows of one equation.

    Attributes:
        key: its identity.
        equation: the equation.
        slice: its rows of D and b.
        y: its part of y; empty where it takes no reading.
        weights: its part of the weights, one number for all its rows or one each; empty where its rows are exact.
    """

    key: RowKey
    equation: Equation
    slice: builtins.slice
    y: builtins.slice
    weights: builtins.slice

    @property
    def name(self) -> str:
        """Its name: "3f:l_knee", "qdd:l_knee"."""
        return self.equation.name

    @property
    def component_names(self) -> tuple[str, ...]:
        """The name of each row: "3f:l_knee.mz", or the name of the block for a single one."""
        return component_names(self.equation.name, self.equation.components)

    @property
    def body(self) -> int | None:
        """The body that an equation of motion is of; None for sensors, which may read several."""
        return self.key.body if isinstance(self.key, NewtonEuler) else None

    @property
    def is_dynamic(self) -> bool:
        """Whether it is an equation of motion; others are of components, of sensors, or of known values."""
        return isinstance(self.key, NewtonEuler)

    @property
    def is_sensor(self) -> bool:
        """Whether it is of a sensor or a known value; others are equations of motion, or of components."""
        return isinstance(self.key, SensorRow)

    @property
    def is_exact(self) -> bool:
        """Whether the rows hold exactly; others are weighed."""
        return width(self.weights) == 0

    @property
    def has_multiplier(self) -> bool:
        """Whether the rows stay rows of a weighed system: exact ones, and noisy equations of motion."""
        return self.is_exact or self.is_dynamic

    @property
    def weight_of_rows(self) -> tuple[int, ...]:
        """For each row the number of its weight."""
        n, first = width(self.slice), self.weights.start
        return (first,) * n if width(self.weights) == 1 else tuple(range(first, first + n))

    @property
    def ranges(self) -> Ranges | None:
        """For each row the readings between which its sensor works; None is all."""
        return self.equation.ranges if isinstance(self.equation, Ranged) and self.equation.is_measured else None

    @property
    def frame(self) -> NamedFrame | None:
        """The frame in whose coordinates a spatial vector is read; None is the link frame."""
        return self.equation.frame if isinstance(self.equation, WithFrame) else None

    @property
    def units(self) -> tuple[str, ...]:
        """The SI unit of each row; "" where it is not known."""
        known = self.equation.units if isinstance(self.equation, WithUnits) else None
        return ("",) * len(self.equation.components) if known is None else known
