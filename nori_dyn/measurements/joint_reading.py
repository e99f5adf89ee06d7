"""Shared parts of readings of joints: they select joints, and read one variable of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from nori_dyn.measurements.base import Measurement, VariableReading
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import robot_variables
from nori_dyn.system.variables import Kind, Variable


class JointReading(Measurement):
    """The reading of a variable of joints, n_i numbers each; of a fixed joint there is none.

    Attributes:
        joints: which joints.
    """

    joints: Selector

    kind: ClassVar[Literal["qdd", "tau"]]
    source: ClassVar[str]

    @property
    def label(self) -> Kind:
        """The kind of variables that is read, and names the reading; of a robot that has none of it, `kind` is read."""
        return self.kind

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        variables = self._variables(tree)
        names = self.called([f"{self.label}:{variable.owner}" for variable in variables])
        for name, variable in zip(names, variables, strict=True):
            numbers = self.numbers(name, variable.components)
            yield VariableReading.of(variable, name, self.source, self.type, **numbers)

    def each(self, tree: KinematicTree) -> Iterator[JointReading]:
        return (self.model_copy(update={"joints": variable.owner}) for variable in self._variables(tree))

    def _variables(self, tree: KinematicTree) -> list[Variable]:
        bodies = select_joints(tree, self.joints)
        variables = [variable for variable in robot_variables(tree) if not variable.key.component]
        kind = self.label if any(variable.kind == self.label for variable in variables) else self.kind
        own = (variable for variable in variables if variable.kind == kind)
        return [variable for variable in own if variable.body in bodies and variable.components]
