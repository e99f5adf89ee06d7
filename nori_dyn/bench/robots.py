"""The robots that are measured on: real ones, where the packages that bring them are installed, and synthetic ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from nori_dyn.errors import MissingExtraError, NoriWarning
from nori_dyn.io.robots import load_robot
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

Base: TypeAlias = Literal["fixed", "floating"]

EXAMPLES = "cmeel.prefix/share/example-robot-data/robots"

FILES: dict[str, tuple[str, str]] = {
    "panda": ("example-robot-data", f"{EXAMPLES}/panda_description/urdf/panda.urdf"),
    "ur5": ("example-robot-data", f"{EXAMPLES}/ur_description/urdf/ur5_robot.urdf"),
    "anymal": ("example-robot-data", f"{EXAMPLES}/anymal_b_simple_description/robots/anymal.urdf"),
    "g1": ("example-robot-data", f"{EXAMPLES}/g1_description/urdf/g1_29dof_rev_1_0.urdf"),
    "talos_reduced": ("example-robot-data", f"{EXAMPLES}/talos_data/robots/talos_reduced.urdf"),
    "talos_full": ("example-robot-data", f"{EXAMPLES}/talos_data/robots/talos_full_v2.urdf"),
    "iCubGenova04": ("icub-models", "../../../share/iCub/robots/iCubGenova04/model.urdf"),
}
"""The package that brings each robot, and the file in its site-packages."""


@dataclass(frozen=True, slots=True, eq=False)
class Robot:
    """A robot to measure on.

    Attributes:
        name: what to call it.
        base: "fixed" or "floating".
        tree: the robot, as we have it.
    """

    name: str
    base: Base
    tree: KinematicTree

    @property
    def case(self) -> dict[str, str | int | float]:
        """What tells it from others."""
        return {"robot": self.name, "base": self.base, "nv": self.tree.nv}


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Random states with a leading N: q (N, nq), qd (N, nv), and y (N, nv), qdd or tau as the problem has it."""

    q: Floats
    qd: Floats
    y: Floats


def robot_file(name: str) -> Path:
    """Return the path of a robot of the table, or the name itself as a path or name of `load_robot`.

    Raises:
        MissingExtraError: the package that brings it is not installed.
    """
    if name not in FILES:
        return Path(name)
    package, file = FILES[name]
    try:
        path = Path(str(distribution(package).locate_file(file))).resolve()
    except PackageNotFoundError:
        raise MissingExtraError(f"robot '{name}' (package {package})", "bench") from None
    if not path.is_file():
        raise MissingExtraError(f"robot '{name}' (a file of package {package} that is not at {path})", "bench")
    return path


def real_robot(name: str, base: Base) -> Robot:
    """Return a robot of the table, or one by a file or a name as `load_robot` takes it; unusual masses are let pass.

    Raises:
        MissingExtraError: the package that brings it is not installed.
        ModelError: there is no such robot.
        FileFormatError: its file is not a robot's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        tree = load_robot(robot_file(name), base=base)
    return Robot(name if name in FILES else tree.name, base, tree)


def random_states(tree: KinematicTree, n: int, seed: int) -> States:
    """Return n random states."""
    rng = np.random.default_rng(seed)
    q = np.array([tree.random_configuration(rng) for _ in range(n)])
    qd, y = rng.normal(size=(2, n, tree.nv))
    return States(q, qd, y)
