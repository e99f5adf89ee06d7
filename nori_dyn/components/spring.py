"""Springs in joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import FiniteFloat

from nori_dyn.algebra.spatial import scaled
from nori_dyn.components.base import JointTerm, NotNegative, OnJoints
from nori_dyn.measurements.selectors import Selector
from nori_dyn.model.joints import Joint
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


class Spring(OnJoints):
    """A spring beside the motor of a joint, against which it works: `stiffness` and `springref` of MJCF.

        tau_i = tau_J_i + stiffness (q_i - reference) - preload

    A leg's leaf spring is a joint that has a spring, and no motor: tau = 0 there. One of constant force, such as a
    balancer, has a preload and no stiffness.

        - {type: spring, joints: knee_spring, stiffness: 1500}

    Attributes:
        joints: which joints, of one freedom each.
        stiffness: [N m/rad or N/m].
        reference: the position at which it is slack, but for the preload [rad or m].
        preload: its torque or force there in the direction of the joint [N m or N].
    """

    type: Literal["spring"] = "spring"
    stiffness: NotNegative
    reference: FiniteFloat = 0.0
    preload: FiniteFloat = 0.0

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = {"stiffness": ("N m/rad", "N/m"), "preload": ("N m", "N")}

    @classmethod
    def suits(cls, joint: Joint) -> bool:
        return (joint.nq, joint.nv) == (1, 1)

    def coefficients(self) -> dict[str, float]:
        return {"stiffness": self.stiffness, "preload": self.preload + self.stiffness * self.reference}

    def with_coefficients(self, joints: Selector, values: Mapping[str, Any]) -> Self:
        return self.model_copy(update={"joints": joints, "reference": 0.0, **self.coefficients(), **values})

    def on(self, tree: KinematicTree) -> Iterator[JointTerm]:
        for i in self.joints_on(tree, of_one_freedom=True):
            yield JointTerm(f"spring:{tree.joint_names[i]}", i, force=self.force)

    def force(self, q: Array, qd: Array) -> Array:
        """The torque or force (1, ...) of the spring at positions (1, ...), positive against the motor."""
        return scaled(self.stiffness, q - self.reference) - self.preload
