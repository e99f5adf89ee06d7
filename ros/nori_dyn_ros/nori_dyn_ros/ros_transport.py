"""Messages over rclpy, as the bytes that they are sent in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosidl_runtime_py.utilities import get_message

from nori_dyn.live.transport import Message, Receive

KEPT = 10
"""Messages that a publisher keeps for subscribers that are slow."""


class RosTransport:
    """A transport of `nori_dyn.live` over the topics of a node.

    Nothing is made of messages on the way: rclpy gives the bytes that came (`raw`), and takes bytes to publish.

    Args:
        node: the node.
        depth: messages that a subscription keeps until they are taken.
    """

    def __init__(self, node: Node, depth: int) -> None:
        self._node = node
        self._heard = QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)  # hears reliable ones too
        self._held: list[tuple[Callable[[Any], object], Any]] = []
        self._is_open = True

    @property
    def place(self) -> str:
        return f"node {self._node.get_fully_qualified_name()}"

    def subscribe(self, topic: str, kind: str, receive: Receive) -> None:
        def take(payload: bytes) -> None:
            receive(Message(topic, bytes(payload), time.time_ns(), kind=kind))

        node = self._node
        self._held.append(
            (node.destroy_subscription, node.create_subscription(get_message(kind), topic, take, self._heard, raw=True))
        )

    def advertise(self, topic: str, kind: str) -> Callable[[bytes], None]:
        publisher = self._node.create_publisher(get_message(kind), topic, KEPT)
        self._held.append((self._node.destroy_publisher, publisher))

        def publish(payload: bytes) -> None:
            if self._is_open:
                publisher.publish(bytes(payload))

        return publish

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            for destroy, what in self._held:
                destroy(what)
