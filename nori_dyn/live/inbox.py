"""Messages that wait: as many as are worth waiting for; beyond that the oldest go first."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

from nori_dyn.live.transport import Message

LIMIT = 256
"""Messages that wait, at most: at 1 kHz a quarter of a second."""


class Inbox:
    """A queue of messages from any thread to one, with an end.

    A message that would be one too many makes room by dropping the oldest: what is newer is worth more.

    Attributes:
        came: how many came.
        dropped: how many of them were dropped.

    Args:
        limit: messages that wait, at most.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._lock = threading.Lock()
        self.came = self.dropped = 0

    def __len__(self) -> int:
        return self._queue.qsize()

    def put(self, message: Message) -> None:
        """Let a message wait."""
        with self._lock:
            self.came += 1
            while self._queue.qsize() >= self._limit:
                try:
                    self._queue.get_nowait()
                except Empty:  # the other side was quicker
                    break
                self.dropped += 1
            self._queue.put(message)

    def get(self, timeout: float) -> Message | None:
        """Return the message that has waited the longest; None where none comes in so many seconds."""
        try:
            return self._queue.get(timeout=max(timeout, 0.0))
        except Empty:
            return None
