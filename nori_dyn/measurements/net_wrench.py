"""The net wrench on a link, the rate of change of its momentum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from nori_dyn.algebra.spatial import add, cross_force, matvec
from nori_dyn.measurements.frame_reading import LinkReading, SensorSite, SiteRows, variable_reading
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array


@dataclass(frozen=True, slots=True)
class MomentumRate(SiteRows):
    """Rows of X* (I_i a_i + v_i x* I_i v_i) - y = 0."""

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        i = self.place.body
        return {VariableKey("a", i): self.equation.matrix @ at.tree.I[i]}

    def bias(self, at: Kinematics, y: Array) -> Array:
        v, I = at.v[self.place.body], at.tree.I[self.place.body]
        return add(matvec(self.equation.matrix, cross_force(v, matvec(I, v))), self.equation.bias(at, y))


class NetWrench(LinkReading):
    """The net wrench on links but for their weight, or some of its components [N m, N]: Nori (3f).

        X* (I_i a_i + v_i x* I_i v_i) - y = 0

    It is the rate of change of momentum that they would have without gravity: all that their joints and the outside do.

        - {type: net_wrench, links: link1}
    """

    type: Literal["net_wrench"]
    components: list[Literal["mx", "my", "mz", "fx", "fy", "fz"]] | None = None

    label: ClassVar[str] = "net"
    spatial: ClassVar[tuple[str, ...]] = FORCE

    def reads(self, place: SensorSite) -> Equation:
        return MomentumRate(variable_reading(place, self, "Nori (3f)", VariableKey("f", place.body)))
