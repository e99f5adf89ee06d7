"""Sensor configs: YAML files, one a set of sensors, checked against the schema of all sensors that exist."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nori_dyn.descriptions.robots import model_sensors
from nori_dyn.errors import (
    InvalidConfigError,
    SensorConfigError,
    UnknownConfigError,
    UnknownSensorNameError,
    WrongKindError,
    naming,
)
from nori_dyn.io.yaml_file import read_yaml
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree

Made = TypeVar("Made")

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_files(folder: str) -> dict[str, Path]:
    """YAML files that come with the package, by name: inside an installed wheel, or beside it in a checkout."""
    found = next((place / folder for place in (_PACKAGE, _PACKAGE.parent) if (place / folder).is_dir()), None)
    return {} if found is None else {path.stem: path for path in sorted(found.glob("*.yaml"))}


def shipped_configs() -> dict[str, Path]:
    """Sensor configs that come with the package, by name."""
    return shipped_files("sensor_configs")


def sensors_from_model(model: str | os.PathLike[str], tree: KinematicTree | None = None) -> SensorSet:
    """Load the sensors that a robot's own file describes, by their names there.

    Of a URDF those of iDynTree's <sensor> extension (force-torque sensors, accelerometers, gyroscopes), or where it
    has none those in Gazebo's elements; of an MJCF model accelerometer, gyro, force, torque and jointactuatorfrc.
    Gyroscopes come with a config whose memory has the base; without it, as of encoders, what they read enters through
    q and qd. A force-torque sensor in a fixed joint needs that joint: load the robot with `kept="sensors"`.

    A config adds to them, and changes them by type or name (null leaves them out), see `load_sensors`:

        name: mine
        from_model: {accelerometer: {sigma: 0.1}, l_arm_ft: {sigma: 0.5}, head_imu_0: null}
        measurements:
          - {type: joint_acceleration, joints: all}

    Args:
        model: the robot, as for `load_robot`.
        tree: the robot as loaded: sensors on what is fixed to its world, which tell nothing, are left out.

    Raises:
        FileFormatError: not a robot file, or a sensor in it that lacks something.
        ModelError: neither a file nor a known name, a robot that cannot be downloaded, or an unusable model.
        SensorConfigError: two of its sensors share a name.
        MissingExtraError: an MJCF model, and mujoco is not installed.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("pendulum.urdf").write_text('''
        ... <robot name="pendulum">
        ...   <link name="wall"/>
        ...   <link name="rod"/>
        ...   <joint name="hinge" type="continuous"><parent link="wall"/><child link="rod"/></joint>
        ...   <sensor name="imu" type="accelerometer"><parent link="rod"/><origin xyz="0 0 -1" rpy="0 0 0"/></sensor>
        ... </robot>
        ... ''')
        >>> [(sensor.name, sensor.type) for sensor in nd.tools.sensors_from_model("pendulum.urdf").measurements]
        [('imu', 'accelerometer')]
    """
    name = f"sensors of {os.path.basename(model)}"
    with naming(model):
        content = {"name": name, "from_model": True, "measurements": []}
        return SensorSet.from_dict(content, _model_entries(model, tree))


def load_sensors(
    source: str | os.PathLike[str], model: str | os.PathLike[str] | None = None, tree: KinematicTree | None = None
) -> SensorSet:
    """Load a set of sensors: a shipped one by name, such as "inverse_dynamics", or a YAML file.

    Where a file says `from_model: true`, the sensors that the robot's file describes come first, but for those whose
    names its own measurements have. `from_model` may also be a mapping that changes them: from a type of sensor, or
    from a name, to fields, or to null, which leaves them out.

    Args:
        source: the name, or the file; a `Path` is always a file.
        model: the robot, as for `load_robot`, where the file has `from_model`.
        tree: see `sensors_from_model`.

    Raises:
        UnknownConfigError: neither a shipped set nor a file.
        FileFormatError: the file cannot be read.
        SensorConfigError: it is not YAML, or does not follow the schema: names the file and line.
        WrongKindError: neither text nor a path.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("mine.yaml").write_text('''
        ... name: mine
        ... measurements:
        ...   - {type: joint_torque, joints: all}
        ...   - {type: external_wrench, links: {except: link2}, value: 0}
        ... ''')
        >>> nd.load_sensors("mine.yaml")
        SensorSet('mine', 2 measurements)
    """
    return read_config(_file_of(source), SensorSet.from_dict, model, tree)


sensors = load_sensors
"""The same, by a shorter name."""


def _file_of(source: object) -> str | Path:
    """File of a set of sensors."""
    if isinstance(source, os.PathLike):
        return Path(source)
    if not isinstance(source, str):
        advice = "for one, nd.sensors('inverse_dynamics') or nd.sensors('mine.yaml')"
        raise WrongKindError("nd.sensors", "the name of a shipped set or a YAML file", source, advice)
    shipped = shipped_configs()
    if source in shipped:
        return shipped[source]
    if source.endswith((".yaml", ".yml")) or os.sep in source or os.path.exists(source):
        return source
    raise UnknownConfigError("set of sensors (neither shipped nor a file)", source, shipped)


def read_config(
    path: str | Path,
    make: Callable[[Any, list[dict[str, Any]] | None], Made],
    model: str | os.PathLike[str] | None,
    tree: KinematicTree | None,
) -> Made:
    """What is made of a YAML file, and of the robot's own sensors where it takes them and the robot is known.

    Args:
        path: the file.
        make: what makes it of the content of the file, and of the entries of these sensors.
        model: see `load_sensors`.
        tree: see `load_sensors`.

    Raises:
        FileFormatError: it cannot be read.
        SensorConfigError: it is not YAML, or does not follow the schema: names the file and line.
    """
    file = read_yaml(path)
    parts = [file.data, file.data.get("candidates")] if isinstance(file.data, dict) else []
    wants_model = any(isinstance(part, dict) and part.get("from_model") for part in parts)
    try:
        return make(file.data, _model_entries(model, tree) if wants_model and model is not None else None)
    except InvalidConfigError as error:
        raise SensorConfigError(f"{file.path}:{file.line(error.path)}: {error}") from None
    except SensorConfigError as error:
        path_of = error.path if isinstance(error, UnknownSensorNameError) else ()
        line = f":{file.line(path_of)}" if path_of else ""
        error.args = (f"{file.path}{line}: {error}",)
        raise


def _model_entries(model: str | os.PathLike[str], tree: KinematicTree | None) -> list[dict[str, Any]]:
    """Entries of a robot's sensors that give rows."""
    found = [(sensor.link, dict(sensor.entry)) for sensor in model_sensors(model) if sensor.entry is not None]
    fixed = {name for name, frame in tree.frames.items() if frame.on_world} if tree else set[str]()
    return [entry for link, entry in found if link not in fixed]
