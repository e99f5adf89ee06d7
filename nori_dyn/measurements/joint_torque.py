"""A known or measured joint torque: tau_i = y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from nori_dyn.measurements.base import Measurement, VariableReading, per_component
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


class JointTorque(Measurement):
    """The torques or forces tau of joints, n_i numbers each [N m or N]: Nori (14)."""

    type: Literal["joint_torque"]
    joints: Selector

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        for i in select_joints(tree, self.joints):
            name, components = f"tau:{tree.joint_names[i]}", tree.joints[i].force_components
            yield VariableReading(
                name=name,
                source="Nori (14)",
                group=self.type,
                components=components,
                key=VariableKey("tau", i),
                matrix=np.eye(len(components)),
                value=per_component(f"the value of '{name}'", self.value, components),
                sigma=per_component(f"the sigma of '{name}'", self.sigma, components),
            )
