"""A payload: the ten inertial parameters of what a link carries beside itself, as a variable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from nori_dyn.algebra.spatial import cross_force, matmul, matvec, transpose, zeros
from nori_dyn.components.base import Component, zero_prior
from nori_dyn.components.friction import Friction
from nori_dyn.errors import ModelError
from nori_dyn.measurements.base import Positive, VariableReading
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.kinematics import Kinematics, link_motion, resting_acceleration
from nori_dyn.model.paths import path
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.parts import Part
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.variables import PAYLOAD, Unknown, VariableKey
from nori_dyn.typing import Array

TEN = "m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"
"""Mass, first moments h = m c, and rotational inertia about the origin."""

UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)


class UnknownPayload(Component):
    """What a link carries beside what its model says, and may put down: a variable "payload:LINK" of ten parameters.

        f_i = I_i a_i + v_i x* I_i v_i + Y(a_i, v_i) pi - fx_i + ...

    Friction by weight, `mu`, grows with it, to first order about the weight of the robot alone.

    It is state of a tracker, and nothing to recursions. Its motion has to be known: joint accelerations are read
    without a sigma.

        - {type: payload, link: tool0, mass: 3, reach: 0.2}

    Attributes:
        link: the link, or a frame, in whose coordinates it is: m [kg], h = m c [kg m], I about the origin [kg m^2].
        mass: standard deviation of the mass beforehand, about zero [kg].
        reach: how far from the origin its mass is expected [m].
        change: time in which it becomes another one [s].

    Source: Atkeson, An and Hollerbach (1986); as state of the system: docs/design.md, 4.13.
    """

    type: Literal["payload"] = "payload"
    link: str
    mass: Positive = 5.0
    reach: Positive = 0.2
    change: Positive = 100.0

    def on(self, tree: KinematicTree) -> Iterator[Part]:
        frame = tree.frame(self.link)
        if frame.on_world:
            raise ModelError(f"'{self.link}' is on the world, which carries nothing: name a link, or a frame on one.")
        unknown = Unknown(VariableKey(PAYLOAD, frame.link, self.link), TEN, UNITS, is_force=False)
        rubbing = {
            i: friction
            for friction in (each for each in tree.components if isinstance(each, Friction) and each.mu)
            for i in set(friction.joints_on(tree)) & set(path(tree.parents, frame.link))
        }
        yield PayloadPart(f"{PAYLOAD}:{self.link}", frame, self, (unknown,), rubbing)


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The wrench that moves a payload, in (3f): a part, with what `system.memory.Lasting` takes.

    Attributes:
        name: "payload:tool0".
        frame: where it is.
        law: the payload.
        unknowns: its parameters; none where it is zero.
        rubbing: friction that grows with the weight of what the joints up to it carry, by the links of these.
    """

    name: str
    frame: Frame
    law: UnknownPayload
    unknowns: tuple[Unknown, ...]
    rubbing: Mapping[int, Friction]

    equations: ClassVar[tuple[Equation, ...]] = ()

    @property
    def accelerated(self) -> int:
        """Its link."""
        return self.frame.link

    @property
    def acts_on(self) -> tuple[NewtonEuler, ...]:
        """(3f) of its link, and (3tau) of joints whose friction grows with its weight."""
        if not self.unknowns:
            return ()
        return (NewtonEuler("f", self.frame.link), *(NewtonEuler("tau", i) for i in self.rubbing))

    def blocks(self, on: NewtonEuler, at: Kinematics) -> Mapping[VariableKey, Array]:
        """Y, the wrench of each parameter (6, 10, ...), or what its weight adds to friction. See `Part`."""
        if on.gives == "f":
            return {self.unknowns[0].key: self._wrenches(*link_motion(at, self.frame.link))}
        a = resting_acceleration(at, self.frame.link)
        f = self._wrenches(a, 0 * a)
        for j in path(at.tree.parents, self.frame.link):
            if j == on.body:
                break
            f = np.stack([at.X_up[j].force_to_parent(f[:, k]) for k in range(len(TEN))], axis=1)
        return {self.unknowns[0].key: self.rubbing[on.body].by_weight(at, on.body, matmul(transpose(at.S[on.body]), f))}

    def _wrenches(self, a: Array, v: Array) -> Array:
        """The wrench (6, 10, ...) on the link that moves so of each parameter."""
        a, v = self.frame.X.apply_motion(a), self.frame.X.apply_motion(v)
        columns = []
        for ten in np.eye(len(TEN)):
            I = inertia_of_ten(ten)
            columns.append(matvec(I, a) + cross_force(v, matvec(I, v)))
        X = self.frame.X.motion_matrix()
        return np.stack([matvec(X.T, f) for f in columns], axis=1)

    def bias(self, on: NewtonEuler, at: Kinematics) -> Array:
        """Zeros, see `Part`."""
        return zeros((6 if on.gives == "f" else at.tree.joints[on.body].nv,), at.q)

    @property
    def on_average(self) -> PayloadPart:
        """No payload."""
        return replace(self, unknowns=())

    @property
    def prior(self) -> VariableReading | None:
        """No payload, but for `mass` and `reach`."""
        m, r = self.law.mass, self.law.reach
        return zero_prior(self.unknowns, [m, *[m * r] * 3, *[m * r * r] * 6])

    @property
    def time_constant(self) -> float:
        """Time in which it becomes another one [s]."""
        return self.law.change
