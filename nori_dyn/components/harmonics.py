"""Harmonics of the angles of joints: torques that gears, cables and torque sensors add by where a joint is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from nori_dyn.algebra.scalars import cos, is_zero, sin
from nori_dyn.algebra.spatial import matmul, scaled, zeros
from nori_dyn.components.base import JointPart, OnJoints, zero_prior
from nori_dyn.errors import ModelError
from nori_dyn.measurements.base import Positive, VariableReading
from nori_dyn.model.joints import Joint
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import HARMONICS, Unknown, VariableKey
from nori_dyn.typing import Array, Floats

ORDERS = (2, 3, 4)
"""Which harmonics, one after the other from the second: the first is gravity's, and a constant an offset."""

NAMES = tuple(f"{function}{k}" for k in ORDERS for function in ("sin", "cos"))

INDEFINITE = 1e-6
"""Relative size of an eigenvalue below zero that a covariance has by rounding."""

Row = Annotated[list[FiniteFloat], Field(min_length=len(NAMES), max_length=len(NAMES))]


class Harmonics(OnJoints):
    """What the torque of a joint is more than by all else, by where the joint is: a residual of six numbers.

        tau_i = tau_J_i + sum over k of (sin_k sin(k q_i) + cos_k cos(k q_i)),   k = 2, 3, 4

    Gears, cables and strain gauges behind a harmonic drive add such torques. An offset and the first harmonic are left
    to offsets of sensors and to gravity. With a `covariance` its numbers are known as well as that says: what they are
    off is a state "harmonics:JOINT" in standard deviations.

        - {type: harmonics, joints: elbow, sin2: 0.12, cos2: -0.05, cos4: 0.02}

    Attributes:
        joints: which joints, each of one freedom, which turns.
        sin2, cos2, sin3, cos3, sin4, cos4: the amplitudes [N m].
        covariance: of these, in this order (6, 6) [N^2 m^2]; None where they are exact.
        lasts: time in which what they are off becomes another one [s].

    Source: Taghirad and Belanger, Modeling and parameter identification of harmonic drive systems (1998), for torques
    that are periodic in the angle; docs/design.md, 4.13.
    """

    type: Literal["harmonics"] = "harmonics"
    sin2: FiniteFloat = 0.0
    cos2: FiniteFloat = 0.0
    sin3: FiniteFloat = 0.0
    cos3: FiniteFloat = 0.0
    sin4: FiniteFloat = 0.0
    cos4: FiniteFloat = 0.0
    covariance: Annotated[list[Row], Field(min_length=len(NAMES), max_length=len(NAMES))] | None = None
    lasts: Positive = 1e5

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = dict.fromkeys(NAMES, ("N m", "N"))

    @model_validator(mode="after")
    def _is_a_covariance(self) -> Self:
        if self.covariance is not None:
            P = np.array(self.covariance)
            least, most = np.linalg.eigvalsh((P + P.T) / 2)[[0, -1]]
            if not np.allclose(P, P.T) or least < -INDEFINITE * most:
                raise ValueError("a covariance is symmetric, and nowhere below zero")
        return self

    @classmethod
    def suits(cls, joint: Joint) -> bool:
        return super().suits(joint) and (joint.nq, joint.nv) == (1, 1) and joint.is_angular == (True,)

    def on(self, tree: KinematicTree) -> Iterator[HarmonicsTerm]:
        for i in self.joints_on(tree, of_one_freedom=True):
            name, key = tree.joint_names[i], VariableKey(HARMONICS, i, tree.joint_names[i])
            if not self.suits(tree.joints[i]):
                raise ModelError(f"joint '{name}' is {tree.joints[i].kind}: harmonics are for joints that turn.")
            unknown = Unknown(key, NAMES, ("",) * len(NAMES), is_force=False)
            yield HarmonicsTerm(f"{HARMONICS}:{name}", i, self, () if self.covariance is None else (unknown,))

    def force(self, q: Array) -> Array:
        """The torque (1, ...) at angles (1, ...), positive against the motor."""
        found, basis = zeros((1,), q), waves(q)
        for k, amplitude in enumerate(self.coefficients().values()):
            if not is_zero(amplitude):
                found = found + scaled(amplitude, basis[k : k + 1])
        return found

    @property
    def root(self) -> Floats:
        """A root L (6, 6) of the covariance L L^T."""
        squares, axes = np.linalg.eigh(np.array(self.covariance))
        return np.asarray(axes * np.sqrt(np.maximum(squares, 0.0)))


@dataclass(frozen=True, slots=True)
class HarmonicsTerm(JointPart):
    """Harmonics of one joint in (3tau): a part, with what `system.memory.Lasting` takes.

    Attributes:
        name: "harmonics:elbow".
        body: the link that the joint carries.
        law: the harmonics.
        unknowns: what they are off, where that is said.
    """

    law: Harmonics
    unknowns: tuple[Unknown, ...] = ()

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """What the motor feels of one standard deviation. See `Part`."""
        basis = waves(at.q[at.tree.q_slices[self.body]])[None]
        return {unknown.key: matmul(basis, self.law.root) for unknown in self.unknowns}

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """The harmonics. See `Part`."""
        return self.law.force(at.q[at.tree.q_slices[self.body]])

    @property
    def on_average(self) -> HarmonicsTerm:
        """The harmonics taken as exact."""
        return replace(self, unknowns=())

    @property
    def prior(self) -> VariableReading | None:
        """That it is in standard deviations."""
        return zero_prior(self.unknowns, [1.0] * len(NAMES))

    @property
    def time_constant(self) -> float:
        """Time in which what they are off becomes another one [s]."""
        return self.law.lasts


def waves(q: Array) -> Array:
    """Sine and cosine (6, ...) of each multiple of angles (1, ...) in `ORDERS`, as products of those of the angle."""
    s, c = sin(q), cos(q)
    found, sine, cosine = [], s, c
    for _ in ORDERS:
        sine, cosine = sine * c + cosine * s, cosine * c - sine * s
        found += [sine, cosine]
    return np.concatenate(found)
