"""What readings of joints share: they select joints, and read one variable of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from nori_dyn.measurements.base import Measurement, VariableReading, per_component, range_per_component
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import Variable, tree_variables


class JointReading(Measurement):
    """The reading of a variable of joints, n_i numbers each; of a fixed joint there is none.

    Attributes:
        joints: which joints.
    """

    joints: Selector

    kind: ClassVar[Literal["qdd", "tau"]]
    source: ClassVar[str]

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        variables = self._variables(tree)
        names = self.called([variable.name for variable in variables])
        for name, variable in zip(names, variables, strict=True):
            components = variable.components
            yield VariableReading(
                name=name,
                source=self.source,
                group=self.type,
                components=components,
                key=variable.key,
                matrix=np.eye(len(components)),
                value=per_component(f"the value of '{name}'", self.value, components),
                sigma=per_component(f"the sigma of '{name}'", self.sigma, components),
                ranges=range_per_component(name, self, components),
                units=variable.units,
            )

    def each(self, tree: KinematicTree) -> Iterator[Measurement]:
        return (self.model_copy(update={"joints": variable.owner}) for variable in self._variables(tree))

    def _variables(self, tree: KinematicTree) -> list[Variable]:
        bodies = select_joints(tree, self.joints)
        own = (variable for variable in tree_variables(tree) if variable.kind == self.kind)
        return [variable for variable in own if variable.body in bodies and variable.components]
