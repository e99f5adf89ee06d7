"""What a peer is."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import numpy as np

from benchmarks.measure import Run
from benchmarks.robots import Robot, States
from nori_dyn.errors import NoriError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Indices

Maker: TypeAlias = Callable[[Robot, States], Run]
"""Makes a run on a robot: a single task works on the first of the states, a batch on all of them."""

SWAP = np.array([3, 4, 5, 0, 1, 2])
"""Angular first to linear first, and back."""


class UnsuitableError(NoriError):
    """A robot or a problem that a peer does not take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with.

    Attributes:
        name: what to call it.
        package: the distribution that brings it; its version is reported.
        module: what is imported.
        tasks: what it can do: "inverse_dynamics", "inverse_dynamics batch", "crba", ...
    """

    name: str
    package: str
    module: str
    tasks: Mapping[str, Maker]

    @property
    def is_available(self) -> bool:
        """Whether it is installed."""
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
    """Return what peers do of a task, by name, and the reason by name of those that do not."""
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


def load(module: str) -> Any:
    """Return a module of a peer."""
    return importlib.import_module(module)


def is_floating(tree: KinematicTree) -> bool:
    """Return whether the root link is free."""
    return tree.joints[0].kind == "free"


def single_joints(tree: KinematicTree) -> tuple[list[str], Indices, Indices]:
    """Return the names of the joints but a free root, and the places of each in q and in qd.

    Raises:
        UnsuitableError: one has not one freedom.
    """
    start = int(is_floating(tree))
    for joint, name in zip(tree.joints[start:], tree.joint_names[start:], strict=True):
        if joint.nq != 1 or joint.nv != 1:
            raise UnsuitableError(f"joint '{name}' is {joint.kind}")
    places = (np.array([s.start for s in slices[start:]], dtype=np.intp) for slices in (tree.q_slices, tree.v_slices))
    return list(tree.joint_names[start:]), *places  # type: ignore[return-value]
