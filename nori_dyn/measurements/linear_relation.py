"""A linear relation among variables: a gear, a differential, a coupling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from nori_dyn.algebra.spatial import add, zeros
from nori_dyn.errors import UnknownSensorNameError
from nori_dyn.measurements.base import Measurement, known_terms
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation, Ranges
from nori_dyn.system.parts import robot_variables
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True)
class Relation:
    """The row sum of factors times numbers of d, minus their value.

    Attributes:
        name: "relation:differential".
        factors: the factors on each variable (1, size).
        body: a body of the relation.
        value: the value of the sum (1); None when it is read.
        sigma: its standard deviation (1); None is exact.
        ranges: the readings between which its sensor works (1); None is all.
    """

    name: str
    factors: Mapping[VariableKey, Array]
    body: int
    value: tuple[float, ...] | None
    sigma: tuple[float, ...] | None
    ranges: Ranges | None

    source: ClassVar[str] = "Nori (16)"
    group: ClassVar[str] = "linear_relation"
    components: ClassVar[tuple[str, ...]] = ("",)

    @property
    def is_measured(self) -> bool:
        """Whether the row takes a number of y."""
        return self.value is None

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return self.factors

    def bias(self, at: Kinematics, y: Array) -> Array:
        return add(zeros((1,), at.v[self.body]), known_terms(self.value, y))


class LinearRelation(Measurement):
    """A weighted sum of numbers of d that is known, or read: Nori (16).

        sum_k factor_k d_k - y = 0

    A gear of ratio 3, its torques related by another; a `coupling` among the robot's components does both. A load cell
    in the rod of a loop reads one component of its wrench: terms: {"loop:rod.fz": 1}, value: null.

        - {type: linear_relation, name: gear, terms: {"qdd:joint1": 1, "qdd:joint2": -3}}

    Attributes:
        name: its name.
        terms: factor of each number by its name, as in `system.variable_names`: "qdd:l_knee", "fx:l_sole.mz".
        value: the value of the sum, zero by default; null where it is read.
    """

    type: Literal["linear_relation"]
    name: Annotated[str, Field(min_length=1)]
    terms: Annotated[dict[str, FiniteFloat], Field(min_length=1)]
    value: FiniteFloat | list[FiniteFloat] | None = 0.0

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        known = {
            name: (variable.key, len(variable.components), place)
            for variable in robot_variables(tree)
            for place, name in enumerate(variable.component_names)
        }
        factors: dict[VariableKey, Array] = {}
        for term, factor in self.terms.items():
            if term not in known:
                raise UnknownSensorNameError("variable", term, known, f"robot '{tree.name}'")
            key, size, place = known[term]
            factors.setdefault(key, np.zeros((1, size)))[0, place] = factor
        name = f"relation:{self.name}"
        yield Relation(name, factors, next(iter(factors)).body, **self.numbers(name, ("",)))
