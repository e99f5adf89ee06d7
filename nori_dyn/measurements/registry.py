"""The sensors that exist: the built-in ones, and those of other packages by entry point."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

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
    types = dict(BUILT_IN)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            offered = entry.load()
        except Exception as error:
            raise SensorConfigError(
                f"sensor '{entry.name}' of another package cannot be loaded from {entry.value}: {error}"
            ) from error
        if not (isinstance(offered, type) and issubclass(offered, Measurement)):
            raise SensorConfigError(f"sensor '{entry.name}' ({entry.value}) is not a subclass of Measurement.")
        if entry.name in types:
            raise SensorConfigError(f"sensor '{entry.name}' ({entry.value}) has the name of another sensor.")
        types[entry.name] = offered
    return types
