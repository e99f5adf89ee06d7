"""Layout of a robot's samples: q, qd, readings and contacts, by name; and what their columns may be called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.algebra.ranges import holding, width
from nori_dyn.components.presliding import DeflectionReading, Presliding
from nori_dyn.logs.formats.source import Stream
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import without_offset
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.measurements.floating_base import BASE, root_numbers
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.equation import WithUnits
from nori_dyn.system.variables import LOAD, component_names, numbered
from nori_dyn.typing import Floats, Indices

ALWAYS: ContactState = ()
"""The contact state of sensors without contacts."""

COORDINATE_UNITS = {"angle": "rad", "length": "m", "quaternion": ""}


@dataclass(frozen=True, slots=True)
class Freedom:
    """Freedoms that a reading of joint accelerations or torques refers to.

    Attributes:
        kind: "qdd", "tau" or "tau_J".
        places: its freedoms among the nv.
        factors: what each is taken times.
    """

    kind: str
    places: tuple[int, ...]
    factors: tuple[float, ...]


@dataclass(frozen=True)
class SampleRecord:
    """Layout of the numbers of a sample.

    Attributes:
        tree: the robot.
        systems: what is solved in each contact state.
        contacts: the names of the contacts whose state the log tells.
        names: the name of each number: q, qd, y (of all states, each once, as `SwitchingSolver` takes them), contacts.
        units: its unit of SI; "" where it has none, or where that is not known.
        groups: the components of each quantity of several numbers, by its name.
    """

    tree: KinematicTree
    systems: Mapping[ContactState, System]
    contacts: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]

    @staticmethod
    def of(systems: Mapping[ContactState, System], contacts: Sequence[str] = ()) -> SampleRecord:
        """The record of samples for some systems.

        Args:
            systems: what is solved in each contact state, of one robot.
            contacts: the contacts whose state is to be given.
        """
        tree = next(iter(systems.values())).tree
        groups: dict[str, tuple[str, ...]] = {}
        units: dict[str, str] = {}
        for name, joint in zip(tree.joint_names, tree.joints, strict=True):
            groups[f"q:{name}"] = numbered(f"q:{name}", joint.nq)
            units |= zip(groups[f"q:{name}"], (COORDINATE_UNITS[c] for c in joint.coordinates), strict=True)
        for name, joint in zip(tree.joint_names, tree.joints, strict=True):
            groups[f"qd:{name}"] = numbered(f"qd:{name}", joint.nv)
            units |= zip(groups[f"qd:{name}"], joint.units("rad/s", "m/s"), strict=True)
        for row in (row for system in systems.values() for row in system.measurements):
            equation = row.equation
            own = (equation.units if isinstance(equation, WithUnits) else None) or ("",) * len(equation.components)
            groups[row.name] = component_names(row.name, equation.components)
            units |= zip(groups[row.name], own, strict=True)
        closed = [f"{CONTACT}{name}" for name in contacts]
        units |= dict.fromkeys(closed, "")
        groups |= {name: (name,) for name in closed}
        return SampleRecord(tree, systems, tuple(contacts), tuple(units), tuple(units.values()), groups)

    @staticmethod
    def of_sensors(tree: KinematicTree, sensors: SensorSet, are_told: bool = True) -> SampleRecord:
        """The record of samples for sensors, with the readings of all their contact states.

        Args:
            tree: the robot.
            sensors: the sensors.
            are_told: whether the log tells which contacts are closed.

        Raises:
            SensorConfigError: they do not fit the robot.
        """
        sensors = sensors.touching(tree)
        closed = tuple(one.name for one in sensors.contacts if not one.is_touch)  # a touch brings no reading
        states = {state: sensors.in_contact(*state) for state in ((), closed)} if sensors.contacts else {(): sensors}
        systems = {state: System(tree, own) for state, own in states.items()}
        return SampleRecord.of(systems, sensors.contact_names if are_told else ())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each number is."""
        return {name: k for k, name in enumerate(self.names)}

    @property
    def q(self) -> slice:
        """Where q is."""
        return slice(0, self.tree.nq)

    @property
    def qd(self) -> slice:
        """Where qd is."""
        return slice(self.tree.nq, self.tree.nq + self.tree.nv)

    @property
    def y(self) -> slice:
        """Where the readings are."""
        return slice(self.tree.nq + self.tree.nv, len(self.names) - len(self.contacts))

    @property
    def closed(self) -> slice:
        """Where it stands which contacts are closed."""
        return slice(len(self.names) - len(self.contacts), len(self.names))

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The names of the readings."""
        return self.names[self.y]

    @cached_property
    def estimated(self) -> Mapping[int, float]:
        """The numbers of q and qd that are estimated, with values for them that count for nothing, by their places.

        Those of the root joint of a robot whose base is state.
        """
        tree = self.tree
        if not any(one.variable.kind == BASE for system in self.systems.values() for one in system.memory):
            return {}
        rest = np.concatenate([tree.neutral_configuration(), np.zeros(tree.nv)])
        return {place: float(rest[place]) for place in root_numbers(tree)}

    @cached_property
    def quaternions(self) -> tuple[slice, ...]:
        """Where unit quaternions are."""
        of_joints = zip(self.tree.joints, self.tree.q_slices, strict=True)
        return tuple(slice(s.stop - 4, s.stop) for joint, s in of_joints if "quaternion" in joint.coordinates)

    @cached_property
    def freedoms(self) -> Mapping[str, Freedom]:
        """What each reading of joint accelerations or torques is of, by its name."""
        found: dict[str, Freedom] = {}
        for system in self.systems.values():
            for row in system.measurements:
                equation = without_offset(row.equation)
                if isinstance(equation, VariableReading) and equation.key.kind in ("qdd", "tau", LOAD):
                    first = self.tree.v_slices[equation.key.body].start
                    for name, factors in zip(row.component_names, np.asarray(equation.matrix), strict=True):
                        own = np.flatnonzero(factors)
                        places = tuple(first + int(j) for j in own)
                        found[name] = Freedom(equation.key.kind, places, tuple(map(float, factors[own])))
        return found

    @cached_property
    def deflections(self) -> Mapping[str, tuple[int, Presliding]]:
        """The body and the law of each reading of how far a joint is deflected before it slides, by its name."""
        rows = (row.equation for system in self.systems.values() for row in system.measurements)
        return {each.name: (each.key.body, each.law) for each in rows if isinstance(each, DeflectionReading)}

    @cached_property
    def y_indices(self) -> Mapping[ContactState, Indices]:
        """The indices of the readings of each contact state among all."""
        place = {name: k for k, name in enumerate(self.measurement_names)}
        named = {state: system.measurement_names for state, system in self.systems.items()}
        return {state: np.array([place[name] for name in own], dtype=np.intp) for state, own in named.items()}

    def own_readings(self, state: ContactState, y: Floats) -> Floats:
        """Readings of one contact state, from those of all (..., ny)."""
        return y if len(self.systems) == 1 else y[..., self.y_indices[state]]


ALIASES = {
    "q": ("q", "position", "positions"),
    "qd": ("qd", "dq", "velocity", "velocities"),
    "qdd": ("qdd", "ddq", "acceleration", "accelerations"),
    "tau": ("tau", "tau_J", "effort", "efforts", "torque", "torques"),
    LOAD: ("tau_J", "effort"),
}
"""What columns with a number, such as `q[0]`, or of a joint, such as `/joint_states.position:elbow`, may be called."""

KINDS = tuple(dict.fromkeys(alias for aliases in ALIASES.values() for alias in aliases))
"""All that such columns may be called."""


def usual_names(record: SampleRecord, columns: Mapping[str, Stream]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each number of a record, and what its column may be called, the likeliest first.

    Args:
        record: the numbers of a sample.
        columns: those of the log: `q[0]` is of the first joint that has columns, where the root is estimated.
    """
    component = {name: (group, k) for group, names in record.groups.items() for k, name in enumerate(names)}
    for k, name in enumerate(record.names):
        group, j = component[name]
        kind, numbers, joint = _as_freedom(record, name, k)
        aliases = ALIASES.get(kind, ()) if numbers is not None else ()
        numbered = [name for alias in aliases for name in _numbered(record, columns, alias, kind, numbers or 0)]
        of_joint = [f"{alias}:{joint}" for alias in ALIASES.get(kind, ())] if joint else []
        in_array = [f"{group}[{j}]"] if len(record.groups[group]) > 1 else []
        of_y = [f"y[{k - record.y.start}]"] if record.y.start <= k < record.y.stop else []
        yield name, tuple(dict.fromkeys([name, *in_array, *of_y, *numbered, *of_joint]))


def _numbered(record: SampleRecord, columns: Mapping[str, Stream], alias: str, kind: str, k: int) -> Iterator[str]:
    """Yield names of the k-th number of a kind: among all, or in a log of fewer those of all but an estimated root.

    Without brackets numbers may begin at one.
    """
    tree = record.tree
    n, of_root = (tree.nq, sum(p < tree.nq for p in record.estimated)) if kind == "q" else (tree.nv, 6)
    has_all = not record.estimated or column_named(columns, [f"{alias}[{n - 1}]"]) is not None
    yield f"{alias}[{k if has_all else k - of_root}]"
    for stem in (alias, f"{alias}_") if not record.estimated else ():
        yield f"{stem}{k if column_named(columns, [f'{stem}0']) else k + 1}"


def column_named(columns: Mapping[str, Stream], names: Iterable[str]) -> str | None:
    """The first of some names that a column of the log has, in full or within a single stream; None without one."""
    for name in names:
        if name in columns:
            return name
        ends = [column for column, stream in columns.items() if stream.name and column == f"{stream.name}.{name}"]
        if len(ends) == 1:
            return ends[0]
    return None


def _as_freedom(record: SampleRecord, name: str, place: int) -> tuple[str, int | None, str | None]:
    """Kind of a number, its index within the kind, and its joint if that has a single one; None otherwise."""
    if place < record.qd.stop:
        kind, first = ("q", 0) if place < record.q.stop else ("qd", record.qd.start)
        return (
            kind,
            place - first,
            _joint_of(record.tree.q_slices if kind == "q" else record.tree.v_slices, record, place - first),
        )
    freedom = record.freedoms.get(name)
    if freedom is None or freedom.factors != (1.0,):
        return "", None, None
    (of,) = freedom.places
    return freedom.kind, of, _joint_of(record.tree.v_slices, record, of)


def _joint_of(slices: Sequence[slice], record: SampleRecord, place: int) -> str | None:
    owner = holding(slices, place)
    return record.tree.joint_names[owner] if width(slices[owner]) == 1 else None
