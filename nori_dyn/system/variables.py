"""The dynamic variables d of a tree: accelerations, forces, torques, external wrenches, joint accelerations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from nori_dyn.model.joints import FORCE, FORCE_UNITS, MOTION, MOTION_UNITS
from nori_dyn.model.tree import KinematicTree

Kind: TypeAlias = Literal["a", "f", "tau", "fx", "qdd"]

KINDS: tuple[Kind, ...] = ("a", "f", "tau", "fx", "qdd")
"""The five variables of each body, in the order of the columns of D (Nori III-A)."""

WORDS: Mapping[Kind, str] = {
    "a": "link acceleration",
    "f": "joint wrench",
    "tau": "joint torque",
    "fx": "external wrench",
    "qdd": "joint acceleration",
}
"""What the five variables of a body are called."""

FORCES: tuple[Kind, ...] = ("f", "tau", "fx")
"""Those that are forces; the others are accelerations."""

SOURCES: tuple[Kind, ...] = ("fx", "qdd")
"""The variables that determine all others by the equations of motion."""


class VariableKey(NamedTuple):
    """A variable: its kind and the body that it belongs to."""

    kind: Kind
    body: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A named block of d.

    Attributes:
        kind: which of the five.
        body: index of its link.
        owner: name of its link (a, f, fx) or of its joint (tau, qdd).
        slice: where it lies in d.
        components: names of its components; one empty name for a scalar.
        units: the SI unit of each.
    """

    kind: Kind
    body: int
    owner: str
    slice: slice
    components: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def key(self) -> VariableKey:
        """What it is, whatever it is called."""
        return VariableKey(self.kind, self.body)

    @property
    def name(self) -> str:
        """What to call it: "fx:l_sole"."""
        return f"{self.kind}:{self.owner}"

    @property
    def group(self) -> int:
        """Variables of one group have one natural size: 2 body for its motions, 2 body + 1 for its forces."""
        return 2 * self.body + (self.kind in FORCES)

    @property
    def component_names(self) -> tuple[str, ...]:
        """The name of each number of the block: "fx:l_sole.mz", or the block's own for a scalar."""
        return component_names(self.name, self.components)


def component_names(name: str, components: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the numbers of a named block."""
    return tuple(f"{name}.{component}" if component else name for component in components)


def tree_variables(tree: KinematicTree) -> Iterator[Variable]:
    """Yield all variables of a tree, body by body, in the order of the columns of D."""
    start = 0
    for i, joint in enumerate(tree.joints):
        link, moved = tree.names[i], tree.joint_names[i]
        parts: dict[Kind, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
            "a": (link, MOTION, MOTION_UNITS),
            "f": (link, FORCE, FORCE_UNITS),
            "tau": (moved, joint.force_components, joint.units("N m", "N")),
            "fx": (link, FORCE, FORCE_UNITS),
            "qdd": (moved, joint.motion_components, joint.units("rad/s^2", "m/s^2")),
        }
        for kind in KINDS:
            owner, components, units = parts[kind]
            stop = start + len(components)
            yield Variable(kind, i, owner, slice(start, stop), components, units)
            start = stop
