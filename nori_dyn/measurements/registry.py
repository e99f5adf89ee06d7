"""The sensors that exist: the built-in ones, and those of other packages by entry point."""

from __future__ import annotations

from functools import cache

from nori_dyn.errors import SensorConfigError
from nori_dyn.measurements.acceleration import (
    Accelerometer,
    AngularAccelerometer,
    LinkAcceleration,
    RigidContact,
)
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.external_wrench import ExternalWrench
from nori_dyn.measurements.force_torque import ForceTorque
from nori_dyn.measurements.joint_acceleration import JointAcceleration
from nori_dyn.measurements.joint_torque import JointTorque
from nori_dyn.measurements.linear_relation import LinearRelation
from nori_dyn.measurements.net_wrench import NetWrench
from nori_dyn.measurements.prior import Prior
from nori_dyn.system.plugins import types_by_name

ENTRY_POINTS = "nori_dyn.measurements"

BUILT_IN: dict[str, type[Measurement]] = {
    "accelerometer": Accelerometer,
    "angular_accelerometer": AngularAccelerometer,
    "external_wrench": ExternalWrench,
    "force_torque": ForceTorque,
    "joint_acceleration": JointAcceleration,
    "joint_torque": JointTorque,
    "linear_relation": LinearRelation,
    "link_acceleration": LinkAcceleration,
    "net_wrench": NetWrench,
    "prior": Prior,
    "rigid_contact": RigidContact,
}


@cache
def measurement_types() -> dict[str, type[Measurement]]:
    """Return every sensor by the name that configs use.

    Raises:
        SensorConfigError: a package offers something under the entry-point group that is not a sensor.
    """
    return types_by_name(ENTRY_POINTS, BUILT_IN, Measurement, "sensor", SensorConfigError)
