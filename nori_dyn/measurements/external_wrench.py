"""A known or measured external wrench on a link, whole or in components, in any frame fixed to the link."""

from __future__ import annotations

from typing import ClassVar, Literal

from nori_dyn.measurements.frame_reading import LinkReading, SensorSite, variable_reading
from nori_dyn.model.joints import FORCE
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


class ExternalWrench(LinkReading):
    """The external wrench fx on links, or some of its components [N m, N]: Nori (7), (8b).

        X* fx_i - y = 0

    A load cell reads some of it; a slippery floor is `components: [fx, fy], value: 0`, a point contact has no moment.
    That nothing touches any link:

        - {type: external_wrench, links: all, value: 0}
    """

    type: Literal["external_wrench"]
    components: list[Literal["mx", "my", "mz", "fx", "fy", "fz"]] | None = None

    label: ClassVar[str] = "fx"
    spatial: ClassVar[tuple[str, ...]] = FORCE

    def reads(self, place: SensorSite) -> Equation:
        return variable_reading(place, self, "Nori (7), (8b)", VariableKey("fx", place.body))
