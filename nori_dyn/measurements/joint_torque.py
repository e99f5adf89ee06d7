"""A known or measured joint torque: tau_i = y."""

from __future__ import annotations

from typing import ClassVar, Literal

from nori_dyn.measurements.joint_reading import JointReading


class JointTorque(JointReading):
    """The torques or forces tau of joints, n_i numbers each [N m or N]: Nori (14).

        tau_i - y = 0

    Measured with a standard deviation of half a newton metre:

        - {type: joint_torque, joints: actuated, sigma: 0.5}
    """

    type: Literal["joint_torque"]

    kind: ClassVar[Literal["tau"]] = "tau"
    source: ClassVar[str] = "Nori (14)"
