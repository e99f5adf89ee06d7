"""A touch anywhere: one wrench that acts on one of many links, as state, and the rows by which it acts on each.

The wrench is in coordinates of the base, so that it is the same whichever link it is on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nori_dyn.algebra.spatial import Transform, zeros
from nori_dyn.measurements.base import Positive, VariableReading
from nori_dyn.measurements.contacts import Contact
from nori_dyn.measurements.external_wrench import ExternalWrench
from nori_dyn.measurements.frame_reading import LinkReading, SensorSite
from nori_dyn.measurements.selectors import Selector, select_places
from nori_dyn.model.joints import FORCE, FORCE_UNITS, Free
from nori_dyn.model.kinematics import Kinematics, transform_between
from nori_dyn.model.paths import path
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.variables import TOUCH, Unknown, VariableKey
from nori_dyn.typing import Array

WRENCH = Unknown(VariableKey(TOUCH, 0, "wrench"), FORCE, FORCE_UNITS)
"""The wrench of the touch, in coordinates of the base."""


def from_base(at: Kinematics, link: int) -> Transform:
    """The transform to a link from the base: the link on a free joint that carries it, or the world."""
    tree = at.tree
    first = [*path(tree.parents, link)][-1]
    return transform_between(at, link, first if isinstance(tree.joints[first], Free) else WORLD)


class TouchedLinks(ConfigPart):
    """The part `touch` of a sensor config: each of some links may be touched, one at a time.

        touch: {links: all, force: 30}

    It stands for a contact a link, closed while the link is touched, and for the wrench of the touch as state.

    Attributes:
        links: which links may be touched.
        force: how large forces are, a standard deviation [N].
        lever: how far from the base they act [m].
        change: by how much the force of a touch changes in one second, as a random walk [N].
    """

    links: Selector = "all"
    force: Positive = 30.0
    lever: Positive = 1.0
    change: Positive = 4.0

    def contacts(self, tree: KinematicTree) -> Iterator[Contact]:
        """Yield a contact for each link."""
        for name, _ in select_places(tree, self.links):
            untouched = ExternalWrench(type="external_wrench", links=name, value=0.0)
            yield Contact(name, (Touch(type="touch", links=name),), (untouched,))

    @property
    def memory(self) -> dict[str, object]:
        """The entry of the state."""
        each = np.repeat([self.lever, 1.0], 3)
        size = (self.force * each).tolist()
        lasts = 2 * (self.force / self.change) ** 2  # so that the walk keeps the size
        return {"of": TOUCH, "sigma": size, "jump": size, "walk": (self.change * each).tolist(), "time_constant": lasts}


@dataclass(frozen=True, slots=True)
class TouchPrior(VariableReading):
    """The rows by which the wrench of a touch is known at first; they bring it along, see `WithUnknowns`."""

    unknowns: ClassVar[tuple[Unknown, ...]] = (WRENCH,)


@dataclass(frozen=True, slots=True)
class TouchRows:
    """The rows X* w - fx_i = 0 of the wrench w of a touch.

    Attributes:
        name: "touch:l_forearm".
        body: the link.
    """

    name: str
    body: int

    source: ClassVar[str] = "docs/design.md, 4.14"
    group: ClassVar[str] = TOUCH
    components: ClassVar[tuple[str, ...]] = FORCE
    is_measured: ClassVar[bool] = False
    sigma: ClassVar[None] = None
    units: ClassVar[tuple[str, ...]] = FORCE_UNITS

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        X = from_base(at, self.body).force_matrix()
        return {VariableKey("fx", self.body): -np.eye(len(FORCE)), WRENCH.key: X}

    def bias(self, at: Kinematics, y: Array) -> Array:
        return zeros((len(FORCE),), at.v[self.body])


class Touch(LinkReading):
    """All that acts on a link from outside is the touch, whose wrench is state: `memory: {touch: {of: touch, ...}}`.

        X* w - fx_i = 0

    It stands where a contact is closed; `touch: {links: all}` in a config makes a contact of each link.

        - {type: touch, links: forearm}

    Source: docs/design.md, 4.14.
    """

    type: Literal["touch"]
    value: None = None
    sigma: None = None
    range: None = None
    offset: None = None
    frame: None = None

    label: ClassVar[str] = TOUCH
    spatial: ClassVar[tuple[str, ...]] = FORCE

    def reads(self, place: SensorSite) -> Equation:
        return TouchRows(place.name, place.body)
