"""A live run on a terminal: a line that is written anew each period; and what tells it to stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nori_dyn.live.account import Account
from nori_dyn.tables.progress import BottomLine


class Lines:
    """Account of a run in lines, where no terminal is."""

    def tell(self, line: str) -> None:
        """Tell of something that goes wrong, or is right again."""
        print(line, file=sys.stderr, flush=True)

    def watch(self, account: Account, total: Account) -> None:
        """Tell of a period."""
        if total.estimates:
            self.tell(account.line(total))


class OneLine(Lines):
    """Account of a run on a terminal: that of the last period stays below all other lines."""

    def __init__(self) -> None:
        self._line = BottomLine()

    def tell(self, line: str) -> None:
        self._line.tell(line)

    def watch(self, account: Account, total: Account) -> None:
        if total.estimates:
            self._line.show(account.line(total))

    def end(self) -> None:
        """Erase the line."""
        self._line.show("")


@contextmanager
def teller() -> Iterator[Lines]:
    """Give what tells people on the standard error how a run goes."""
    people = OneLine() if sys.stderr.isatty() else Lines()
    try:
        yield people
    finally:
        if isinstance(people, OneLine):
            people.end()


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
