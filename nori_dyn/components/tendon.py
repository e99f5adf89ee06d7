"""Tendons, cables, rods and linear actuators: forces along lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from nori_dyn.algebra.spatial import matvec
from nori_dyn.components.base import NamedComponent, NotNegative, check_one_freedom
from nori_dyn.components.lengths import Length, OverJoints, StraightLines
from nori_dyn.components.multiplier import BilateralConstraint, Multiplier
from nori_dyn.errors import ModelError
from nori_dyn.measurements.base import Positive
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.paths import common_ancestor
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import Part
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array


class Tendon(NamedComponent):
    """A force along a length: through frames in straight lines, or over joints as their weighted sum.

        L = sum of the distances from frame to frame,  or  sum over joints j of factor_j q_j
        power of the force z = z dL/dt: positive drives it to lengthen, a cable pulls with -z

    `actuated` is a motor's: z is the variable "tendon:NAME", which a sensor or a known value determines. `held` is a
    rod: its length stays, d^2 L / dt^2 = 0, and z is the constraint force. `passive` adds no variable, only its spring
    and damper, -stiffness (L - rest) - damping dL/dt, which the others may have too.

        - {type: tendon, name: piston, through: [cylinder, rod]}
        - {type: tendon, name: flexor, joints: {proximal: 0.01, distal: 0.008}, stiffness: 200}

    Attributes:
        through: frames by name, two or more; MJCF's `spatial` tendons without wrapping.
        joints: factor of each joint [m/rad, or 1]; MJCF's `fixed` tendons.
        role: "actuated", "held" or "passive".
        stiffness: [N/m].
        damping: [N s/m].
        rest: the length at which its spring is slack, and a rod is held [m].
        divisor: of all distances, for a tendon that runs several times over a pulley.

    Source: docs/design.md, 2.5.
    """

    type: Literal["tendon"] = "tendon"
    through: Annotated[list[str], Field(min_length=2)] | None = None
    joints: Annotated[dict[str, FiniteFloat], Field(min_length=1)] | None = None
    role: Literal["actuated", "held", "passive"] = "actuated"
    stiffness: NotNegative = 0.0
    damping: NotNegative = 0.0
    rest: FiniteFloat = 0.0
    divisor: Positive = 1.0

    @model_validator(mode="after")
    def _runs_somewhere(self) -> Self:
        if (self.through is None) == (self.joints is None):
            raise ValueError("give one of `through` (frames) and `joints` (factors)")
        return self

    def places(self) -> list[str]:
        return self.through or list(self.joints or ())

    def on(self, tree: KinematicTree) -> Iterator[Part]:
        length = self._length(tree)
        reached = (*length.bodies, *length.joints)
        if self.stiffness or self.damping:
            yield PassiveTendon(f"tendon:{self.name}", length, self.stiffness, self.damping)
        if self.role == "passive":
            return
        body = max(0, reduce(lambda i, j: common_ancestor(tree.parents, i, j), reached))
        unknown = Unknown(VariableKey("tendon", body, self.name), ("",), ("N",))
        if self.role == "actuated":
            yield Multiplier(unknown, length)
        else:
            yield BilateralConstraint(unknown, length, self.type, "docs/design.md, 2.5")

    def _length(self, tree: KinematicTree) -> Length:
        if self.joints is not None:
            factors = {tree.joint(name): factor for name, factor in self.joints.items()}
            for i in factors:
                check_one_freedom(tree, i, self.type)
            return OverJoints(self.rest, factors)
        frames = tuple(tree.frame(name) for name in self.through or ())
        line = StraightLines(self.rest, tuple(pairwise(frames)), self.divisor)
        if not line.bodies or len({frame.link for frame in frames}) < 2:
            raise ModelError(
                f"frames {', '.join(self.through or ())} are all on one link, or on the world: the length between them "
                "never changes. Name frames on two links."
            )
        return line


@dataclass(frozen=True, slots=True)
class PassiveTendon:
    """The spring and damper of a tendon: a part.

    Attributes:
        name: "tendon:flexor".
        length: the length that it acts along.
        stiffness, damping: see `Tendon`.
    """

    name: str
    length: Length
    stiffness: float
    damping: float

    unknowns: ClassVar[tuple[Unknown, ...]] = ()
    equations: ClassVar[tuple[Equation, ...]] = ()

    @property
    def acts_on(self) -> tuple[NewtonEuler, ...]:
        """(3f) of the links, or (3tau) of the joints, that it pulls at."""
        return self.length.acts_on

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """None: its force is known."""
        return {}

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """Minus the force of the tendon on the body, or the joint."""
        row = self.length.rows(at)[VariableKey("a" if on.gives == "f" else "qdd", on.body)]
        against = self.stiffness * self.length.gap(at) + self.damping * self.length.speed(at)
        return matvec(np.swapaxes(row, 0, 1), against)
