"""What a robot has beside rigid bodies on joints: motors, friction, springs, couplings, loops, tendons.

A component is data by name, as a sensor is; bound to a tree it yields its parts, which say what it adds to the
equations: see `nori_dyn.system.parts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nori_dyn.typing import Array

if TYPE_CHECKING:
    from nori_dyn.model.kinematics import Kinematics
    from nori_dyn.model.tree import KinematicTree


class Component(Protocol):
    """A component, before it meets a robot."""

    @property
    def type(self) -> str:
        """The kind of component: "rotor"."""

    @property
    def name(self) -> str:
        """What to call it; components that add variables need one of their own, others may have none: ""."""

    def on(self, tree: KinematicTree) -> Iterable[Any]:
        """Yield its parts on a robot, each a `nori_dyn.system.parts.Part`; every name is checked here.

        Raises:
            ModelError: a name that the robot does not have, or what cannot be.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its config."""


@runtime_checkable
class Closing(Protocol):
    """What a part has besides that holds positions together: where its rows hold, its gap stays as it is."""

    @property
    def name(self) -> str:
        """What to call it: "loop:bar"."""

    def gap(self, at: Kinematics) -> Array:
        """Return how far the robot is from closed (rows, ...) [m, rad]: all zero where it is."""

    def gap_rate(self, at: Kinematics) -> Array:
        """Return what velocities make of the gap (rows, nv, ...)."""
