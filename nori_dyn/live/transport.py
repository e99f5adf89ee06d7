"""What carries messages: bytes by topic, in and out."""

from __future__ import annotations

from collections.abc import Callable
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
