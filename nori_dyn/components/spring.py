"""Springs in joints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import FiniteFloat

from nori_dyn.components.base import JointTerm, NotNegative, OnJoints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


class Spring(OnJoints):
    """A spring beside the motor of a joint, against which it works: `stiffness` and `springref` of MJCF.

        tau_i = tau_J_i + stiffness (q_i - reference)

    A leg's leaf spring is a joint that has a spring, and no motor: tau = 0 there.

        - {type: spring, joints: knee_spring, stiffness: 1500}

    Attributes:
        joints: which joints, of one freedom each.
        stiffness: [N m/rad or N/m].
        reference: the position at which it is slack [rad or m].
    """

    type: Literal["spring"] = "spring"
    stiffness: NotNegative
    reference: FiniteFloat = 0.0

    def on(self, tree: KinematicTree) -> Iterator[JointTerm]:
        for i in self.joints_on(tree, of_one_freedom=True):
            yield JointTerm(f"spring:{tree.joint_names[i]}", i, force=self.force)

    def force(self, q: Array, qd: Array) -> Array:
        """Return what the motor has to overcome (1, ...) at positions (1, ...)."""
        return self.stiffness * (q - self.reference)
