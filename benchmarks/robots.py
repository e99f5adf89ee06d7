"""The robots that are measured on: real ones, where the packages that bring them are installed, and synthetic ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from benchmarks.harness import Case
from nori_dyn.descriptions.robot_names import PACKAGES, installed_robots
from nori_dyn.descriptions.robots import load_robot
from nori_dyn.errors import MissingExtraError, NoriWarning
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

Base: TypeAlias = Literal["fixed", "floating"]

Robots: TypeAlias = tuple[tuple[str, Base], ...]
"""Robots by name, and the base of each."""

REAL = ("panda", "ur5", "anymal", "g1", "talos_reduced", "talos_full", "iCubGenova04")
"""The real robots that are measured on, as installed packages call them."""


@dataclass(frozen=True, slots=True, eq=False)
class Robot:
    """A robot to measure on, what to call it, and its file or name where it has one."""

    name: str
    base: Base
    tree: KinematicTree
    source: str = ""

    @property
    def case(self) -> Case:
        """What tells it from others."""
        return {"robot": self.name, "base": self.base, "nv": self.tree.nv}


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Random states with a leading N: q (N, nq), qd (N, nv), and y (N, nv), qdd or tau as the problem has it."""

    q: Floats
    qd: Floats
    y: Floats


def robot_file(name: str) -> Path:
    """Path of a robot of the table, or the name itself as a path or name of `load_robot`.

    Raises:
        MissingExtraError: the package that brings it is not installed.
    """
    if name not in REAL:
        return Path(name)
    path = installed_robots().get(name)
    if path is None:
        raise MissingExtraError(f"robot '{name}' (of the packages {' and '.join(PACKAGES)})", "bench")
    return path


def real_robot(name: str, base: Base) -> Robot:
    """A robot of the table, or one by a file or a name as `load_robot` takes it; unusual masses are let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        source = robot_file(name)
        tree = load_robot(source, base=base)
    return Robot(name if name in REAL else tree.name, base, tree, str(source))


def random_states(tree: KinematicTree, n: int, seed: int) -> States:
    rng = np.random.default_rng(seed)
    q = np.array([tree.random_configuration(rng) for _ in range(n)])
    qd, y = rng.normal(size=(2, n, tree.nv))
    return States(q, qd, y)
