"""Progress of work that takes longer than about two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

DELAY = 1.5
"""Seconds before anything is shown."""


class Progress(Protocol):
    """What is told of long work."""

    def __call__(self, stage: str, done: float | None = None) -> None:
        """Take the name of a stage, and the share of it that is done where that is known."""


Watched: TypeAlias = Progress | bool | None
"""Who watches long work: a function that is told of it; True for a bar on a terminal, and a line a stage elsewhere, as
in notebooks; False for nobody; None for a bar on a terminal only."""


@contextmanager
def progress_bar(title: str, watched: Watched = None) -> Iterator[Progress]:
    """Show the stage that a long computation is at, with a bar where it knows how far.

    Args:
        title: what is computed.
        watched: see `Watched`.

    Yields:
        The function that sets the stage, and the share that is done.
    """
    if callable(watched):
        yield watched
    elif watched is False or not (watched or sys.stderr.isatty()):
        yield lambda stage, done=None: None
    elif sys.stderr.isatty():
        with _bar(title) as show:
            yield show
    else:
        yield _lines(title)


def _lines(title: str) -> Progress:
    """A function that prints each stage once; figures after a comma, such as a rate, make no new stage of it."""
    seen: set[str] = set()

    def show(stage: str, done: float | None = None) -> None:
        if stage.partition(",")[0] not in seen:
            seen.add(stage.partition(",")[0])
            print(f"{title}: {stage}", file=sys.stderr, flush=True)

    return show


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=16),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(compact=True),
    )
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
