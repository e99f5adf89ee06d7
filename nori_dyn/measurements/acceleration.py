"""Accelerations of a frame on a link: accelerometers, link accelerations, and contacts that do not move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import FiniteFloat

from nori_dyn.algebra.spatial import add, cross, join
from nori_dyn.measurements.frame_reading import LinkReading, SensorSite, SiteRows, variable_reading
from nori_dyn.model.joints import MOTION
from nori_dyn.model.kinematics import Kinematics, resting_acceleration
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array, Floats


@dataclass(frozen=True, slots=True)
class FrameAcceleration(SiteRows):
    """Rows of the conventional acceleration of a frame: X a_i + (0, w x u) - y = 0, with (w, u) = X v_i.

    In it gravity is what it is in a_i, an acceleration upwards; `at_rest` takes it out, for a frame that the world
    holds.

    Attributes:
        at_rest: whether gravity is taken out.
    """

    at_rest: bool = False

    def bias(self, at: Kinematics, y: Array) -> Array:
        X, rows = self.place.X, list(self.place.rows)
        v = X.apply_motion(at.v[self.place.body])
        velocity_terms = join(v[:3] * 0, cross(v[:3], v[3:]))
        if self.at_rest:
            velocity_terms = add(velocity_terms, -X.apply_motion(resting_acceleration(at, self.place.body)))
        return add(velocity_terms[rows], self.equation.bias(at, y))

    def along(self, C: Floats) -> tuple[FrameAcceleration, Floats] | None:
        """See `Turnable`; gravity has no axes of a link."""
        turned = None if self.at_rest else self.equation.along(C)
        return None if turned is None else (replace(self, equation=turned[0]), turned[1])


class Accelerometer(LinkReading):
    """The proper linear acceleration of a frame [m/s^2], as a sensor there feels it: upwards 9.81 when at rest.

        linear part of X a_i + (0, w x u) - y = 0
        (w, u) = X v_i, the velocity of the frame

    One that saturates at 4 g:

        - {type: accelerometer, links: link1, sigma: 0.1, range: [-39, 39]}

    Source: own derivation (tests/contracts/test_measurements.py); Nori (3a) for a.
    """

    type: Literal["accelerometer"]
    components: list[Literal["ax", "ay", "az"]] | None = None

    label: ClassVar[str] = "acc"
    spatial: ClassVar[tuple[str, ...]] = MOTION
    default: ClassVar[tuple[str, ...]] = MOTION[3:]

    def reads(self, place: SensorSite) -> Equation:
        return FrameAcceleration(variable_reading(place, self, "Nori (3a)", VariableKey("a", place.body)))


class AngularAccelerometer(LinkReading):
    """The angular acceleration of a link, in the axes of a frame [rad/s^2]: Nori (3a).

        angular part of X a_i - y = 0

    In the axes of an IMU that is turned by a quarter about z:

        - {type: angular_accelerometer, links: link1, frame: {rpy: [0, 0, 1.5707963]}, sigma: 0.1}
    """

    type: Literal["angular_accelerometer"]
    components: list[Literal["wx", "wy", "wz"]] | None = None

    label: ClassVar[str] = "angular_acc"
    spatial: ClassVar[tuple[str, ...]] = MOTION
    default: ClassVar[tuple[str, ...]] = MOTION[:3]

    def reads(self, place: SensorSite) -> Equation:
        return variable_reading(place, self, "Nori (3a)", VariableKey("a", place.body))


class LinkAcceleration(LinkReading):
    """The spatial acceleration a of links, in a frame, gravity included: Nori (3a), (16).

        X a_i - y = 0

    Its angular part alone is what an `angular_accelerometer` reads.

        - {type: link_acceleration, links: link1}
    """

    type: Literal["link_acceleration"]
    components: list[Literal["wx", "wy", "wz", "ax", "ay", "az"]] | None = None

    label: ClassVar[str] = "a"
    spatial: ClassVar[tuple[str, ...]] = MOTION

    def reads(self, place: SensorSite) -> Equation:
        return variable_reading(place, self, "Nori (3a), (16)", VariableKey("a", place.body))


class RigidContact(LinkReading):
    """A frame that the world holds: its conventional acceleration is zero, gravity left out [rad/s^2, m/s^2].

        X (a_i + a_g) + (0, w x u) = 0
        (w, u) = X v_i, the velocity of the frame; a_g is gravity, in coordinates of the link

    `components: [ax, ay, az]` is a point that may turn. `value` is another known acceleration. Two feet that stand:

        - {type: rigid_contact, links: [link3, link4]}
    """

    type: Literal["rigid_contact"]
    components: list[Literal["wx", "wy", "wz", "ax", "ay", "az"]] | None = None
    value: FiniteFloat | list[FiniteFloat] | None = 0.0

    label: ClassVar[str] = "contact"
    spatial: ClassVar[tuple[str, ...]] = MOTION

    def reads(self, place: SensorSite) -> Equation:
        rows = variable_reading(place, self, "RBDA ch. 8.3", VariableKey("a", place.body))
        return FrameAcceleration(rows, at_rest=True)
