"""YAML files of components, for what a robot's own file cannot say."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from nori_dyn.components.base import Component, OnJoints
from nori_dyn.components.config import components_of
from nori_dyn.errors import InvalidConfigError, ModelError, UnknownNameError, naming
from nori_dyn.io.files import file_name, write_bytes
from nori_dyn.io.yaml_file import read_yaml
from nori_dyn.measurements.selectors import WORDS
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.given import check_tree

_LAYOUT: dict[str, Any] = {"sort_keys": False, "width": float("inf"), "allow_unicode": True}


def load_components(path: str | os.PathLike[str]) -> tuple[Component, ...]:
    """Load the components that a YAML file describes.

        components:
          - {type: rotor, joints: actuated, inertia: 2.0e-5, gear: 100}
          - {type: loop, frames: [rod_end, crank_end], constrains: point}

    Loaders of robots take the file as well, `components="file.yaml"`: they add these to what the robot's own file has;
    or, where the YAML says `instead: true`, take them instead of it.

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
        >>> arm = nd.autotree(3).replace(components=nd.tools.load_components("motors.yaml"))
        >>> [component.type for component in arm.components]
        ['rotor']
    """
    return _read(path)[0]


def _read(path: str | os.PathLike[str]) -> tuple[tuple[Component, ...], bool]:
    """Components of a YAML file, and whether they replace those of a robot's own file."""
    file = read_yaml(file_name(path), ModelError)
    try:
        return components_of(file.data), bool(file.data.get("instead", False))
    except InvalidConfigError as error:
        raise ModelError(f"{file.path}:{file.line(error.path)}: {error}") from None


def save_components(tree: KinematicTree, path: str | os.PathLike[str], about: Sequence[str] = ()) -> None:
    """Write all components of a robot as a YAML file, which stand instead of those of the robot's own file.

    Joints with the same numbers share an entry. `load_robot(..., components=path)` gives the robot with these.

    Args:
        tree: the robot.
        path: where to write.
        about: lines to begin the file with, as comments.

    Raises:
        FileFormatError: it cannot be written.
        ModelError: a component with a number that none can have, such as a negative friction: names it.
        WrongKindError: no robot.

    Example:
        >>> arm = nd.autotree(3).replace(components=[nd.components.Rotor(joints=["joint1", "joint2"], inertia=0.1)])
        >>> nd.tools.save_components(arm, "rotors.yaml")
        >>> nd.tools.load_components("rotors.yaml") == arm.components
        True
    """
    check_tree(tree, "nd.tools.save_components", "'components.yaml'")
    write_bytes(os.fspath(path), components_text(tree, about).encode())


def components_text(tree: KinematicTree, about: Sequence[str] = ()) -> str:
    """The YAML that `save_components` writes."""
    entries = _merged(tree, checked_components(tree))
    lines = [
        *(f"# {line}".rstrip() for text in about for line in text.splitlines() or [""]),
        f"# All components of the robot '{' '.join(tree.name.split())}', instead of those of its own file.",
        "instead: true",
        "components:" if entries else "components: []",
        *(f"  - {yaml.safe_dump(each, default_flow_style=True, **_LAYOUT).strip()}" for each in entries),
    ]
    return "\n".join(lines) + "\n"


def checked_components(tree: KinematicTree) -> tuple[Component, ...]:
    """Components of a robot, validated as those of a file are, since identified ones may have any number.

    Raises:
        ModelError: a number that cannot be: names the component.
    """
    return tuple(_checked(tree, each) for each in tree.components)


def _checked(tree: KinematicTree, component: Any) -> Component:
    try:
        checked: Component = type(component).model_validate(component.to_dict())
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        on = [tree.joint_names[i] for i in component.joints_on(tree)] if isinstance(component, OnJoints) else []
        problem = f"{field} is {first['input']}: {first['msg']}" if field else str(first["msg"])
        raise ModelError(
            f"robot '{tree.name}': the {component.type} of '{', '.join(on) or component.name}' cannot be in a file: "
            f"{problem}. Identify it again within bounds, or leave it out."
        ) from None
    return checked


def _merged(tree: KinematicTree, components: Sequence[Component]) -> list[dict[str, Any]]:
    """YAML entries of components; joints that are named one by one and have the same numbers share one."""
    entries: list[dict[str, Any]] = []
    shared: dict[str, dict[str, Any]] = {}
    for component in components:
        entry = {"type": component.type} | component.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        joints = entry.get("joints")
        names = [joints] if isinstance(joints, str) and joints not in WORDS else joints
        if isinstance(component, OnJoints) and isinstance(names, list):
            numbers = json.dumps({**entry, "joints": None}, sort_keys=True)
            alike = shared.setdefault(numbers, {**entry, "joints": []})
            if not component.name and not {*names} & {*alike["joints"]}:
                alike["joints"] += names
                entry = alike
        if not any(entry is one for one in entries):
            entries.append(entry)
    for entry in entries:
        joints = entry.get("joints")
        if isinstance(joints, list) and len(joints) == 1 and joints[0] not in WORDS:
            entry["joints"] = joints[0]
    return entries


def moving_joints(tree: KinematicTree) -> frozenset[str]:
    """Names of the joints that have freedoms."""
    return frozenset(name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv)


def with_components(
    tree: KinematicTree,
    own: Iterable[Component],
    components: bool | str | os.PathLike[str] | None,
    locked: Collection[str] = (),
) -> KinematicTree:
    """The robot with its own components, and those of a YAML file if one is named.

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
    if components is None or isinstance(components, bool):
        return tree
    more, is_instead = _read(components)
    with naming(os.fspath(components)):
        try:
            return tree.replace(components=more if is_instead else (*tree.components, *more))
        except UnknownNameError as error:
            if error.name not in locked:
                raise
            raise ModelError(
                f"joint '{error.name}' is locked, and no component can act on it. Leave it out there, or do not lock "
                "it."
            ) from None
