"""Files of components: YAML, for what a robot's own file cannot say; and robots with what both say."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable

from nori_dyn.components.base import Component
from nori_dyn.components.config import components_of, config_model
from nori_dyn.errors import InvalidConfigError, ModelError, NoriError, UnknownNameError
from nori_dyn.io.yaml_file import read_yaml
from nori_dyn.model.tree import KinematicTree


def load_components(path: str | os.PathLike[str]) -> tuple[Component, ...]:
    """Return the components that a YAML file describes.

        components:
          - {type: rotor, joints: actuated, inertia: 2.0e-5, gear: 100}
          - {type: loop, frames: [rod_end, crank_end], constrains: point}

    Loaders of robots take the file as well, `components="file.yaml"`: they add these to what the robot's own file has.

    Args:
        path: the file.

    Raises:
        FileFormatError: the file cannot be read.
        ModelError: it is not YAML, or does not follow the schema: names the file and line.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("motors.yaml").write_text('''
        ... components:
        ...   - {type: rotor, joints: all, inertia: 2.0e-5, gear: 100}
        ... ''')
        >>> arm = nd.autotree(3).replace(components=nd.load_components("motors.yaml"))
        >>> [component.type for component in arm.components]
        ['rotor']
    """
    file = read_yaml(os.fspath(path), ModelError)
    try:
        return components_of(file.data)
    except InvalidConfigError as error:
        raise ModelError(f"{file.path}:{file.line(error.path)}: {error}") from None


def takes_own(components: bool | str | os.PathLike[str]) -> bool:
    """Return whether the components of a robot's own file are wanted."""
    return components is not False


def moving_joints(tree: KinematicTree) -> frozenset[str]:
    """Return the names of joints that have freedoms."""
    return frozenset(name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv)


def with_components(
    tree: KinematicTree,
    own: Iterable[Component],
    components: bool | str | os.PathLike[str],
    locked: Collection[str] = (),
) -> KinematicTree:
    """Return a robot with its own components, and those of a YAML file where one is named.

    Args:
        tree: the robot.
        own: what its own file has.
        components: as a loader takes it.
        locked: joints that are frozen, which no component can act on.

    Raises:
        FileFormatError: the YAML file cannot be read.
        ModelError: it does not follow the schema, or does not fit the robot: names the file.
    """
    tree = tree.replace(components=(*tree.components, *own))
    if isinstance(components, bool):
        return tree
    more = load_components(components)
    try:
        return tree.replace(components=(*tree.components, *more))
    except UnknownNameError as error:
        if error.name in locked:
            raise ModelError(
                f"{os.fspath(components)}: joint '{error.name}' is locked, and no component can act on it. Leave it "
                "out there, or do not lock it."
            ) from None
        error.args = (f"{os.fspath(components)}: {error}",)
        raise
    except NoriError as error:
        error.args = (f"{os.fspath(components)}: {error}",)
        raise


def components_schema_json() -> str:
    """Return the JSON schema of files of components, for editors."""
    return json.dumps(config_model().model_json_schema(by_alias=True), indent=2)
