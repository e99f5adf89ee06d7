"""What tells a live run to stop: signals."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether a signal has told a run to stop: once to end well, twice to end at once."""

    def __init__(self) -> None:
        self.is_told = False

    def __call__(self) -> bool:
        return self.is_told

    def _tell(self, number: int, frame: FrameType | None) -> None:
        if self.is_told:
            raise KeyboardInterrupt
        self.is_told = True

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to SIGINT, as Ctrl-C sends it, and SIGTERM."""
        before = {number: signal.signal(number, self._tell) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
