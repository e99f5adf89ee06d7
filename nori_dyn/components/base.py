"""Shared parts of all components: the fields of their configs, and the term that acts on one joint."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from nori_dyn.algebra.spatial import zeros
from nori_dyn.errors import ModelError, SensorConfigError, UnknownModelNameError, UnknownSensorNameError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.selectors import Selector, select_joints
from nori_dyn.model.closure import random_closed
from nori_dyn.model.joints import Joint
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import Part
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.typing import Array, Floats

NotNegative = Annotated[FiniteFloat, Field(ge=0)]


class Component(ConfigPart, ABC):
    """One component of a robot: its fields are those of the YAML.

    A subclass has a field `type: Literal["its_name"]` and yields its parts from `on`.
    Laws, tested over the registry in tests/contracts/test_components.py: its parts obey those of `Part`.

    Attributes:
        type: the kind of component.
        name: its name.
    """

    type: str
    name: str = ""

    @abstractmethod
    def on(self, tree: KinematicTree) -> Iterable[Part]:
        """Yield the parts of this component on a robot.

        Raises:
            ModelError: an unknown name, or impossible values.
        """

    def to_dict(self) -> dict[str, Any]:
        """The content of its config, without default values."""
        return {"type": self.type, **self.model_dump(by_alias=True, exclude_defaults=True)}

    @staticmethod
    def random_configurations(tree: KinematicTree, rng: np.random.Generator, n: int) -> Floats:
        """Random configurations (n, nq) of a robot with all of its loops and couplings closed, see `random_closed`."""
        return random_closed(tree, rng, n)


class NamedComponent(Component):
    """A component that adds a variable, which bears its name.

    Attributes:
        name: its name; by default made of the names of what it joins.
    """

    name: Annotated[str, Field(pattern=r"^[\w./-]*$")] = ""

    @abstractmethod
    def places(self) -> Iterable[str]:
        """The names of the frames or joints that it is between."""

    @model_validator(mode="after")
    def _bears_a_name(self) -> Self:
        if not self.name:
            object.__setattr__(self, "name", re.sub(r"[^\w./-]", "_", "_".join(self.places())))
        return self


class OnJoints(Component):
    """A component that acts on joints one by one.

    Attributes:
        joints: which joints.
        COEFFICIENTS: the numbers in which its equation is linear, each with its unit where a joint turns and where it
            shifts.
        CURVED: those in which it is not, likewise.
    """

    joints: Selector

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = {}
    CURVED: ClassVar[Mapping[str, tuple[str, str]]] = {}

    @classmethod
    def suits(cls, joint: Joint) -> bool:
        """Whether a joint can have one."""
        return bool(joint.nv)

    def coefficients(self) -> dict[str, float]:
        """Its value of each of `COEFFICIENTS`."""
        return {name: getattr(self, name) for name in self.COEFFICIENTS}

    def with_coefficients(self, joints: Selector, values: Mapping[str, Any]) -> Self:
        """A copy on some joints, with other values, over any scalar, of some of `COEFFICIENTS` and `CURVED`."""
        return self.model_copy(update={"joints": joints, **values})

    def to_first_order(self, about: Self) -> Self:
        """The component to first order in those of `CURVED`, about what they are in another."""
        return self

    def joints_on(self, tree: KinematicTree, of_one_freedom: bool = False) -> list[int]:
        """The bodies of the selected joints, without fixed joints that were kept.

        Args:
            tree: the robot.
            of_one_freedom: whether others than revolute, prismatic and helical joints are refused.

        Raises:
            ModelError: the robot has no such joint, or it has several freedoms.
        """
        try:
            found = [i for i in select_joints(tree, self.joints) if tree.joints[i].nv]
        except UnknownSensorNameError as error:
            raise UnknownModelNameError("moving joint", error.name, error.known, f"robot '{tree.name}'") from None
        except SensorConfigError as error:  # a pattern that matches nothing
            raise ModelError(str(error)) from None
        for i in found:
            if of_one_freedom:
                check_one_freedom(tree, i, self.type)
        return found


def check_one_freedom(tree: KinematicTree, i: int, what: str) -> None:
    """Check that a joint has one freedom, and one coordinate for it.

    Raises:
        ModelError: it has another number.
    """
    joint = tree.joints[i]
    if (joint.nq, joint.nv) != (1, 1):
        raise ModelError(
            f"joint '{tree.joint_names[i]}' is {joint.kind}, with {joint.nv} freedoms: a {what} is for joints of one, "
            "such as revolute or prismatic ones. Name these."
        )


def zero_prior(unknowns: Sequence[Unknown], sigma: Sequence[float]) -> VariableReading | None:
    """Rows that the variable of a component is zero, with standard deviations; None where it has none."""
    if not unknowns:
        return None
    (unknown,) = unknowns
    name, mean = f"prior:{unknown.key.kind}:{unknown.key.component}", (0.0,) * len(unknown.components)
    return VariableReading.of(unknown, name, "docs/design.md, 4.13", "prior", mean, tuple(sigma))


@dataclass(frozen=True, slots=True)
class JointPart:
    """Shared part of what acts on one joint.

    Attributes:
        name: "rotor:l_knee".
        body: the link that the joint carries.
    """

    name: str
    body: int

    equations: ClassVar[tuple[Equation, ...]] = ()

    @property
    def acts_on(self) -> tuple[NewtonEuler, ...]:
        """(3tau) of its joint."""
        return (NewtonEuler("tau", self.body),)


@dataclass(frozen=True, slots=True)
class JointTerm(JointPart):
    """A component's term in (3tau) of one joint: M qdd_i + h(q_i, qd_i).

    Attributes:
        name: "rotor:l_knee".
        body: the link that the joint carries.
        inertia: the diagonal of M (n_i); None is none.
        force: h (n_i, ...) from q_i, qd_i; None is none.
    """

    inertia: Array | None = None
    force: Callable[[Array, Array], Array] | None = None

    unknowns: ClassVar[tuple[Unknown, ...]] = ()

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """M, see `Part`."""
        return {} if self.inertia is None else {VariableKey("qdd", self.body): np.diag(self.inertia)}

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """h, see `Part`."""
        tree = at.tree
        qd = at.qd[tree.v_slices[self.body]]
        return zeros(qd.shape[:1], qd) if self.force is None else self.force(at.q[tree.q_slices[self.body]], qd)
