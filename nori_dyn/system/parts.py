"""The seam of a robot's components: a part adds variables, terms of the equations of motion, and rows.

    (3f)   -f_i + I_i a_i - fx_i + sum over children j of iXj* f_j + nu_i + ... = 0
    (3tau) -tau_i + tau_J_i + ... = 0,  tau_J_i = S_i^T f_i
    (c)    ... = 0

Whatever a part adds is linear in d: see docs/design.md, 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from nori_dyn.errors import ModelError
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation, WithUnknowns
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import Unknown, Variable, VariableKey, tree_variables
from nori_dyn.typing import Array


@runtime_checkable
class Part(Protocol):
    """The share of a component in a robot's equations. Laws, tested in tests/contracts/test_components.py.

    - `blocks` depends on q only, but those of a random variable on qd as well, `bias` on q and qd;
    - each block has as many rows as the equation, and as many columns as its variable;
    - a multiplier does no work that its rows do not see: its terms in the equations of motion are minus the transpose
      of its rows;
    - `name` is for people: whatever it is, the equations are the same;
    - a part whose rows hold positions together is a `Closing` too: where they hold, its gap stays as it is.
    """

    @property
    def name(self) -> str:
        """Its name: "rotor:l_knee"."""

    @property
    def unknowns(self) -> Sequence[Unknown]:
        """The variables that it adds."""

    @property
    def acts_on(self) -> Sequence[NewtonEuler]:
        """The equations of motion (3f), in link coordinates, and (3tau) to which it adds terms."""

    @property
    def equations(self) -> Sequence[Equation]:
        """The rows that it adds; those that take a reading hold exactly, and come after those of sensors."""

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Its blocks of D in an equation of motion (rows, size of the variable, ...)."""

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """Its rows of b there (rows, ...)."""


@runtime_checkable
class OfAccelerations(Part, Protocol):
    """A part whose blocks depend on the acceleration of a body, which readings must tell if it adds variables."""

    @property
    def accelerated(self) -> int:
        """The body."""


@runtime_checkable
class Averaged(Protocol):
    """Optional side of a part with a variable of which recursions, that know the present state alone, know nothing."""

    @property
    def on_average(self) -> Any:
        """The part with its variable where it is on average: one without it."""


def parts_of(tree: KinematicTree) -> tuple[Part, ...]:
    """The parts of a robot's components, in their order.

    Raises:
        ModelError: a component of another package that yields something else; a variable of two components.
    """
    found: list[Part] = []
    for component in tree.components:
        for part in component.on(tree):
            if not isinstance(part, Part):
                raise ModelError(
                    f"component '{component.name}' ({component.type}) yields a {type(part).__name__}, "
                    "which is no Part: see nori_dyn.components."
                )
            found.append(part)
    keys = [unknown.key for part in found for unknown in part.unknowns]
    for key in keys:
        if keys.count(key) > 1:
            raise ModelError(
                f"robot '{tree.name}' has '{key.kind}:{key.component}' by two components. Leave it out of one of them."
            )
    return tuple(found)


def readings_of(parts: Iterable[Part]) -> tuple[Equation, ...]:
    """The rows of parts that take a reading."""
    return tuple(equation for part in parts for equation in part.equations if equation.is_measured)


def added_unknowns(parts: Iterable[Part], equations: Iterable[Equation]) -> Iterator[Unknown]:
    """Yield the variables that parts add, and those that equations of sensors bring along."""
    for part in parts:
        yield from part.unknowns
    for equation in equations:
        if isinstance(equation, WithUnknowns):
            yield from equation.unknowns


def act_on_joints(parts: Iterable[Part]) -> bool:
    """Whether some part acts on joints, so that tau_J differs from the torque of the motors."""
    return any(key.gives == "tau" for part in parts for key in part.acts_on)


def robot_variables(tree: KinematicTree) -> tuple[Variable, ...]:
    """The variables of a robot and its components; those of sensors come after them."""
    parts = parts_of(tree)
    return tuple(tree_variables(tree, act_on_joints(parts), added_unknowns(parts, ())))
