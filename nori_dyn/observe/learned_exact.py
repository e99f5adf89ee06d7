"""What states tell of what persists, one after the other, at random points of the prime field: exactly.

A state has its own copy of all that does not persist. Its rows over that, over the rates r and over what persists, m,
are eliminated column by column in this order: what is left is all that it tells of r and m. With what earlier states
told of m, and r eliminated, that is what is told of m now; with m' = a m + dt r, and r and m eliminated, what is told
of m' at the next state. Times dt and decays a are random as well.

Source: own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nori_dyn.algebra.field_points import FieldPoints
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.observe.exact import ExactSystem, exact_system
from nori_dyn.observe.field import FieldPositions, FieldRows, FieldVector, Span, Vector, field_rows
from nori_dyn.observe.persisting import Persisting


@dataclass(frozen=True, slots=True, eq=False)
class ExactlyTold:
    """What is told after some states.

    Attributes:
        persisting: what persists.
        span: the vectors over the numbers that persist that are told.
        rows: those of the last state.
    """

    persisting: Persisting
    span: Span
    rows: FieldRows

    @property
    def rank(self) -> int:
        """How many independent combinations are told."""
        return self.span.dimension

    @property
    def seen(self) -> frozenset[int]:
        """The numbers that are told by themselves."""
        return frozenset(k for k, vector in self.span.basis.items() if len(vector) == 1)

    def tells(self, vector: Vector) -> bool:
        """Whether a combination is told."""
        return not self.span.remainder(vector)

    def undetermined(self) -> tuple[int, ...]:
        """The numbers of d that the last state leaves open, by all that is told of what persists."""
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
            if nodes & needed and not _is_same(self._first[1], self._state(self._still([i]))[1]):
                found.append(i)
        return tuple(found)

    def told(self, moving: Iterable[int] | None = None) -> Iterator[ExactlyTold]:
        """Yield what is told after 1, 2, ... states.

        Args:
            moving: bodies whose joints move between the states; all when None.
        """
        still = () if moving is None else self._still(moving)
        before, state = Span.of({k: 1} for k in self._persisting.first), self._first
        while True:
            rows, own = state
            now = self._eliminated([own.basis.values(), _shifted(before.basis.values(), self._k)], self._k)
            yield ExactlyTold(self._persisting, now, rows)
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
        return self._eliminated([own.basis.values(), _shifted(now.basis.values(), k), laws], 2 * k)

    def _eliminated(self, parts: Iterable[Iterable[Vector]], end: int) -> Span:
        """Remainders of vectors over the columns from one on."""
        return _beyond(Span.of(vector for part in parts for vector in part), end)

    def _random(self) -> int:
        return self._rng.randrange(2, PRIME)


def _sources(persisting: Persisting, exact: ExactSystem) -> dict[int, FieldVector]:
    """Columns that stand for sources: none for those that a row of their own gives, one each for rates and memory."""
    system = persisting.system
    n, k = system.shape[1], len(persisting.numbers)
    sources = set(numbers_in(v.slice for v in system.variables if v.is_source).tolist())
    own = {x.rate: n + i for i, x in enumerate(persisting.numbers) if x.rate in sources}
    own |= {x.column: n + k + i for i, x in enumerate(persisting.numbers) if x.column in sources}
    by_row: dict[int, list[int]] = {row: [] for row in persisting.told}
    for row, column in exact.entries:
        if row in by_row:
            by_row[row].append(column)
    known = {columns[0] for columns in by_row.values() if len(columns) == 1} & sources - own.keys()
    found: dict[int, FieldVector] = {column: {} for column in known}
    return found | {column: {place: 1} for column, place in own.items() if column is not None}


def _over_persisting(persisting: Persisting, rows: FieldRows) -> Span:
    """The span of a state's rows over the sources, and beyond the numbers of d over rates and what persists."""
    n, k = persisting.system.shape[1], len(persisting.numbers)
    span = Span.of(rows.measured[row] for row in persisting.told)
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


def _is_same(one: Span, other: Span) -> bool:
    """Whether two spans, both reduced, are of one space."""
    return one.basis == other.basis
