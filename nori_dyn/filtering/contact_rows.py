"""All contact states of a set of sensors in one system: the rows of each case of each contact, weighed or left out.

What holds whatever the contacts do determines what a tick leaves free. What a contact says closed or open is then rows
over that, those that hold exactly with a weight that makes them as good as exact. So one program serves all states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import shaped
from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import InputError, UnknownReadingError, naming
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation, EquationOf
from nori_dyn.system.memory import Remembered
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.system.variables import Variable
from nori_dyn.typing import Floats

Case = Literal["closed", "open"]


@dataclass(frozen=True, slots=True)
class CaseRows(EquationOf):
    """The rows of a sensor of one case of a contact, under a name of their own.

    Attributes:
        equation: the rows.
        contact: name of the contact.
        case: in which they count.
    """

    contact: str
    case: Case

    @property
    def name(self) -> str:
        """That of the rows, with the case: "l_foot open: fx:l_sole"."""
        return f"{self.contact} {self.case}: {self.equation.name}"

    def counts(self, state: ContactState) -> bool:
        """Whether the rows count in a contact state."""
        return (self.case == "closed") == (self.contact in state)

    @property
    def holds_exactly(self) -> bool:
        """Whether the rows hold exactly where they count."""
        return self.equation.sigma is None

    @property
    def sigma(self) -> tuple[float, ...]:
        """Those of the rows; ones where they hold exactly, whose weights are set at each tick."""
        return self.equation.sigma or (1.0,) * len(self.equation.components)


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
        """The rows."""
        return [*self._always.equations(tree), *self._of_contacts(tree)]

    def _of_contacts(self, tree: KinematicTree) -> Iterator[Equation]:
        cases: tuple[Case, ...] = ("closed", "open")
        for case in cases:
            for contact in self.sensors.contacts:
                for measurement in getattr(contact, case):
                    with naming(f"sensors '{self.name}', contact '{contact.name}', {case}"):
                        yield from (CaseRows(equation, contact.name, case) for equation in measurement.on(tree))

    def remembered(self, variables: Sequence[Variable], equations: Iterable[Equation]) -> Sequence[Remembered]:
        """Which variables persist."""
        return self._always.remembered(variables, equations)

    def dynamics_sigma(self, equation: str, n: int) -> tuple[float, ...] | None:
        """The standard deviations of equations of motion, see `SensorSet`."""
        return self.sensors.dynamics_sigma(equation, n)


class CaseReadings(SideBySide):
    """The readings of the system of all cases: a sensor that is in several cases reads once.

    Names of weights of contacts begin with the contact and its case.

    Args:
        system: the system.
    """

    def __init__(self, system: System) -> None:
        super().__init__([system], system.sensors.name)
        (self.of_system,) = self.y_indices
        self._blocks = [(_reading_name(row), self._names_of(row)) for row in system.measurements]

    @staticmethod
    def _names_of(row: RowBlock) -> tuple[str, ...]:
        return tuple(_reading_name(row) + own.removeprefix(row.name) for own in row.component_names)

    def of(self, y: ArrayLike | Mapping[str, Any]) -> Floats:
        """The readings as the system takes them, from those of all (ny,) or by name.

        Raises:
            InputError: a wrong shape or name, a reading that is missing.
        """
        if not isinstance(y, Mapping):
            return np.asarray(shaped("y", y, (self.ny,))[self.of_system])
        known = {name for block, own in self._blocks for name in (block, *own)}
        for name in y:
            if name not in known:
                raise UnknownReadingError("measurement", name, sorted(known), f"y of '{self.name}'")
        parts = []
        for block, own in self._blocks:
            given = y[block] if block in y else [y.get(name, np.nan) for name in own]
            part = np.atleast_1d(np.asarray(given, dtype=float))
            if part.shape != (len(own),):
                raise InputError(f"y: '{block}' has shape {part.shape}, expected ({len(own)},).")
            parts.append(part)
        return np.concatenate(parts) if parts else np.zeros(0)


def _reading_name(row: RowBlock) -> str:
    """What readings are called, whatever the case."""
    return row.equation.equation.name if isinstance(row.equation, CaseRows) else row.name


def case_of_rows(weighed: Sequence[RowBlock]) -> list[CaseRows | None]:
    """Of each weighed row (p,), the case of a contact by which it counts; None of rows that always do."""
    return [row.equation if isinstance(row.equation, CaseRows) else None for row in weighed for _ in numbers(row.slice)]
