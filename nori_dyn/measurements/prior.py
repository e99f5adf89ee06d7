"""Priors of variables: a mean and a standard deviation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import UnknownSensorNameError
from nori_dyn.measurements.acceleration import FrameAcceleration
from nori_dyn.measurements.base import Measurement, Positive, VariableReading, per_component
from nori_dyn.measurements.frame_reading import SensorSite, variable_reading
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import robot_variables
from nori_dyn.system.variables import KINDS, LOAD, Variable

AT_JOINTS = ("f", "tau", "qdd", LOAD)
"""Kinds of variables that belong to joints."""


class Prior(Measurement):
    """Prior of variables, weighed by 1 / sigma^2: the regularisation of iDynTree's BERDY.

        d_k - mean = 0

    That wrenches on links are some hundred newton at most:

        - {type: prior, variables: [fx], sigma: 100}

    Where sensors do not determine a variable, the prior does. The rows are named after their variables:
    "prior:fx:l_sole".

    BERDY's accelerations of links are the conventional ones, of the link's origin: a + (0, w x v), gravity included as
    in a. A prior on these is `conventional: true`.

    Attributes:
        variables: "all", or kinds ("a", "f", "tau", "fx", "qdd", "loop", ...) and names ("fx:l_sole"); offsets of
            sensors have priors of their own.
        joints: whose f, tau and qdd a kind stands for; `actuated` leaves out those of free joints, which are no joints
            to BERDY.
        value: the mean, called `mean` in a config: one number, or one a component; null where it is an input, as a
            reading.
        sigma: standard deviation: one number, or one a component.
        range: there is none; nor is there an offset.
        conventional: whether accelerations of links are conventional instead of spatial.
    """

    type: Literal["prior"]
    variables: Literal["all"] | Annotated[list[str], Field(min_length=1)]
    joints: Literal["all", "actuated"] = "all"
    value: Annotated[FiniteFloat | list[FiniteFloat] | None, Field(alias="mean")] = 0.0
    sigma: Positive | list[Positive]
    range: None = None
    offset: None = None
    conventional: bool = False

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        variables = self._variables(tree)
        names = self.called([f"prior:{variable.name}" for variable in variables])
        for name, variable in zip(names, variables, strict=True):
            yield self._reading(name, variable)

    def _variables(self, tree: KinematicTree) -> list[Variable]:
        """The selected variables, in the order of d; a fixed joint has no tau, and no qdd."""
        everything = [variable for variable in robot_variables(tree) if variable.components]
        kinds = tuple(dict.fromkeys((*KINDS, *(variable.kind for variable in everything))))
        known = [*kinds, *(variable.name for variable in everything)]
        wanted = kinds if self.variables == "all" else self.variables
        for name in wanted:
            if name not in known:
                raise UnknownSensorNameError("variable", name, known, f"robot '{tree.name}'")

        def is_meant(v: Variable) -> bool:
            at_free_joint = v.kind in AT_JOINTS and isinstance(tree.joints[v.body], Free)
            of_kind = v.kind in wanted and not (at_free_joint and self.joints == "actuated")
            return of_kind or v.name in wanted

        return [variable for variable in everything if is_meant(variable)]

    def _reading(self, name: str, variable: Variable) -> Equation:
        components = variable.components
        value = per_component(f"the mean of '{name}'", self.value, components)
        sigma = per_component(f"the sigma of '{name}'", self.sigma, components)
        if variable.kind == "a" and self.conventional:
            rows, X = tuple(range(6)), Transform.identity()
            place = SensorSite(name, variable.body, X, components, rows, value, sigma, units=variable.units)
            return FrameAcceleration(variable_reading(place, self, "Nori (3a)", variable.key))
        return VariableReading.of(variable, name, "BERDY", self.type, value, sigma)
