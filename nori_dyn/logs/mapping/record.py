"""Layout of a robot's samples: q, qd, readings and contacts, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.components.presliding import DeflectionReading, Presliding
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
