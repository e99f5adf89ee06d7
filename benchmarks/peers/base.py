"""What a peer is."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

import numpy as np

from benchmarks.harness import Run
from benchmarks.robots import Robot, States
from nori_dyn.errors import NoriError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

Maker: TypeAlias = Callable[[Robot, States], Run]
"""Makes a run on a robot, at the first of the states."""

load = importlib.import_module


class UnsuitableError(NoriError):
    """A robot or a problem that a peer does not take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with.

    Attributes:
        name: what to call it.
        package: the distribution that brings it; its version is reported.
        module: what is imported.
        tasks: what it can do: "inverse_dynamics", "forward_dynamics", "crba", ...
    """

    name: str
    package: str
    module: str
    tasks: Mapping[str, Maker]

    @property
    def is_available(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:  # the package that it lies in
            return False

    @property
    def version(self) -> str | None:
        """The version that is installed; None without one."""
        try:
            return version(self.package) if self.is_available else None
        except PackageNotFoundError:
            return None


def runs_of(peers: Iterable[Peer], task: str, robot: Robot, states: States) -> tuple[dict[str, Run], dict[str, str]]:
    """What peers do of a task, by name, and the reason by name of those that do not."""
    runs, skipped = {}, {}
    for peer in peers:
        if task not in peer.tasks:
            continue
        if not peer.is_available:
            skipped[peer.name] = f"{peer.package} is not installed"
            continue
        try:
            runs[peer.name] = peer.tasks[task](robot, states)
        except Exception as error:  # whatever stops another library must not stop the others
            skipped[peer.name] = " ".join(str(error).split())[:200] or type(error).__name__
    return runs, skipped


def is_floating(tree: KinematicTree) -> bool:
    return tree.joints[0].kind == "free"


def single_joints(tree: KinematicTree) -> list[str]:
    """Names of the joints but a free root.

    Raises:
        UnsuitableError: one has not one freedom.
    """
    start = int(is_floating(tree))
    for joint, name in zip(tree.joints[start:], tree.joint_names[start:], strict=True):
        if joint.nq != 1 or joint.nv != 1:
            raise UnsuitableError(f"joint '{name}' is {joint.kind}")
    return list(tree.joint_names[start:])


def root_pose(tree: KinematicTree, q: Floats) -> tuple[Floats, Floats]:
    """Rotation (3, 3) and position (3,) of a free root in the world; of a fixed base those of the world."""
    if not is_floating(tree):
        return np.eye(3), np.zeros(3)
    X = tree.joints[0].transform(q[:7])
    return np.array(X.E.T), np.array(X.r)
