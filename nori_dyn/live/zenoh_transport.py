"""Messages over Zenoh, as a peer that other machines do not see unless they are meant to.

In ROS 2, by rmw_zenoh, a topic has the key `DOMAIN/TOPIC/TYPE/HASH`; a liveliness token announces a publisher; each
message brings an attachment with its number, its time and its publisher. zenoh-bridge-ros2dds and plain programs use
`TOPIC` alone.

Source: the page on the design of ros2/rmw_zenoh; the hash of a type is that of REP-2016, as rosbags computes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

from nori_dyn.errors import TransportError
from nori_dyn.io.extras import needed
from nori_dyn.live.transport import Message, Receive

if TYPE_CHECKING:
    import zenoh

ATTACHMENT = struct.Struct("<qqB16s")
"""Number of the message, time [ns since 1970], length of what follows, and the publisher's id."""

GID_LENGTH = 16

_KEY = re.compile(r"(?P<domain>\d+)/(?P<topic>.+)/(?P<package>\w+)::msg::dds_::(?P<name>\w+)_/(?P<hash>[^/]+)")


@dataclass(frozen=True, slots=True)
class Origin:
    """What an attachment says of its message.

    Attributes:
        number: its number among those of its publisher, from 1.
        sent: when it was published [ns since 1970].
        publisher: the publisher's id.
    """

    number: int
    sent: int
    publisher: bytes

    def attachment(self) -> bytes:
        """The attachment."""
        return ATTACHMENT.pack(self.number, self.sent, GID_LENGTH, self.publisher)

    @staticmethod
    def of(attachment: bytes) -> Origin | None:
        """Content of an attachment; None where it is none of rmw_zenoh."""
        if len(attachment) != ATTACHMENT.size:
            return None
        number, sent, length, publisher = ATTACHMENT.unpack(attachment)
        return Origin(number, sent, publisher) if length == GID_LENGTH else None


def plain_key(topic: str) -> str:
    """The key that zenoh-bridge-ros2dds and plain programs use: "/arm/joint_states" is "arm/joint_states"."""
    return topic.strip("/")


def ros_key(domain: int, topic: str, kind: str) -> str:
    """The key of a topic in rmw_zenoh."""
    return f"{domain}/{plain_key(topic)}/{type_name(kind)}/{type_hash(kind)}"


def ros_keys(domain: int, topic: str) -> str:
    """The expression of all keys of a topic in rmw_zenoh, whatever the type of its messages and its hash."""
    return f"{domain}/{plain_key(topic)}/*/*"


@lru_cache(maxsize=1024)
def kind_of(key: str) -> str:
    """The type of the messages of a key, "sensor_msgs/msg/JointState"; "" of a plain key."""
    found = _KEY.fullmatch(key)
    return f"{found['package']}/msg/{found['name']}" if found else ""


def type_name(kind: str) -> str:
    """Name of a type in DDS: "sensor_msgs::msg::dds_::JointState_"."""
    package, _, name = kind.replace("/msg/", "/").partition("/")
    return f"{package}::msg::dds_::{name}_"


@cache
def type_hash(kind: str) -> str:
    """The hash of the definition of a type: "RIHS01_a13e..."."""
    from rosbags.typesys import Stores, get_typestore

    return str(get_typestore(Stores.LATEST).hash_rihs01(kind))


def node_token(domain: int, session: str, node: str) -> str:
    """The liveliness token of a node: then `ros2 node list` has it.

    Args:
        domain: the ROS domain.
        session: the id of the Zenoh session.
        node: its name.
    """
    return f"@ros2_lv/{domain}/{session}/0/0/NN/%/%/{node}"


def publisher_token(domain: int, session: str, node: str, number: int, topic: str, kind: str) -> str:
    """The liveliness token of a publisher: then `ros2 topic list` has its topic.

    Args:
        domain: the ROS domain.
        session: the id of the Zenoh session.
        node: the name of its node.
        number: its number within the node.
        topic: its topic.
        kind: the type of its messages.
    """
    own = f"@ros2_lv/{domain}/{session}/0/{number}/MP/%/%/{node}/%{plain_key(topic).replace('/', '%')}"
    return f"{own}/{type_name(kind)}/{type_hash(kind)}/::,10:,:,:,,"


LISTEN = "tcp/127.0.0.1:7447"
"""Where a session listens by default: this machine alone sees it."""

ANY_PORT = "tcp/127.0.0.1:0"
"""Where it listens when it is told to connect somewhere, as sessions of rmw_zenoh do."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a session listens, and what it connects to.

    Attributes:
        listen: endpoints of Zenoh, "tcp/127.0.0.1:7447"; None for `LISTEN`, or `ANY_PORT` where it connects.
        connect: endpoints of other peers, or of a router.
        domain: the ROS domain whose keys are published, so that nodes of rmw_zenoh receive them; None publishes plain
            keys, as zenoh-bridge-ros2dds does.
        heard: the ROS domain whose keys are received, beside plain ones.
    """

    listen: tuple[str, ...] | None = None
    connect: tuple[str, ...] = ()
    domain: int | None = None
    heard: int = 0

    @property
    def listening(self) -> tuple[str, ...]:
        """Where it listens."""
        return self.listen if self.listen is not None else (ANY_PORT,) if self.connect else (LISTEN,)


class ZenohTransport:
    """A transport over Zenoh; see `Transport`.

    Nothing is sought in the network: a session listens where it is told to, this machine alone when it is not told, and
    connects where it is told to. Through a router that it connects to it may hear of others.

    Args:
        endpoints: where to listen, and what to connect to.
        node: the name by which ROS lists it.
        waits: whether publishing waits where the other side is too slow, rather than that messages are lost.

    Raises:
        MissingExtraError: Zenoh is not installed.
        TransportError: the place to listen at is taken, or what to connect to does not answer.
    """

    def __init__(self, endpoints: Endpoints | None = None, node: str = "nori_dyn", waits: bool = False) -> None:
        self._endpoints, self._node = endpoints or Endpoints(), node
        self._zenoh = needed("a live stream over Zenoh", "live", "zenoh")
        self._session = _opened(self._zenoh, self._endpoints)
        self._id = str(self._session.info.zid())
        self._held: list[Any] = []
        self._numbers = count(1)
        self._is_open, self._waits = True, waits
        if self._endpoints.domain is not None:
            self._tell(node_token(self._endpoints.domain, self._id, node))

    @property
    def place(self) -> str:
        heard, sought = self._endpoints.listening, self._endpoints.connect
        return " and ".join(
            f"{verb} {', '.join(places)}"
            for verb, places in (("listening at", heard), ("connected to", sought))
            if places
        )

    def subscribe(self, topic: str, kind: str, receive: Receive) -> None:
        handlers, clock = self._zenoh.handlers, time.time_ns

        def take(sample: zenoh.Sample) -> None:
            arrived, attached = clock(), sample.attachment
            origin = None if attached is None else Origin.of(attached.to_bytes())
            payload, known = sample.payload.to_bytes(), kind_of(str(sample.key_expr))
            if origin is None:
                receive(Message(topic, payload, arrived, kind=known))
            else:
                receive(Message(topic, payload, arrived, origin.sent, origin.number, origin.publisher, known))

        for keys in (plain_key(topic), ros_keys(self._endpoints.heard, topic)):
            # not indirect: the thread that reads the socket calls, rather than one more that it wakes
            self._held.append(self._session.declare_subscriber(keys, handlers.Callback(take, indirect=False)))

    def advertise(self, topic: str, kind: str) -> Callable[[bytes], None]:
        domain, ways = self._endpoints.domain, self._zenoh.CongestionControl
        key = plain_key(topic) if domain is None else ros_key(domain, topic, kind)
        token = publisher_token(domain or 0, self._id, self._node, next(self._numbers), topic, kind)
        if domain is not None:
            self._tell(token)
        control = ways.BLOCK if self._waits else ways.DROP
        publisher = self._session.declare_publisher(key, congestion_control=control, express=True)
        self._held.append(publisher)
        identity, numbers, clock = hashlib.sha256(token.encode()).digest()[:16], count(1), time.time_ns

        def publish(payload: bytes) -> None:
            if self._is_open:
                publisher.put(payload, attachment=Origin(next(numbers), clock(), identity).attachment())

        return publish

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._session.close()

    def _tell(self, token: str) -> None:
        """Tell the sessions of ROS of a node or a publisher."""
        self._held.append(self._session.liveliness().declare_token(token))


def _opened(zenoh: Any, endpoints: Endpoints) -> Any:
    """A session.

    Raises:
        TransportError: it cannot be opened.
    """
    settings = {
        "mode": "peer",
        "listen/endpoints": endpoints.listening,
        "connect/endpoints": endpoints.connect,
        "connect/timeout_ms": 3000,
        "connect/exit_on_failure": True,
        "listen/exit_on_failure": True,
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": bool(endpoints.connect),
        "transport/link/tx/queue/size/data": 16,  # the most; of two a burst loses the third message
    }
    config = zenoh.Config()
    try:
        for name, value in settings.items():
            config.insert_json5(name, json.dumps(value))
        return zenoh.open(config)
    except zenoh.ZError as error:
        reason = re.sub(r"\s*at /\S+\.rs:\d+\.?", "", str(error)).strip().rstrip(".")  # without Zenoh's own sources
        raise TransportError(endpoints.listening, endpoints.connect, reason) from None
