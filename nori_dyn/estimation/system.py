"""Systems as users meet them: the sensors may be named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

from nori_dyn.descriptions.sensor_configs import load_sensors
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system import builder
from nori_dyn.system.equation import Sensors
from nori_dyn.system.given import check_sensors, check_tree
from nori_dyn.system.repeats import Repeat

Named: TypeAlias = str | os.PathLike[str]
"""The name of a shipped set of sensors, or a YAML file."""


class System(builder.System):
    """D(q) d + b(q, qd, y) = 0 for a robot and a set of sensors; every name is checked when it is built.

        nd.System(tree, "inverse_dynamics")
        nd.System(tree, "mine.yaml")
        nd.System(tree, nd.tools.sensors_from_model("icub.urdf", tree))

    Rows with a sigma, and the readings of a set that has more rows than unknowns but no sigma at all, are weighed: they
    hold in the sense of weighted least squares, and all others exactly. Equations of motion may be among them.

    Attributes:
        tree: the robot.
        sensors: the set of sensors.
        variables: the blocks of d, in the order of the columns.
        rows: the blocks of equations, in the order of the rows: the dynamics first, then the measurements.
        weights: 1 / sigma^2 of the rows that are weighed (n_weights), in the order of `weight_names`.

    Args:
        tree: the robot.
        sensors: the set of sensors: as `nd.sensors` returns it, or what `nd.sensors` takes.
        repeats: rows of loops that repeat others wherever the robot is closed: planning leaves them out.

    Raises:
        WrongKindError: not a robot, or no sensors.
        SensorConfigError: sensors that do not exist, or that name what the robot does not have.
        FileFormatError: a file of sensors that cannot be read.

    Source: Nori (5), (9), (15), (16).

    Example:
        >>> system = nd.System(nd.autotree(2), "inverse_dynamics")
        >>> system.shape, system.measurement_names
        ((40, 40), ('qdd:joint1', 'qdd:joint2'))
    """

    def __init__(self, tree: KinematicTree, sensors: Sensors | Named, repeats: Sequence[Repeat] = ()) -> None:
        check_tree(tree, "nd.System", "sensors")
        if isinstance(sensors, str | os.PathLike):
            sensors = load_sensors(sensors)
        check_sensors(sensors, "nd.System")
        super().__init__(tree, sensors, repeats)
