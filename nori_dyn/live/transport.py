"""What carries messages, bytes by topic, in and out; and those that wait, as many as are worth waiting for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol, TypeAlias


class Message(NamedTuple):
    """A message that came.

    Attributes:
        topic: its topic, "/joint_states".
        payload: its bytes: CDR with its header of four bytes, as ROS 2 writes it.
        arrived: when it came [ns since 1970].
        sent: when it was published [ns since 1970], where the transport tells; None where not.
        number: its number among those of its publisher, where the transport tells.
        publisher: what tells publishers apart, where the transport tells.
        kind: its type, where the transport tells: "sensor_msgs/msg/JointState".
    """

    topic: str
    payload: bytes
    arrived: int
    sent: int | None = None
    number: int | None = None
    publisher: bytes = b""
    kind: str = ""


Receive: TypeAlias = Callable[[Message], None]
"""What takes messages that come. It is called in threads of the transport, must be quick, and raises nothing."""


class Transport(Protocol):
    """Carries messages. Laws, tested over all transports in tests/contracts/test_transports.py.

    - what is published on a topic that another transport of the same bus has subscribed to, it receives: the same
      bytes, in the same order, each once; what it is too slow to take may be lost;
    - a message on another topic is not received, whatever its name begins or ends with;
    - bytes are never looked at: what is no message is carried as well;
    - after `close`, nothing is received and nothing published, and `close` again does nothing.
    """

    @property
    def place(self) -> str:
        """Where it listens, or what it is connected to, for people."""

    def subscribe(self, topic: str, kind: str, receive: Receive) -> None:
        """Have messages of a topic received.

        Args:
            topic: the topic, "/joint_states".
            kind: the type of its messages, "sensor_msgs/msg/JointState"; "" where that is not known.
            receive: is called with each.
        """

    def advertise(self, topic: str, kind: str) -> Callable[[bytes], None]:
        """A function that publishes the bytes of a message of some type on a topic."""

    def close(self) -> None:
        """Stop, and let go of what is open."""


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
