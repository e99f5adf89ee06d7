"""Tendons, cables, rods and linear actuators: forces along lengths over joints and through frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from nori_dyn.algebra.scalars import sqrt
from nori_dyn.algebra.spatial import add, cross, matmul, matvec, scaled, stack, transpose, zeros
from nori_dyn.components.base import NamedComponent, NotNegative, check_one_freedom
from nori_dyn.components.multiplier import BilateralConstraint, Constraint, Multiplier
from nori_dyn.errors import ModelError
from nori_dyn.measurements.base import Positive
from nori_dyn.model.kinematics import Kinematics, transform_between, world_acceleration
from nori_dyn.model.paths import common_ancestor
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
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


class Length(Constraint):
    """A length, as rows on accelerations: its second derivative. Its gap is how much too long it is."""

    __slots__ = ()

    def speed(self, at: Kinematics) -> Array:
        """Its derivative (1, ...): the rows at the velocities."""
        total = zeros((1,), at.qd)
        for key, block in self.rows(at).items():
            v = at.qd[at.tree.v_slices[key.body]] if key.kind == "qdd" else at.v[key.body]
            total = add(total, matvec(block, v))
        return total


@dataclass(frozen=True, slots=True)
class OverJoints(Length):
    """The weighted sum of the positions of joints.

    Attributes:
        rest: where its gap is zero [m].
        factors: by the body that each joint carries.
    """

    rest: float
    factors: Mapping[int, float]

    @property
    def joints(self) -> tuple[int, ...]:
        """The joints that it runs over."""
        return tuple(self.factors)

    def rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return {VariableKey("qdd", i): np.full((1, 1), factor) for i, factor in self.factors.items()}

    def velocity_terms(self, at: Kinematics) -> Array:
        return zeros((1,), at.qd)

    def gap(self, at: Kinematics) -> Array:
        parts = (factor * at.q[at.tree.q_slices[i]] for i, factor in self.factors.items())
        return sum(parts, zeros((1,), at.q)) - self.rest


@dataclass(frozen=True, slots=True)
class StraightLines(Length):
    """The sum of the distances of pairs of frames.

    Attributes:
        rest: where its gap is zero [m].
        pairs: the pairs.
        divisor: of the sum.
    """

    rest: float
    pairs: tuple[tuple[Frame, Frame], ...]
    divisor: float = 1.0

    @property
    def bodies(self) -> tuple[int, ...]:
        """The links that it pulls at; where both ends of a line are on one link, its length does not change."""
        ends = [frame.link for pair in self._moving() for frame in pair if not frame.on_world]
        return tuple(dict.fromkeys(ends))

    def _moving(self) -> list[tuple[Frame, Frame]]:
        return [(A, B) for A, B in self.pairs if A.link != B.link]

    def rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        found: dict[VariableKey, Array] = {}
        for A, B in self._moving():
            line = _StraightLine.between(at, A, B)
            for end, sign, u in ((A, -1.0, line.u), (B, 1.0, matvec(transpose(line.E), line.u))):
                if end.on_world:
                    continue
                key = VariableKey("a", end.link)
                row = matmul((sign / self.divisor * u)[None], at.tree.constant(end.X).motion_matrix()[3:])
                found[key] = found[key] + row if key in found else row
        return found

    def velocity_terms(self, at: Kinematics) -> Array:
        total = zeros((1,), at.qd)
        for A, B in self._moving():
            line = _StraightLine.between(at, A, B)
            u_A, acceleration_A = _motion(at, A)
            u_B, acceleration_B = _motion(at, B)
            apart = add(matvec(line.E, u_B), -u_A)
            along = _dot(line.u, apart)
            total = total + _dot(line.u, add(matvec(line.E, acceleration_B), -acceleration_A))
            total = total + (_dot(apart, apart) - along * along) / line.length
        return total / self.divisor

    def gap(self, at: Kinematics) -> Array:
        lengths = (_StraightLine.between(at, A, B).length for A, B in self.pairs)
        return sum(lengths, zeros((1,), at.q)) / self.divisor - self.rest


@dataclass(frozen=True, slots=True, eq=False)
class _StraightLine:
    """A straight line from A to B.

    Attributes:
        u: its direction, in the axes of A (3, ...).
        length: (1, ...).
        E: the rotation from the axes of B to those of A (3, 3, ...).
    """

    u: Array
    length: Array
    E: Array

    @staticmethod
    def between(at: Kinematics, A: Frame, B: Frame) -> _StraightLine:
        """The line between two frames."""
        X_A, X_B = at.tree.constant(A.X), at.tree.constant(B.X)
        X = X_A @ transform_between(at, A.link, B.link) @ X_B.inverse()
        d = -matvec(X.E, X.r)
        length = sqrt(_dot(d, d))
        return _StraightLine(scaled(1 / length[0], d), length, X.E)


def _motion(at: Kinematics, frame: Frame) -> tuple[Array, Array]:
    """The velocity of a frame's origin (3, ...), and its acceleration but for that of its link (3, ...)."""
    X = at.tree.constant(frame.X)
    if frame.link == WORLD:
        return np.zeros(3), X.apply_motion(world_acceleration(at.tree.gravity))[3:]
    v = X.apply_motion(at.v[frame.link])
    return v[3:], cross(v[:3], v[3:])


def _dot(u: Array, v: Array) -> Array:
    """The product u . v of vectors (3, ...) as (1, ...)."""
    return stack(u[0] * v[0] + u[1] * v[1] + u[2] * v[2])
