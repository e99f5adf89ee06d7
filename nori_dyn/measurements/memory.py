"""The state from tick to tick in a sensor config: velocities, offsets, sustained pushes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, FiniteFloat, SerializerFunctionWrapHandler, model_serializer

from nori_dyn.algebra.spatial import add, zeros
from nori_dyn.errors import SensorConfigError, UnknownSensorNameError
from nori_dyn.measurements.base import Positive, VariableReading, per_component
from nori_dyn.measurements.floating_base import BASE, GRAVITY_WALK, RATE, SIGMAS, BaseRates, floating_root, gravity_size
from nori_dyn.measurements.touch import WRENCH, TouchPrior
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.memory import Remembered
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.variables import DRIFT, HARMONICS, PAYLOAD, STICTION, TOUCH, Unknown, Variable, VariableKey
from nori_dyn.typing import Array

SPEED = "qd"
"""The kind of joint velocities as variables: there only where they are state."""

SOURCE = "docs/design.md, 4.12"

GROUP = "memory"
"""What rows of memory belong to in messages that count rows."""

LASTING = {
    STICTION: "the friction of its joint says (stiction: scatter, rest, motion)",
    DRIFT: "the friction of its joint says (stiction: drift, warms)",
    HARMONICS: "its component says (covariance, lasts)",
    PAYLOAD: "its component says (mass, reach, change)",
}
"""The kinds of variables whose state is as a component of the robot says, in words."""

Walk = Annotated[FiniteFloat, Field(ge=0, le=1e12)]
"""A random walk; a larger number is none of a robot in any unit, and its square overflows."""


class Memory(ConfigPart):
    """State variables: m(t + dt) = a m(t) + r dt + w, see `nori_dyn.Filter`.

    Joint velocities, whose rate is the joint acceleration; offsets of sensors that drift; a push that lasts for about
    a second:

        memory:
          speed: {of: qd, rate: qdd, noise: 0.001}
          offsets: {of: offset, walk: 0.01}
          push: {of: "fx:hand", walk: 5.0, time_constant: 1.0, sigma: 20}

    The wrench of a touch, which `touch` in a config stands for:

          touch: {of: touch, sigma: [30, 30, 30, 30, 30, 30], walk: 4, time_constant: 100, jump: 30}

    Without a filter each tick has their initial prior.

    Attributes:
        of: the variables: "qd", which are the velocities of all joints; "base", the velocity, gravity and angular
            velocity of a floating base, which takes no other field; other kinds and names as in `outputs`.
        rate: the variables that are their derivatives: a kind, at the same places, or a name.
        noise: standard deviation of the velocities that a tick is given; needed for these, and for these only.
        walk: how far they change in one second that nothing else explains, as a standard deviation; over a time t its
            square grows as t. 0, as without it, are constants.
        time_constant: time in which they decay to 1 / e [s]; without it they stay.
        sigma: standard deviation at first; without it nothing is known. Offsets have theirs in the sensor's entry.
        mean: their initial mean.
        jump: how far they change where contacts that are recognised close and none opens, as a standard deviation.
    """

    of: str | Annotated[list[str], Field(min_length=1)]
    rate: str | None = None
    noise: Positive | list[Positive] | None = None
    walk: Walk | list[Walk] = 0.0
    time_constant: Positive | None = None
    sigma: Positive | list[Positive] | None = None
    mean: FiniteFloat | list[FiniteFloat] = 0.0
    jump: Walk | list[Walk] = 0.0

    @model_serializer(mode="wrap")
    def _without_none(self, fields: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out a jump that there is none of, so that fingerprints of configs stay."""
        content: dict[str, object] = fields(self)
        return {name: value for name, value in content.items() if name != "jump" or value}

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names and kinds that it is of."""
        return (self.of,) if isinstance(self.of, str) else tuple(self.of)

    def covers(self, variable: Variable) -> bool:
        """Whether a variable is state by this entry."""
        return variable.kind in self.wanted or variable.name in self.wanted

    def equations(self, tree: KinematicTree) -> Iterator[Equation]:
        """Yield the rows that come with state variables, and bring these along: of a base, and of joint velocities.

        Raises:
            SensorConfigError: a base that is fixed, placed by its joint, or without gravity; a noise that is missing,
                or of something else; a wrong number of values.
        """
        if any(name == BASE or name.startswith(f"{BASE}:") for name in self.wanted):
            if self != Memory(of=BASE):
                raise SensorConfigError(
                    f"the state of the base is one entry of its own, {{of: {BASE}}}, without more fields."
                )
            root = floating_root(tree)
            if not np.any(tree.gravity):
                raise SensorConfigError(
                    f"robot '{tree.name}' has no gravity, and nothing else tells a base's attitude."
                )
            place = tree.X_tree[root]
            if not (np.allclose(place.E, np.eye(3)) and np.allclose(place.r, 0)):
                raise SensorConfigError(
                    f"joint '{tree.joint_names[root]}' places the base of robot '{tree.name}' in the world, where its "
                    "q begins. A base that is state begins at the world's origin: leave out the origin of that joint."
                )
            yield BaseRates(root)
            yield gravity_size(root, tree.gravity)
        if TOUCH in self.wanted:
            yield self._touch()
        yield from self.speeds(tree)

    def _touch(self) -> Equation:
        """The rows by which the wrench of a touch is known at first.

        Raises:
            SensorConfigError: no sigma; a wrong number of values.
        """
        sigma = per_component("the sigma of the touch", self.sigma, FORCE)
        if sigma is None:
            raise SensorConfigError("give how large wrenches of touches are as `sigma` [N m, N].")
        mean = per_component("the mean of the touch", self.mean, FORCE)
        name = f"prior:{TOUCH}:{WRENCH.key.component}"
        return TouchPrior.of(WRENCH, name, "docs/design.md, 4.14", "prior", mean, sigma)

    def speeds(self, tree: KinematicTree) -> Iterator[Equation]:
        """Yield the rows that read the velocities given to a tick, with the variables that these are.

        Raises:
            SensorConfigError: a noise that is missing, or of something else; a wrong number of values.
        """
        names = [name for name in self.wanted if name == SPEED or name.startswith(f"{SPEED}:")]
        if not names:
            if self.noise is not None:
                raise SensorConfigError(
                    f"its noise is that of the joint velocities that a tick is given, and {', '.join(self.wanted)} "
                    "are none. Leave it out: sensors have a sigma of their own."
                )
            return
        if self.noise is None:
            raise SensorConfigError(
                "give the standard deviation of the joint velocities of a tick as `noise` [rad/s or m/s]."
            )
        for i, joint in enumerate(tree.joints):
            key = VariableKey(SPEED, i, tree.joint_names[i])
            if joint.nv and (SPEED in names or f"{SPEED}:{key.component}" in names):
                components = tuple(name.replace("a", "v") for name in joint.motion_components)
                unknown = Unknown(key, components, joint.units("rad/s", "m/s"), is_force=False)
                name = f"{SPEED}:{key.component}"
                sigma = per_component(f"the noise of '{name}'", self.noise, components)
                yield SpeedReading.of(unknown, name, SOURCE, GROUP, None, sigma)

    def remembered(self, name: str, variables: Sequence[Variable], owned: Mapping[str, Equation]) -> list[Remembered]:
        """The state variables of this entry.

        Args:
            name: the entry's.
            variables: those of the system.
            owned: the initial priors of offsets in sensors' entries, by the name of the variable.

        Raises:
            UnknownSensorNameError: a variable that the system does not have.
            SensorConfigError: a rate that does not fit, an offset with two sigmas, a wrong number of values.
        """
        known = list(dict.fromkeys([SPEED, BASE, *(v.kind for v in variables), *(v.name for v in variables)]))
        for one in (*self.wanted, *([] if self.rate is None else [self.rate])):
            if one not in known:
                raise UnknownSensorNameError("variable", one, known)
        return [self._one(name, v, variables, owned.get(v.name)) for v in variables if self.covers(v)]

    def _one(self, name: str, v: Variable, variables: Sequence[Variable], own: Equation | None) -> Remembered:
        if v.kind in LASTING and self != Memory(of=self.of, jump=self.jump):
            raise SensorConfigError(f"'{v.name}' is as {LASTING[v.kind]}: leave all but `of` and `jump` out here.")
        mean, sigma, known_by = self._prior(v, own)
        walk = per_component(f"the walk of '{v.name}'", self.walk, v.components) or ()
        if v.kind == BASE and v.key.component == "gravity":
            walk = (GRAVITY_WALK,) * 3
        jump = per_component(f"the jump of '{v.name}'", self.jump, v.components) or ()
        rate = self._rate(v, variables)
        return Remembered(name, v, mean, sigma, walk, self.time_constant, rate, known_by, jump=jump)

    def _prior(self, v: Variable, own: Equation | None) -> tuple[tuple[float, ...], tuple[float, ...] | None, str]:
        """Initial mean and deviation of a variable, and the name of the rows that say so: its own where it has some."""
        mean = per_component(f"the mean of '{v.name}'", self.mean, v.components) or ()
        sigma = per_component(f"the sigma of '{v.name}'", self.sigma, v.components)
        if not isinstance(own, VariableReading):
            return mean, (SIGMAS[v.key.component],) * 3 if v.kind == BASE else sigma, f"{GROUP}:{v.name}"
        value = own.value or mean
        if (sigma is not None or any(mean)) and (mean, sigma) != (value, own.sigma):
            raise SensorConfigError(
                f"the initial prior of '{v.name}' is in its sensor's entry (offset: {{sigma, mean}}): "
                "leave sigma and mean out here."
            )
        return value, own.sigma, own.name

    def _rate(self, v: Variable, variables: Sequence[Variable]) -> VariableKey | None:
        if v.kind == BASE:
            return VariableKey(RATE, v.body, v.key.component)
        if self.rate is None:
            return None
        found = [r for r in variables if self.rate == r.name or (r.kind == self.rate and r.body == v.body)]
        if len(found) != 1 or len(found[0].components) != len(v.components):
            shown = ", ".join(f"{r.name} ({len(r.components)})" for r in found) or "none"
            raise SensorConfigError(
                f"'{self.rate}' is no rate of '{v.name}', which has {len(v.components)} numbers; there is at the same "
                f"place: {shown}. Name a variable with as many."
            )
        if found[0].key == v.key:
            raise SensorConfigError(f"'{v.name}' cannot be its own rate. For a decay give `time_constant`.")
        return found[0].key


def beginnings(known: Iterable[Remembered]) -> Iterator[Equation]:
    """Yield the rows of the initial priors of state variables, without those that their sensors bring."""
    for each in known:
        v = each.variable
        if each.sigma is not None and each.known_by == f"{GROUP}:{v.name}":
            yield VariableReading.of(v, each.known_by, SOURCE, GROUP, each.mean, each.sigma)


@dataclass(frozen=True, slots=True)
class SpeedReading(VariableReading):
    """The rows v - qd = 0 of a joint's velocity v, which they bring along, by the velocity that the tick is given."""

    @property
    def is_measured(self) -> bool:
        """Never: the reading is qd itself."""
        return False

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """The variable, see `WithUnknowns`."""
        return (Unknown(self.key, self.components, self.units or (), is_force=False),)

    def bias(self, at: Kinematics, y: Array) -> Array:
        body = self.key.body
        return add(zeros((len(self.components),), at.v[body]), -at.qd[at.tree.v_slices[body]])
