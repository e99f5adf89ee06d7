"""Shared part of couplings, loops and tendons: a force z, and the rows of accelerations through which it acts.

The rows are sum_i A_i a_i + W qdd + gamma = 0, and by d'Alembert's principle the force of the constraint is the
transpose of its rows: A_i^T z on body i, W^T z at the joints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nori_dyn.algebra.crossing import as_transform
from nori_dyn.algebra.spatial import matmul, spread, zeros
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.paths import path
from nori_dyn.system.equation import Equation
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array


class Constraint(ABC):
    """Rows on accelerations, and the gap that stays as it is where they hold."""

    __slots__ = ()

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies whose acceleration they read."""
        return ()

    @property
    def joints(self) -> tuple[int, ...]:
        """The bodies whose joint acceleration they read."""
        return ()

    @property
    def acts_on(self) -> tuple[NewtonEuler, ...]:
        """(3f) of the bodies, and (3tau) of the joints."""
        return (*(NewtonEuler("f", i) for i in self.bodies), *(NewtonEuler("tau", i) for i in self.joints))

    @abstractmethod
    def rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """The blocks (rows, size of the variable, ...) on a and qdd, over any scalar."""

    @abstractmethod
    def velocity_terms(self, at: Kinematics) -> Array:
        """The velocity terms gamma of the rows (rows, ...)."""

    @abstractmethod
    def gap(self, at: Kinematics) -> Array:
        """How far what is held together is apart (rows, ...) [m, rad]."""

    def gap_rows(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Blocks as `rows` does, by which velocities change the gap, closed or not: mostly the rows."""
        return self.rows(at)


@dataclass(frozen=True, slots=True)
class ConstraintRows:
    """The rows of a constraint that holds: an equation.

    Attributes:
        name: "loop:bar".
        group: the component's type.
        source: where it stands in the literature.
        components: the name of each row.
        constraint: their constraint.
    """

    name: str
    group: str
    source: str
    components: tuple[str, ...]
    constraint: Constraint

    is_measured: ClassVar[bool] = False
    sigma: ClassVar[None] = None

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return self.constraint.rows(at)

    def bias(self, at: Kinematics, y: Array) -> Array:
        return self.constraint.velocity_terms(at)


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A force z that acts through the rows of a constraint, such as that of a motor: a part.

    Attributes:
        unknown: z.
        constraint: the rows.
    """

    unknown: Unknown
    constraint: Constraint

    @property
    def name(self) -> str:
        """Its name: "loop:bar"."""
        return f"{self.unknown.key.kind}:{self.unknown.key.component}"

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Z alone."""
        return (self.unknown,)

    @property
    def acts_on(self) -> tuple[NewtonEuler, ...]:
        """Those of the constraint."""
        return self.constraint.acts_on

    @property
    def equations(self) -> tuple[Equation, ...]:
        """None: nothing holds."""
        return ()

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Minus the transpose of the rows, see `Part`."""
        kind = "a" if on.gives == "f" else "qdd"
        return {self.unknown.key: -np.swapaxes(self.constraint.rows(at)[VariableKey(kind, on.body)], 0, 1)}

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """Zeros, see `Part`."""
        n = 6 if on.gives == "f" else at.tree.joints[on.body].nv
        return zeros((n,), at.v[on.body])


@dataclass(frozen=True, slots=True)
class BilateralConstraint(Multiplier):
    """A bilateral constraint, which holds, and its constraint force: a part.

    Attributes:
        group: the component's type.
        source: where it stands in the literature.
    """

    group: str
    source: str

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The rows of the constraint."""
        return (ConstraintRows(self.name, self.group, self.source, self.unknown.components, self.constraint),)

    def gap(self, at: Kinematics) -> Array:
        """The gap (rows, ...), see `Closing`."""
        return self.constraint.gap(at)

    def gap_rate(self, at: Kinematics) -> Array:
        """Jacobian (rows, nv, ...) of the gap, see `Closing`."""
        tree, batch = at.tree, at.q.shape[1:]
        J = np.zeros((len(self.unknown.components), tree.nv, *batch))
        for key, block in self.constraint.gap_rows(at).items():
            if key.kind == "qdd":
                J[:, tree.v_slices[key.body]] += spread(block, block.shape[:2], batch)
                continue
            for i in path(tree.parents, key.body):
                moved = matmul(block, at.S[i])
                J[:, tree.v_slices[i]] += spread(moved, moved.shape[:2], batch)
                block = matmul(block, as_transform(at.X_up[i]).motion_matrix())
        return J
