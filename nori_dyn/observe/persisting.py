"""The numbers of d that persist from state to state, and by which laws they go on.

    m(t + dt) = a m(t) + r(t) dt

What changes m besides, its walk, is noise: it is left out here, as all noise is. So are the rows that say what m is at
first, and what is known of variables beforehand: the question is what the sensors tell.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import InputError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.system.builder import System
from nori_dyn.system.memory import Remembered
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import OFFSET

MemoryGiven: TypeAlias = Mapping[str, Any] | Sequence[str] | str | None
"""Entries as in a config's `memory`, or names and kinds of variables that stay; None is what the system's own says."""


MOST_STATES = 50
"""States that are looked at, at the most."""


class Subspace(Protocol):
    """The observable combinations of what persists, after some states."""

    @property
    def rank(self) -> int:
        """How many independent combinations are observable."""


_Subspace = TypeVar("_Subspace", bound=Subspace)


def until_nothing_new(
    subspaces: Iterator[_Subspace], states: int | None, largest: int | None = None
) -> list[_Subspace]:
    """What is observed after each state, up to the last that adds something, or to that which is asked for.

    Args:
        subspaces: those after 1, 2, ... states.
        states: how many are asked for; None for as many as add something.
        largest: the rank above which there is none; None where that is not known.
    """
    found = [next(subspaces)]
    while len(found) < (states or MOST_STATES) and found[-1].rank != largest:
        more = next(subspaces)
        if states is None and more.rank == found[-1].rank:
            break
        found.append(more)
    return found


@dataclass(frozen=True, slots=True)
class Number:
    """A number of d that persists.

    Attributes:
        name: what to call it: "offset:l_leg_ft.mz".
        column: where it lies in d.
        rate: where its derivative by time lies; None where it has none.
        time_constant: time in which it decays to 1 / e [s]; None where it stays.
    """

    name: str
    column: int
    rate: int | None
    time_constant: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Persisting:
    """What of a system persists.

    Attributes:
        system: the system.
        memory: the variables.
        numbers: their numbers.
        measured: the rows of D of sensors, components and what is known, priors left out.
        first: which numbers are taken as known before the first state.
    """

    system: System
    memory: tuple[Remembered, ...]
    numbers: tuple[Number, ...]
    measured: tuple[int, ...]
    first: tuple[int, ...] = ()

    @staticmethod
    def of(system: System) -> Persisting:
        """The memory that a system's own config declares."""
        return Persisting(
            system, system.memory, tuple(_numbers(system)), _measured(system, lambda row: not _is_prior(row))
        )

    @staticmethod
    def with_beginnings(system: System) -> Persisting:
        """The same with what is declared to be known of it at first, and of other variables beforehand."""
        sigmas = (sigma for one in system.memory for sigma in one.sigma or [None] * len(one.variable.components))
        first = tuple(k for k, sigma in enumerate(sigmas) if sigma is not None)
        return Persisting(system, system.memory, tuple(_numbers(system)), _measured(system, lambda row: True), first)

    @property
    def stays(self) -> bool:
        """Whether all of it stays as it is, but for its walk."""
        return all(x.rate is None and x.time_constant is None for x in self.numbers)


def with_memory(system: System, memory: MemoryGiven) -> System:
    """A system with what persists as it is given; the same where None is.

    Raises:
        InputError: sensors that take no memory.
        InvalidConfigError: entries that do not follow the schema of configs.
        UnknownSensorNameError: a variable that the system does not have.
        SensorConfigError: entries that do not fit the robot.
    """
    if memory is None:
        return system
    if not isinstance(system.sensors, SensorSet):
        raise InputError(
            f"sensors '{system.sensors.name}' are a {type(system.sensors).__name__}, which cannot have a memory. Give "
            "it to a set of sensors, as nd.sensors returns it."
        )
    names = [memory] if isinstance(memory, str) else memory
    entries = dict(memory) if isinstance(memory, Mapping) else {"memory": {"of": list(names)}}
    content: dict[str, Any] = {"name": system.sensors.name, "measurements": [], "memory": entries}
    sensors = replace(system.sensors, memory=SensorSet.from_dict(content).memory)
    return type(system)(system.tree, sensors, system.of_components.repeats)


def _measured(system: System, counts: Callable[[RowBlock], bool]) -> tuple[int, ...]:
    """The rows of D, but for those of what persists at first, that are no equations of motion and count."""
    of_first = {each.known_by for each in system.memory}
    rows = [row for row in system.sensor_rows if row.name not in of_first and counts(row)]
    return tuple(k for row in rows for k in numbers(row.slice))


def _is_prior(row: RowBlock) -> bool:
    """Whether rows only say what is known of a variable beforehand.

    Of an offset that does not persist they say how large the noise of its sensor is.
    """
    return row.equation.group == "prior" and not row.name.startswith(f"prior:{OFFSET}:")


def _numbers(system: System) -> Iterator[Number]:
    place = {v.key: v.slice for v in system.variables}
    for each in system.memory:
        own = each.variable
        rates = [None] * len(own.components) if each.rate is None else [*numbers(place[each.rate])]
        for name, column, rate in zip(own.component_names, numbers(own.slice), rates, strict=True):
            yield Number(name, column, rate, each.time_constant)
