"""The order of statements: few numbers live at once, so that few are spilled.

Two orders are tried, as traced and depth first, and that is taken in which fewer numbers are live; in it each statement
moves up that is the last to read a number, as soon as it can be computed. Counts only: the same on every machine.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

NEAR = 40
"""Statements after which a number that was not read may have left the registers."""


def schedule(sources: Mapping[int, Sequence[int]], targets: Iterable[int]) -> list[int]:
    """Statements in an order in which each comes after its operands.

    Args:
        sources: for each statement those that it reads, in an order in which these come before.
        targets: the wanted nodes, statements or others.
    """
    orders = (list(sources), _depth_first(sources, targets))
    operands = [_operands(sources, order) for order in orders]
    live = [_most_live(each) for each in operands]
    k = live.index(min(live))
    return [orders[k][place] for place in _freeing(operands[k])]


def _depth_first(sources: Mapping[int, Sequence[int]], targets: Iterable[int]) -> list[int]:
    """Statements so that each is close to a reader, the operand that takes more of them first."""
    size: dict[int, int] = {}
    waiting: dict[int, tuple[int, ...]] = {}
    for i, read in sources.items():
        size[i] = 1 + sum(size[s] for s in read)
        waiting[i] = tuple(sorted(read, key=size.__getitem__, reverse=True))[::-1]  # the last is computed first
    order: list[int] = []
    for target in targets:
        stack = [target]
        while stack:
            i = stack[-1]
            more = waiting.get(i)
            if more:
                waiting[i] = ()
                stack.extend(more)
                continue
            stack.pop()
            if more is not None:
                del waiting[i]
                order.append(i)
    return order


def _operands(sources: Mapping[int, Sequence[int]], order: Sequence[int]) -> list[tuple[int, ...]]:
    """For each statement of an order the indices in it of its operands."""
    place = {i: k for k, i in enumerate(order)}
    return [tuple({place[s] for s in sources[i]}) for i in order]


def _most_live(operands: Sequence[tuple[int, ...]]) -> int:
    """How many numbers are live at most: computed, and still to be read."""
    last = {s: k for k, sources in enumerate(operands) for s in sources}
    ending = [0] * len(operands)
    for k in last.values():
        ending[k] += 1
    most = live = 0
    for k, ended in enumerate(ending):
        live += (k in last) - ended
        most = max(most, live)
    return most


def _freeing(operands: Sequence[tuple[int, ...]]) -> list[int]:
    """The statements of an order, those moved up that leave no more numbers live than there were."""
    n = len(operands)
    readers: list[list[int]] = [[] for _ in range(n)]
    for k, sources in enumerate(operands):
        for s in sources:
            readers[s].append(k)
    unread, missing = [len(each) for each in readers], [len(each) for each in operands]
    computed, touched, done = [-1] * n, [0] * n, bytearray(n)
    free: list[tuple[int, int, int]] = []  # that can be computed: how many more are live after it, how old, which
    order: list[int] = []

    def growth(k: int) -> int:
        return bool(readers[k]) - sum(unread[s] == 1 for s in operands[k])

    def offer(k: int) -> None:
        more = growth(k)
        if more <= 0:
            heapq.heappush(free, (more, -max(computed[s] for s in operands[k]), k))

    def is_near(k: int) -> bool:
        return all(now - touched[s] <= NEAR for s in operands[k])

    def next_free() -> int:
        while free:
            more, _, k = heapq.heappop(free)
            if not done[k] and more == growth(k) and (more < 0 or is_near(k)):
                return k
        return -1

    turn = 0
    for now in range(n):
        k = next_free()
        if k < 0:
            while done[turn]:
                turn += 1
            k = turn
        done[k] = 1
        order.append(k)
        computed[k] = touched[k] = now
        for s in operands[k]:
            touched[s] = now
            unread[s] -= 1
            if unread[s] == 1:
                for reader in readers[s]:
                    if not done[reader] and not missing[reader]:
                        offer(reader)
        for reader in readers[k]:
            missing[reader] -= 1
            if not missing[reader]:
                offer(reader)
    return order
