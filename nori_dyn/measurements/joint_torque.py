"""A known or measured joint torque: tau_i = y."""

from __future__ import annotations

from typing import ClassVar, Literal

from nori_dyn.measurements.joint_reading import JointReading


class JointTorque(JointReading):
    """The torques or forces tau of joints, n_i numbers each [N m or N]: Nori (14)."""

    type: Literal["joint_torque"]

    kind: ClassVar[Literal["tau"]] = "tau"
    source: ClassVar[str] = "Nori (14)"
