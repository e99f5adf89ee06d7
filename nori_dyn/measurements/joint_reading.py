"""What readings of joints share: they select joints, and read one variable of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from nori_dyn.measurements.base import Measurement, VariableReading, per_component, range_per_component
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.joints import Joint
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


class JointReading(Measurement):
    """The reading of a variable of joints, n_i numbers each; of a fixed joint there is none.

    Attributes:
        joints: which joints.
    """

    joints: Selector

    kind: ClassVar[Literal["qdd", "tau"]]
    source: ClassVar[str]

    @staticmethod
    def components(joint: Joint) -> tuple[str, ...]:
        """Return the names of the numbers that are read at a joint."""
        raise NotImplementedError

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        bodies = self._bodies(tree)
        names = self.called([f"{self.kind}:{tree.joint_names[i]}" for i in bodies])
        for i, name in zip(bodies, names, strict=True):
            components = self.components(tree.joints[i])
            yield VariableReading(
                name=name,
                source=self.source,
                group=self.type,
                components=components,
                key=VariableKey(self.kind, i),
                matrix=np.eye(len(components)),
                value=per_component(f"the value of '{name}'", self.value, components),
                sigma=per_component(f"the sigma of '{name}'", self.sigma, components),
                ranges=range_per_component(name, self, components),
            )

    def each(self, tree: KinematicTree) -> Iterator[Measurement]:
        return (self.model_copy(update={"joints": tree.joint_names[i]}) for i in self._bodies(tree))

    def _bodies(self, tree: KinematicTree) -> list[int]:
        return [i for i in select_joints(tree, self.joints) if tree.joints[i].nv]
