"""The sensors of a URDF: iDynTree's <sensor> extension, and Gazebo's where a file has none of the former.

Source: iDynTree, doc/model_loading.md, "Sensor extensions", and its loader where that says more; SDFormat, <sensor>,
<force_torque>, for Gazebo's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nori_dyn.descriptions.model_sensors import OF_BASE, ModelSensor, pose_entry, roll_pitch_yaw
from nori_dyn.descriptions.urdf_document import ORIGIN, UrdfRobot, Vector, not_numbers, numbers_of, required, where
from nori_dyn.errors import FileFormatError
from nori_dyn.io.xml_file import Element
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.typing import Floats

DIRECTIONS = {"parent_to_child": "parent_on_child", "child_to_parent": "child_on_parent"}
"""What we call a wrench on one of the two links that a joint connects, by <measure_direction>."""

NOT_READ = "not a sensor of forces, accelerations or angular velocities"


def urdf_sensors(robot: UrdfRobot) -> tuple[ModelSensor, ...]:
    """The sensors of a URDF, in the order of the file.

    A <sensor> in the root element is iDynTree's; where there is none, those in <gazebo> elements are taken. The two
    differ in the frame of a wrench: in iDynTree it is a whole pose, that of the child link, of the parent link or of
    the sensor; in Gazebo its origin is the child link's always. An `imu` is an accelerometer and a gyroscope; of two of
    one name the gyroscope is called "gyro:NAME".

    Raises:
        FileFormatError: a sensor that lacks something or is on nothing.
    """
    reader, root = _SensorReader(robot), robot.root
    own = root.findall("sensor")
    if own:
        return _told_apart([sensor for element in own for sensor in reader.idyntree(element)])
    gazebo = ((element, sensor) for element in root.findall("gazebo") for sensor in element.findall("sensor"))
    return _told_apart([s for element, found in gazebo for s in reader.gazebo(found, element.get("reference", ""))])


def _told_apart(sensors: Sequence[ModelSensor]) -> tuple[ModelSensor, ...]:
    """The sensors, gyroscopes that have the name of another kind of sensor renamed."""
    taken = {sensor.name for sensor in sensors if sensor.type != "gyroscope"}
    return tuple(
        replace(sensor, name=(name := f"gyro:{sensor.name}"), entry={**(sensor.entry or {}), "name": name})
        if sensor.type == "gyroscope" and sensor.name in taken
        else sensor
        for sensor in sensors
    )


def sensor_joints(robot: UrdfRobot, locked: Sequence[str] = ()) -> tuple[str, ...]:
    """The joints, fixed or among those to be locked, that carry a force-torque sensor."""
    still = {*locked, *(joint.name for joint in robot.joints if joint.type == "fixed")}
    found = [sensor.on for sensor in urdf_sensors(robot) if sensor.type == "force_torque"]
    return tuple(dict.fromkeys(joint for joint in found if joint in still))


@dataclass
class _SensorReader:
    robot: UrdfRobot
    cleaner: Cleaner = field(default_factory=Cleaner)

    def __post_init__(self) -> None:
        self.path = self.robot.path
        self.links = {link.name for link in self.robot.links}
        self.joints = {joint.name: joint for joint in self.robot.joints}

    def idyntree(self, element: Element) -> Iterator[ModelSensor]:
        name, kind = self._named(element)
        parent = element.find("parent")
        joint, link = ("", "") if parent is None else (parent.get("joint", ""), parent.get("link", ""))
        if kind == "force_torque":
            self._check(element, f"sensor '{name}': its <parent>", "joint", joint, self.joints)
            xyz, rpy = self._origin(element, name)
            frame, measures = self._reported(element, name, None)
            yield self._force_torque(name, joint, frame, measures, xyz, rpy, about_child=False)
        elif kind in ("accelerometer", "gyroscope"):
            self._check(element, f"sensor '{name}': its <parent>", "link", link, self.links)
            yield self._on_link(name, kind, link, *self._origin(element, name))
        else:
            yield ModelSensor(name, kind, joint or link, note=NOT_READ)

    def gazebo(self, element: Element, reference: str) -> Iterator[ModelSensor]:
        name, kind = self._named(element)
        xyz, rpy = self._pose(element.find("pose"), name)
        if kind == "force_torque":
            self._check(element, f"sensor '{name}': its <gazebo>", "joint", reference, self.joints)
            frame, measures = self._reported(element, name, ("child", "child_to_parent"))
            yield self._force_torque(name, reference, frame, measures, xyz, rpy, about_child=True)
        elif kind == "imu":
            self._check(element, f"sensor '{name}': its <gazebo>", "link", reference, self.links)
            yield self._on_link(name, "accelerometer", reference, xyz, rpy)
            yield self._on_link(name, "gyroscope", reference, xyz, rpy)
        else:
            yield ModelSensor(name, kind, reference, note=NOT_READ)

    def _named(self, element: Element) -> tuple[str, str]:
        name = required(self.path, element, "name", "a <sensor>")
        return name, required(self.path, element, "type", f"sensor '{name}'")

    def _check(self, element: Element, what: str, role: str, name: str, known: Any) -> None:
        if name not in known:
            problem = f"there is no {role} '{name}'" if name else f"it names no {role}"
            raise FileFormatError(f"{where(self.path, element)}: {what}: {problem}.")

    def _reported(self, element: Element, name: str, default: tuple[str, str] | None) -> tuple[str, str]:
        """Frame and direction of a force-torque sensor."""
        found: list[str] = []
        choices = (("frame", ("child", "parent", "sensor")), ("measure_direction", tuple(DIRECTIONS)))
        for k, (tag, known) in enumerate(choices):
            text = (element.findtext(f"force_torque/{tag}") or "").strip() or (default[k] if default else "")
            if text not in known:
                problem = f"is '{text}'" if text else "is missing"
                raise FileFormatError(
                    f"{where(self.path, element)}: sensor '{name}': its <{tag}> {problem}. It is one of "
                    f"{', '.join(known)}."
                )
            found.append(text)
        return found[0], DIRECTIONS[found[1]]

    def _force_torque(
        self, name: str, joint: str, frame: str, measures: str, xyz: Vector, rpy: Vector, about_child: bool
    ) -> ModelSensor:
        if frame == "child":
            xyz = rpy = (0.0, 0.0, 0.0)
        elif frame == "parent":
            if self.joints[joint].type != "fixed":
                note = "in the frame of its parent link, which the child moves against"
                return ModelSensor(name, "force_torque", joint, note=note)
            X = self.joints[joint].data.X_tree
            xyz, rpy = _vector(-X.E @ X.r), roll_pitch_yaw(self.cleaner.rotation(X.E))
        if about_child:
            xyz = (0.0, 0.0, 0.0)
        entry = {"type": "force_torque", "name": name, "joints": joint, "measures": measures}
        pose = pose_entry(xyz, rpy)
        return ModelSensor(name, "force_torque", joint, entry if pose is None else {**entry, "frame": pose})

    def _on_link(self, name: str, kind: str, link: str, xyz: Vector, rpy: Vector) -> ModelSensor:
        entry = {"type": kind, "name": name, "links": link}
        pose = pose_entry(xyz, rpy, relative_to=link)
        note = OF_BASE if kind == "gyroscope" else ""
        return ModelSensor(name, kind, link, entry if pose is None else {**entry, "frame": pose}, note, link)

    def _origin(self, element: Element, name: str) -> tuple[Vector, Vector]:
        texts = numbers_of(self.path, element, {"origin": ORIGIN}, f"sensor '{name}': its")["origin"]
        return self._cleaned(*(texts.get(attribute, ["0"] * 3) for attribute in ("xyz", "rpy")))

    def _pose(self, pose: Element | None, name: str) -> tuple[Vector, Vector]:
        if pose is None:
            return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        text = (pose.text or "").strip()
        problem = not_numbers(text, 6)
        if problem:
            raise FileFormatError(f"{where(self.path, pose)}: sensor '{name}': its <pose> is '{text}': {problem}.")
        return self._cleaned(text.split()[:3], text.split()[3:])

    def _cleaned(self, xyz: list[str], rpy: list[str]) -> tuple[Vector, Vector]:
        position = self.cleaner.position(np.array(xyz, dtype=float))
        return _vector(position), _vector(np.array([self.cleaner.angle(literal) for literal in rpy]))


def _vector(values: Floats) -> Vector:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z
