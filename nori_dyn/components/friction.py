"""Friction of joints: viscous, quadratic, Coulomb's with the weight that they carry, Stribeck's, before they slide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from pydantic import FiniteFloat, PrivateAttr, model_validator

from nori_dyn.algebra.scalars import is_zero, sqrt
from nori_dyn.algebra.spatial import diagonal, scaled, zeros
from nori_dyn.components.base import JointPart, NotNegative, OnJoints, zero_prior
from nori_dyn.components.presliding import DeflectionReading, Presliding
from nori_dyn.errors import ModelError
from nori_dyn.measurements.base import Positive, VariableReading
from nori_dyn.measurements.selectors import Selector
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import Kinematics, weight_torque
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.parts import Part
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import DEFLECTION, DRIFT, RIPPLE, STICTION, Kind, Unknown, VariableKey
from nori_dyn.typing import Array

T = TypeVar("T")

LEAST_WEIGHT = 1e-6
"""Torque or force of a weight that is small against any friction: over it its size is smooth [N m or N]."""

ANY_EXCESS = 1.0
"""What Stribeck's curve is expanded with where there is none yet: its velocity is determined by a product with that."""

SHARE = 1 / math.sqrt(3)
"""Standard deviation of a number that is as likely everywhere between -1 and 1."""


class Stiction(ConfigPart):
    """What the smooth law of friction leaves open, a bounded torque at rest and a scatter in motion.

    Attributes:
        scatter: standard deviation of the friction of a joint that moves, about the law [N m or N].
        ripple: likewise of what it is off at each tick anew, such as by the teeth of gears [N m or N]; none at rest.
        drift: likewise of the share by which viscous friction is more or less than by the law, as temperature has it.
        warms: time in which that becomes another one [s].
        rest: time in which friction becomes another one while the robot stands still, by temperature or creep [s].
        motion: time in which it does while any joint moves: that scatters about its law, those at rest are shaken [s].
    """

    scatter: Positive
    ripple: NotNegative = 0.0
    drift: NotNegative = 0.0
    warms: Positive = 1000.0
    rest: Positive = 100.0
    motion: Positive = 0.3


class Friction(OnJoints):
    """The friction of joints, which the motor has to overcome: `damping` and `frictionloss` of MJCF, URDF's dynamics.

        tau_i = tau_J_i + viscous qd_i + (F + asymmetry qd_i + quadratic qd_i^2) qd_i / sqrt(qd_i^2 + width^2)
        F = coulomb + mu |weight_i(q)| + (static - coulomb) / (1 + (qd_i / stribeck)^2)

    The sign of the velocity is a smooth one, so that equations stay the same at all velocities: it has 0.9 of its size
    at twice the width. At rest, where friction is whatever it takes up to F, the law says zero. With `stiction` the
    rest is a variable "stiction:JOINT", a share of F between -1 and 1 that stays while the joint does, and is another
    one after each motion: `memory: {friction: {of: stiction}}`.

    With `presliding` F acts times a deflection z, which is read, "deflection:JOINT", in place of the smooth sign: where
    a joint turns back or comes to rest, friction depends on how far it has moved since. Logs and streams that lack it
    have it made of their positions. Recursions, which know the present alone, have the smooth sign.

        - {type: friction, joints: all, viscous: 0.5, coulomb: 2.0, width: 0.01}
        - {type: friction, joints: all, coulomb: 2.0, presliding: {distance: 2e-4}}
        - {type: friction, joints: elbow, coulomb: 6.3, mu: 0.06, stiction: {scatter: 0.6}}

    Attributes:
        joints: which joints.
        viscous: [N m s/rad or N s/m].
        quadratic: [N m s^2/rad^2 or N s^2/m^2]; below zero where viscous friction levels off, as in greased gears: at
            the speeds of the log that it was found on, and not far beyond.
        asymmetry: how much more viscous friction is forwards, and less backwards [N m s/rad or N s/m].
        coulomb: of a joint that moves fast and carries no weight [N m or N].
        mu: the share of the torque or force by which the joint holds the robot's weight that is added to it.
        static: of one that only just moves, where that is more [N m or N]; as `coulomb` when None.
        stribeck: velocity at which half of the difference is left [rad/s or m/s].
        width: velocity over which the friction changes its sign [rad/s or m/s].
        presliding: how a joint moves before it slides; None where it slides at once. Joints of one coordinate have it.
        stiction: what the law leaves open at rest, and its scatter; None where the law is taken to hold.

    Source: Hess and Soom, Friction at a lubricated line contact operating at oscillating sliding velocities (1990) for
    the curve; Hamon, Gautier and Garrec, Dynamic identification of robots with a dry friction model depending on load
    and velocity (2010) for mu and for what is not linear in the velocity; a smooth sign and stiction as a variable are
    ours (docs/design.md, 4.13).
    """

    type: Literal["friction"] = "friction"
    viscous: NotNegative = 0.0
    quadratic: FiniteFloat = 0.0
    asymmetry: FiniteFloat = 0.0
    coulomb: NotNegative = 0.0
    mu: NotNegative = 0.0
    static: NotNegative | None = None
    stribeck: Positive = 0.1
    width: Positive = 1e-3
    presliding: Presliding | None = None
    stiction: Stiction | None = None

    COEFFICIENTS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "viscous": ("N m s/rad", "N s/m"),
        "quadratic": ("N m s^2/rad^2", "N s^2/m^2"),
        "asymmetry": ("N m s/rad", "N s/m"),
        "coulomb": ("N m", "N"),
        "excess": ("N m", "N"),
        "mu": ("", ""),
    }
    CURVED: ClassVar[Mapping[str, tuple[str, str]]] = {"stribeck": ("rad/s", "m/s")}
    _about: Friction | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _grows_towards_rest(self) -> Self:
        if self.static is not None and self.static < self.coulomb:
            raise ValueError(f"static friction {self.static:g} is less than coulomb {self.coulomb:g}")
        if self.stiction is not None and not self.has_level:
            raise ValueError("stiction is bounded by coulomb or static friction, and there is none of either")
        return self

    @property
    def has_level(self) -> bool:
        """Whether there is a torque that holds the joint at rest."""
        return bool(self.coulomb or self.static or self.mu)

    @property
    def excess(self) -> float:
        """By how much static friction is more than Coulomb's [N m or N]."""
        return 0.0 if self.static is None else self.static - self.coulomb

    def with_coefficients(self, joints: Selector, values: Mapping[str, Any]) -> Self:
        values = dict(values)
        if "excess" in values:
            values["static"] = values.get("coulomb", self.coulomb) + values.pop("excess")
        return super().with_coefficients(joints, values)

    def to_first_order(self, about: Self) -> Self:
        found = self.model_copy()
        found._about = about
        return found

    def on(self, tree: KinematicTree) -> Iterator[Part]:
        for i in self.joints_on(tree):
            if self.mu and any(isinstance(tree.joints[j], Free) for j in path(tree.parents, i)):
                raise ModelError(
                    f"joint '{tree.joint_names[i]}' is of a base that floats, and what it carries depends on what "
                    "that stands on: mu is for robots with a fixed base."
                )
            name, joint = tree.joint_names[i], tree.joints[i]
            is_deflected = self.presliding is not None and (joint.nq, joint.nv) == (1, 1)
            stiction = () if self.stiction is None else (_shares(STICTION, tree, i),)
            yield FrictionTerm(f"friction:{name}", i, self, stiction, is_deflected)
            if is_deflected:
                deflection = Unknown(VariableKey(DEFLECTION, i, name), ("",), ("",), is_force=False)
                yield PreslidingTerm(f"presliding:{name}", i, self, (deflection,))
            if self.stiction is not None and self.stiction.ripple:
                yield RippleTerm(f"ripple:{name}", i, self, (_shares(RIPPLE, tree, i),))
            if self.stiction is not None and self.stiction.drift:
                yield DriftTerm(f"drift:{name}", i, self, (_shares(DRIFT, tree, i),))

    def force(self, q: Array, qd: Array, weight: Array | None = None, has_level: bool = True) -> Array:
        """The friction torque or force (n, ...) at velocities (n, ...), positive against the motor.

        Args:
            q: the configuration of the joint.
            qd: its velocity.
            weight: the torque or force by which the joint holds the robot's weight (n, ...); none when None.
            has_level: whether F is part of it, or acts elsewhere.
        """
        level, force = self.level(qd, weight) if has_level else None, scaled(self.viscous, qd)
        for factor, power in ((self.asymmetry, qd), (self.quadratic, qd * qd)):
            if not is_zero(factor):
                level = scaled(factor, power) + (0.0 if level is None else level)
        return np.asarray(force if level is None else force + scaled(level, qd / sqrt(qd * qd + self.width**2)))

    def by_weight(self, at: Kinematics, i: int, more: Array) -> Array:
        """What friction takes on of more weight that the joint holds (n, m, ...), to first order (n, m, ...)."""
        weight = weight_torque(at, i)
        qd = speed_of(at, i)
        sign = weight / sqrt(weight * weight + LEAST_WEIGHT**2) * qd / sqrt(qd * qd + self.width**2)
        return np.asarray(self.mu * sign[:, None] * more)

    def level(self, qd: Array, weight: Array | None) -> Array | float | None:
        """F, the Coulomb level (n, ...) or one number; None where there is none. See `force`."""
        level: Array | float | None = self.coulomb if self.coulomb or self.static else None
        at_rest = self.at_rest(qd)
        if at_rest is not None:
            level = at_rest + self.coulomb
        if weight is None or is_zero(self.mu):
            return level
        size = sqrt(weight * weight + LEAST_WEIGHT**2) - LEAST_WEIGHT
        return scaled(self.mu, size) + (0.0 if level is None else level)

    def at_rest(self, qd: Array) -> Array | None:
        """By how much F is more than at high velocities (n, ...), by Stribeck's curve; None where there is none."""
        if self._about is None:
            return None if is_zero(self.excess) else scaled(self.excess, _slowness(qd, self.stribeck))
        velocity, slowness = self._about.stribeck, _slowness(qd, self._about.stribeck)
        slope = scaled((self._about.excess or ANY_EXCESS) * 2.0 / velocity, slowness * (1.0 - slowness))
        return np.asarray(scaled(self.excess, slowness) + scaled(self.stribeck - velocity, slope))


def _shares(kind: Kind, tree: KinematicTree, i: int) -> Unknown:
    """A variable of a joint that has a number, without a unit, for each of its forces."""
    parts = tree.joints[i].force_components
    return Unknown(VariableKey(kind, i, tree.joint_names[i]), parts, ("",) * len(parts), is_force=False)


def _slowness(qd: Array, stribeck: float) -> Array:
    return np.asarray(1.0 / (1.0 + (qd / stribeck) * (qd / stribeck)))


@dataclass(frozen=True, slots=True)
class FrictionTerm(JointPart):
    """Friction of one joint in (3tau), and its stiction: a part, with what `system.memory.Fading` takes.

    Attributes:
        name: "friction:elbow".
        body: the link that the joint carries.
        law: the friction.
        unknowns: the stiction, where there is one.
        is_deflected: whether F acts times a deflection: see `PreslidingTerm`.
    """

    law: Friction
    unknowns: tuple[Unknown, ...] = ()
    is_deflected: bool = False

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """What the motor feels of a stiction of 1: F at rest, the scatter in motion. See `Part`."""
        law = self.law
        if law.stiction is None or not self.unknowns:
            return {}
        qd = speed_of(at, self.body)
        rest, motion = self._squares(at, qd)
        size = sqrt((rest + motion) / (qd * qd + law.width**2))
        return {self.unknowns[0].key: diagonal(size)}

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """The law, see `Part`."""
        q = at.q[at.tree.q_slices[self.body]]
        weight = carried_weight(self.law, at, self.body)
        return self.law.force(q, speed_of(at, self.body), weight, not self.is_deflected)

    @property
    def on_average(self) -> FrictionTerm:
        """The law alone."""
        return replace(self, unknowns=(), is_deflected=False)

    @property
    def prior(self) -> VariableReading | None:
        """What is known of the stiction beforehand: a share of the level, as likely each between -1 and 1."""
        return zero_prior(self.unknowns, [SHARE for unknown in self.unknowns for _ in unknown.components])

    @property
    def time_constant(self) -> float:
        """Time in which the stiction of a joint at rest becomes another one [s]."""
        return 0.0 if self.law.stiction is None else self.law.stiction.rest

    def bounded_share(self, at: Kinematics) -> Array:
        """The share of the variance that is of friction at rest (n, ...)."""
        rest, motion = self._squares(at, speed_of(at, self.body))
        return np.asarray(rest / (rest + motion))

    def fading(self, at: Kinematics) -> Array:
        """One over the time in which it becomes another one at a state (n, ...) [1/s].

        A joint at rest is shaken by all that move.
        """
        law = self.law
        assert law.stiction is not None
        square, width = (at.qd * at.qd).sum(axis=0), law.width**2
        rate = (width / law.stiction.rest + square / law.stiction.motion) / (square + width)
        return np.broadcast_to(rate, speed_of(at, self.body).shape)

    def _squares(self, at: Kinematics, qd: Array) -> tuple[Array, Array]:
        """Squares of F and, three times, of the scatter, weighed by how slow the joint is and how fast (n, ...)."""
        law = self.law
        assert law.stiction is not None
        level, scatter = law.level(qd, carried_weight(law, at, self.body)), qd * (law.stiction.scatter / SHARE)
        bound = law.width * (0.0 if level is None else level)
        return np.asarray(bound * bound), scatter * scatter


@dataclass(frozen=True, slots=True)
class VariableTerm(JointPart):
    """Shared part of what friction of one joint does in (3tau) by a variable, on average nothing.

    Attributes:
        name: "presliding:elbow".
        body: the link that the joint carries.
        law: the friction.
        unknowns: the variable; none where it is zero.
    """

    law: Friction
    unknowns: tuple[Unknown, ...]

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """Zeros. See `Part`."""
        return zeros((at.tree.joints[self.body].nv,), at.q)

    @property
    def on_average(self) -> Self:
        """The part without it."""
        return replace(self, unknowns=())

    @property
    def stiction(self) -> Stiction:
        """What the law leaves open, where it does."""
        assert self.law.stiction is not None
        return self.law.stiction


@dataclass(frozen=True, slots=True)
class PreslidingTerm(VariableTerm):
    """F times the deflection of one joint in (3tau), and the reading of that: a part.

    Without the deflection the law has F times the sign of the velocity.
    """

    @property
    def equations(self) -> tuple[DeflectionReading, ...]:  # type: ignore[override]
        """The reading of the deflection."""
        assert self.law.presliding is not None
        name, source = f"{DEFLECTION}:{self.name.partition(':')[2]}", "docs/design.md, 4.13"
        read = (DeflectionReading.of(unknown, name, source, DEFLECTION, None, None) for unknown in self.unknowns)
        return tuple(replace(each, law=self.law.presliding) for each in read)

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """F. See `Part`."""
        qd = speed_of(at, self.body)
        level = self.law.level(qd, carried_weight(self.law, at, self.body))
        block = zeros((1, 1), qd)
        if level is not None:
            block[0, 0] = level[0] if isinstance(level, np.ndarray) else level
        return {unknown.key: block for unknown in self.unknowns}


@dataclass(frozen=True, slots=True)
class RippleTerm(VariableTerm):
    """The ripple of friction of one joint in (3tau): a part, with what `system.memory.Random` takes."""

    @property
    def prior(self) -> VariableReading | None:
        """That it is in standard deviations."""
        return zero_prior(self.unknowns, [1.0 for unknown in self.unknowns for _ in unknown.components])

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """What the motor feels of one standard deviation: nothing at rest. See `Part`."""
        qd = speed_of(at, self.body)
        size = qd / sqrt(qd * qd + self.law.width**2) * self.stiction.ripple
        return {unknown.key: diagonal(size) for unknown in self.unknowns}


@dataclass(frozen=True, slots=True)
class DriftTerm(VariableTerm):
    """The share by which viscous friction of one joint is more, in (3tau): a part, see `system.memory.Lasting`."""

    @property
    def prior(self) -> VariableReading | None:
        """What is known of it beforehand."""
        return zero_prior(self.unknowns, [self.stiction.drift for unknown in self.unknowns for _ in unknown.components])

    @property
    def time_constant(self) -> float:
        """Time in which it becomes another one [s]."""
        return self.stiction.warms

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Viscous friction. See `Part`."""
        return {unknown.key: diagonal(speed_of(at, self.body) * self.law.viscous) for unknown in self.unknowns}


def sliding(tree: KinematicTree) -> KinematicTree:
    """A robot without presliding: its joints slide at once."""
    return tree.replace(components=with_frictions(tree.components, presliding=None))


def with_frictions(components: Iterable[T], **values: object) -> tuple[T, ...]:
    """Components, with other values of those that are friction."""
    return tuple(each.model_copy(update=values) if isinstance(each, Friction) else each for each in components)


def carried_weight(law: Friction, at: Kinematics, i: int) -> Array | None:
    """The torque or force by which a joint holds the robot's weight (n, ...), where its friction depends on it."""
    return weight_torque(at, i) if law.mu else None


def speed_of(at: Kinematics, i: int) -> Array:
    """Velocity of a joint (n, ...); at rest where only positions are known."""
    return at.qd[at.tree.v_slices[i]] if len(at.qd) else zeros((at.tree.joints[i].nv,), at.q)
