"""A live run on a terminal: a line that is written anew each period; and what tells it to stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from nori_dyn.errors import InputError
from nori_dyn.live.account import Account

PRIORITY = 10
"""Of real-time priorities, 1 to 99: below what drives motors."""


class Teller(Protocol):
    """Tells people how a run goes."""

    def tell(self, line: str) -> None:
        """Tell of something that goes wrong, or is right again."""

    def watch(self, account: Account, total: Account) -> None:
        """Tell of a period."""


class Lines:
    """Tells in lines, where no terminal is."""

    def tell(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def watch(self, account: Account, total: Account) -> None:
        if total.estimates:
            self.tell(account.line(total))


@contextmanager
def teller() -> Iterator[Teller]:
    """Give what tells people on the standard error: on a terminal one line stays below all others."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:

        class Below:
            """One line below all others."""

            def tell(self, line: str) -> None:
                live.console.print(line, markup=False, highlight=False, soft_wrap=True)

            def watch(self, account: Account, total: Account) -> None:
                if total.estimates:
                    live.update(Text(account.line(total), no_wrap=True, overflow="ellipsis"), refresh=True)

        yield Below()


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


def take_precedence() -> None:
    """Have this thread, and those that it starts, run before all others that have no real-time priority.

    Raises:
        InputError: the system does not allow it, or knows no such priority.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except (AttributeError, OSError) as error:
        raise InputError(
            f"a real-time priority is not to be had here ({error}): allow it, by `ulimit -r {PRIORITY}` or a line "
            f"`USER - rtprio {PRIORITY}` in /etc/security/limits.conf, or leave --realtime out."
        ) from None
