"""Robots given by a URDF or MJCF file, or by a name that an installed package knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.descriptions.mjcf_model import compiled, mjcf_sensors
from nori_dyn.descriptions.model_sensors import ModelSensor
from nori_dyn.descriptions.robot_names import robot_by_name, robots
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.descriptions.urdf_document import read_urdf
from nori_dyn.descriptions.urdf_sensors import urdf_sensors
from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import file_name
from nori_dyn.io.xml_file import read_xml
from nori_dyn.model.inertia import Inertias
from nori_dyn.model.tree import KinematicTree

Loader: TypeAlias = Callable[..., KinematicTree]

LOADERS: dict[str, Loader] = {"robot": load_urdf, "mujoco": load_mjcf}
"""The loader of each format, by the root element of its files."""


def load_robot(
    robot: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    locked: Sequence[str] | Mapping[str, float] = (),
    kept: Sequence[str] = (),
    components: bool | str | os.PathLike[str] | None = None,
    mimic: Literal["independent", "coupled", "refuse"] | None = None,
    inertias: Inertias = "as_given",
    gravity: tuple[float, float, float] | None = None,
    clean: bool = True,
) -> KinematicTree:
    """Load the kinematic tree of a robot given by a path or a name.

    Args:
        robot: path of a URDF or MJCF file (its content decides which); or a name such as "panda", "icub", "anymal" or
            "talos" of the packages icub-models and example-robot-data, where they are installed; or one of the package
            robot_descriptions such as "panda_description", which downloads the robot when it is first used. The extra
            `robots` brings all three, and `nd.tools.robots()` lists their robots.
        base: "fixed" or "floating".
        locked: joints to freeze, at zero or (a mapping) at the position given [rad or m].
        kept: fixed joints (of an MJCF model, bodies without joints) to keep as joints of no freedoms, or "sensors" for
            those that carry a force-torque sensor.
        components: True takes in those of the file, False leaves them out, and the path of a YAML file adds those that
            it describes to the file's; None takes in those of an MJCF model, and leaves out those of a URDF but for
            friction and rotors that were identified, see `save_robot`.
        mimic: what to do with mimic joints; URDF only.
        inertias: what to make of inertias that no distribution of mass has, since a principal moment is negative or
            larger than the sum of the others. "as_given" takes them with a warning; "nearest" takes the nearest that
            some distribution has (in the second moments of the mass; mass, centre of mass and principal axes stay),
            and `notes` say so; "refuse" raises.
        gravity: [m/s^2] in world axes; None is 9.81 downwards, or what an MJCF model says.
        clean: remove rounding, as `load_urdf` and `load_mjcf` do.

    Raises:
        FileFormatError: not a robot file.
        ModelError: neither a file nor a known name, a robot that cannot be downloaded, or an unusable model.
        MissingExtraError: an MJCF model, and mujoco is not installed.

    Example:
        >>> panda = nd.load_robot("panda_description", base="floating")  # doctest: +SKIP
    """
    path, root = robot_file(robot)
    options: dict[str, Any] = {
        "base": base,
        "locked": locked,
        "kept": kept,
        "inertias": inertias,
        "clean": clean,
    }
    own = {"components": components, "gravity": gravity, "mimic": mimic if root == "robot" else None}
    return LOADERS[root](path, **options, **{name: value for name, value in own.items() if value is not None})


def model_sensors(robot: str | os.PathLike[str]) -> tuple[ModelSensor, ...]:
    """Sensors that a robot's file describes, in its order; the robot is given as for `load_robot`.

    Raises:
        FileFormatError: not a robot file, or a sensor in it that lacks something.
        ModelError: neither a file nor a known name, a robot that cannot be downloaded, or an unusable model.
        MissingExtraError: an MJCF model, and mujoco is not installed.
    """
    path, root = robot_file(robot)
    return urdf_sensors(read_urdf(path)) if root == "robot" else mjcf_sensors(compiled(path))


def robot_file(robot: str | os.PathLike[str]) -> tuple[Path, str]:
    """Path of a robot's file, and its root element, for a path or a name.

    Raises:
        FileFormatError: not a robot file.
        ModelError: neither a file nor a known name, or a robot that cannot be downloaded.
    """
    path = Path(file_name(robot))
    if not path.exists() or (path.is_dir() and os.fspath(robot) in robots()):
        path = robot_by_name(os.fspath(robot))
    root = str(read_xml(path).tag)
    if root not in LOADERS:
        raise FileFormatError(
            f"{path} is not a robot: its root element is <{root}>, "
            "where a URDF has <robot> and an MJCF model has <mujoco>."
        )
    return path, root
