"""The dynamic variables d of a tree: accelerations, forces, torques, external wrenches, joint accelerations, and more.

The five kinds that each body has come first, body by body; then the variables of components, such as the force in a
loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from nori_dyn.model.joints import FORCE, FORCE_UNITS, MOTION, MOTION_UNITS
from nori_dyn.model.tree import KinematicTree

Kind: TypeAlias = str
"""One of `KINDS`, or a kind that a component adds."""

KINDS: tuple[Kind, ...] = ("a", "f", "tau", "fx", "qdd")
"""The five variables of each body, in the order of the columns of D (Nori III-A)."""

LOAD: Kind = "tau_J"
"""The torque in a joint, S^T f, where it differs from the motor's: see `newton_euler`."""

OFFSET: Kind = "offset"
"""What sensors with an offset add."""

STICTION: Kind = "stiction"
"""The friction of joints at rest, as a share of what it can be: see `components.friction`."""

RIPPLE: Kind = "ripple"
"""What the friction of joints that move is off at each tick anew, in standard deviations: likewise."""

DRIFT: Kind = "drift"
"""By which share the viscous friction of joints is more than by its law: likewise."""

HARMONICS: Kind = "harmonics"
"""What the harmonics of joints are off, in standard deviations: see `components.harmonics`."""

DEFLECTION: Kind = "deflection"
"""How far what rubs in joints is deflected, as a share of what makes it slide: see `components.presliding`."""

PAYLOAD: Kind = "payload"
"""The inertial parameters of what a link carries beside itself: see `components.unknown_payload`."""

TOUCH: Kind = "touch"
"""The wrench of a touch anywhere: see `measurements.touch`."""

CENTROIDAL: Kind = "centroidal"
"""The centre of mass, and the momentum about it: see `measurements.centroidal`."""

WORDS: Mapping[Kind, str] = {
    "a": "link acceleration",
    "f": "joint wrench",
    "tau": "joint torque",
    "fx": "external wrench",
    "qdd": "joint acceleration",
    LOAD: "torque in the joint",
    "loop": "internal wrench of loop",
    "coupling": "force of coupling",
    "tendon": "force of tendon",
    "offset": "offset of sensor",
    "qd": "joint velocity",
    STICTION: "stiction of joint",
    RIPPLE: "ripple of joint",
    DRIFT: "drift of joint",
    HARMONICS: "harmonics of joint",
    DEFLECTION: "deflection of joint",
    PAYLOAD: "payload of link",
    TOUCH: "wrench of touch",
    CENTROIDAL: "centroidal quantity",
}
"""What variables are called; those of kinds that are not here are called by their kind."""

SPATIAL: tuple[Kind, ...] = ("a", "f", "fx")
"""Those that each link has as a spatial vector."""

OF_JOINTS: tuple[Kind, ...] = ("tau", "qdd", LOAD)
"""Those that have a number a freedom of each joint."""

FORCES: tuple[Kind, ...] = ("f", "tau", "fx", LOAD)
"""Those that are forces; the others are accelerations."""

SOURCES: tuple[Kind, ...] = ("fx", "qdd")
"""The variables of bodies that, with all that components add, determine all others by the equations of motion."""


class VariableKey(NamedTuple):
    """A variable: its kind, the body that it belongs to, and the name of the component, or sensor, that adds it."""

    kind: Kind
    body: int
    component: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A variable that a component, or a sensor, adds to d.

    Attributes:
        key: its identity: its kind, the body where it comes in an elimination from the leaves to the root, and the name
            of what adds it.
        components: names of its components; one empty name for a scalar.
        units: the SI unit of each.
        is_force: whether it is as large as the forces of that body; otherwise as its accelerations.
    """

    key: VariableKey
    components: tuple[str, ...]
    units: tuple[str, ...]
    is_force: bool = True


@dataclass(frozen=True, slots=True)
class Variable:
    """A named block of d.

    Attributes:
        key: its identity, independent of names.
        owner: name of its link (a, f, fx), of its joint (tau, tau_J, qdd), or of the component that adds it.
        slice: where it lies in d.
        components: names of its components; one empty name for a scalar.
        units: the SI unit of each.
        is_force: whether it is as large as the forces of its body; otherwise as its accelerations.
        is_source: whether it is among those that determine all others by the equations of motion.
    """

    key: VariableKey
    owner: str
    slice: slice
    components: tuple[str, ...]
    units: tuple[str, ...]
    is_force: bool
    is_source: bool

    @property
    def kind(self) -> Kind:
        """One of `KINDS`, or a component's own kind."""
        return self.key.kind

    @property
    def body(self) -> int:
        """Index of its link."""
        return self.key.body

    @property
    def name(self) -> str:
        """Its name: "fx:l_sole"."""
        return f"{self.kind}:{self.owner}"

    @property
    def group(self) -> int:
        """Variables of one group have one natural size: 2 body for its motions, 2 body + 1 for its forces."""
        return 2 * self.body + self.is_force

    @property
    def component_names(self) -> tuple[str, ...]:
        """The name of each number of the block: "fx:l_sole.mz", or the name of the block for a scalar."""
        return component_names(self.name, self.components)


def kind_in_words(kind: Kind) -> str:
    """The variables of a kind in words."""
    return WORDS.get(kind, kind)


def component_names(name: str, components: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the numbers of a named block."""
    return tuple(f"{name}.{component}" if component else name for component in components)


def numbered(name: str, n: int) -> tuple[str, ...]:
    """Names of the n numbers of q or qd of a joint."""
    return (name,) if n == 1 else tuple(f"{name}[{k}]" for k in range(n))


def tree_variables(tree: KinematicTree, is_loaded: bool = False, added: Iterable[Unknown] = ()) -> Iterator[Variable]:
    """Yield all variables, in the order of the columns of D.

    Args:
        tree: the robot.
        is_loaded: whether the joint torques differ from the motor torques.
        added: the variables of components and sensors.
    """
    start = 0
    for i, joint in enumerate(tree.joints):
        link, moved = tree.names[i], tree.joint_names[i]
        parts: dict[Kind, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
            "a": (link, MOTION, MOTION_UNITS),
            "f": (link, FORCE, FORCE_UNITS),
            "tau": (moved, joint.force_components, joint.units("N m", "N")),
            "fx": (link, FORCE, FORCE_UNITS),
            "qdd": (moved, joint.motion_components, joint.units("rad/s^2", "m/s^2")),
            LOAD: (moved, joint.force_components, joint.units("N m", "N")),
        }
        for kind in (*KINDS, LOAD) if is_loaded else KINDS:
            owner, components, units = parts[kind]
            own = slice(start, start + len(components))
            yield Variable(VariableKey(kind, i), owner, own, components, units, kind in FORCES, kind in SOURCES)
            start = own.stop
    for unknown in added:
        own = slice(start, start + len(unknown.components))
        name, parts_of = unknown.key.component, (unknown.components, unknown.units)
        yield Variable(unknown.key, name, own, *parts_of, unknown.is_force, is_source=True)
        start = own.stop
