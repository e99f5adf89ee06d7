"""The rows of a system at a random point of the prime field, in terms of what determines everything else.

External wrenches and joint accelerations determine a, f and tau by the equations of motion, pivots of 1 in a triangular
order (Nori, Property 1). So every measured row, and every number of d, is a row vector over them; and whether sensors
determine something is whether its vector lies in the span of theirs. At a random point of a large prime field that is
exact for almost all q, without a tolerance.

Source: docs/design.md, 6.2; own derivation (tests/unit/observe/test_field.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from nori_dyn.algebra.expressions import PRIME
from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.observe.exact import ExactSystem
from nori_dyn.system.builder import System

FieldVector: TypeAlias = Mapping[int, int]
"""The coefficients of a row vector over the field that are not zero, by column."""


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


def field_rows(system: System, exact: ExactSystem) -> FieldRows:
    """Return the rows of a system over its external wrenches and joint accelerations.

    Args:
        system: the system; it may have any number of rows.
        exact: the same over expressions, whose fingerprints are its entries at a random point.
    """
    coefficients: dict[int, dict[int, int]] = {}
    for (row, column), entry in exact.entries.items():
        coefficients.setdefault(row, {})[column] = entry.fingerprint
    sources = numbers_in(v.slice for v in system.variables if v.is_source).tolist()
    known: dict[int, FieldVector] = {column: {column: 1} for column in sources}

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
    """A space of row vectors over the field, grown one vector at a time.

    Attributes:
        basis: vectors by their pivot: a 1 there, and a 0 at the pivots of all others.
    """

    basis: dict[int, FieldVector] = field(default_factory=dict)

    @staticmethod
    def of(rows: Iterable[FieldVector]) -> Span:
        """Return the span of some vectors."""
        span = Span()
        span.extend(rows)
        return span

    @property
    def dimension(self) -> int:
        """Number of independent vectors."""
        return len(self.basis)

    def copy(self) -> Span:
        """Return one that grows on its own."""
        return Span(dict(self.basis))

    def remainder(self, row: FieldVector) -> FieldVector:
        """Return what is left of a vector modulo the space: zero at every pivot; empty where it lies in the space."""
        left = dict(row)
        for pivot in row.keys() & self.basis.keys():
            _subtract(left, row[pivot], self.basis[pivot])
        return left

    def add(self, row: FieldVector) -> bool:
        """Add a vector, and return whether it was new."""
        left = self.remainder(row)
        if not left:
            return False
        pivot = min(left)
        scale = pow(left[pivot], -1, PRIME)
        new = {column: value * scale % PRIME for column, value in left.items()}
        for other, vector in self.basis.items():
            if pivot in vector:
                changed = dict(vector)
                _subtract(changed, vector[pivot], new)
                self.basis[other] = changed
        self.basis[pivot] = new
        return True

    def extend(self, rows: Iterable[FieldVector]) -> int:
        """Add vectors, and return how many were new."""
        return sum([self.add(row) for row in rows])


def _subtract(row: dict[int, int], factor: int, other: FieldVector) -> None:
    """Subtract a multiple of a vector from another, in place."""
    for column, value in other.items():
        left = (row.get(column, 0) - factor * value) % PRIME
        if left:
            row[column] = left
        else:
            del row[column]
