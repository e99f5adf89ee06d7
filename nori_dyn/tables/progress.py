"""Progress of work that takes longer than about two seconds."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

DELAY = 1.5
"""Seconds before anything is shown."""

PERIOD = 0.1
"""Seconds between two drawings of a bar."""

BAR = 16
"""Characters of a bar."""

ERASED = "\r\x1b[2K"
"""What erases the line of a terminal that the cursor is in."""


class Progress(Protocol):
    """The stages of long work."""

    def __call__(self, stage: str, done: float | None = None) -> None:
        """Take the name of a stage, and the share of it that is done where that is known."""


Watched: TypeAlias = Progress | bool | None
"""Who watches long work: a function that receives its stages; True for a bar on a terminal, and a line a stage
elsewhere, as in notebooks; False for nobody; None for a bar on a terminal only."""


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
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
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


class BottomLine:
    """Last line of a terminal, written anew in place; what else is printed goes above it. Elsewhere all are lines."""

    def __init__(self) -> None:
        self._text, self._is_terminal = "", sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Put another text there, cut where the terminal ends; the cursor stays at its beginning."""
        if self._is_terminal:
            self._text = text[: shutil.get_terminal_size().columns - 1]
            self._write(f"{ERASED}{self._text}\r")
        elif text:
            self.tell(text)

    def tell(self, line: str) -> None:
        """Print a line above it."""
        self._write(f"{ERASED}{line}\n{self._text}\r" if self._is_terminal else f"{line}\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    line, over, begun = BottomLine(), threading.Event(), time.monotonic()
    now: tuple[str, float | None] = ("", None)

    def show(stage: str, done: float | None = None) -> None:
        nonlocal now
        now = stage, done

    def start() -> None:
        while not over.wait(PERIOD):
            stage, done = now
            passed = time.monotonic() - begun
            full = round(BAR * min(done or 0.0, 1.0))
            left = f", {_clock(passed / done - passed)} left" if done else ""
            line.show(f"{title}: {stage} [{'#' * full:-<{BAR}}] {_clock(passed)}{left}")
        line.show("")

    timer = threading.Timer(DELAY, start)
    timer.daemon = True
    timer.start()
    try:
        yield show
    finally:
        over.set()
        timer.cancel()
        timer.join()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
