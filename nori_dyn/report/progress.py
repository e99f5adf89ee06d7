"""Progress for work that takes longer than about two seconds; silent where the output is not a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nori_dyn.planning.search import Progress

DELAY = 1.5
"""Seconds before anything is shown."""


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Show the stage that a long computation is at, with a bar where it knows how far; on a terminal only.

    Yields:
        The function that sets the stage, and the share that is done.
    """
    if not sys.stderr.isatty():
        yield lambda stage, done=None: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TimeElapsedColumn())
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)

    def show(stage: str, done: float | None = None) -> None:
        total = None if done is None else 1.0
        bar.update(task, description=f"{title}: {stage}", total=total, completed=done or 0.0)

    timer = threading.Timer(DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield show
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
