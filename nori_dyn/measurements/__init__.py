"""Sensors: one class in one file each, found by the name in the `type` field of a config.

    sensors = nd.SensorSet.from_dict({"name": "mine", "measurements": [{"type": "joint_torque", "joints": "all"}]})
    nd.measurements.measurement_types()                     the types that exist, by name
    nd.measurements.berdy_map(...)                          BERDY's maximum a posteriori estimate

To add one: a module here with a subclass of `Measurement`, which is found by its field `type`, and a row in each table
of sensors in tests/contracts; CONTRIBUTING.md has the list. Another package names its own under the entry-point group
"nori_dyn.measurements".

Example:
    >>> "force_torque" in nd.measurements.measurement_types()
    True
"""

from __future__ import annotations

from nori_dyn.measurements.base import Measurement, VariableReading
from nori_dyn.measurements.berdy import berdy_map
from nori_dyn.measurements.frame_reading import LinkReading
from nori_dyn.measurements.joint_reading import JointReading
from nori_dyn.measurements.sensor_set import SensorSet, measurement_types
from nori_dyn.system.variables import VariableKey

__all__ = [
    "JointReading",
    "LinkReading",
    "Measurement",
    "SensorSet",
    "VariableKey",
    "VariableReading",
    "berdy_map",
    "measurement_types",
]
