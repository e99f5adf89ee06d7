"""Greedy elimination: the cheapest stable pivot first, in classes of columns. Shared by markowitz and recursive.

Source: Duff, Erisman, Reid, Direct Methods for Sparse Matrices (Markowitz counts, threshold pivoting).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from nori_dyn.planning.elimination import FIELD, UNITS, Elimination, ZeroPivotError
from nori_dyn.planning.orderings.problem import OrderingProblem
from nori_dyn.typing import Indices

GROWTH_LIMIT = 4.0
"""Largest growth of an entry by one pivot over the sampled states, in natural units, while there is a choice."""

Key: TypeAlias = tuple[int, int, bool, bool, int, int, int]

Candidate: TypeAlias = tuple[int, int, float | None]
"""Row and column of a pivot, and its growth where that is known."""


class CostlyOrderError(ValueError):
    """An order that costs more than it was allowed to."""


def greedy(
    problem: OrderingProblem,
    column_class: Indices,
    ties: Indices | None = None,
    limit: float = math.inf,
) -> Elimination[int]:
    """Eliminate by the pivot of least (r - 1)(c - 1) in the lowest class of columns, one after the other.

    Pivots that cost nothing (a row or column of one entry) come first whatever their class, rows before columns,
    so that a matrix that can be permuted to a triangle is permuted to a lower one. Then 1 and -1 come before
    other entries, and an entry that comes near zero over the sampled states waits until there is no other. An unknown
    that a row defines is eliminated with that row; in optimality conditions, which are symmetric, the rest is
    so again after the mirror image of that pivot, which follows at once.

    Args:
        problem: the square system.
        column_class: class of each column (n); lower ones are eliminated first.
        ties: of columns that are equally good, the one with the lowest number here comes first (n).
        limit: number of updates after which to give up.

    Raises:
        CostlyOrderError: more updates.
        ZeroPivotError: the system is singular for all q; holds its rank.
    """
    work = Elimination(problem.symbolic, FIELD, problem.natural_samples)
    classes = column_class.tolist()
    defined_by = problem.definitions
    defining = set(defined_by.values())
    is_symmetric = bool(problem.symbolic.weights)

    def allowed(row: int, column: int) -> bool:
        return defined_by[column] == row if column in defined_by else row not in defining

    rows, columns = work.rows, work.columns
    tie = [0] * work.n if ties is None else ties.tolist()

    def key(row: int, column: int) -> Key:
        entries = rows[row]
        others = len(entries) - 1
        cost = others * (len(columns[column]) - 1)
        is_other = entries[column] not in UNITS
        if cost:
            return classes[column], cost, False, is_other, tie[column], row, column
        return -1, 0, others > 0, is_other, tie[column], row, column

    def cannot_vanish(row: int, column: int) -> bool:
        """Whether an entry is on the diagonal of optimality conditions.

        One part of these is positive and the other negative definite: Vanderbei, Symmetric quasi-definite matrices
        (1995). But noise of rows may be as good as none, and is then no pivot.
        """
        return is_symmetric and row == column and not (has_noise and work.is_negative(row))

    has_noise = is_symmetric and any(map(work.is_negative, range(work.n)))
    heap = Heap(key, [(i, j) for i, row in enumerate(rows) for j in row if allowed(i, j)])
    waiting: dict[tuple[int, int], float] = {}
    mirror: Candidate | None = None
    while len(work.pivots) < work.n:
        found = mirror or _next_stable(work, heap, waiting, cannot_vanish)
        if found is None:
            raise ZeroPivotError("the system is singular for all q", rank=len(work.pivots))
        row, column, growth = found
        mirror = (column, row, None) if is_symmetric and mirror is None and defined_by.get(column) == row else None
        lengths = [(i, len(rows[i])) for i in columns[column]]
        heights = [(j, len(columns[j])) for j in rows[row]]
        l, u = (step := work.pivot(row, column, growth)).l, step.u
        if work.updates > limit:
            raise CostlyOrderError(f"more than {limit:.0f} updates")
        changed = [(i, j) for i in l for j in u if j in rows[i]]
        changed += [(i, j) for i, before in lengths if len(rows[i]) < before for j in rows[i] if j not in u]
        changed += [(i, j) for j, before in heights if len(columns[j]) < before for i in columns[j] if i not in l]
        changed += [(i, j) for i, j in waiting if (i in l or j in u) and j in rows[i]]
        heap.put([(i, j) for i, j in changed if allowed(i, j)])
    return work


class Heap:
    """Entries of an active matrix, the one of least key first; keys change while they wait.

    An entry waits under one key at most, no more than the present one: it is put back when that comes and it has grown.

    Args:
        key: returns the present key of an entry by row and column, with these at the end.
        places: the entries.
    """

    def __init__(self, key: Callable[[int, int], Key], places: Sequence[tuple[int, int]]) -> None:
        self._key = key
        self._least = {place: key(*place) for place in places}
        self._items = list(self._least.values())
        heapq.heapify(self._items)

    def put(self, places: Iterable[tuple[int, int]]) -> None:
        """Insert entries, or move them up where their key has become smaller."""
        present_key, least, items = self._key, self._least, self._items
        for place in places:
            key, before = present_key(*place), least.get(place)
            if before is None or key < before:
                least[place] = key
                heapq.heappush(items, key)

    def pop(self, rows: Sequence[Mapping[int, int]]) -> tuple[int, int] | None:
        """Take the entry of least key that is still there; None where there is none."""
        while self._items:
            item = heapq.heappop(self._items)
            place = row, column = item[-2:]
            if self._least.get(place) != item:
                continue
            del self._least[place]
            if column not in rows[row]:
                continue
            now = self._key(row, column)
            if now == item:
                return place
            self._least[place] = now
            heapq.heappush(self._items, now)
        return None


def _next_stable(
    work: Elimination[int],
    heap: Heap,
    waiting: dict[tuple[int, int], float],
    cannot_vanish: Callable[[int, int], bool],
) -> Candidate | None:
    """The cheapest entry that keeps away from zero, or the least bad where none does; None when all are 0."""
    while place := heap.pop(work.rows):
        row, column = place
        if work.is_unit(row, column):
            return row, column, None
        if work.changes_sign(row, column):
            risk = math.inf
        elif cannot_vanish(row, column):
            return row, column, None
        else:
            risk = work.growth(row, column)
        if risk <= GROWTH_LIMIT:
            return row, column, risk
        waiting[row, column] = risk
    for row, column in [place for place in waiting if place[1] not in work.rows[place[0]]]:
        del waiting[row, column]
    least = min(waiting, key=lambda place: (waiting[place], place), default=None)
    return None if least is None else (*least, None)
