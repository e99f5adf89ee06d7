"""A robot by what a person types: a URDF or MJCF file, or a name that an installed package knows."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from nori_dyn.errors import FileFormatError, ModelError
from nori_dyn.io.installed_robots import PACKAGES, installed_robots, robots_folder
from nori_dyn.io.mjcf import load_mjcf
from nori_dyn.io.mjcf_sensors import mjcf_sensors
from nori_dyn.io.model_sensors import ModelSensor
from nori_dyn.io.urdf import load_urdf
from nori_dyn.io.urdf_sensors import urdf_sensors
from nori_dyn.io.xml_file import read_xml
from nori_dyn.model.inertia import Inertias
from nori_dyn.model.tree import KinematicTree

Loader: TypeAlias = Callable[..., KinematicTree]

LOADERS: dict[str, Loader] = {"robot": load_urdf, "mujoco": load_mjcf}
"""The loader of each format, by the root element of its files."""

SENSORS: dict[str, Callable[[Path], tuple[ModelSensor, ...]]] = {"robot": urdf_sensors, "mujoco": mjcf_sensors}
"""What reads the sensors of each format."""

ROBOTS_EXTRA = "pip install 'nori_dyn[robots]'"
"""What brings the packages that know robots by name."""

_PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")  # where a module of robot_descriptions says its file is


def load_robot(
    robot: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating"] = "fixed",
    locked: Sequence[str] | Mapping[str, float] = (),
    kept: Sequence[str] = (),
    components: bool | str | os.PathLike[str] | None = None,
    mimic: Literal["independent", "coupled", "refuse"] | None = None,
    inertias: Inertias = "as_given",
    strict: bool = False,
    gravity: tuple[float, float, float] | None = None,
    clean: bool = True,
) -> KinematicTree:
    """Return the kinematic tree of a robot given by a path or a name.

    Args:
        robot: path of a URDF or MJCF file (its content decides which); or a name such as "panda", "icub", "anymal" or
            "talos" of the packages icub-models and example-robot-data, where they are installed; or one of the package
            robot_descriptions such as "panda_description", which downloads the robot when it is first used. The extra
            `robots` brings all three.
        base: "fixed" or "floating".
        locked: joints to freeze, at zero or (a mapping) at the position given [rad or m].
        kept: fixed joints (of an MJCF model, bodies without joints) to keep as joints of no freedoms, or "sensors" for
            those that carry a force-torque sensor.
        components: True takes in those of the file, False leaves them out, and the path of a YAML file adds those that
            it describes to the file's; None takes in those of an MJCF model, and leaves out those of a URDF.
        mimic: what to do with mimic joints; URDF only.
        inertias: what to make of inertias that no distribution of mass has, since a principal moment is negative or
            larger than the sum of the others. "as_given" takes them with a warning; "nearest" takes the nearest that
            some distribution has (in the second moments of the mass; mass, centre of mass and principal axes stay),
            and `notes` say so; "refuse" raises.
        strict: the same as inertias="refuse".
        gravity: [m/s^2] in world axes; None is 9.81 downwards, or what an MJCF model says.
        clean: remove rounding, as `load_urdf` and `load_mjcf` do.

    Raises:
        FileFormatError: not a robot file.
        ModelError: neither a file nor a known name, a robot that cannot be downloaded, or an unusable model.
        MissingExtraError: an MJCF model, and mujoco is not installed.

    Example:
        >>> panda = nd.load_robot("panda_description", base="floating")  # doctest: +SKIP
    """
    path, root = _found(robot)
    options: dict[str, Any] = {
        "base": base,
        "locked": locked,
        "kept": kept,
        "inertias": inertias,
        "strict": strict,
        "clean": clean,
    }
    if root == "robot":
        options["mimic"] = mimic
    if components is not None:
        options["components"] = components
    if gravity is not None:
        options["gravity"] = gravity
    return LOADERS[root](path, **options)


def model_sensors(robot: str | os.PathLike[str]) -> tuple[ModelSensor, ...]:
    """Return the sensors that a robot's file describes, in its order; the robot is given as for `load_robot`.

    Raises:
        FileFormatError: not a robot file, or a sensor in it that lacks something.
        ModelError: neither a file nor a known name, a robot that cannot be downloaded, or an unusable model.
        MissingExtraError: an MJCF model, and mujoco is not installed.
    """
    path, root = _found(robot)
    return SENSORS[root](path)


def _found(robot: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the path of a robot's file, and its root element."""
    path = Path(robot)
    if not os.path.exists(path):
        path = robot_by_name(os.fspath(robot))
    root = str(read_xml(path).tag)
    if root not in LOADERS:
        raise FileFormatError(
            f"{path} is not a robot: its root element is <{root}>, "
            "where a URDF has <robot> and an MJCF model has <mujoco>."
        )
    return path, root


def robot_by_name(name: str) -> Path:
    """Return the path of a robot of an installed package, or of robot_descriptions, which downloads it when first used.

    Raises:
        ModelError: no such name, no package that has robots is installed, or the download fails.
    """
    if os.sep in name or name.endswith((".urdf", ".xml", ".mjcf")):
        raise ModelError(f"no such file: {name}.{_similar_file(name)}")
    installed = installed_robots()
    if name in installed:
        return installed[name]
    described = _described_robots()
    if name in described:
        return _downloaded(name)
    packages = {package: robots_folder(package) is not None for package in PACKAGES}
    packages["robot_descriptions"] = bool(described)
    absent = [package for package, is_there in packages.items() if not is_there]
    known = [*installed, *described]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    searched = ", ".join(package for package, is_there in packages.items() if is_there)
    raise ModelError(
        f"no robot '{name}': there is no such file"
        + (f", and it is none of the robots of {searched}." if known else ".")
        + (f" Did you mean '{close[0]}'?" if close else " Give the path of a URDF or MJCF file, or a name.")
        + (f" Not installed, and so not searched: {', '.join(absent)} ({ROBOTS_EXTRA})." if absent else "")
    )


def _described_robots() -> tuple[str, ...]:
    """Return the names of robot_descriptions; none where it is not installed."""
    try:
        from robot_descriptions import DESCRIPTIONS
    except ImportError:
        return ()
    return tuple(DESCRIPTIONS)


def _downloaded(name: str) -> Path:
    """Return the path of a robot of robot_descriptions.

    Raises:
        ModelError: the download fails.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it prints while it clones
            module = importlib.import_module(f"robot_descriptions.{name}")
            return _file_of(module)
    except Exception as error:  # git, network, disk, xacro: the robot is not here
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"robot '{name}': robot_descriptions could not provide it ({reason[:300]}). "
            "It clones a git repository on first use of a robot: check git and the network, or give a path."
        ) from error


def _file_of(module: ModuleType) -> Path:
    for attribute in _PATHS:
        if hasattr(module, attribute):
            if attribute == "XACRO_PATH":
                xacro = importlib.import_module("robot_descriptions._xacro")
                return Path(xacro.get_urdf_path(module))
            return Path(getattr(module, attribute))
    raise LookupError("it has neither a URDF nor an MJCF file")


def _similar_file(name: str) -> str:
    """Return a hint at a file with a similar name in the same folder; empty where there is none."""
    folder = Path(name).parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    close = difflib.get_close_matches(Path(name).name, [f.name for f in folder.iterdir()], n=1)
    return f" Did you mean '{folder / close[0]}'?" if close else ""
