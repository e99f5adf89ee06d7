"""Friction of joints: viscous, Coulomb's, and Stribeck's, smooth with a width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from nori_dyn.algebra.scalars import is_zero, sqrt
from nori_dyn.algebra.spatial import scaled
from nori_dyn.components.base import JointTerm, NotNegative, OnJoints, Positive
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


class Friction(OnJoints):
    """The friction of joints, which the motor has to overcome: `damping` and `frictionloss` of MJCF, URDF's dynamics.

        tau_i = tau_J_i + viscous qd_i + F(qd_i) qd_i / sqrt(qd_i^2 + width^2)
        F(v) = coulomb + (static - coulomb) / (1 + (v / stribeck)^2)

    The sign of the velocity is a smooth one, so that equations stay the same at all velocities: it has 0.9 of its size
    at twice the width. Static friction is not a function of the velocity, and is zero here.

        - {type: friction, joints: all, viscous: 0.5, coulomb: 2.0, width: 0.01}

    Attributes:
        joints: which joints.
        viscous: [N m s/rad or N s/m].
        coulomb: of a joint that moves fast [N m or N].
        static: of one that only just moves, where that is more [N m or N]; as `coulomb` when None.
        stribeck: velocity at which half of the difference is left [rad/s or m/s].
        width: velocity over which the friction changes its sign [rad/s or m/s].

    Source: Hess and Soom, Friction at a lubricated line contact operating at oscillating sliding velocities (1990) for
    the curve; a smooth sign is ours.
    """

    type: Literal["friction"] = "friction"
    viscous: NotNegative = 0.0
    coulomb: NotNegative = 0.0
    static: NotNegative | None = None
    stribeck: Positive = 0.1
    width: Positive = 1e-3

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "viscous": ("N m s/rad", "N s/m"),
        "coulomb": ("N m", "N"),
    }

    @model_validator(mode="after")
    def _grows_towards_rest(self) -> Self:
        if self.static is not None and self.static < self.coulomb:
            raise ValueError(f"static friction {self.static:g} is less than coulomb {self.coulomb:g}")
        return self

    def on(self, tree: KinematicTree) -> Iterator[JointTerm]:
        for i in self.joints_on(tree):
            yield JointTerm(f"friction:{tree.joint_names[i]}", i, force=self.force)

    def force(self, q: Array, qd: Array) -> Array:
        """The friction torque or force (n, ...) at velocities (n, ...), positive against the motor."""
        force = scaled(self.viscous, qd)
        if not (self.coulomb or self.static):
            return force
        level: Array | float = self.coulomb
        if self.static is not None and not is_zero(self.static - self.coulomb):
            slowness = 1.0 / (1.0 + (qd / self.stribeck) * (qd / self.stribeck))
            level = scaled(self.static - self.coulomb, slowness) + self.coulomb
        smooth = scaled(level, qd / sqrt(qd * qd + self.width**2))
        return np.asarray(force + smooth)
