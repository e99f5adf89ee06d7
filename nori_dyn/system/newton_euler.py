"""The Newton-Euler equations of one body as rows of D d + b = 0: Nori (3), (4), with the terms of components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nori_dyn.algebra.spatial import add, cross_force, matvec, zeros
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.model.kinematics import Kinematics, world_acceleration
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.parts import Part, act_on_joints
from nori_dyn.system.rows import GIVEN, Given, NewtonEuler
from nori_dyn.system.variables import LOAD, VariableKey
from nori_dyn.typing import Array

Sigma = Callable[[str, int], tuple[float, ...] | None]
"""From an equation, "3a", "3f" or "3tau", and its number of rows to their standard deviations; None is exact."""


@dataclass(frozen=True, slots=True)
class BodyEquation(ABC):
    """Shared part of a body's equations: they take no reading, and are exact without a `sigma`.

    Attributes:
        parts: the parts of components.
    """

    name: str
    body: int
    components: tuple[str, ...]
    sigma: tuple[float, ...] | None
    parts: tuple[Part, ...] = ()

    gives: ClassVar[Given]
    source: ClassVar[str]
    group: ClassVar[str] = "dynamics"
    is_measured: ClassVar[bool] = False

    @property
    def key(self) -> NewtonEuler:
        """Its key."""
        return NewtonEuler(self.gives, self.body)

    @abstractmethod
    def rigid_blocks(self, at: Kinematics) -> dict[VariableKey, Array]:
        """Its blocks of D without the terms of components."""

    def rigid_bias(self, at: Kinematics) -> Array:
        """Its rows of b without the terms of components: zeros of (3tau)."""
        return zeros((len(self.components),), at.v[self.body])

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Its blocks of D, see `Equation`."""
        return added_blocks(self.key, self.parts, at, self.rigid_blocks(at))

    def bias(self, at: Kinematics, y: Array) -> Array:
        """Its rows of b, see `Equation`."""
        return added_bias(self.key, self.parts, at, self.rigid_bias(at))


def added_blocks(
    key: NewtonEuler, parts: Sequence[Part], at: Kinematics, blocks: dict[VariableKey, Array]
) -> dict[VariableKey, Array]:
    """Blocks of an equation of motion with those that components add."""
    for part in parts:
        for variable, block in part.blocks(key, at).items():
            blocks[variable] = add(blocks[variable], block) if variable in blocks else block
    return blocks


def added_bias(key: NewtonEuler, parts: Sequence[Part], at: Kinematics, bias: Array) -> Array:
    """The bias of an equation of motion with the terms of components."""
    for part in parts:
        bias = add(bias, part.bias(key, at))
    return bias


@dataclass(frozen=True, slots=True)
class AccelerationPropagation(BodyEquation):
    """-a_i + iXλ a_λ + S_i qdd_i + c_i = 0, and iX0 a_0 in b for a root, with a_0 = -a_g."""

    gives: ClassVar[Given] = "a"
    source: ClassVar[str] = "Nori (3a), (4a), (4b)"

    def rigid_blocks(self, at: Kinematics) -> dict[VariableKey, Array]:
        i = self.body
        blocks = {VariableKey("a", i): -np.eye(6), VariableKey("qdd", i): at.S[i]}
        if not at.tree.is_root(i):
            blocks[VariableKey("a", at.tree.parents[i])] = at.X_up[i].motion_matrix()
        return blocks

    def rigid_bias(self, at: Kinematics) -> Array:
        i = self.body
        if not at.tree.is_root(i):
            return at.c[i]
        return at.X_up[i].apply_motion(world_acceleration(at.tree.gravity)) + at.c[i]


@dataclass(frozen=True, slots=True)
class ForceBalance(BodyEquation):
    """-f_i + I_i a_i - fx_i + sum over children j of iXj* f_j + nu_i = 0, with nu_i = v_i x* I_i v_i."""

    gives: ClassVar[Given] = "f"
    source: ClassVar[str] = "Nori (3f), (4c), (4d)"

    def rigid_blocks(self, at: Kinematics) -> dict[VariableKey, Array]:
        i = self.body
        blocks = {
            VariableKey("f", i): -np.eye(6),
            VariableKey("a", i): at.tree.I[i],
            VariableKey("fx", i): -np.eye(6),
        }
        for j in at.tree.children[i]:  # iXj* is the transpose of jXi, RBDA (2.13)
            blocks[VariableKey("f", j)] = np.swapaxes(at.X_up[j].motion_matrix(), 0, 1)
        return blocks

    def rigid_bias(self, at: Kinematics) -> Array:
        v = at.v[self.body]
        return cross_force(v, matvec(at.tree.I[self.body], v))


@dataclass(frozen=True, slots=True)
class JointForce(BodyEquation):
    """-tau_i + S_i^T f_i = 0, of a robot without components at joints."""

    gives: ClassVar[Given] = "tau"
    source: ClassVar[str] = "Nori (3tau), (4e)"

    def rigid_blocks(self, at: Kinematics) -> dict[VariableKey, Array]:
        own = VariableKey(self.gives, self.body)
        return {own: -np.eye(len(self.components)), VariableKey("f", self.body): projection(at, self.body)}


@dataclass(frozen=True, slots=True)
class JointLoad(JointForce):
    """-tau_J_i + S_i^T f_i = 0: the torque in a joint, where that is not all that its motor gives."""

    gives: ClassVar[Given] = "tau_J"


@dataclass(frozen=True, slots=True)
class MotorForce(JointForce):
    """-tau_i + tau_J_i + ... = 0, of a robot with components at joints."""

    def rigid_blocks(self, at: Kinematics) -> dict[VariableKey, Array]:
        one = np.eye(len(self.components))
        return {VariableKey("tau", self.body): -one, VariableKey(LOAD, self.body): one}


def projection(at: Kinematics, i: int) -> Array:
    """S_i^T (n_i, 6, ...)."""
    return np.swapaxes(at.S[i], 0, 1)


def exact(equation: str, n: int) -> None:
    """The standard deviations of equations of motion that hold exactly."""


def newton_euler(tree: KinematicTree, parts: Sequence[Part] = (), sigma: Sigma = exact) -> Iterator[BodyEquation]:
    """Yield (3a), (3f), (3tau) of each body, in topological order.

    Args:
        tree: the robot.
        parts: the parts of its components.
        sigma: how far they may be off.
    """
    is_loaded = act_on_joints(parts)
    for i, joint in enumerate(tree.joints):
        on_body, on_joint = (acting_on(NewtonEuler(gives, i), parts) for gives in GIVEN if gives in ("f", "tau"))
        yield AccelerationPropagation(f"3a:{tree.names[i]}", i, MOTION, sigma("3a", 6))
        yield ForceBalance(f"3f:{tree.names[i]}", i, FORCE, sigma("3f", 6), on_body)
        freedoms, name = joint.force_components, tree.joint_names[i]
        if is_loaded:
            yield JointLoad(f"3tau_J:{name}", i, freedoms, None)
        last = MotorForce if is_loaded else JointForce
        yield last(f"3tau:{name}", i, freedoms, sigma("3tau", len(freedoms)), on_joint)


def acting_on(key: NewtonEuler, parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts that add terms to an equation of motion."""
    return tuple(part for part in parts if key in part.acts_on)
