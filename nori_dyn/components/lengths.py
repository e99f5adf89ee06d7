"""Lengths over joints and through frames, and their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.scalars import sqrt
from nori_dyn.algebra.spatial import add, cross, matmul, matvec, scaled, stack, transpose, zeros
from nori_dyn.components.multiplier import Constraint
from nori_dyn.model.kinematics import Kinematics, transform_between, world_acceleration
from nori_dyn.model.tree import WORLD, Frame
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array


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
