"""What to add where sensors do not suffice: a small set of further ones that determines what is missing.

Each candidate reads numbers of d: a torque, an acceleration, a wrench. What the sensors leave open is a space of
changes of d, and what a candidate settles of it is the rank of its rows on that space (`undetermined.py`). Ranks are
submodular, so that the greedy choice, looked for lazily, is good, and the largest ranks of single candidates bound how
few can do.

Source: Minoux (1978), Accelerated greedy algorithms, for the order of the looks; own derivation otherwise
(tests/unit/observe/test_additions.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.algebra.ranges import numbers
from nori_dyn.model.joints import FORCE, Free
from nori_dyn.observe.generic import GenericRank, Open
from nori_dyn.observe.null_space import Readings, UnobservableSubspace, list_names, place_of, wrench_readings
from nori_dyn.planning.outputs import Output
from nori_dyn.system.builder import System
from nori_dyn.system.variables import Variable

MOST_LOOKS = 3000
"""Most looks at what a candidate settles: a search that takes more is given up."""

TYPES = (
    "joint_acceleration",
    "external_wrench",
    "joint_torque",
    "accelerometer",
    "angular_accelerometer",
    "force_torque",
    "linear_relation",
)
"""What may be added; of those that read as many numbers, the first is preferred."""


@dataclass(frozen=True, slots=True)
class Addable:
    """Something that a set of sensors does not have.

    Attributes:
        words: what it is: "a torque sensor in l_knee".
        entry: the same as sensor configs have it.
        type: its kind in words, by which others like it are counted: "a torque sensor in".
        place: the joint, link, frame or component.
        n: how many numbers it reads; 0 where something is known without a sensor.
        columns: the numbers of d that are known with it.
        is_asked: whether it reads an output that is asked for, and so answers the question by itself.
    """

    words: str
    entry: Mapping[str, Any]
    type: str
    place: str
    n: int
    columns: tuple[int, ...]
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class Addition:
    """Sensors that, added to a set, determine what is missing.

    Attributes:
        at_poses: whether also at the special poses of the report; otherwise at almost every pose.
        sensors: what to add, the most telling first.
        is_smallest: whether no smaller number of additions of these kinds does, for certain.
        others: where one is enough, the others of which any one is, too.
    """

    at_poses: bool
    sensors: tuple[Addable, ...]
    is_smallest: bool
    others: tuple[Addable, ...]


def additions(
    system: System,
    generic: GenericRank,
    poses: Sequence[Sequence[UnobservableSubspace]],
    asked: Sequence[Output] = (),
) -> tuple[Addition, ...]:
    """Find what to add to a set of sensors for almost every pose, and for special poses where that takes more.

    Args:
        system: the robot with the sensors that it has.
        generic: what is open for almost all q.
        poses: what is not seen at special poses.
        asked: what is asked for: sensors of it are added where no others help.
    """
    found = []
    always = set(np.flatnonzero(generic.moved).tolist())
    if always:
        found.append(_addition(_addables(system, always, asked), [generic.open.copy()], at_poses=False))
    if poses and None not in found:
        at_poses = [_open_at_pose(system, unseen) for unseen in poses]
        moved = always.union(*(part.remainders for part in at_poses))
        parts = [generic.open.copy(), *at_poses]
        found.append(_addition(_addables(system, moved, asked), parts, at_poses=True))
    known = [one for one in found if one is not None]
    if len(known) == 2 and known[0].sensors == known[1].sensors:
        return (known[1],)
    return tuple(known)


def _addition(candidates: Sequence[Addable], parts: Sequence[Open], at_poses: bool) -> Addition | None:
    """A small choice of candidates that settles all that is open; None where none was found in `MOST_LOOKS`."""
    gains = [sum(part.gain(candidate.columns) for part in parts) for candidate in candidates]
    total, looks = sum(part.dimension for part in parts), len(candidates)
    alone = [candidate for candidate, gain in zip(candidates, gains, strict=True) if gain == total]
    waiting = [(candidates[k].is_asked, -gain, k) for k, gain in enumerate(gains)]
    heapq.heapify(waiting)
    chosen: list[Addable] = []
    while any(part.dimension for part in parts):
        while True:
            if not waiting or looks >= MOST_LOOKS:
                return None
            is_asked, _, k = heapq.heappop(waiting)
            gain = sum(part.gain(candidates[k].columns) for part in parts)
            looks += 1
            if not gain:
                continue  # and none later: gains only shrink
            now = (is_asked, -gain, k)
            if not waiting or now <= waiting[0]:
                break
            heapq.heappush(waiting, now)
        chosen.append(candidates[k])
        for part in parts:
            part.settle(candidates[k].columns)
    fewest = int(np.searchsorted(np.cumsum(sorted(gains, reverse=True)), total)) + 1  # each settles what it does alone
    is_smallest = len(chosen) <= (1 if alone else max(2, fewest))
    others = tuple(candidate for candidate in alone if candidate not in chosen) if len(chosen) == 1 else ()
    return Addition(at_poses, tuple(chosen), is_smallest, others)


def _addables(system: System, moved: Collection[int], asked: Sequence[Output] = ()) -> tuple[Addable, ...]:
    """Candidates that read variables of which some numbers are not determined, the preferred ones first."""
    open_ = set(moved)
    readings = wrench_readings(system)
    found = (
        replace(each, is_asked=each.n > 0 and any(output.covers(variable) for output in asked))
        for variable in system.variables
        if open_.intersection(numbers(variable.slice))
        for each in _yield_addables(system, variable, readings)
    )
    return tuple(sorted(found, key=lambda each: (each.is_asked, each.n, TYPES.index(each.entry["type"]))))


def _yield_addables(system: System, variable: Variable, readings: Readings) -> Iterator[Addable]:
    """Yield what may be added to know a variable, or some of it."""
    if variable.key.component:
        yield from _yield_cells(variable)
        return
    columns, owner = tuple(numbers(variable.slice)), variable.owner
    joint = system.tree.joints[variable.body]
    moved_by = system.tree.joint_names[variable.body]

    def known(type_: str, words: str, place: str, columns: Sequence[int], **entry: Any) -> Addable:
        n = 0 if "value" in entry else len(entry.get("components", columns))
        return Addable(f"{words} {place}", {"type": type_, **entry}, words, place, n, tuple(columns))

    if variable.kind == "qdd":
        yield known("joint_acceleration", "the acceleration of joint", owner, columns, joints=owner)
    elif variable.kind == "tau" and isinstance(joint, Free):
        yield known("joint_torque", "the fact that no motor moves", owner, columns, joints=owner, value=0)
    elif variable.kind == "tau":
        yield known("joint_torque", "a torque sensor in", owner, columns, joints=owner)
    elif variable.kind == "f" and not isinstance(joint, Free):
        yield known("force_torque", "a six-axis force-torque sensor in", moved_by, columns, joints=moved_by)
    elif variable.kind == "a":
        yield known("accelerometer", "an accelerometer on", owner, columns[3:], links=owner)
        yield known("angular_accelerometer", "an angular accelerometer on", owner, columns[:3], links=owner)
    elif variable.kind == "fx":
        place, missing = _find_unread(system, variable.body, readings)
        if len(missing) < len(FORCE):
            words = f"a load cell that also reads {list_names(missing)}, at"
            yield known("external_wrench", words, place, columns, links=place, components=list(missing))
        else:
            yield known("external_wrench", "the external wrench, read or known, on", owner, columns, links=owner)


def _yield_cells(variable: Variable) -> Iterator[Addable]:
    """Yield what reads the numbers of a variable that a component adds, one by one."""
    words = "a load cell that reads"
    for column, name in zip(numbers(variable.slice), variable.component_names, strict=True):
        entry = {"type": "linear_relation", "name": f"cell:{name}", "terms": {name: 1.0}, "value": None}
        yield Addable(f"{words} {name}", entry, words, name, 1, (column,))


def _find_unread(system: System, body: int, readings: Readings) -> tuple[str, tuple[str, ...]]:
    """Where the external wrench on a link is read, and the components that are not; all where it is nowhere."""
    place = place_of(system, body, readings)
    rows = readings[body]
    read = {component for row in rows for component in row.equation.components}
    is_named = place.name in system.tree.frames or place.name in system.tree.names
    link = system.tree.names[body]
    is_one_place = all((link if row.frame is None else row.frame.name) == place.name for row in rows)
    if not is_named or not is_one_place or not read < set(FORCE):
        return link, FORCE
    return place.name, tuple(component for component in FORCE if component not in read)


def _open_at_pose(system: System, unseen: Sequence[UnobservableSubspace]) -> Open:
    """The open subspace at a pose."""
    vectors = [vector.coefficients for part in unseen for vector in part.vectors]
    return Open.at_configuration(
        np.array([[vector.get(name, 0.0) for vector in vectors] for name in system.variable_names])
    )
