"""How ROS 2 names topics on Zenoh, by rmw_zenoh, and what it sends along with each message.

A topic has the key `DOMAIN/TOPIC/TYPE/HASH`; a liveliness token announces a publisher; each message brings an
attachment with its number, its time and its publisher. zenoh-bridge-ros2dds and plain programs use `TOPIC` alone.

Source: the page on the design of ros2/rmw_zenoh; the hash of a type is that of REP-2016, as rosbags computes it.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache, lru_cache

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
