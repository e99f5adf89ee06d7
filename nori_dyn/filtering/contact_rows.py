"""All contact states of a set of sensors in one system: the rows of each case of each contact, weighed or left out.

What holds whatever the contacts do determines what a tick leaves free. What a contact says closed or open is then rows
over that, those that hold exactly with a weight that makes them as good as exact. So one program serves all states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import InputError, SensorConfigError, UnknownReadingError
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.model.tree import KinematicTree, NamedFrame
from nori_dyn.planning.outputs import Output, determined_outputs
from nori_dyn.planning.repeats import remove_repeats
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation, Ranged, Ranges, WithFrame, WithUnits, WithUnknowns
from nori_dyn.system.memory import Remembered
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import Unknown, Variable, VariableKey
from nori_dyn.typing import Array, Booleans, Floats, Indices

Case = Literal["closed", "open"]


@dataclass(frozen=True, slots=True)
class CaseRows:
    """The rows of a sensor of one case of a contact, under a name of their own.

    Attributes:
        equation: the rows.
        contact: name of the contact.
        case: in which they count.
    """

    equation: Equation
    contact: str
    case: Case

    @property
    def name(self) -> str:
        """That of the rows, with the case: "l_foot open: fx:l_sole"."""
        return f"{self.contact} {self.case}: {self.equation.name}"

    source = property(lambda self: self.equation.source)
    group = property(lambda self: self.equation.group)
    components = property(lambda self: self.equation.components)
    is_measured = property(lambda self: self.equation.is_measured)

    @property
    def holds_exactly(self) -> bool:
        """Whether the rows hold exactly where they count."""
        return self.equation.sigma is None

    @property
    def sigma(self) -> tuple[float, ...]:
        """Those of the rows; ones where they hold exactly, whose weights are set at each tick."""
        return self.equation.sigma or (1.0,) * len(self.equation.components)

    @property
    def ranges(self) -> Ranges | None:
        """Those of the rows, see `Ranged`."""
        return self.equation.ranges if isinstance(self.equation, Ranged) else None

    @property
    def frame(self) -> NamedFrame | None:
        """That of the rows, see `WithFrame`."""
        return self.equation.frame if isinstance(self.equation, WithFrame) else None

    @property
    def units(self) -> tuple[str, ...] | None:
        """Those of the rows, see `WithUnits`."""
        return self.equation.units if isinstance(self.equation, WithUnits) else None

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Those that the rows bring along, see `WithUnknowns`."""
        return tuple(self.equation.unknowns) if isinstance(self.equation, WithUnknowns) else ()

    def blocks(self, at: Kinematics) -> Mapping[VariableKey, Array]:
        return self.equation.blocks(at)

    def bias(self, at: Kinematics, y: Array) -> Array:
        return self.equation.bias(at, y)


@dataclass(frozen=True, slots=True)
class AllCases:
    """The sensors of a set with contacts, and the rows of all cases of these.

    Attributes:
        sensors: the set.
    """

    sensors: SensorSet

    @property
    def name(self) -> str:
        """The name of the set."""
        return self.sensors.name

    @property
    def fingerprint(self) -> str:
        """A hash of all that the equations depend on beside the tree."""
        return f"all cases of {self.sensors.fingerprint}"

    @property
    def _always(self) -> SensorSet:
        return replace(self.sensors, contacts=())

    def equations(self, tree: KinematicTree) -> Sequence[Equation]:
        """Return the rows."""
        return [*self._always.equations(tree), *self._of_contacts(tree)]

    def _of_contacts(self, tree: KinematicTree) -> Iterator[Equation]:
        cases: tuple[Case, ...] = ("closed", "open")
        for case in cases:
            for contact in self.sensors.contacts:
                for measurement in getattr(contact, case):
                    try:
                        yield from (CaseRows(equation, contact.name, case) for equation in measurement.on(tree))
                    except SensorConfigError as error:
                        error.args = (f"sensors '{self.name}', contact '{contact.name}', {case}: {error}",)
                        raise

    def remembered(self, variables: Sequence[Variable], equations: Iterable[Equation]) -> Sequence[Remembered]:
        """Return which variables persist."""
        return self._always.remembered(variables, equations)

    def dynamics_sigma(self, equation: str, n: int) -> tuple[float, ...] | None:
        """Return the standard deviations of equations of motion, see `SensorSet`."""
        return self.sensors.dynamics_sigma(equation, n)


class Everything(NamedTuple):
    """The system of all cases, and what is asked of it, as of a plan."""

    system: System
    outputs: tuple[Output, ...]
    seed: int = 0


def everything(tree: KinematicTree, sensors: SensorSet, outputs: Sequence[str] | None, seed: int) -> Everything:
    """Return the system of all cases of a robot's contacts.

    Args:
        tree: the robot.
        sensors: sensors with contacts.
        outputs: names, as for `nd.plan`.
        seed: as for `nd.plan`.

    Raises:
        SensorConfigError: sensors that do not fit the robot.
        UnknownOutputError, PlanError: an output that does not exist, or that depends on forces that nothing tells.
    """
    settled = remove_repeats(System(tree, AllCases(sensors)), seed)
    return Everything(settled.system, determined_outputs(settled.system, outputs, settled.undetermined), seed)


@dataclass(frozen=True, eq=False)
class CaseReadings:
    """The readings of the system of all cases: a sensor that is in several cases reads once.

    Attributes:
        system: the system.
    """

    system: System

    @property
    def name(self) -> str:
        """The name of the sensors."""
        return self.system.sensors.name

    @property
    def ny(self) -> int:
        """Number of readings."""
        return len(self.measurement_names)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.system.n_weights

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight: those of contacts begin with the contact and its case."""
        return tuple(self.system.weight_names)

    @property
    def weights(self) -> Floats:
        """What the weights begin at (n_weights,)."""
        return self.system.weights

    @cached_property
    def described(self) -> dict[str, tuple[str, str]]:
        """For each reading, by its name, its unit, and what kind of sensor it is of."""
        found: dict[str, tuple[str, str]] = {}
        for row, (_, names) in zip(self.system.measurements, self._blocks, strict=True):
            for name, unit in zip(names, row.units, strict=True):
                found.setdefault(name, (unit, row.equation.group))
        return found

    @cached_property
    def _blocks(self) -> list[tuple[str, tuple[str, ...]]]:
        """For each block of readings of the system its name, and those of its numbers, whatever the case."""
        found = []
        for row in self.system.measurements:
            name = row.equation.equation.name if isinstance(row.equation, CaseRows) else row.name
            found.append((name, tuple(name + own.removeprefix(row.name) for own in row.component_names)))
        return found

    @cached_property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each reading (ny)."""
        return tuple(dict.fromkeys(name for _, own in self._blocks for name in own))

    def of(self, y: ArrayLike | Mapping[str, Any]) -> Floats:
        """Return the readings as the system takes them, from those of all (ny,) or by name.

        Raises:
            InputError: a wrong shape or name, a reading that is missing.
        """
        if not isinstance(y, Mapping):
            values = np.asarray(y, dtype=float)
            if values.shape != (len(self.measurement_names),):
                raise InputError(f"y has shape {values.shape}, expected ({len(self.measurement_names)},).")
            return np.asarray(values[self.of_system])
        known = {name for block, own in self._blocks for name in (block, *own)}
        for name in y:
            if name not in known:
                raise UnknownReadingError("measurement", name, sorted(known), f"y of '{self.system.sensors.name}'")
        parts = []
        for block, own in self._blocks:
            given = y[block] if block in y else [y.get(name, np.nan) for name in own]
            part = np.atleast_1d(np.asarray(given, dtype=float))
            if part.shape != (len(own),):
                raise InputError(f"y: '{block}' has shape {part.shape}, expected ({len(own)},).")
            parts.append(part)
        return np.concatenate(parts) if parts else np.zeros(0)

    def input_indices(self, number: int = 0) -> Indices:
        """Return where each number of q, qd, y and the weights of the system is among q, qd, readings and weights."""
        tree = self.system.tree
        motion, n = tree.nq + tree.nv, self.ny
        return np.concatenate([np.arange(motion), motion + self.of_system, motion + n + np.arange(self.n_weights)])

    @cached_property
    def of_system(self) -> Indices:
        """Which of the readings (ny) each reading of the system is."""
        place = {name: k for k, name in enumerate(self.measurement_names)}
        return np.array([place[name] for _, own in self._blocks for name in own], dtype=np.intp)


def counting(weighed: Sequence[RowBlock], state: ContactState) -> Booleans:
    """Return which weighed rows (p,) count in a contact state: those of the other cases do not."""
    found = []
    for row in weighed:
        equation = row.equation
        counts = not isinstance(equation, CaseRows) or (equation.case == "closed") == (equation.contact in state)
        found += [counts] * len(numbers(row.slice))
    return np.array(found, dtype=bool)


def exact_where_counted(weighed: Sequence[RowBlock]) -> Booleans:
    """Return which weighed rows (p,) hold exactly where they count."""
    each = [(isinstance(row.equation, CaseRows) and row.equation.holds_exactly, row) for row in weighed]
    return np.array([exact for exact, row in each for _ in numbers(row.slice)], dtype=bool)


def of_cases(weighed: Sequence[RowBlock]) -> Booleans:
    """Return which weighed rows (p,) are of a case of a contact."""
    each = [(isinstance(row.equation, CaseRows), row) for row in weighed]
    return np.array([one for one, row in each for _ in numbers(row.slice)], dtype=bool)
