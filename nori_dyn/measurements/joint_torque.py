"""A known or measured joint torque: of the motor, tau_i = y, or in the joint, tau_J_i = y."""

from __future__ import annotations

from typing import ClassVar, Literal

from nori_dyn.measurements.joint_reading import JointReading
from nori_dyn.system.variables import LOAD, Kind


class JointTorque(JointReading):
    """The torques or forces of joints, n_i numbers each [N m or N]: Nori (14).

        tau_i - y = 0, or tau_J_i - y = 0 for `side: link`

    The motor torque, known from its current, is not the torque at the link: rotor, friction and springs are between
    the two. A torque sensor behind the gear reads the latter. Without such components they are the same.

    From motor currents, with a standard deviation of half a newton metre, and from sensors behind the gears:

        - {type: joint_torque, joints: actuated, sigma: 0.5}
        - {type: joint_torque, joints: actuated, side: link, sigma: 0.1}

    Attributes:
        side: "motor" for tau, the torque of the motor at the joint, or "link" for tau_J, the torque in the joint.
    """

    type: Literal["joint_torque"]
    side: Literal["motor", "link"] = "motor"

    kind: ClassVar[Literal["tau"]] = "tau"
    source: ClassVar[str] = "Nori (14)"

    @property
    def label(self) -> Kind:
        return self.kind if self.side == "motor" else LOAD
