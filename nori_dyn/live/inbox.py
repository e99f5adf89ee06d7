"""Messages that wait: as many as are worth waiting for; beyond that the oldest go first."""

from __future__ import annotations

import threading
from collections import Counter
from queue import Empty, SimpleQueue

from nori_dyn.live.transport import Message

LIMIT = 256
"""Messages that wait, at most: at 1 kHz a quarter of a second."""

PUBLISHERS = 1024
"""Publishers whose numbers are remembered."""


class Inbox:
    """A queue of messages from any thread to one, with an end.

    A message that would be one too many makes room by dropping the oldest: what is newer is worth more.

    Attributes:
        limit: messages that wait, at most.
        dropped: how many were dropped; see `counted`.
        lost: how many never came, by topic, as the numbers of those that did tell.

    Args:
        limit: messages that wait, at most.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._queue: SimpleQueue[Message] = SimpleQueue()
        self._lock = threading.Lock()
        self._numbers: dict[tuple[str, bytes], int] = {}
        self.dropped = 0
        self.lost: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._queue.qsize()

    def put(self, message: Message) -> None:
        """Let a message wait."""
        with self._lock:
            if message.number is not None:
                self._count_lost(message.topic, message.publisher, message.number)
            while self._queue.qsize() >= self.limit:
                try:
                    self._queue.get_nowait()
                except Empty:  # the other side was quicker
                    break
                self.dropped += 1
            self._queue.put(message)

    def counted(self) -> tuple[int, Counter[str]]:
        """How many were dropped, and lost by topic, since this was last asked."""
        with self._lock:
            found = self.dropped, self.lost
            self.dropped, self.lost = 0, Counter()
        return found

    def _count_lost(self, topic: str, publisher: bytes, number: int) -> None:
        before = self._numbers.get((topic, publisher))
        if before is not None and number > before + 1:
            self.lost[topic] += number - before - 1
        if len(self._numbers) >= PUBLISHERS:
            self._numbers.clear()
        self._numbers[topic, publisher] = max(number, before or 0)

    def get(self, timeout: float) -> Message | None:
        """The message that has waited the longest; None where none comes in so many seconds."""
        try:
            return self._queue.get(timeout=max(timeout, 0.0))
        except Empty:
            return None
