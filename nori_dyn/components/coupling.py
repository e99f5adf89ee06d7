"""Couplings of joints: mimic joints, belts, differentials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from nori_dyn.components.base import NamedComponent, check_one_freedom
from nori_dyn.components.multiplier import BilateralConstraint, Constraint
from nori_dyn.errors import ModelError
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.paths import common_ancestor
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array

Polynomial = Annotated[list[FiniteFloat], Field(min_length=1)]


class Coupling(NamedComponent):
    """A joint that follows others: URDF's `mimic`, MJCF's `equality/joint`, a belt, a differential.

        q_i = offset + sum over joints j of p_j(q_j),   p_j(x) = c_1 x + c_2 x^2 + ...
        W qdd + (dW/dt) qd = 0,   W_i = 1, W_j = -p_j'(q_j)

    Its force z acts on the joints as W^T z: on joint i in its own direction, "coupling:NAME" in the system.

        - {type: coupling, name: finger, joint: finger_tip, of: {finger_base: 0.8}}
        - {type: coupling, name: differential, joint: pitch, of: {left: 0.5, right: 0.5}}

    Attributes:
        joint: the joint that follows, of one freedom.
        of: the joints that it follows, each with its factor c_1 or the list of c_1, c_2, ...; none, {}, where it is
            held at the offset.
        offset: where it is while they are at zero [rad or m].

    Source: docs/design.md, 2.5.
    """

    type: Literal["coupling"] = "coupling"
    joint: str
    of: dict[str, FiniteFloat | Polynomial]
    offset: FiniteFloat = 0.0

    def places(self) -> tuple[str, ...]:
        return (self.joint, *self.of)

    def on(self, tree: KinematicTree) -> Iterator[BilateralConstraint]:
        if self.joint in self.of:
            raise ModelError(f"joint '{self.joint}' is coupled with itself. Name the joints that it follows.")
        follower, *others = (tree.joint(name) for name in (self.joint, *self.of))
        for i in (follower, *others):
            check_one_freedom(tree, i, self.type)
        factors = [tuple(c) if isinstance(c, list) else (c,) for c in self.of.values()]
        constraint = Following(follower, dict(zip(others, factors, strict=True)), self.offset)
        body = follower
        for i in others:
            body = max(0, common_ancestor(tree.parents, body, i))
        key = VariableKey("coupling", body, self.name)
        unknown = Unknown(key, ("",), tree.joints[follower].units("N m", "N"))
        yield BilateralConstraint(unknown, constraint, self.type, "docs/design.md, 2.5")


@dataclass(frozen=True, slots=True)
class Following(Constraint):
    """The row of a coupling.

    Attributes:
        follower: the body whose joint follows.
        others: the bodies whose joints it follows, with the coefficients c_1, c_2, ...
        offset: where it is while they are at zero.
    """

    follower: int
    others: Mapping[int, tuple[float, ...]]
    offset: float

    @property
    def joints(self) -> tuple[int, ...]:
        """The bodies whose joints are coupled."""
        return (self.follower, *self.others)

    def rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        slopes = {j: -derivative(c, _of(at, j)) for j, c in self.others.items()}
        own = {VariableKey("qdd", j): slope[None] for j, slope in slopes.items()}
        return {VariableKey("qdd", self.follower): np.eye(1)} | own

    def velocity_terms(self, at: Kinematics) -> Array:
        bends = 0 * at.qd[at.tree.v_slices[self.follower]]
        for j, c in self.others.items():
            qd = at.qd[at.tree.v_slices[j]]
            bends = bends - derivative(c, _of(at, j), order=2) * qd * qd
        return bends

    def gap(self, at: Kinematics) -> Array:
        """How far the joint is from where it should be (1, ...) [rad or m]."""
        q = at.q[at.tree.q_slices[self.follower]] - self.offset
        for j, c in self.others.items():
            q = q - derivative(c, _of(at, j), order=0)
        return q


def derivative(coefficients: tuple[float, ...], x: Array, order: int = 1) -> Array:
    """A derivative of c_1 x + c_2 x^2 + ... at x (1, ...); itself for order 0."""
    factors = np.polynomial.polynomial.polyder([0.0, *coefficients], order)
    value = 0 * x
    for factor in reversed(factors.tolist()):
        value = value * x + factor
    return value


def _of(at: Kinematics, i: int) -> Array:
    """The position (1, ...) of a joint."""
    return at.q[at.tree.q_slices[i]]
