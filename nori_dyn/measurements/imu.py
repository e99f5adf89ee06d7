"""An inertial measurement unit: a gyroscope and an accelerometer at one frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import FiniteFloat, field_validator

from nori_dyn.measurements.acceleration import Accelerometer
from nori_dyn.measurements.base import Measurement, Offset, Positive, Range
from nori_dyn.measurements.floating_base import Gyroscope
from nori_dyn.measurements.frame_reading import OnLinks
from nori_dyn.measurements.selectors import select_places
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.plugins import ConfigPart


class Half(ConfigPart):
    """What the entry of an IMU says of its gyroscope, or of its accelerometer.

    Attributes:
        sigma, range, offset: as of any sensor.
    """

    sigma: Positive | list[Positive] | None = None
    range: Range | None = None
    offset: Offset | None = None


class Imu(OnLinks):
    """A gyroscope and an accelerometer at one frame [rad/s, m/s^2]: these two sensors, in one entry.

        gyro:NAME   angular part of X v_i - y = 0
        acc:NAME    linear part of X a_i + (0, w x u) - y = 0

    Both with offsets, of which `memory: {base: {of: base}, biases: {of: offset, walk: 0.001}}` makes biases that drift:

        - {type: imu, links: link1, gyroscope: {sigma: 0.01, offset: {sigma: 0.05}}, accelerometer: {sigma: 0.1}}

    Source: those of `gyroscope` and `accelerometer`.

    Attributes:
        gyroscope: the sigma, range and offset of its gyroscope.
        accelerometer: those of its accelerometer.
    """

    type: Literal["imu"]
    gyroscope: Half = Half()
    accelerometer: Half = Half()

    @field_validator("value", "sigma", "range", "offset", mode="before")
    @classmethod
    def _is_of_one_half(cls, given: FiniteFloat | None, info: Any) -> None:
        if given is not None:
            field = info.field_name
            raise ValueError(
                f"an imu is two sensors: say {field} under `gyroscope` and `accelerometer`, gyroscope: {{{field}: ...}}"
            )

    @property
    def parts(self) -> tuple[Measurement, ...]:
        gyroscope, accelerometer = (
            {"links": self.links, "frame": self.frame, "name": self.name and f"{label}:{self.name}", **dict(half)}
            for label, half in ((Gyroscope.label, self.gyroscope), (Accelerometer.label, self.accelerometer))
        )
        return Gyroscope(type="gyroscope", **gyroscope), Accelerometer(type="accelerometer", **accelerometer)

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        return (equation for part in self.parts for equation in part.on(tree))

    def each(self, tree: KinematicTree) -> Iterator[Measurement]:
        return (self.model_copy(update={"links": name}) for name, _ in select_places(tree, self.links))
