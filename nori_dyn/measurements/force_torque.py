"""A six-axis force-torque sensor in a joint, in any frame fixed to the link that the joint carries.

One that sits between two links that do not move against each other is in a fixed joint, which must be kept when the
model is loaded: `load_urdf(path, kept=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from nori_dyn.errors import UnknownSensorNameError
from nori_dyn.measurements.frame_reading import SensorSite, SiteReading, variable_reading
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.joints import FORCE
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey


class ForceTorque(SiteReading):
    """The wrench f through joints, or some of its components [N m, N]: Nori (3f), (16).

        X* f_i - y = 0, or -X* f_i - y = 0 for `child_on_parent`

    A six-axis sensor in a joint:

        - {type: force_torque, joints: joint1, sigma: 0.5}

    Attributes:
        joints: which joints.
        measures: "parent_on_child" is the wrench on the link that the joint carries, as f is; "child_on_parent" its
            opposite.
    """

    type: Literal["force_torque"]
    joints: Selector
    components: list[Literal["mx", "my", "mz", "fx", "fy", "fz"]] | None = None
    measures: Literal["parent_on_child", "child_on_parent"] = "parent_on_child"

    selector: ClassVar[str] = "joints"
    label: ClassVar[str] = "ft"
    spatial: ClassVar[tuple[str, ...]] = FORCE

    def owners(self, tree: KinematicTree) -> Iterator[tuple[str, int, str]]:
        try:
            bodies = select_joints(tree, self.joints)
        except UnknownSensorNameError as error:
            hint = " A fixed joint must be kept when the model is loaded: kept=(joint, ...), or kept='sensors'."
            error.args = (f"{error}{hint}",)
            raise
        return ((tree.joint_names[i], i, tree.names[i]) for i in bodies)

    def reads(self, place: SensorSite) -> Equation:
        sign = 1.0 if self.measures == "parent_on_child" else -1.0
        return variable_reading(place, self, "Nori (3f), (16)", VariableKey("f", place.body), sign)
