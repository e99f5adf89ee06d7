"""Prefetching: a thread runs an iterator ahead of those who use its items."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def prefetched(items: Iterator[T], most: int = 2) -> Generator[T, None, None]:
    """Yield what an iterator yields; at most so many items wait to be used. Errors come where they would have come.

    Args:
        items: the iterator, which is used in another thread only.
        most: how many items may wait.
    """
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(most)
    stopped = threading.Event()

    def make() -> None:
        try:
            for item in items:
                waiting.put(("item", item))
                if stopped.is_set():
                    break
            else:
                waiting.put(("end", None))
        except BaseException as error:
            waiting.put(("error", error))

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            kind, item = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for room
            try:
                waiting.get(timeout=0.05)
            except queue.Empty:
                thread.join(0.05)
        if isinstance(items, Generator):  # nobody else goes on with it
            items.close()
