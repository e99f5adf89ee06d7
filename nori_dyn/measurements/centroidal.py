"""The centre of mass and the centroidal momentum as variables, so that they are outputs as all others are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, FiniteFloat, field_validator

from nori_dyn.algebra.spatial import add, matvec
from nori_dyn.measurements.base import Measurement
from nori_dyn.model.centroid import CentroidalFrame, centroidal_frame, mass_of
from nori_dyn.model.joints import FORCE, FORCE_UNITS
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import CENTROIDAL, Unknown, VariableKey
from nori_dyn.typing import Array

Quantity = Literal["com", "com_velocity", "momentum", "momentum_rate"]

PARTS: Mapping[Quantity, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "com": (("x", "y", "z"), ("m",) * 3),
    "com_velocity": (("x", "y", "z"), ("m/s",) * 3),
    "momentum": (("kx", "ky", "kz", "lx", "ly", "lz"), ("N m s",) * 3 + ("N s",) * 3),
    "momentum_rate": (FORCE, FORCE_UNITS),
}
"""The components of each, and their units."""

KNOWN: Mapping[str, Callable[[CentroidalFrame], Array]] = {
    "com": lambda frame: frame.com,
    "com_velocity": lambda frame: matvec(frame.momentum_matrix[3:], frame.at.qd) / mass_of(frame.at.tree),
    "momentum": lambda frame: matvec(frame.momentum_matrix, frame.at.qd),
    "momentum_rate": lambda frame: add(
        0 * frame.com[[0] * 6], mass_of(frame.at.tree) * np.array([0.0, 0.0, 0.0, *frame.at.tree.gravity])
    ),
}
"""What is known of each at a state: of the rate of the momentum that is the weight."""


@dataclass(frozen=True, slots=True)
class CentroidalRows:
    """The rows that define a quantity c: c - (what is known of it) - (what wrenches add to it) = 0.

    Attributes:
        quantity: which.
        roots: the links whose joints are on the world.
    """

    quantity: Quantity
    roots: tuple[int, ...]

    source: ClassVar[str] = "Orin, Goswami and Lee"
    group: ClassVar[str] = CENTROIDAL
    is_measured: ClassVar[bool] = False
    sigma: ClassVar[None] = None

    @property
    def name(self) -> str:
        """That of the variable: "centroidal:com"."""
        return f"{CENTROIDAL}:{self.quantity}"

    @property
    def components(self) -> tuple[str, ...]:
        """Those of the variable."""
        return PARTS[self.quantity][0]

    @property
    def units(self) -> tuple[str, ...]:
        """Those of the variable."""
        return PARTS[self.quantity][1]

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The variable, see `WithUnknowns`."""
        return (Unknown(self._key, self.components, self.units, self.quantity == "momentum_rate"),)

    @property
    def _key(self) -> VariableKey:
        return VariableKey(CENTROIDAL, self.roots[0], self.quantity)

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        found: dict[VariableKey, Array] = {self._key: np.eye(len(self.components))}
        if self.quantity == "momentum_rate":
            for i, X in enumerate(centroidal_frame(at).X):
                to_frame = -X.inverse().force_matrix()
                found |= {VariableKey(kind, i): to_frame for kind in ("fx", "f") if kind == "fx" or i in self.roots}
        return found

    def bias(self, at: Kinematics, y: Array) -> Array:
        return -KNOWN[self.quantity](centroidal_frame(at))


class Centroidal(Measurement):
    """The centre of mass, its velocity, the centroidal momentum and its rate, as variables along axes of the world.

        c - com(q) = 0, c - J_com qd = 0, c - A_G qd = 0, c - sum of external wrenches - weight = 0

    It reads nothing: `outputs=["centroidal:com"]` of a plan brings it along. Of a robot with a fixed base its joint to
    the world is outside.

        - {type: centroidal, quantities: [com, momentum_rate]}

    Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.

    Attributes:
        quantities: which of com, com_velocity, momentum, momentum_rate; all when left out.
    """

    type: Literal["centroidal"]
    quantities: Annotated[list[Quantity], Field(min_length=1)] | None = None

    @field_validator("name", "value", "sigma", "range", "offset", mode="before")
    @classmethod
    def _reads_nothing(cls, given: FiniteFloat | None, info: Any) -> None:
        if given is not None:
            raise ValueError(
                f"centroidal quantities follow from the others and are not read: leave {info.field_name} out"
            )

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        mass_of(tree)  # which refuses a robot without any
        roots = tuple(i for i in range(tree.n_links) if tree.is_root(i))
        return (CentroidalRows(quantity, roots) for quantity in dict.fromkeys(self.quantities or PARTS))
