"""Progress for work that takes longer than about two seconds; silent where the output is not a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DELAY = 1.5
"""Seconds before anything is shown."""


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """Show the stage that a long computation is at, on a terminal only; yields the function that sets the stage."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(title)
    timer = threading.Timer(DELAY, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda stage: status.update(f"{title}: {stage}")
    finally:
        timer.cancel()
        timer.join()
        status.stop()
