"""Tools beside the main line: further files, random robots, closed loops, joint motion from encoders, collisions.

    nd.tools.robots()                                       robots that load_robot knows by name
    nd.tools.random_tree(10, seed=0)                        a robot at random, of any joints
    nd.tools.sensors_from_model("arm.urdf")                 the sensors that a robot's own file describes
    motion = nd.tools.joint_motion(t, q)                    qd and qdd from encoders alone, with standard deviations
    nd.tools.ContactLocalizer(tracker, surfaces)            which link is touched, by which force and where
    nd.tools.save_html(report, "page.html")                 a report, a placement or an identification as a web page
    nd.tools.save_robot(found.robot, "arm.urdf", "new.urdf")   the file of a robot, corrected
    nd.tools.save_payload(found.payload("tool0"), "tool.script")   what it carries, as its vendor's software takes it

Example:
    >>> tree = nd.tools.random_tree(3, seed=0)
    >>> nd.tools.closed(tree, tree.neutral_configuration()).shape == (tree.nq,)
    True
"""

from __future__ import annotations

from nori_dyn.descriptions.component_files import load_components, save_components
from nori_dyn.descriptions.identified import save_robot
from nori_dyn.descriptions.payloads import save_payload
from nori_dyn.descriptions.robot_names import robots
from nori_dyn.descriptions.sensor_configs import sensors_from_model
from nori_dyn.descriptions.surfaces import surfaces
from nori_dyn.filtering.collisions import CollisionDetector
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.localization import ContactLocalizer
from nori_dyn.logs.mapping.log_mapping import LogMapping, load_mapping, save_mapping
from nori_dyn.logs.motion.joint_filter import JointNoise
from nori_dyn.logs.motion.joint_motion import joint_motion
from nori_dyn.model.closure import closed
from nori_dyn.model.surface import Surface
from nori_dyn.model.synthetic import random_tree
from nori_dyn.observe.touches import touch_observability
from nori_dyn.report.page import save_html

__all__ = [
    "Alarms",
    "CollisionDetector",
    "ContactLocalizer",
    "JointNoise",
    "LogMapping",
    "Surface",
    "closed",
    "joint_motion",
    "load_components",
    "load_mapping",
    "random_tree",
    "robots",
    "save_components",
    "save_html",
    "save_mapping",
    "save_payload",
    "save_robot",
    "sensors_from_model",
    "surfaces",
    "touch_observability",
]
