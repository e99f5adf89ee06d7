"""Elimination orders that are the same for isomorphic limbs.

An order that was found for a whole robot may break ties in its left leg otherwise than in its right one, or hold a
pivot for risky in one of them only. Here one limb of each group gives its order to the others: pivots that correspond
follow one another, and pivots between limbs keep their position.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.model.limbs import LimbGroup, limb_groups
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.builder import System
from nori_dyn.system.limbs import RowsOfLimbs, correspondence
from nori_dyn.system.refined import RefinedSystem
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.typing import Indices


@dataclass(frozen=True, slots=True, eq=False)
class IsomorphicParts:
    """The rows and columns of a refined system that belong to isomorphic limbs.

    Attributes:
        rows: rows of each limb (limbs, m); those that correspond are at the same place.
        columns: columns of each limb (limbs, m), likewise.
    """

    rows: Indices
    columns: Indices


def isomorphic_parts(system: System, refined: RefinedSystem) -> tuple[IsomorphicParts, ...]:
    """The rows and columns of isomorphic limbs, in the order of `limb_groups`.

    Limbs whose sensors or components differ are left out.
    """
    match = _Correspondence(system, refined)
    return tuple(parts for group in limb_groups(system.tree) if (parts := match.parts(group)) is not None)


def isomorphic_order(order: Ordering, updates: Indices, groups: Sequence[IsomorphicParts]) -> Ordering | None:
    """The order in which all isomorphic limbs have the order of the cheapest of their group.

    There is none where they have the same order already.

    Args:
        order: an order of the refined system.
        updates: how many entries each of its pivots updates (n).
        groups: the rows and columns of isomorphic limbs, see `isomorphic_parts`.
    """
    of_column = np.empty_like(updates)
    of_column[order.columns] = updates
    found = order
    for group in groups:
        own = [_own_order(found, group, limb) for limb in range(len(group.columns))]
        if len(set(own)) > 1:
            costs = [math.inf if of is None else of_column[group.columns[k]].sum() for k, of in enumerate(own)]
            found = _mapped(found, group, int(np.argmin(costs)))
    if found is order:
        return None
    for group in reversed(groups):  # limbs within the first limb are now as the first of them
        found = _mapped(found, group, 0)
    return found


Images: TypeAlias = tuple[Indices, Indices]
"""For each row and each column of a system that of another one."""


def images_of(system: System, other: System, mine: SymbolicSystem, theirs: SymbolicSystem) -> Images | None:
    """The rows and columns of a system over expressions that correspond to those of another, which is as refined.

    There are none where the systems do not correspond, see `correspondence`. The columns of a body come in the same
    order for each body, a new row is that of the column with which it came, and a multiplier that of its row.
    """
    found = correspondence(system, other)
    if found is None or mine.shape != theirs.shape:
        return None
    bodies, given = found
    n_rows, n = system.shape
    places = [_multipliers(each) for each in (system, other)]
    n_unknowns = (mine.shape[1] + n - len(places[0])) // 2 if system.is_weighted else mine.shape[1]
    unknowns = np.empty(n_unknowns, dtype=np.intp)
    for body, image in enumerate(bodies):
        unknowns[mine.bodies[:n_unknowns] == body] = np.flatnonzero(theirs.bodies[:n_unknowns] == image)
    new = unknowns[n:] - n
    if not system.is_weighted:
        return np.concatenate((given, new + n_rows)), unknowns
    multipliers = [places[1][row] for row in given[list(places[0])].tolist()]
    both = np.concatenate((unknowns, n_unknowns + np.array(multipliers), new + n_unknowns + len(multipliers)))
    return both, both


def _multipliers(system: System) -> dict[int, int]:
    """The number of the multiplier of each row that has one."""
    rows = numbers_in(block.slice for block in system.rows if block.has_multiplier)
    return {row: k for k, row in enumerate(sorted(rows.tolist()))}


def carried(order: Ordering, images: Images) -> Ordering:
    """An order of one system, of the rows and columns of another that correspond."""
    rows, columns = images
    return Ordering(rows[order.rows], columns[order.columns])


def _own_order(order: Ordering, group: IsomorphicParts, limb: int) -> bytes | None:
    """The order of the pivots of a limb; None where a pivot has only its row or its column in the limb."""
    places = _places(order, group, limb)
    own = (places >= 0).any(axis=0)
    return None if (places[:, own] < 0).any() else places[:, own].tobytes()


def _mapped(order: Ordering, group: IsomorphicParts, limb: int) -> Ordering:
    """An order in which all limbs have that of one, or the same order where that one has none."""
    places = _places(order, group, limb)
    of_any = np.zeros((2, len(order.columns)), dtype=bool)
    of_any[0, group.rows] = of_any[1, group.columns] = True
    if not (of_any[0, order.rows] == of_any[1, order.columns]).all() or _own_order(order, group, limb) is None:
        return order
    rows, columns = list[Indices](), list[Indices]()
    for k, (row, column) in enumerate(zip(order.rows, order.columns, strict=True)):
        if places[0, k] >= 0:
            rows.append(group.rows[:, places[0, k]])
            columns.append(group.columns[:, places[1, k]])
        elif not of_any[1, column]:
            rows.append(np.array([row]))
            columns.append(np.array([column]))
    return Ordering(np.concatenate(rows), np.concatenate(columns))


def _places(order: Ordering, group: IsomorphicParts, limb: int) -> Indices:
    """The row and the column of each pivot as indices in a limb (2, n), -1 where elsewhere."""
    found = np.full((2, len(order.columns)), -1, dtype=np.intp)
    for k, (own, chosen) in enumerate(((group.rows[limb], order.rows), (group.columns[limb], order.columns))):
        place = np.full(len(chosen), -1, dtype=np.intp)
        place[own] = np.arange(len(own))
        found[k] = place[chosen]
    return found


class _Correspondence:
    """Finds for the rows and columns of one limb those of the others.

    The columns of a body come in the same order for each body. A row of the refined system came with a column, or is
    one of the system as given.
    """

    def __init__(self, system: System, refined: RefinedSystem) -> None:
        self._system = system
        self._columns: defaultdict[int, list[int]] = defaultdict(list)
        for column in range(len(refined.symbolic.bodies)):  # a multiplier is its unknown's: its row may read a child's
            self._columns[int(refined.symbolic.bodies[refined.duals.get(column, column)])].append(column)
        self._rows = None if system.is_weighted else RowsOfLimbs(system)

    def parts(self, group: LimbGroup) -> IsomorphicParts | None:
        """The rows and columns of limbs; None where they do not correspond."""
        n_rows, n = self._system.shape
        by_body = [[self._columns[i] for i in limb] for limb in group.limbs]
        if len({tuple((len(own), sum(column < n for column in own)) for own in of_limb) for of_limb in by_body}) > 1:
            return None
        columns = np.array([[column for own in of_limb for column in own] for of_limb in by_body], dtype=np.intp)
        if self._rows is None:  # rows of optimality conditions are those of their unknowns and multipliers
            return IsomorphicParts(columns, columns)
        blocks = list(self._rows.of(group.limbs))
        if None in blocks:
            return None
        given = np.array([numbers_in(block.slice for block in own) for own in zip(*filter(None, blocks), strict=True)])
        rows = np.concatenate((columns[:, columns[0] >= n] - n + n_rows, given), axis=1)
        has_own = len(np.unique(rows)) == rows.size  # and no loop ties one limb to another
        return IsomorphicParts(rows, columns) if has_own else None
