"""The rows of a system at a random point of the prime field, in terms of what determines everything else.

External wrenches and joint accelerations determine a, f and tau by the equations of motion, pivots of 1 in a triangular
order (Nori, Property 1). So every measured row, and every number of d, is a row vector over them; and whether sensors
determine something is whether its vector lies in the span of theirs. At a random point of a large prime field that is
exact for almost all q, without a tolerance. Vectors of doubles, at a closed configuration of a robot with loops, span
spaces by the same elimination, with a tolerance and the largest number as pivot.

A free root is at the origin. Nothing depends on where it is; the velocity of a base that is state stands there, see
`measurements.floating_base`, and is that of a base at rest.

Source: docs/design.md, 6.2; own derivation (tests/agreement/test_observability.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.field_points import random_numbers, random_quaternions
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.exact import ExactSystem
from nori_dyn.system.builder import System
from nori_dyn.typing import Array

FieldVector: TypeAlias = Mapping[int, int]
"""The coefficients of a row vector over the field that are not zero, by column."""

Vector: TypeAlias = Mapping[int, int | float]
"""The coefficients of a row vector that are not zero, by column: ints are of the field, others are doubles."""

REAL_ZERO = 1e-9
"""Doubles below this are zero, in vectors whose largest number is 1 to begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldRows:
    """Row vectors over the sources, at a random point of the field.

    Attributes:
        sources: columns of D.
        measured: the vectors of the rows of D that are no equations of motion, by their number.
        variables: those of the numbers of d, by their column.
    """

    sources: tuple[int, ...]
    measured: Mapping[int, FieldVector]
    variables: Mapping[int, FieldVector]


def field_rows(
    system: System,
    exact: ExactSystem,
    values: Iterable[int] | None = None,
    given: Mapping[int, FieldVector] | None = None,
) -> FieldRows:
    """The rows of a system over its external wrenches and joint accelerations.

    Args:
        system: the system; it may have any number of rows.
        exact: the same over expressions, whose fingerprints are its entries at a random point.
        values: its entries at another point, in their order; at that of the fingerprints when None.
        given: what stands for sources, by their column, where it is not they themselves; nothing where they are known.
    """
    values = (entry.fingerprint for entry in exact.entries.values()) if values is None else values
    coefficients: dict[int, dict[int, int]] = {}
    for (row, column), value in zip(exact.entries, values, strict=True):
        coefficients.setdefault(row, {})[column] = value
    sources = numbers_in(v.slice for v in system.variables if v.is_source).tolist()
    known: dict[int, FieldVector] = {column: {column: 1} for column in sources} | dict(given or {})

    def over_sources(terms: FieldVector) -> FieldVector:
        found: dict[int, int] = {}
        for column, factor in terms.items():
            for source, value in known[column].items():
                found[source] = (found.get(source, 0) + factor * value) % PRIME
        return {source: value for source, value in found.items() if value}

    for key in system.motion_keys:
        for row, own in zip(numbers(system.row(key).slice), numbers(system.column(key.gives, key.body)), strict=True):
            terms = coefficients[row]
            solved = -pow(terms.pop(own), -1, PRIME)
            known[own] = over_sources({column: solved * factor for column, factor in terms.items()})
    measured = numbers_in(row.slice for row in system.sensor_rows).tolist()
    return FieldRows(tuple(sources), {row: over_sources(coefficients.get(row, {})) for row in measured}, known)


@dataclass(slots=True)
class Span:
    """A space of row vectors, all over the field or all of doubles, grown one vector at a time.

    Attributes:
        basis: vectors by their pivot: a 1 there, and a 0 at the pivots of all others.
        end: columns from this one on only say how vectors came about, and are no pivots; None where there are none.
    """

    basis: dict[int, Vector] = field(default_factory=dict)
    end: int | None = None

    @staticmethod
    def of(rows: Iterable[Vector]) -> Span:
        """The span of some vectors."""
        span = Span()
        span.extend(rows)
        return span

    @property
    def dimension(self) -> int:
        """Number of independent vectors."""
        return len(self.basis)

    def copy(self) -> Span:
        """A copy that grows on its own."""
        return Span(dict(self.basis), self.end)

    def remainder(self, row: Vector) -> Vector:
        """Remainder of a vector modulo the space: zero at every pivot; empty where it lies in the space."""
        left = dict(row)
        for pivot in row.keys() & self.basis.keys():
            _subtract(left, row[pivot], self.basis[pivot])
        return left

    def add(self, row: Vector) -> bool:
        """Add a vector, and return whether it was new."""
        left = self.remainder(row)
        own = [column for column in left if self.end is None or column < self.end]
        if not own:
            return False
        pivot = max(own, key=lambda column: abs(left[column])) if is_real(left) else min(own)
        scale = _inverse(left[pivot])
        new = {column: scaled for column, value in left.items() if (scaled := _reduced(value * scale))}
        for other, vector in self.basis.items():
            if pivot in vector:
                changed = dict(vector)
                _subtract(changed, vector[pivot], new)
                self.basis[other] = changed
        self.basis[pivot] = new
        return True

    def extend(self, rows: Iterable[Vector]) -> int:
        """Add vectors, and return how many were new."""
        return sum([self.add(row) for row in rows])


def is_real(row: Vector) -> bool:
    """Whether a vector, which is not empty, is of doubles."""
    return isinstance(next(iter(row.values())), float)


def _inverse(x: int | float) -> int | float:
    return 1.0 / x if isinstance(x, float) else pow(x, -1, PRIME)


def _reduced(x: int | float) -> int | float:
    """A number of the field by its smallest representative; a double as it is, or zero."""
    if isinstance(x, float):
        return x if abs(x) > REAL_ZERO else 0.0
    return x % PRIME


def _subtract(row: dict[int, int | float], factor: int | float, other: Vector) -> None:
    """Subtract a multiple of a vector from another, in place."""
    for column, value in other.items():
        left = _reduced(row.get(column, 0) - factor * value)
        if left:
            row[column] = left
        else:
            row.pop(column, None)


class FieldPositions:
    """Draws configurations, all of which agree in the numbers that stay.

    Args:
        graph: the expressions.
        tree: the robot.
        q: its inputs (nq,).
        rng: draws the numbers.
    """

    def __init__(self, graph: Graph, tree: KinematicTree, q: Array, rng: random.Random) -> None:
        self._graph, self._tree, self._q, self._rng = graph, tree, q, rng
        self._first = self._draw(1)

    def draw(self, n: int, still: Iterable[int] = ()) -> tuple[dict[int, Array], dict[int, Array]]:
        """Random values (n,) of q, and of the tangents of half of its angles, by the index of the input.

        Args:
            n: number of configurations.
            still: the numbers of q that stay.
        """
        inputs, tangents = self._draw(n)
        staying = {self._q[k].index for k in still}
        for drawn, once in zip((inputs, tangents), self._first, strict=True):
            drawn |= {index: np.repeat(once[index], n) for index in staying & once.keys()}
        return inputs, tangents

    def _draw(self, n: int) -> tuple[dict[int, Array], dict[int, Array]]:
        q = self._q
        inputs = {x.index: random_numbers(self._rng, n) for x in q}
        for part in self._tree.quaternions:
            inputs |= {x.index: values for x, values in zip(q[part], random_quaternions(self._rng, n), strict=True)}
        inputs |= {q[k].index: inputs[q[k].index] * 0 for k in origins(self._tree)}
        return inputs, {x.index: random_numbers(self._rng, n) for x in q if self._graph.takes_sine(x)}


def origins(tree: KinematicTree) -> list[int]:
    """The numbers of q that say where free roots are."""
    roots = (
        part
        for i, (part, joint) in enumerate(zip(tree.q_slices, tree.joints, strict=True))
        if tree.is_root(i) and joint.kind == "free"
    )
    return [k for part in roots for k in range(part.start, part.start + 3)]
