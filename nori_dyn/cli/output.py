"""Standard output that says in one line why it cannot be written, as files do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import reason

Result = TypeVar("Result")


class StandardOutput:
    """A text stream whose errors are ours, but for that of a pipe whose reader has gone, which ends a command quietly.

    Attributes:
        problem: why it cannot be written; "" as long as it can.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.problem = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, see `io.TextIOBase.write`."""
        return self._done(lambda: int(self._stream.write(text)))

    def flush(self) -> None:
        """Write what waits, see `io.IOBase.flush`."""
        self._done(self._stream.flush)

    def _done(self, action: Callable[[], Result]) -> Result:
        if not self.problem:
            try:
                return action()
            except BrokenPipeError:
                raise
            except OSError as error:
                self.problem = reason(error)
                self.drop()
        raise FileFormatError(f"standard output cannot be written: {self.problem}.")

    def drop(self) -> None:
        """Let what waits go nowhere: Python writes it again when it ends, and would complain in its own words."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def standard_output() -> Iterator[None]:
    """Let `sys.stdout` be such a stream for a while; all of it is written when that is over.

    Raises:
        FileFormatError: it cannot be written.
    """
    before = sys.stdout
    output = StandardOutput(before)
    sys.stdout = output
    try:
        yield
    finally:
        sys.stdout = before
        try:
            output.flush()
        except BrokenPipeError:
            output.drop()
