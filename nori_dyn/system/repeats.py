"""Redundant rows of loops and couplings, which repeat others in all closed configurations, and their replacement.

The out-of-plane rows of a planar four-bar are an example: the hinges say the same already. Such a row is left out. The
force along it is then determined by sensors, or undetermined, and set to zero.

Source: docs/design.md, 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import Closing
from nori_dyn.system.equation import Equation, EquationOf
from nori_dyn.system.parts import Part
from nori_dyn.system.variables import VariableKey, component_names
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True)
class Repeat:
    """A row that repeats others.

    Attributes:
        equation: number of its equation among those of the components.
        row: its number there.
        is_zero: whether no sensor determines the force along it, which is set to zero instead.
    """

    equation: int
    row: int
    is_zero: bool


@dataclass(frozen=True, slots=True)
class WithoutRepeats(EquationOf):
    """The rows of a constraint without those that repeat others: an equation.

    Attributes:
        equation: all its rows.
        multiplier: its force, a number for each of them.
        repeats: the rows that are left out.
    """

    multiplier: VariableKey
    repeats: tuple[Repeat, ...]

    @property
    def components(self) -> tuple[str, ...]:
        """The name of each row that is left."""
        return tuple(self.equation.components[k] for k in self._rows)

    @property
    def _rows(self) -> list[int]:
        """The rows that are left, with those in which a force is set to zero."""
        out = {repeat.row for repeat in self.repeats if not repeat.is_zero}
        return [k for k in range(len(self.equation.components)) if k not in out]

    @property
    def _zeros(self) -> list[tuple[int, int]]:
        """The indices of the rows in which a force is set to zero, each with the index of that force."""
        zeros = {repeat.row for repeat in self.repeats if repeat.is_zero}
        return [(place, row) for place, row in enumerate(self._rows) if row in zeros]

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        found = {key: self._left_of(block) for key, block in self.equation.blocks(at).items()}
        if self._zeros:
            force = np.zeros((len(self._rows), len(self.equation.components)))
            for place, row in self._zeros:
                force[place, row] = 1.0
            found[self.multiplier] = force
        return found

    def bias(self, at: Kinematics, y: Array) -> Array:
        return self._left_of(self.equation.bias(at, y))

    def _left_of(self, rows: Array) -> Array:
        left: Array = rows[self._rows]  # a copy
        left[[place for place, _ in self._zeros]] = 0.0
        return left


@dataclass(frozen=True, slots=True)
class ComponentRows:
    """The equations of all components, and which of their rows are left out.

    Attributes:
        whole: the equations, with all their rows.
        forces: for each the force of its constraint, where it has one of its own.
        repeats: the rows that are left out.
    """

    whole: tuple[Equation, ...]
    forces: tuple[VariableKey | None, ...]
    repeats: tuple[Repeat, ...]

    @staticmethod
    def of(parts: Sequence[Part], repeats: Sequence[Repeat]) -> ComponentRows:
        """The equations of some parts, without readings."""
        pairs = [(equation, part) for part in parts for equation in part.equations if not equation.is_measured]
        forces = [part.unknowns[0].key if isinstance(part, Closing) else None for _, part in pairs]
        return ComponentRows(tuple(equation for equation, _ in pairs), tuple(forces), tuple(repeats))

    @property
    def left(self) -> list[Equation]:
        """The equations without rows that repeat others."""
        found: list[Equation] = []
        for number, (equation, force) in enumerate(zip(self.whole, self.forces, strict=True)):
            own = tuple(repeat for repeat in self.repeats if repeat.equation == number)
            found.append(WithoutRepeats(equation, force, own) if own and force else equation)
        return found

    @property
    def closing(self) -> tuple[tuple[int, int], ...]:
        """For each row of the gaps of loops and couplings the index of its equation and of the row there."""
        numbered = enumerate(zip(self.whole, self.forces, strict=True))
        return tuple((k, row) for k, (e, force) in numbered if force for row in range(len(e.components)))

    @property
    def repeated_names(self) -> tuple[str, ...]:
        """The names of the rows that are left out: "loop:bar.my"."""
        named = [component_names(equation.name, equation.components) for equation in self.whole]
        return tuple(named[repeat.equation][repeat.row] for repeat in self.repeats)
