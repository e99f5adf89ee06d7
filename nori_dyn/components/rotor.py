"""Rotors: the inertia of motors, through their gears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import FiniteFloat

from nori_dyn.components.base import JointTerm, NotNegative, OnJoints
from nori_dyn.measurements.selectors import Selector
from nori_dyn.model.tree import KinematicTree


class Rotor(OnJoints):
    """The inertia of a motor's rotor, which turns `gear` times as fast as its joint: `armature` of MJCF.

        tau_i = tau_J_i + gear^2 inertia qdd_i

    The motion of the rotor's axis with its link is left out, as MuJoCo and Pinocchio do: the link has its mass.

        - {type: rotor, joints: actuated, inertia: 2.0e-5, gear: 100}

    Attributes:
        joints: which joints.
        inertia: of the rotor about its axis [kg m^2]; of a linear motor its mass [kg].
        gear: turns of the rotor for one of the joint; the inertia is that at the joint already when 1.

    Source: RBDA ch. 9.6 (geared motors).
    """

    type: Literal["rotor"] = "rotor"
    inertia: NotNegative
    gear: FiniteFloat = 1.0

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = {"rotor": ("kg m^2", "kg")}

    def coefficients(self) -> dict[str, float]:
        return {"rotor": self.gear**2 * self.inertia}

    def with_coefficients(self, joints: Selector, values: Mapping[str, Any]) -> Self:
        at_joint = {**self.coefficients(), **values}["rotor"]
        return self.model_copy(update={"joints": joints, "inertia": at_joint / self.gear**2})

    def on(self, tree: KinematicTree) -> Iterator[JointTerm]:
        at_joint = self.gear**2 * self.inertia
        for i in self.joints_on(tree):
            yield JointTerm(f"rotor:{tree.joint_names[i]}", i, inertia=np.full(tree.joints[i].nv, at_joint))
