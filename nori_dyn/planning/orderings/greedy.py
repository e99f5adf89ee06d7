"""Greedy elimination: the cheapest stable pivot first, in classes of columns. Shared by markowitz and recursive.

Source: Duff, Erisman, Reid, Direct Methods for Sparse Matrices (Markowitz counts, threshold pivoting).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nori_dyn.planning.elimination import Elimination, ZeroPivotError
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem

SPREAD_LIMIT = 10.0
"""Largest ratio of a pivot's median size to its smallest over the sampled states, while there is a choice."""

GROWTH_LIMIT = 100.0
"""Largest multiplier in natural units over the sampled states, likewise."""

Key: TypeAlias = tuple[int, int, bool, bool, int, int]


def greedy(problem: OrderingProblem, column_class: NDArray[np.intp]) -> Ordering:
    """Return the order that takes the pivot of least (r - 1)(c - 1) in the lowest class of columns.

    Pivots that cost nothing (a row or column of one entry) come first whatever their class, rows before columns,
    so that a matrix that can be permuted to a triangle is permuted to a lower one. Then 1 and -1 come before
    other entries, and an entry that comes near zero over the sampled states waits until there is no other.

    Args:
        problem: the square system.
        column_class: class of each column (n); lower ones are eliminated first.

    Raises:
        ZeroPivotError: the system is singular for all q; holds its rank.
    """
    work = Elimination(problem.symbolic, problem.natural_samples)
    classes = column_class.tolist()

    def key(row: int, column: int) -> Key:
        cost = work.markowitz(row, column)
        free = cost == 0
        return (
            -1 if free else classes[column],
            cost,
            free and len(work.rows[row]) > 1,
            not work.is_unit(row, column),
            row,
            column,
        )

    heap: list[Key] = [key(i, j) for i, row in enumerate(work.rows) for j in row]
    heapq.heapify(heap)
    order: list[tuple[int, int]] = []
    waiting: list[tuple[float, int, int]] = []
    while len(order) < work.n:
        found = _next_stable(work, heap, waiting, key)
        if found is None:
            raise ZeroPivotError("the system is singular for all q", rank=len(order))
        row, column = found
        step = work.pivot(row, column)
        order.append(found)
        for i in step.l:
            for j in work.rows[i]:
                heapq.heappush(heap, key(i, j))
        for j in step.u:
            for i in work.columns[j]:
                if i not in step.l:
                    heapq.heappush(heap, key(i, j))
        waiting = [item for item in waiting if item[1] != row and item[2] != column]
    rows, columns = zip(*order, strict=True)
    return Ordering(np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp))


def _next_stable(
    work: Elimination, heap: list[Key], waiting: list[tuple[float, int, int]], key: Callable[[int, int], Key]
) -> tuple[int, int] | None:
    """Return the cheapest entry that keeps away from zero, or the least bad where none does; None when all are 0."""
    while heap:
        item = heapq.heappop(heap)
        row, column = item[4], item[5]
        if column not in work.rows[row]:
            continue
        if (now := key(row, column)) != item:
            if now > item:
                heapq.heappush(heap, now)
            continue
        risk = max(work.spread(row, column) / SPREAD_LIMIT, work.growth(row, column) / GROWTH_LIMIT)
        if risk <= 1:
            return row, column
        waiting.append((risk, row, column))
    candidates = [item for item in waiting if item[2] in work.rows[item[1]]]
    if not candidates:
        return None
    _, row, column = min(candidates)
    return row, column
