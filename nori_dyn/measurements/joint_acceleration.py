"""A known or measured joint acceleration: qdd_i = y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from nori_dyn.measurements.base import Measurement, VariableReading, per_component
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


class JointAcceleration(Measurement):
    """The accelerations qdd of joints, n_i numbers each [rad/s^2 or m/s^2]: Nori (7), (8a)."""

    type: Literal["joint_acceleration"]
    joints: Selector

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        for i in select_joints(tree, self.joints):
            name, components = f"qdd:{tree.joint_names[i]}", tree.joints[i].motion_components
            yield VariableReading(
                name=name,
                source="Nori (7), (8a)",
                group=self.type,
                components=components,
                key=VariableKey("qdd", i),
                matrix=np.eye(len(components)),
                value=per_component(f"the value of '{name}'", self.value, components),
                sigma=per_component(f"the sigma of '{name}'", self.sigma, components),
            )
