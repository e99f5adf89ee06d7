"""What the page of chosen sensors says beside its findings; `templates/placement.html` lays it out."""

from __future__ import annotations

from dataclasses import dataclass

from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.choice import Choice, describe_design, describe_placement
from nori_dyn.report.page import SensorLine, Swept, describe_sweep, list_sensor_lines
from nori_dyn.report.pose_tables import PoseTable, list_swept_poses
from nori_dyn.report.tree_drawing import TreeDrawing, tree_drawing


@dataclass(frozen=True, slots=True)
class PlacementPage:
    """All that the page says.

    Attributes:
        robot, candidates: their names.
        choice: what is said of the sensors.
        tree: the robot with them.
        swept: how exact the outputs are with them.
        pose_tables: the poses at which they are known least.
        sensor_lines: what all sensors read, those that are there anyway among them.
        offered: what there was to choose from: names, costs, and whether it was chosen.
    """

    robot: str
    candidates: str
    choice: Choice
    tree: TreeDrawing
    swept: Swept
    pose_tables: tuple[PoseTable, ...]
    sensor_lines: tuple[SensorLine, ...]
    offered: tuple[tuple[str, str, bool], ...]


def placement_page(found: Placement | Design) -> PlacementPage:
    """Return what the page of chosen sensors says."""
    bought = found.bought
    return PlacementPage(
        robot=bought.system.tree.name,
        candidates=bought.name,
        choice=describe_placement(found) if isinstance(found, Placement) else describe_design(found),
        tree=tree_drawing(bought.system, chosen=bought.readings),
        swept=describe_sweep(bought.expected, int(bought.expected.ranks.max())),
        pose_tables=tuple(list_swept_poses(bought.system.tree, bought.expected)),
        sensor_lines=tuple(list_sensor_lines(bought.system)),
        offered=tuple((name, f"{cost:,g}", name in found.chosen) for name, cost in bought.offered.items()),
    )
