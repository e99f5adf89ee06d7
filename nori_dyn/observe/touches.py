"""What sensors tell of a touch anywhere: on which links its wrench is determined, and which links are distinguished.

A touch on link k changes the readings by M_k w, for wrenches w of six numbers; M_k are columns of the measured rows
over the sources. Their space V_k says all: its dimension is how many numbers of the wrench are determined. Forces at
points are five numbers, since f and m = x x f have f . m = 0: the plane that touches this quadric at a wrench has five
dimensions, of which M_k loses none if its rank is five or six. Then force and line of action are determined, up to
finitely many. If V_j holds V_k, each touch on k reads like one on j; if it is V_k, no reading ever tells the two apart.
Velocities and their rates, offsets and whatever is state count as known: a touch is short.

Ranks are taken at a random point of the prime field, as in `generic`.

Source: own derivation (tests/unit/observe/test_touches.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import PlanError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.exact import exact_system
from nori_dyn.observe.field import Span, field_rows
from nori_dyn.observe.generic import ENTRY_DEGREE
from nori_dyn.system.builder import System
from nori_dyn.system.variables import TOUCH
from nori_dyn.tables import Shown

AT_A_POINT = 5
"""Numbers of a force at a point of a link, shifted along its line of action."""


@dataclass(frozen=True, slots=True)
class TouchedLink:
    """What sensors tell of a touch on a link, at almost all q.

    Attributes:
        link: its name.
        rank: how many numbers of the six of its wrench are determined.
        like: links on which some touch reads like any on this one.
        same: those of which also the converse holds: no reading tells these from this one.
    """

    link: str
    rank: int
    like: tuple[str, ...]
    same: tuple[str, ...]

    @property
    def is_localized(self) -> bool:
        """Whether force and line of action are determined, of a force at a point."""
        return self.rank >= AT_A_POINT


@dataclass(frozen=True, slots=True, eq=False)
class TouchObservability(Shown):
    """What sensors tell of a touch on each of some links.

    Attributes:
        robot, sensors: their names.
        links: by link.
        error: bound on the probability that any of it is wrong.
    """

    robot: str
    sensors: str
    links: tuple[TouchedLink, ...]
    error: float

    @property
    def localized(self) -> tuple[str, ...]:
        """The links on which a touch is localized."""
        return tuple(one.link for one in self.links if one.is_localized)

    @property
    def suffices(self) -> bool:
        """Whether a touch is localized on every link, and all links are distinguished."""
        return all(one.is_localized and not one.same for one in self.links)

    def __repr__(self) -> str:
        localized = f"{len(self.localized)} of {len(self.links)} links"
        return f"TouchObservability('{self.sensors}' on '{self.robot}', localized on {localized})"


def touch_observability(tree: KinematicTree, sensors: SensorSet, seed: int = 0) -> TouchObservability:
    """Say, before any reading, on which links sensors determine a touch, and which links they cannot tell apart.

    Args:
        tree: the robot.
        sensors: sensors with `touch`.
        seed: of the random point.

    Raises:
        PlanError: sensors without `touch`; a robot with loops or couplings.
        SensorConfigError: sensors that do not fit the robot.

    Example:
        >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 1.0}
        >>> content = {"name": "arm", "measurements": [torques, motion], "touch": {"links": "all"}}
        >>> found = nd.tools.touch_observability(nd.autotree(6, skew=1.0), nd.SensorSet.from_dict(content))
        >>> found.localized, [one.rank for one in found.links]
        (('link5', 'link6'), [1, 2, 3, 4, 5, 6])
    """
    if not sensors.has_touches:
        raise PlanError(f"sensors '{sensors.name}' have no links that may be touched: touch: {{links: all}}.")
    if tree.closing_parts:
        raise PlanError(f"robot '{tree.name}' has loops or couplings: ranks of touches are of open robots.")
    made = sensors.touching(tree)
    contacts = [contact for contact in made.contacts if not contact.is_touch]
    memory = [entry for entry in made.memory if TOUCH not in entry[1].wanted]
    system = System(tree, replace(made, contacts=tuple(contacts), memory=tuple(memory)).in_contact())
    rows = field_rows(system, exact_system(system, seed)).measured
    known = {k for one in system.memory for k in numbers(one.variable.slice)}
    rates = [one.rate for one in system.memory if one.rate is not None]
    known |= {k for key in rates for k in numbers(system.column(key.kind, key.body))}
    touched = [contact.name for contact in made.contacts if contact.is_touch]
    places = {name: {*numbers(system.column("fx", tree.frame(name).link))} for name in touched}
    others = {column for row in rows.values() for column in row} - known - set().union(*places.values())

    @cache
    def dimension(links: frozenset[str]) -> int:
        """The dimension of what touches on some links, at once, and all else that is not known, change."""
        columns = others.union(*(places[name] for name in links))
        return Span.of({k: value for k, value in row.items() if k in columns} for row in rows.values()).dimension

    def rank(*links: str) -> int:
        """The dimension of what touches on some links, at once, change."""
        return dimension(frozenset(links)) - dimension(frozenset())

    found = []
    for name in places:
        like = [other for other in places if other != name and rank(name, other) == rank(other)]
        same = [other for other in like if rank(other) == rank(name)]
        found.append(TouchedLink(name, rank(name), tuple(like), tuple(same)))
    error = dimension.cache_info().currsize * system.shape[1] * ENTRY_DEGREE / PRIME
    return TouchObservability(tree.name, sensors.name, tuple(found), error)
