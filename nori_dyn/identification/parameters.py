"""The parameters of a robot and its sensors, in which the equations of motion are linear: names, values, and back.

Ten a link, in its frame: the mass m, the first moments m c, and the rotational inertia I about the frame's origin. Of
joints the coefficients of friction, the rotor's inertia, harmonics of the angle, and a spring's stiffness and preload,
which is the stiffness times the position at which it is slack. Of readings an offset and a gain: gain reading = true
value + offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from nori_dyn.algebra.scalars import is_zero
from nori_dyn.components.base import OnJoints
from nori_dyn.components.friction import Friction
from nori_dyn.components.harmonics import Harmonics
from nori_dyn.components.presliding import Presliding
from nori_dyn.components.rotor import Rotor
from nori_dyn.components.spring import Spring
from nori_dyn.errors import UnknownNameError
from nori_dyn.measurements.selectors import select_joints
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree, RobotComponent
from nori_dyn.typing import Array, Floats

C = TypeVar("C", bound=OnJoints)
Kind: TypeAlias = str
"""What a parameter is: the word before the colon of its name."""

MOMENTS = ("xx", "xy", "yy", "xz", "yz", "zz")
"""The components of a rotational inertia, column by column."""

TEN: tuple[tuple[Kind, str, str], ...] = (
    ("m", "", "kg"),
    *(("mc", axis, "kg m") for axis in "xyz"),
    *(("I", moment, "kg m^2") for moment in MOMENTS),
)
"""Kind, component and unit of the ten parameters of a link."""

INERTIAL: tuple[Kind, ...] = ("m", "mc", "I")
OF_READINGS: tuple[Kind, ...] = ("offset", "gain")
CURVE: tuple[Kind, ...] = ("excess", "stribeck")
"""Stribeck's curve of a joint: by how much friction is more at rest, and the velocity at which half of that is left."""
WAVES: tuple[Kind, ...] = tuple(Harmonics.COEFFICIENTS)
"""Harmonics of the angle of a joint."""
OF_MOTION: tuple[Kind, ...] = ("viscous", "asymmetry", "quadratic", "coulomb", *CURVE, "mu", "rotor", *WAVES)
"""Those that a joint that stands still does not identify."""


ON_JOINTS: tuple[type[OnJoints], ...] = (Friction, Rotor, Spring, Harmonics)
"""The components of which joints have coefficients."""

NEW: Mapping[type[OnJoints], Mapping[str, Any]] = {
    Friction: {"width": 0.01},
    Rotor: {"inertia": 0.0},
    Spring: {"stiffness": 0.0},
    Harmonics: {},
}
"""What a joint is given that has no such component; the width [rad/s or m/s] is that of velocities of real robots."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "inertias": tuple(f"{kind}:*" for kind in INERTIAL),
    "friction": ("viscous:*", "coulomb:*"),
    "quadratic_friction": ("quadratic:*",),
    "asymmetric_friction": ("asymmetry:*",),
    "stribeck_friction": tuple(f"{kind}:*" for kind in CURVE),
    "weight_friction": ("mu:*",),
    "presliding": ("coulomb:*",),
    "rotors": ("rotor:*",),
    "springs": ("stiffness:*", "preload:*"),
    "harmonics": tuple(f"{kind}:*" for kind in WAVES),
    "offsets": ("offset:*",),
    "gains": ("gain:*",),
}
"""What words stand for several patterns."""


def with_presliding(tree: KinematicTree) -> KinematicTree:
    """A robot whose actuated joints have friction that goes by how far they have moved: see `Presliding`."""
    found, lacking = [], dict.fromkeys(i for i in select_joints(tree, "actuated") if tree.joints[i].nv)
    for each in tree.components:
        if isinstance(each, Friction):
            each = each if each.presliding else each.model_copy(update={"presliding": Presliding()})
            lacking = dict.fromkeys(i for i in lacking if i not in each.joints_on(tree))
        found.append(each)
    if lacking:
        names = [tree.joint_names[i] for i in lacking]
        found.append(Friction.model_validate({**NEW[Friction], "joints": names, "presliding": {}}))
    return tree.replace(components=tuple(found))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        kind: "m", "mc", "I", or another of `GROUPS`.
        owner: the link, the joint or the reading that it is of.
        component: which of several: "x" of "mc", "xx" of "I"; else empty.
        unit: its SI unit.
        robot: which of a fleet's it is, but for the first; empty of what all have alike.
    """

    kind: Kind
    owner: str
    component: str
    unit: str
    robot: str = ""

    @property
    def name(self) -> str:
        """What to call it: "m:forearm", "I:forearm.xx", "viscous:elbow", "offset:tau:elbow", "viscous:elbow@second"."""
        of = f"@{self.robot}" if self.robot else ""
        return f"{self.kind}:{self.owner}" + (f".{self.component}" if self.component else "") + of


def ten_of(I: Array) -> Array:
    """Ten parameters (10, ...) of a spatial inertia (6, 6, ...)."""
    moments = [I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]
    return np.array([I[5, 5], I[2, 4], I[0, 5], I[1, 3], *moments])


@dataclass(frozen=True, eq=False)
class Parameters:
    """Some of the parameters of a robot and its readings, in order.

    Attributes:
        tree: the robot, whose values are those known before.
        each: the parameters.
    """

    tree: KinematicTree
    each: tuple[Parameter, ...]

    @staticmethod
    def of(tree: KinematicTree, wanted: Iterable[str], readings: Mapping[str, str] | None = None) -> Parameters:
        """Select the parameters that some words, names or patterns mean.

        Args:
            tree: the robot.
            wanted: words of `GROUPS`, names, or patterns such as "m:*", "viscous:l_*"; a word or a pattern of kinds of
                which the robot has none means none.
            readings: the readings that may have an offset and a gain, with their units.

        Raises:
            UnknownNameError: a name that is none, or a pattern that fits nothing.
        """
        known = {each.name: each for each in all_parameters(tree, readings or {})}
        wanted = [wanted] if isinstance(wanted, str) else list(wanted)
        chosen: set[str] = set()
        for word in wanted:
            patterns = GROUPS.get(word, (word,))
            found = {name for pattern in patterns for name in known if name == pattern or fnmatchcase(name, pattern)}
            if not found and word not in GROUPS:
                raise UnknownNameError("parameter", word, (*GROUPS, *known), f"robot '{tree.name}'")
            chosen |= found
        return Parameters(tree, tuple(each for name, each in known.items() if name in chosen))

    def __len__(self) -> int:
        return len(self.each)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each."""
        return tuple(each.name for each in self.each)

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where each is, by its name."""
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def prior(self) -> Floats:
        """What each is taken to be by the robot's model: 0 of what it does not have, and 1 of gains."""
        return np.array([_before(self.tree, each) for each in self.each])

    def of_kinds(self, *kinds: Kind) -> list[int]:
        """Indices of those of some kinds."""
        return [k for k, each in enumerate(self.each) if each.kind in kinds]

    def links(self) -> dict[int, list[int]]:
        """Indices of the ten of each link that has some among these, -1 where one is not."""
        found: dict[int, list[int]] = {}
        for each in self.each:
            if each.kind in INERTIAL:
                i = self.tree.link(each.owner)
                if i not in found:
                    found[i] = [self.place.get(ten.name, -1) for ten in ten_parameters(each.owner)]
        return found

    def inertias(self, values: Array) -> Array:
        """Spatial inertia of each link (n_links, 6, 6) for values (n,) of these, over any scalar."""
        I = np.array(self.tree.I, dtype=np.asarray(values).dtype)
        for i, places in self.links().items():
            before = ten_of(self.tree.I[i])
            I[i] = inertia_of_ten([before[k] if at < 0 else values[at] for k, at in enumerate(places)])
        return I

    def components(self, values: Array, taken_at: KinematicTree | None = None) -> tuple[RobotComponent, ...]:
        """Components of the robot for values (n,) of these, over any scalar.

        Those that are not linear in a value are taken to first order about what they are of the robot `taken_at`.
        """
        by_joint: dict[str, dict[Kind, Any]] = {}
        for each, value in zip(self.each, values, strict=True):
            if each.kind not in (*INERTIAL, *OF_READINGS) and not each.robot:
                by_joint.setdefault(each.owner, {})[each.kind] = value
        found = self.tree.components
        for joint, given in by_joint.items():
            found = _with_coefficients(self.tree, found, joint, given, taken_at)
        return found

    def applied(self, values: Floats) -> KinematicTree:
        """The robot with values (n,) of these; offsets and gains are no part of it."""
        values = np.asarray(values, dtype=float)
        return self.tree.replace(I=self.inertias(values), components=self.components(values))


def ten_parameters(link: str) -> tuple[Parameter, ...]:
    """Ten parameters of a link."""
    return tuple(Parameter(kind, link, component, unit) for kind, component, unit in TEN)


def all_parameters(tree: KinematicTree, readings: Mapping[str, str]) -> Iterator[Parameter]:
    """Yield all parameters that a robot, and readings with their units, may have."""
    for link in tree.names:
        yield from ten_parameters(link)
    floats = any(isinstance(joint, Free) for joint in tree.joints)
    for kind in ON_JOINTS:
        for i in select_joints(tree, "actuated"):
            joint, name = tree.joints[i], tree.joint_names[i]
            if kind.suits(joint):
                for coefficient, units in {**kind.COEFFICIENTS, **kind.CURVED}.items():
                    if coefficient != "mu" or not floats:
                        yield Parameter(coefficient, name, "", joint.units(*units)[0])
    for reading, unit in readings.items():
        yield Parameter("offset", reading, "", unit)
    for reading in readings:
        yield Parameter("gain", reading, "", "")


def _before(tree: KinematicTree, each: Parameter) -> float:
    """Value of a parameter by the robot's model."""
    if each.kind in INERTIAL:
        ten = ten_of(tree.I[tree.link(each.owner)])
        return float(ten[ten_parameters(each.owner).index(each)])
    if each.kind in OF_READINGS:
        return float(each.kind == "gain")
    kind = next(one for one in ON_JOINTS if each.kind in (*one.COEFFICIENTS, *one.CURVED))
    _, found = _of_joint(tree, tree.components, tree.joint(each.owner), kind)
    return getattr(found, each.kind) if each.kind in kind.CURVED else found.coefficients()[each.kind]


def _of_joint(tree: KinematicTree, components: Sequence[RobotComponent], i: int, kind: type[C]) -> tuple[int, C]:
    """The first component of a kind that acts on a joint, and its place; at the end a new one, where there is none."""
    for k, component in enumerate(components):
        if isinstance(component, kind) and i in component.joints_on(tree):
            return k, component
    return len(components), kind.model_validate({**NEW[kind], "joints": tree.joint_names[i]})


def _with_coefficients(
    tree: KinematicTree,
    components: Sequence[RobotComponent],
    joint: str,
    values: Mapping[Kind, Any],
    taken_at: KinematicTree | None,
) -> tuple[RobotComponent, ...]:
    """Components with some coefficients of one joint changed, in the same order; new ones where there are none."""
    found = list(components)
    for kind in ON_JOINTS:
        own = {name: values[name] for name in (*kind.COEFFICIENTS, *kind.CURVED) if name in values}
        if not own:
            continue
        i = tree.joint(joint)
        k, before = _of_joint(tree, found, i, kind)
        if k == len(found) and own.keys().isdisjoint(kind.CURVED) and all(map(is_zero, own.values())):
            continue  # a new one that does nothing
        changed = before.with_coefficients(joint, own)
        if taken_at is not None and not own.keys().isdisjoint(kind.CURVED):
            changed = changed.to_first_order(_of_joint(taken_at, taken_at.components, i, kind)[1])
        names = [tree.joint_names[j] for j in before.joints_on(tree)]
        at = names.index(joint)
        rest = [
            [before.model_copy(update={"joints": part, "name": ""})] if part else []
            for part in (names[:at], names[at + 1 :])
        ]
        found[k : k + 1] = [*rest[0], changed, *rest[1]]
    return tuple(found)
