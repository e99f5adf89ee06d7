"""Prefetching: a thread runs an iterator ahead of those who use its items."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def prefetched(items: Iterator[T], most: int = 2) -> Generator[T, None, None]:
    """Yield what an iterator yields; at most so many items wait to be used. Errors come where they would have come.

    Args:
        items: the iterator, which is used in another thread only.
        most: how many items may wait.
    """
    end: Any = object()
    with ThreadPoolExecutor(1) as thread:
        try:
            waiting = deque(thread.submit(next, items, end) for _ in range(most))
            while (item := waiting.popleft().result()) is not end:
                waiting.append(thread.submit(next, items, end))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)
            if isinstance(items, Generator):  # nobody else goes on with it
                items.close()
