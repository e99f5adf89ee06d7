"""The sensors that exist: those of the modules of this package, and those of other packages by entry point."""

from __future__ import annotations

from functools import cache

from nori_dyn.errors import SensorConfigError
from nori_dyn.measurements.base import Measurement
from nori_dyn.system.plugins import types_by_name

ENTRY_POINTS = "nori_dyn.measurements"
"""The package of our own sensors, and the entry-point group of others."""


@cache
def measurement_types() -> dict[str, type[Measurement]]:
    """Return every sensor by the name that configs use.

    Raises:
        SensorConfigError: a package offers something under the entry-point group that is not a sensor.
    """
    return types_by_name(ENTRY_POINTS, Measurement, "sensor", SensorConfigError)
