"""What persists, and what states tell of it, one after the other, at random points of the prime field: exactly.

A state has its own copy of all that does not persist. Its rows over that, over the rates r and over what persists, m,
are eliminated column by column in this order: what is left is all that it tells of r and m. With what earlier states
tell of m, and r eliminated, that is what is observable of m now; with m' = a m + dt r, and r and m eliminated, what is
of m' at the next state. Times dt and decays a are random as well.

What has to move for that is found by holding joints where they are.

Source: own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

from nori_dyn.algebra.field_points import FieldPoints
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.errors import InputError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.paths import path
from nori_dyn.observe.exact import ExactSystem, exact_system
from nori_dyn.observe.field import FieldPositions, FieldRows, FieldVector, Span, Vector, field_rows
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
    """What of a system persists, and by which laws.

        m(t + dt) = a m(t) + r(t) dt

    What changes m besides, its walk, is noise: it is left out here, as all noise is. So are the rows that say what m is
    at first, and what is known of variables beforehand: the question is what the sensors tell.

    Source: docs/design.md, 4.12.

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
    def of(system: System, with_beginnings: bool = False) -> Persisting:
        """The memory that a system's own config declares.

        Args:
            system: the system.
            with_beginnings: whether what is declared counts to be known of it at first, and of others beforehand.
        """
        sigmas = (sigma for one in system.memory for sigma in one.sigma or [None] * len(one.variable.components))
        first = tuple(k for k, sigma in enumerate(sigmas) if with_beginnings and sigma is not None)
        of_first = {each.known_by for each in system.memory}
        others = (row for row in system.sensor_rows if row.name not in of_first)
        rows = [row for row in others if with_beginnings or not _is_prior(row)]
        measured = tuple(k for row in rows for k in numbers(row.slice))
        return Persisting(system, system.memory, tuple(_numbers(system)), measured, first)

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


@dataclass(frozen=True, slots=True, eq=False)
class ExactSubspace:
    """The observable combinations of what persists, after some states.

    Attributes:
        persisting: what persists.
        span: theirs, as vectors over the numbers that persist.
        rows: those of the last state.
    """

    persisting: Persisting
    span: Span
    rows: FieldRows

    @property
    def rank(self) -> int:
        """How many independent combinations are observable."""
        return self.span.dimension

    @property
    def seen(self) -> frozenset[int]:
        """The numbers that are observable by themselves."""
        return frozenset(k for k, vector in self.span.basis.items() if len(vector) == 1)

    def contains(self, vector: Vector) -> bool:
        """Whether a combination is observable."""
        return not self.span.remainder(vector)

    def undetermined(self) -> tuple[int, ...]:
        """The numbers of d that the last state leaves open, all that is observable of what persists known."""
        n = self.persisting.system.shape[1]
        span = _over_persisting(self.persisting, self.rows)
        span.extend(_shifted(self.span.basis.values(), n + len(self.persisting.numbers)))
        return tuple(column for column in range(n) if span.remainder(self.rows.variables[column]))


class FieldStates:
    """Random states of a robot over the field.

    Args:
        persisting: what persists.
        seed: seed of everything random.
    """

    def __init__(self, persisting: Persisting, seed: int) -> None:
        self._persisting, self._rng = persisting, random.Random(seed)
        self._n, self._k = persisting.system.shape[1], len(persisting.numbers)
        self._exact = exact_system(persisting.system, seed)
        self._entries = list(self._exact.entries.values())
        self._positions = FieldPositions(
            self._exact.state.graph, persisting.system.tree, self._exact.state.q, self._rng
        )
        self._sources = _sources(persisting, self._exact)
        self._first = self._state(range(persisting.system.tree.nq))

    def moving(self) -> tuple[int, ...]:
        """The bodies whose joints change what a state tells."""
        tree, graph = self._persisting.system.tree, self._exact.state.graph
        needed = set(graph.reachable(self._entries))
        found = []
        for i, part in enumerate(tree.q_slices):
            nodes = {
                node.index
                for x in self._exact.state.q[part]
                for node in (x, *(graph.sin_cos(x) if graph.takes_sine(x) else ()))
            }
            if nodes & needed and self._first[1].basis != self._state(self._still([i]))[1].basis:  # both are reduced
                found.append(i)
        return tuple(found)

    def subspaces(self, moving: Iterable[int] | None = None) -> Iterator[ExactSubspace]:
        """Yield what is observable after 1, 2, ... states.

        Args:
            moving: bodies whose joints move between the states; all when None.
        """
        still = () if moving is None else self._still(moving)
        before, state = Span.of({k: 1} for k in self._persisting.first), self._first
        while True:
            rows, own = state
            now = _beyond(Span.of([*own.basis.values(), *_shifted(before.basis.values(), self._k)]), self._k)
            yield ExactSubspace(self._persisting, now, rows)
            before = now if self._persisting.stays else self._carried(own, now)
            state = self._first if len(still) == self._persisting.system.tree.nq else self._state(still)

    def _still(self, moving: Iterable[int]) -> tuple[int, ...]:
        """The numbers of q that stay where only the joints of some bodies move."""
        tree = self._persisting.system.tree
        return tuple(sorted(set(range(tree.nq)) - {k for i in moving for k in numbers(tree.q_slices[i])}))

    def _state(self, still: Sequence[int]) -> tuple[FieldRows, Span]:
        """The rows of a state, and what they tell of rates and what persists, over the numbers of both."""
        inputs, tangents = self._positions.draw(1, still)
        points = FieldPoints(self._exact.state.graph, 1, self._rng, inputs, tangents)
        values = points.values(self._entries)[:, 0].tolist()
        rows = field_rows(self._persisting.system, self._exact, values, self._sources)
        return rows, _beyond(_over_persisting(self._persisting, rows), self._n)

    def _carried(self, own: Span, now: Span) -> Span:
        """The combinations of the memory that are observed at the next state, before that state."""
        k, dt = self._k, self._random()
        decays = {T: self._random() for T in sorted({x.time_constant or 0.0 for x in self._persisting.numbers})}
        laws: list[FieldVector] = []
        for i, x in enumerate(self._persisting.numbers):
            a = 1 if x.time_constant is None else decays[x.time_constant]
            laws.append({**({} if x.rate is None else {i: dt}), k + i: a, 2 * k + i: PRIME - 1})
        return _beyond(Span.of([*own.basis.values(), *_shifted(now.basis.values(), k), *laws]), 2 * k)

    def _random(self) -> int:
        return self._rng.randrange(2, PRIME)


def _sources(persisting: Persisting, exact: ExactSystem) -> dict[int, FieldVector]:
    """Columns that stand for sources: none for those that a row of their own gives, one each for rates and memory."""
    system = persisting.system
    n, k = system.shape[1], len(persisting.numbers)
    sources = set(numbers_in(v.slice for v in system.variables if v.is_source).tolist())
    own = {x.rate: n + i for i, x in enumerate(persisting.numbers) if x.rate in sources}
    own |= {x.column: n + k + i for i, x in enumerate(persisting.numbers) if x.column in sources}
    by_row: dict[int, list[int]] = {row: [] for row in persisting.measured}
    for row, column in exact.entries:
        if row in by_row:
            by_row[row].append(column)
    known = {columns[0] for columns in by_row.values() if len(columns) == 1} & sources - own.keys()
    found: dict[int, FieldVector] = {column: {} for column in known}
    return found | {column: {place: 1} for column, place in own.items() if column is not None}


def _over_persisting(persisting: Persisting, rows: FieldRows) -> Span:
    """The span of a state's rows over the sources, and beyond the numbers of d over rates and what persists."""
    n, k = persisting.system.shape[1], len(persisting.numbers)
    span = Span.of(rows.measured[row] for row in persisting.measured)
    for i, x in enumerate(persisting.numbers):
        columns = {n + k + i: x.column} if x.rate is None else {n + i: x.rate, n + k + i: x.column}
        for place, column in columns.items():
            if rows.variables[column] != {place: 1}:
                span.add({**rows.variables[column], place: PRIME - 1})
    return span


def _beyond(span: Span, end: int) -> Span:
    """Remainders of vectors over the columns from one on, which counts as the first."""
    return Span({pivot - end: {c - end: x for c, x in v.items()} for pivot, v in span.basis.items() if pivot >= end})


def _shifted(vectors: Iterable[Vector], by: int) -> Iterator[Vector]:
    return ({column + by: x for column, x in vector.items()} for vector in vectors)


@dataclass(frozen=True, slots=True)
class MotionRequirement:
    """What has to move so that numbers are seen that a single state does not show.

    Attributes:
        names: the numbers, or the combinations by their first.
        by_time: whether they are seen while nothing moves, as time passes.
        all_of: joints each of which has to move.
        any_of: where there are none, or that one does: joints any one of which suffices.
        is_only: whether they are not seen where all of these stay.
        enough: a set of joints that suffices, none of which can be left out.
        after: after how many states, at the most, where nothing but `enough` moves, or one of `any_of`.
    """

    names: tuple[str, ...]
    by_time: bool = False
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    is_only: bool = False
    enough: tuple[str, ...] = ()
    after: int = 0


@dataclass(frozen=True, slots=True)
class MotionRequirements:
    """What has to move for what a single state does not show.

    Attributes:
        each: for what has the same needs together.
        all: for all of it, a set of joints that suffices; None where nothing has to.
        moving: the joints that change what a single state shows; empty where that shows all there is.
    """

    each: tuple[MotionRequirement, ...] = ()
    all: MotionRequirement | None = None
    moving: tuple[str, ...] = ()


class RequirementSearch:
    """Looks for what has to move for what a single state does not determine.

    Args:
        of_field: random states.
        persisting: what persists.
        subspaces: what is observable after each of some states.
        states: how many states there are; None for as many as add anything.
    """

    def __init__(
        self, of_field: FieldStates, persisting: Persisting, subspaces: Sequence[ExactSubspace], states: int | None
    ) -> None:
        self._of_field, self._states, self._rank = of_field, states, subspaces[-1].rank
        # Combinations of what does not stay differ from state to state: only numbers observable by themselves count.
        self._wanted = {
            persisting.numbers[pivot].name: vector
            for pivot, vector in sorted(subspaces[-1].span.basis.items())
            if (persisting.stays or len(vector) == 1) and not subspaces[0].contains(vector)
        }
        self._tree = persisting.system.tree
        self._bodies = {name: v.variable.body for v in persisting.memory for name in v.variable.component_names}
        self._known: dict[frozenset[int], dict[str, int]] = {}
        self.moving = frozenset(of_field.moving() if self._wanted else ())

    def requirements(self) -> MotionRequirements:
        """What has to move."""
        if not self._wanted:
            return MotionRequirements()
        return MotionRequirements(tuple(self.needs()), self.for_all(), self.named(self.moving))

    def named(self, bodies: Iterable[int]) -> tuple[str, ...]:
        """The names of the joints of some bodies."""
        return tuple(self._tree.joint_names[i] for i in sorted(bodies))

    def needs(self) -> Iterator[MotionRequirement]:
        """Yield what has to move, for all that needs the same together."""
        by_time = self._seen(())
        if by_time:
            yield MotionRequirement(self._ordered(by_time), by_time=True, after=max(by_time.values()))
        left = self._wanted.keys() - by_time
        alone = {i: self._seen([i]).keys() & left for i in self.moving} if left else {}
        any_of = {name: frozenset(i for i in alone if name in alone[i]) for name in left}
        open_ = {name for name in left if len(any_of[name]) < 2}
        without = {i: open_ - self._seen(self.moving - {i}).keys() for i in self.moving} if open_ else {}
        groups: dict[tuple[frozenset[int], frozenset[int]], list[str]] = {}
        for name in self._ordered(left):
            all_of = frozenset(i for i in without if name in without[i])
            groups.setdefault((all_of, any_of[name]), []).append(name)
        for (all_of, one_of), names in groups.items():
            yield self._need(names, all_of, one_of)

    def for_all(self) -> MotionRequirement | None:
        """A set of joints that suffices for all of it; None where nothing has to move."""
        names = tuple(self._wanted)
        if self._shows((), names):
            return None
        enough = self._enough(names)
        return MotionRequirement(names, enough=self.named(enough), after=self._after([enough], names))

    def _need(self, names: Sequence[str], all_of: frozenset[int], any_of: frozenset[int]) -> MotionRequirement:
        """The motion required for numbers whose necessary joints, and those that suffice alone, are known."""
        if all_of and self._shows(all_of, names):
            joints = self.named(all_of)
            return MotionRequirement(
                tuple(names), all_of=joints, is_only=True, enough=joints, after=self._after([all_of], names)
            )
        if any_of:
            is_only = self._seen(self.moving - any_of).keys().isdisjoint(names)
            after, joints = self._after([frozenset([i]) for i in any_of], names), self.named(any_of)
            return MotionRequirement(tuple(names), any_of=joints, is_only=is_only, enough=joints[:1], after=after)
        enough = self._enough(names)
        after = self._after([enough], names)
        return MotionRequirement(tuple(names), all_of=self.named(all_of), enough=self.named(enough), after=after)

    def _shows(self, bodies: Iterable[int], names: Iterable[str]) -> bool:
        """Whether some are observable where only the joints of some bodies move."""
        return self._seen(bodies).keys() >= set(names)

    def _after(self, alternatives: Iterable[frozenset[int]], names: Iterable[str]) -> int:
        """After how many states some are observable where only the joints of some bodies move, whichever these are."""
        return max(self._seen(bodies)[name] for bodies in alternatives for name in names)

    def _enough(self, names: Sequence[str]) -> frozenset[int]:
        """Joints that suffice, none of which can be left out: those far away are left out first."""
        parents, enough = self._tree.parents, self.moving
        near = {*path(parents, self._bodies[names[0]])}
        for i in sorted(self.moving, key=lambda i: len(near.symmetric_difference(path(parents, i))), reverse=True):
            if self._shows(enough - {i}, names):
                enough -= {i}
        return enough

    def _seen(self, bodies: Iterable[int]) -> Mapping[str, int]:
        """After how many states each is observable where only the joints of some bodies move."""
        key = frozenset(bodies)
        if key not in self._known:
            subspaces = until_nothing_new(self._of_field.subspaces(sorted(key)), self._states, self._rank)
            first: dict[str, int] = {}
            for k, each in enumerate(subspaces, start=1):
                first |= {name: k for name, v in self._wanted.items() if name not in first and each.contains(v)}
            self._known[key] = first
        return self._known[key]

    def _ordered(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in self._wanted if name in names)
