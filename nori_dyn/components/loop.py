"""Closed loops: two frames joined at a point, in a pose, by a hinge, or along any constraint subspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal, Self

import numpy as np
import scipy.linalg as la
from pydantic import Field, FiniteFloat, model_validator

from nori_dyn.algebra.scalars import is_numeric
from nori_dyn.algebra.spatial import (
    Transform,
    add,
    cross,
    cross_motion,
    cross_motion_matrix,
    join,
    matmul,
    matvec,
    stack,
    zeros,
)
from nori_dyn.components.base import NamedComponent, NotNegative
from nori_dyn.components.multiplier import BilateralConstraint, Constraint
from nori_dyn.errors import ModelError
from nori_dyn.model.joints import FORCE, FORCE_UNITS
from nori_dyn.model.kinematics import Kinematics, transform_between, world_acceleration
from nori_dyn.model.paths import common_ancestor
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array, Floats

Direction = Literal["mx", "my", "mz", "fx", "fy", "fz"]
SpatialVector = Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]

NOT_FREE = 1e-9
"""A velocity in held directions, of two unit motions that are free, that is no rounding."""

SMALL_TURN = 1e-2
"""Angle [rad] below which the series of the logarithm end after its first terms."""

SUBSPACES: Mapping[str, tuple[str, ...]] = {"point": FORCE[3:], "pose": FORCE, "hinge": ("mx", "my", *FORCE[3:])}
"""The constraint subspaces that have a name; a hinge turns about z of the first frame."""


class Stabilisation(ConfigPart):
    """Baumgarte's stabilisation of a loop that has drifted apart.

    Attributes:
        position: acceleration for the gap [1/s^2].
        velocity: acceleration for the velocity of the gap [1/s].
    """

    position: NotNegative = 0.0
    velocity: NotNegative = 0.0


class Loop(NamedComponent):
    """Two frames that a constraint joins: `equality/connect` and `equality/weld` of MJCF, or the cut joint of a loop.

        T^T (a_A - AXB a_B + v_rel x AXB v_B) = 0,   v_rel = v_A - AXB v_B

    A and B are the frames, on two links or on one and the world, and the columns of T the directions in which they
    are held. The wrench T z acts on the first frame, and its opposite on the second. Where no turn is held and a point
    may slide, as with constrains: [fz] on a plane, both act at the point of the second frame.

        - {type: loop, name: bar, frames: [rod_end, crank_end], constrains: point}

    The system has the variable "loop:bar" for z (k numbers, in coordinates of the first frame) and k rows.

    Motions that are left free are closed under the Lie bracket, so that rows that hold velocities hold a pose: those of
    a single turn do not, and are refused.

    Attributes:
        frames: two frames, by name.
        constrains: "point" (3 directions: the origins stay together), "pose" (6), "hinge" (5, all but a turn about z of
            the first frame), some of mx, my, mz, fx, fy, fz of the first frame, or a list of wrenches (6 numbers each,
            couple first), which are the columns of T.
        stabilisation: accelerations that close a gap; none by default.

    Source: RBDA ch. 8.2; docs/design.md, 2.5. Points are compared by their own conventional accelerations.
    """

    type: Literal["loop"] = "loop"
    frames: Annotated[list[str], Field(min_length=2, max_length=2)]
    constrains: (
        Literal["point", "pose", "hinge"]
        | Annotated[list[Direction], Field(min_length=1, max_length=6)]
        | Annotated[list[SpatialVector], Field(min_length=1, max_length=6)]
    )
    stabilisation: Stabilisation | None = None

    @model_validator(mode="after")
    def _holds_independent_directions_and_a_pose(self) -> Self:
        T, names = self.subspace()
        if np.linalg.matrix_rank(T) < T.shape[1]:
            raise ValueError(f"constrains: {', '.join(names)} are not independent directions")
        free = la.null_space(T.T).T if T[:3].any() else np.zeros((0, 6))
        if any(np.abs(T.T @ cross_motion(v, w)).max() > NOT_FREE for v, w in combinations(free, 2)):
            raise ValueError(
                f"constrains: {', '.join(names)}: motions that it leaves free lead, one after the other, to poses that "
                "it does not, as a rolling wheel gets anywhere: so no configuration closes it. Hold point, hinge or "
                "pose, or two or three turns; beside two turns, both directions across the third, the one along it, "
                "or none. Where a single turn is held, as by a universal joint, close the loop at another joint"
            )
        return self

    def subspace(self) -> tuple[Floats, tuple[str, ...]]:
        """T (6, k), and a name for each of its columns."""
        chosen = SUBSPACES[self.constrains] if isinstance(self.constrains, str) else self.constrains
        columns = [np.eye(6)[:, FORCE.index(c)] if isinstance(c, str) else np.array(c) for c in chosen]
        return np.stack(columns, axis=1), tuple(c if isinstance(c, str) else f"z{k}" for k, c in enumerate(chosen))

    def places(self) -> list[str]:
        return self.frames

    def on(self, tree: KinematicTree) -> Iterator[BilateralConstraint]:
        first, second = (tree.frame(name) for name in self.frames)
        if first.link == second.link:
            on = "the world" if first.on_world else f"link '{tree.names[first.link]}'"
            raise ModelError(
                f"frames '{self.frames[0]}' and '{self.frames[1]}' are both on {on}: they never move apart, and "
                "cannot meet. Name frames on two links."
            )
        if first.on_world:
            raise ModelError(
                f"frame '{self.frames[0]}' is on the world, and the wrench of a loop acts on its first frame. "
                f"Swap them: frames: [{self.frames[1]}, {self.frames[0]}]."
            )
        T, names = self.subspace()
        constraint = FrameConstraint((first, second), T, self.stabilisation)
        body = max(0, common_ancestor(tree.parents, first.link, second.link))
        units = [FORCE_UNITS[FORCE.index(name)] if name in FORCE else "" for name in names]
        unknown = Unknown(VariableKey("loop", body, self.name), names, tuple(units))
        yield BilateralConstraint(unknown, constraint, self.type, "RBDA ch. 8.2")


@dataclass(frozen=True, slots=True)
class FrameConstraint(Constraint):
    """The rows of a loop.

    Attributes:
        frames: A and B.
        T: the directions in which they are held (6, k).
        stabilisation: accelerations that close a gap.
    """

    frames: tuple[Frame, Frame]
    T: Floats
    stabilisation: Stabilisation | None

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies that the constraint joins, without the world."""
        return tuple(frame.link for frame in self.frames if not frame.on_world)

    @property
    def is_point(self) -> bool:
        """Whether no rotation is constrained: then only the origins of the frames matter."""
        return not self.T[:3].any()

    @property
    def _free(self) -> Floats:
        """The projection (3, 3) onto the directions in which a point may slide; zeros where it cannot."""
        along = self.T[3:]
        return np.eye(3) - along @ np.linalg.pinv(along)

    def _places(self, at: Kinematics) -> tuple[Transform, Transform, Transform]:
        """X_A, X_B from the coordinates of the links, and AXB.

        Where only points are held, X_A goes to where the point of B is, as far as it has slid in the axes of A.
        """
        A, B = self.frames
        X_A, X_B = at.tree.constant(A.X), at.tree.constant(B.X)
        X = X_A @ transform_between(at, A.link, B.link) @ X_B.inverse()
        if self.is_point and self._free.any():
            X_A = Transform(np.eye(3), -matvec(self._free, matvec(X.E, X.r))) @ X_A
        return X_A, X_B, X

    def _used(self, X: Transform) -> Transform:
        """AXB as it is used for velocities and accelerations."""
        return Transform(X.E, np.zeros(3)) if self.is_point else X

    def rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        A, B = self.frames
        X_A, X_B, X = self._places(at)
        found = {VariableKey("a", A.link): matmul(self.T.T, X_A.motion_matrix())}
        if not B.on_world:
            found[VariableKey("a", B.link)] = -matmul(self.T.T, (self._used(X) @ X_B).motion_matrix())
        return found

    def velocity_terms(self, at: Kinematics) -> Array:
        A, B = self.frames
        X_A, X_B, X = self._places(at)
        carry = self._used(X) @ X_B
        v_A = X_A.apply_motion(at.v[A.link])
        of_B = zeros((6,), at.v[A.link]) if B.on_world else X_B.apply_motion(at.v[B.link])
        v_B = self._used(X).apply_motion(of_B)
        relative = v_A - v_B
        if self.is_point:
            sliding = -matvec(self._free, relative[3:])
            turning_B = matvec(X.E, cross(of_B[:3], of_B[3:]))
            terms = join(0 * relative[:3], cross(v_A[:3], v_A[3:] + 2 * sliding) - turning_B)
        else:
            terms = cross_motion(relative, v_B)
        if B.on_world:
            terms = add(terms, -carry.apply_motion(world_acceleration(at.tree.gravity)))
        if self.stabilisation is not None:
            terms = add(terms, self.stabilisation.velocity * relative)
            terms = add(terms, self.stabilisation.position * self._displacement(X))
        return matvec(self.T.T, terms)

    def gap(self, at: Kinematics) -> Array:
        """The gap between A and B (k, ...) [rad, m] in the constrained directions."""
        _, _, X = self._places(at)
        return matvec(self.T.T, self._displacement(X))

    def gap_rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """The rows by which velocities change the gap, closed or not, of doubles."""
        _, _, X = self._places(at)
        if self.is_point:
            return self.rows(at)
        whole = FrameConstraint(self.frames, np.eye(6), None)
        turned = matmul(self.T.T, _log_rate(self._displacement(X)))
        return {key: matmul(turned, block) for key, block in whole.rows(at).items()}

    def _displacement(self, X: Transform) -> Array:
        """The twist (6, ...) that leads from B to A in a second: the logarithm of the pose of A in B.

        Of expressions it is that of small turns, to the third order.
        """
        if self.is_point:
            return join(0 * X.r, matvec(X.E, X.r))
        w = stack(X.E[1, 2] - X.E[2, 1], X.E[2, 0] - X.E[0, 2], X.E[0, 1] - X.E[1, 0]) / 2
        bend: Array | float = 1 / 12
        if is_numeric(w):
            w = _whole_turn(w, X.E)
            angle = np.maximum(np.linalg.norm(w, axis=0), 1e-4)
            bend = 1 / angle**2 - 1 / (2 * angle * np.tan(angle / 2))
        return join(w, add(X.r, add(-cross(w, X.r) / 2, bend * cross(w, cross(w, X.r)))))


def _whole_turn(half_way: Floats, E: Floats) -> Floats:
    """The rotation vector (3, ...) of a rotation, given its axis times the sine of its angle."""
    sine, cosine = np.linalg.norm(half_way, axis=0), (np.trace(E) - 1) / 2
    with np.errstate(all="ignore"):
        turned = half_way * np.where(sine > 0, np.arctan2(sine, cosine) / sine, 1.0)
    about_x = np.zeros_like(half_way)
    about_x[0] = np.pi  # at half a turn any axis does: it is no closed loop
    return np.where((sine < 1e-9) & (cosine < 0), about_x, turned)


def _log_rate(twist: Floats) -> Floats:
    """The Jacobian (6, 6, ...) of the logarithm of the pose of A in B by the velocity (6,) of A relative to B, in A.

    The inverse of the right Jacobian of SE(3), ad / (1 - exp(-ad)): with theta the angle of the turn, ad is a zero of
    x (x^2 + theta^2)^2, and the even part (x / 2) coth(x / 2) is 1 + a x^2 + b x^4 there.

    Source: Barfoot, State Estimation for Robotics, ch. 7.
    """
    ad = np.moveaxis(cross_motion_matrix(twist), (0, 1), (-2, -1))
    angle = np.linalg.norm(twist[:3], axis=0)
    theta = np.maximum(angle, SMALL_TURN)
    c = theta / 2 / np.tan(theta / 2)
    rate = c - (theta / 2 / np.sin(theta / 2)) ** 2
    a = (rate - 4 * (c - 1)) / (2 * theta**2)
    b = np.where(angle > SMALL_TURN, (c - 1 + a * theta**2) / theta**4, -1 / 720)
    square = ad @ ad
    found = np.eye(6) + ad / 2 + a[..., None, None] * square + b[..., None, None] * (square @ square)
    return np.moveaxis(found, (-2, -1), (0, 1))
