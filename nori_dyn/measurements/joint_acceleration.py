"""A known or measured joint acceleration: qdd_i = y."""

from __future__ import annotations

from typing import ClassVar, Literal

from nori_dyn.measurements.joint_reading import JointReading


class JointAcceleration(JointReading):
    """The accelerations qdd of joints, n_i numbers each [rad/s^2 or m/s^2]: Nori (7), (8a).

        qdd_i - y = 0

    Known for all joints, in inverse dynamics:

        - {type: joint_acceleration, joints: all}
    """

    type: Literal["joint_acceleration"]

    kind: ClassVar[Literal["qdd"]] = "qdd"
    source: ClassVar[str] = "Nori (7), (8a)"
