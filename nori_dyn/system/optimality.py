"""The optimality conditions of weighted least squares with exact rows: a square system like any other.

Some rows hold exactly, D d + b = 0; others are weighed: minimise the sum of w_k (Y_k d + b_k)^2. With a multiplier for
each exact row the minimum is where

    H d + D^T lambda + g = 0,   H = Y^T W Y,   g = Y^T W b_Y
    D d - C lambda + b = 0

and C = 0. An exact row with noise of covariance C, instead of a weight, keeps its place there, so that a small noise is
as good as none. The weights are inputs like q. What eliminates a row of D with its -1 eliminates the multiplier of the
row with the same -1 in D^T: the system has two of everything that the exact one has.

Source: Bjoerck, Numerical Methods for Least Squares Problems, ch. 5 (equality constraints); docs/design.md, 5.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from nori_dyn.algebra.expressions import Expr, accumulate
from nori_dyn.algebra.ranges import numbers
from nori_dyn.algebra.spatial import inertial_force
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicState, SymbolicSystem, symbolic_system
from nori_dyn.typing import Array

ROUNDING = 1e-14
"""Constants of H this near to 0 or to a unit, relative to the largest of their reading, are taken for it: rounding of
E^T E, with E a rotation of doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """How the rows of a system hold.

    Attributes:
        weights: the number of the weight of each row that is weighed.
        covariances: covariance of the noise of other rows by (row, row); absent ones are zero.
    """

    weights: Mapping[int, int]
    covariances: Mapping[tuple[int, int], Expr]


def weighing(system: System, state: SymbolicState) -> Weighing:
    """How the rows of a system hold: sensors have weights, equations of motion have noise."""
    weights: dict[int, int] = {}
    covariances: dict[tuple[int, int], Expr] = {}
    for block in system.rows:
        if block.is_exact:
            continue
        for row, weight in zip(numbers(block.slice), block.weight_of_rows, strict=True):
            if block.is_dynamic:
                covariances[row, row] = 1 / state.weights[weight]
            else:
                weights[row] = weight
    return Weighing(weights, covariances)


@dataclass(frozen=True, slots=True, eq=False)
class LinearRow:
    """One row D_k d + b_k.

    Attributes:
        entries: D_k by column.
        b: b_k.
    """

    entries: Mapping[int, Expr]
    b: Expr

    def at(self, d: Mapping[int, Expr]) -> Expr:
        """D_k d + b_k, given the unknowns by column."""
        value = self.b
        for column, entry in self.entries.items():
            value = value + entry * d[column]
        return value


@dataclass(frozen=True, slots=True, eq=False)
class WeighedRow(LinearRow):
    """One row that is weighed.

    Attributes:
        weight: w_k.
    """

    weight: Expr


@dataclass(frozen=True, slots=True, eq=False)
class RotatedRow(LinearRow):
    """A weighed row in place of another, along other axes of a vector whose components share a weight.

    Attributes:
        still: b at rest, if the row is of the acceleration of a point on a body; else None.
        body: the body.
    """

    still: Expr | None
    body: int


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """Vectors that are read along other axes than those of their sensors.

    Attributes:
        rows: the rows in place of others, by their numbers.
        a: for each body the columns of its acceleration in these axes.
        w: its angular velocity.
    """

    rows: Mapping[int, RotatedRow]
    a: Sequence[tuple[int, ...]]
    w: Sequence[Array]


AS_GIVEN = Axes({}, (), ())


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRow(LinearRow):
    """One row that is not weighed, but has noise.

    Attributes:
        multiplier: row of the conditions that it is.
    """

    multiplier: int


@dataclass(frozen=True, slots=True, eq=False)
class Optimality:
    """Optimality conditions; the unknowns of their system come first, in the same order.

    Attributes:
        symbolic: the conditions: first the derivative by each unknown, then the exact rows.
        multipliers: column of the multiplier of each exact row.
        definitions: as in `RefinedSystem`, of unknowns and multipliers.
        weighed: the rows that are weighed, in order.
        summed: the same, or the rows in place of them.
        noisy: those that have noise instead.
    """

    symbolic: SymbolicSystem
    multipliers: dict[int, int]
    definitions: dict[int, int]
    weighed: tuple[WeighedRow, ...]
    summed: tuple[WeighedRow, ...]
    noisy: tuple[NoisyRow, ...]


def optimality(
    state: SymbolicState,
    system: SymbolicSystem,
    weighing: Weighing,
    definitions: Mapping[int, int],
    axes: Axes = AS_GIVEN,
) -> Optimality:
    """The optimality conditions of a system with weighed rows.

    Args:
        state: the inputs.
        system: all its rows.
        weighing: how they hold.
        definitions: the exact row that defines an unknown, by its column; the entry there is -1.
        axes: rows along other axes, in place of those of sensors.
    """
    m, n = system.shape
    exact = [row for row in range(m) if row not in weighing.weights]
    multipliers = {row: n + k for k, row in enumerate(exact)}
    entries: dict[tuple[int, int], Expr] = {}
    bodies, groups = system.bodies.tolist(), system.groups.tolist()
    body_of_row: dict[int, int] = {}
    weighed: defaultdict[int, dict[int, Expr]] = defaultdict(dict)
    noisy: dict[int, dict[int, Expr]] = {row: {} for row, _ in weighing.covariances}
    for row, column, entry in zip(system.rows.tolist(), system.columns.tolist(), system.entries, strict=True):
        if row in multipliers:
            at = multipliers[row]
            entries[at, column] = entries[column, at] = entry
            body_of_row[row] = max(body_of_row.get(row, 0), bodies[column])
            if row in noisy:
                noisy[row][column] = entry
        else:
            weighed[row][column] = entry
    for (row, column), covariance in weighing.covariances.items():
        entries[multipliers[row], multipliers[column]] = -covariance
    rows = [WeighedRow(weighed[row], system.b[row], state.weights[w]) for row, w in sorted(weighing.weights.items())]
    summed = {
        row: replace(each, entries=axes.rows[row].entries, b=axes.rows[row].b) if row in axes.rows else each
        for row, each in zip(sorted(weighing.weights), rows, strict=True)
    }
    H, g = _information(state, summed, weighing.weights, axes)
    body_of_row |= {row: bodies[column] for column, row in definitions.items()}
    group_of_row = {row: groups[column] for column, row in definitions.items()}
    n_groups = max(groups) + 1
    symbolic = symbolic_system(
        state,
        (n + len(exact), n + len(exact)),
        entries | H,
        [g.get(column, state.graph.zero) for column in range(n)] + [system.b[row] for row in exact],
        groups + [n_groups + group_of_row.get(row, n_groups + body_of_row[row]) for row in exact],
        bodies + [body_of_row[row] for row in exact],
    )
    places = {column: multipliers[row] for column, row in definitions.items()}
    of_both = places | {place: column for column, place in places.items()}
    uncertain = [NoisyRow(entries, system.b[row], multipliers[row]) for row, entries in noisy.items()]
    return Optimality(symbolic, multipliers, of_both, tuple(rows), tuple(summed.values()), tuple(uncertain))


def _information(
    state: SymbolicState, rows: Mapping[int, WeighedRow], weights: Mapping[int, int], axes: Axes
) -> tuple[dict[tuple[int, int], Expr], dict[int, Expr]]:
    """H by (row, column), and g by row; rows with one weight are added up before they are weighed.

    Points of a body whose accelerations are read form a rigid body, with their weights for masses: its inertia is their
    term in H, and the force for the rotation of the body their term in g.
    """
    together: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        together[weights[row]].append(row)
    H: dict[tuple[int, int], Expr] = {}
    g: dict[int, Expr] = {}
    inertias: defaultdict[int, dict[tuple[int, int], Expr]] = defaultdict(dict)
    for which, alike in together.items():
        weight = state.weights[which]
        points = [row for row in alike if row in axes.rows and axes.rows[row].still is not None]
        for place, square in _drop_rounding(_squares([rows[row] for row in alike])).items():
            accumulate(H, place, weight * square)
        for place, square in _squares([rows[row] for row in points]).items():
            accumulate(inertias[axes.rows[points[0]].body], place, weight * square)
        readings: dict[int, Expr] = {}
        for row in alike:
            still = axes.rows[row].still if row in axes.rows else None
            for i, x in rows[row].entries.items():
                accumulate(readings, i, x * (rows[row].b if still is None else still))
        for i, reading in readings.items():
            accumulate(g, i, weight * reading)
    for body, inertia in inertias.items():
        I = np.array([[inertia.get((i, j), state.graph.zero) for j in axes.a[body]] for i in axes.a[body]])
        for i, force in zip(axes.a[body], inertial_force(I, axes.w[body]), strict=True):
            accumulate(g, i, state.graph.expr(force))
    return H, g


def _squares(rows: Sequence[WeighedRow]) -> dict[tuple[int, int], Expr]:
    """The sums of the products of rows with themselves, by (row, column)."""
    found: dict[tuple[int, int], Expr] = {}
    for row in rows:
        for (i, x), (j, y) in product(row.entries.items(), repeat=2):
            accumulate(found, (i, j), x * y)
    return found


def _drop_rounding(squares: dict[tuple[int, int], Expr]) -> dict[tuple[int, int], Expr]:
    """Sums of squares, in which constants are cleared of the rounding of a rotation."""
    size = max((abs(x.value) for x in squares.values() if x.is_constant), default=0.0)
    found = {}
    for place, x in squares.items():
        if x.is_constant and abs(x.value) <= ROUNDING * size:
            continue
        near_unit = x.is_constant and abs(abs(x.value) - 1) <= ROUNDING * size
        found[place] = x.graph.expr(round(x.value)) if near_unit else x
    return found
