"""The garbage collector, and work that makes many objects of which none is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the collector of reference cycles rest meanwhile; as a decorator, while a function runs.

    Graphs of expressions only grow, and their dropped parts are freed at once, by its reference count. The collector
    finds nothing there, but goes through all of it again and again: a tenth of the time of planning.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
