"""The Newton-Euler equations of one body as rows of D d + b = 0: Nori (3), (4)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nori_dyn.algebra.spatial import cross_force, matvec, zeros
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.model.kinematics import Kinematics, world_acceleration
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.rows import Given, NewtonEuler
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array

Sigma = Callable[[str, int], tuple[float, ...] | None]
"""From an equation, "3a", "3f" or "3tau", and its number of rows to their standard deviations; None is exact."""


@dataclass(frozen=True, slots=True)
class BodyEquation(ABC):
    """What the three equations of a body share: they take no reading, and are exact unless told otherwise."""

    name: str
    body: int
    components: tuple[str, ...]
    sigma: tuple[float, ...] | None

    gives: ClassVar[Given]
    source: ClassVar[str]
    group: ClassVar[str] = "dynamics"
    is_measured: ClassVar[bool] = False

    @property
    def key(self) -> NewtonEuler:
        """What it is."""
        return NewtonEuler(self.gives, self.body)

    @abstractmethod
    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Return its blocks of D, see `Equation`."""

    @abstractmethod
    def bias(self, at: Kinematics, y: Array) -> Array:
        """Return its rows of b, see `Equation`."""


@dataclass(frozen=True, slots=True)
class AccelerationPropagation(BodyEquation):
    """-a_i + iXλ a_λ + S_i qdd_i + c_i = 0, and iX0 a_0 in b for a root, with a_0 = -a_g."""

    gives: ClassVar[Given] = "a"
    source: ClassVar[str] = "Nori (3a), (4a), (4b)"

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        i = self.body
        blocks = {VariableKey("a", i): -np.eye(6), VariableKey("qdd", i): at.S[i]}
        if not at.tree.is_root(i):
            blocks[VariableKey("a", at.tree.parents[i])] = at.X_up[i].motion_matrix()
        return blocks

    def bias(self, at: Kinematics, y: Array) -> Array:
        i = self.body
        if not at.tree.is_root(i):
            return at.c[i]
        return at.X_up[i].apply_motion(world_acceleration(at.tree.gravity)) + at.c[i]


@dataclass(frozen=True, slots=True)
class ForceBalance(BodyEquation):
    """-f_i + I_i a_i - fx_i + sum over children j of iXj* f_j + nu_i = 0, with nu_i = v_i x* I_i v_i."""

    gives: ClassVar[Given] = "f"
    source: ClassVar[str] = "Nori (3f), (4c), (4d)"

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        i = self.body
        blocks = {
            VariableKey("f", i): -np.eye(6),
            VariableKey("a", i): at.tree.I[i],
            VariableKey("fx", i): -np.eye(6),
        }
        for j in at.tree.children[i]:  # iXj* is the transpose of jXi, RBDA (2.13)
            blocks[VariableKey("f", j)] = np.swapaxes(at.X_up[j].motion_matrix(), 0, 1)
        return blocks

    def bias(self, at: Kinematics, y: Array) -> Array:
        v = at.v[self.body]
        return cross_force(v, matvec(at.tree.I[self.body], v))


@dataclass(frozen=True, slots=True)
class JointForce(BodyEquation):
    """-tau_i + S_i^T f_i = 0."""

    gives: ClassVar[Given] = "tau"
    source: ClassVar[str] = "Nori (3tau), (4e)"

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        i = self.body
        return {
            VariableKey("tau", i): -np.eye(len(self.components)),
            VariableKey("f", i): np.swapaxes(at.S[i], 0, 1),
        }

    def bias(self, at: Kinematics, y: Array) -> Array:
        return zeros((len(self.components),), at.v[self.body])


def exact(equation: str, n: int) -> None:
    """Return the standard deviations of equations of motion that hold exactly."""


def newton_euler(tree: KinematicTree, sigma: Sigma = exact) -> Iterator[BodyEquation]:
    """Yield (3a), (3f), (3tau) of each body, in topological order.

    Args:
        tree: the robot.
        sigma: how far they may be off.
    """
    for i, joint in enumerate(tree.joints):
        yield AccelerationPropagation(f"3a:{tree.names[i]}", i, MOTION, sigma("3a", 6))
        yield ForceBalance(f"3f:{tree.names[i]}", i, FORCE, sigma("3f", 6))
        freedoms = joint.force_components
        yield JointForce(f"3tau:{tree.joint_names[i]}", i, freedoms, sigma("3tau", len(freedoms)))
