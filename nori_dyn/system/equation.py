"""The one seam of the system: an equation is a named block of rows of D d + b = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree, NamedFrame
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array, Floats

Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""The lowest and the highest reading of each row; infinite where there is no end."""


class Equation(Protocol):
    """A block of rows, written once over any scalar. Laws, tested in tests/contracts/test_equations.py.

    - `blocks` depends on q only, `bias` on q, qd and its own part of y;
    - each block has as many rows as `components` and as many columns as its variable;
    - `bias` is affine in y: known terms minus the reading;
    - `name` and `group` are for people: whatever they are, rank, special poses, units and values are the same.
    """

    @property
    def name(self) -> str:
        """The block's name for people: "3f:l_knee", or the measured thing "qdd:l_knee"."""

    @property
    def source(self) -> str:
        """Where it stands in the literature: "Nori (3f)"."""

    @property
    def group(self) -> str:
        """Its group in messages that count rows: "dynamics", "joint_torque"."""

    @property
    def components(self) -> tuple[str, ...]:
        """The name of each row; one empty name for a single row."""

    @property
    def is_measured(self) -> bool:
        """Whether each row takes a number of y; rows of known value do not."""

    @property
    def sigma(self) -> tuple[float, ...] | None:
        """Standard deviation of each row; None is exact."""

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """The blocks of D (rows, size of the variable, ...); absent ones are zero."""

    def bias(self, at: Kinematics, y: Array) -> Array:
        """The rows of b (rows, ...), from the equation's part of y (rows, ...), empty if not measured."""


@runtime_checkable
class Ranged(Protocol):
    """Optional part of an equation: the measuring range of its sensor, at whose ends a reading is saturated."""

    @property
    def ranges(self) -> Ranges | None:
        """For each row the readings between which the sensor works; None, as without the attribute, is all."""


@runtime_checkable
class WithFrame(Protocol):
    """Optional part of an equation: the frame on the link in which a spatial vector is read."""

    @property
    def frame(self) -> NamedFrame | None:
        """The frame in whose coordinates it reads; None, as without the attribute, is the link frame."""


@runtime_checkable
class WithUnits(Protocol):
    """Optional part of an equation: the units of its rows."""

    @property
    def units(self) -> tuple[str, ...] | None:
        """The SI unit of each row, "" where that depends; None, as without the attribute, is not known."""


@runtime_checkable
class WithUnknowns(Protocol):
    """Optional part of an equation: further variables, such as the offset of its sensor."""

    @property
    def unknowns(self) -> Sequence[Unknown]:
        """The variables that it adds to d."""


@runtime_checkable
class Turnable(Protocol):
    """Optional part of an equation: vectors that may be read along other axes as well."""

    def along(self, C: Floats) -> tuple[Equation, Floats] | None:
        """The same rows for variables in other axes, and the orthogonal matrix that turns readings to these.

        The vectors that they read have these axes too. None where rows are not whole vectors.

        Args:
            C: rotation (3, 3) from link coordinates to the other axes, which the variables are then in.
        """


@dataclass(frozen=True, slots=True)
class EquationOf:
    """The rows of another equation, along the axes that it has; what else they are says a subclass.

    Attributes:
        equation: the other.
    """

    equation: Equation

    @property
    def name(self) -> str:
        return self.equation.name

    @property
    def source(self) -> str:
        return self.equation.source

    @property
    def group(self) -> str:
        return self.equation.group

    @property
    def components(self) -> tuple[str, ...]:
        return self.equation.components

    @property
    def is_measured(self) -> bool:
        return self.equation.is_measured

    @property
    def sigma(self) -> tuple[float, ...] | None:
        return self.equation.sigma

    @property
    def ranges(self) -> Ranges | None:
        return self.equation.ranges if isinstance(self.equation, Ranged) else None

    @property
    def frame(self) -> NamedFrame | None:
        return self.equation.frame if isinstance(self.equation, WithFrame) else None

    @property
    def units(self) -> tuple[str, ...] | None:
        return self.equation.units if isinstance(self.equation, WithUnits) else None

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        return tuple(self.equation.unknowns) if isinstance(self.equation, WithUnknowns) else ()

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return self.equation.blocks(at)

    def bias(self, at: Kinematics, y: Array) -> Array:
        return self.equation.bias(at, y)


class Sensors(Protocol):
    """A set of sensors, before it meets a robot."""

    @property
    def name(self) -> str:
        """The name of the set."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that its equations depend on beside the tree."""

    def equations(self, tree: KinematicTree) -> Sequence[Equation]:
        """The measurement rows on a tree; every name is checked here."""


@dataclass(frozen=True, slots=True)
class SensorsOfRows:
    """Rows on a robot as a set of sensors, which fits no other.

    Attributes:
        name: the name of the set.
        fingerprint: a hash of all that the rows depend on beside the tree.
        rows: the rows.
    """

    name: str
    fingerprint: str
    rows: tuple[Equation, ...]

    def equations(self, tree: KinematicTree) -> Sequence[Equation]:
        """The rows."""
        return self.rows


@runtime_checkable
class NoisyDynamics(Protocol):
    """Optional part of a set of sensors: standard deviations of the equations of motion."""

    def dynamics_sigma(self, equation: str, n: int) -> tuple[float, ...] | None:
        """The standard deviation of each of the n rows of "3a", "3f" or "3tau"; None is exact."""
