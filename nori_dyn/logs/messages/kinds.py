"""Definitions of messages of ROS, from a file or from ROS itself. rosbags parses them, and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from nori_dyn.errors import MissingExtraError

Encoding: TypeAlias = Literal["cdr", "ros1"]
"""How messages of ROS 2 and of ROS 1 stand in bytes."""

Types: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The definition of each kind of message, "sensor_msgs/msg/JointState", as rosbags parses it."""


class MalformedMessage(ValueError):
    """Bytes that are not a message of their kind."""


@cache
def standard_types(encoding: Encoding) -> Types:
    """Definitions of the messages that come with ROS.

    Raises:
        MissingExtraError: rosbags is not installed.
    """
    return typestore_of(encoding).fielddefs  # type: ignore[no-any-return]


def parsed_types(text: str, kind: str, is_idl: bool = False) -> Types:
    """Parse the definition of a kind of message, and of those that it contains.

    Args:
        text: the definitions, in the format of `.msg` files, or in IDL.
        kind: the kind of message.
        is_idl: whether they are in IDL.

    Raises:
        MalformedMessage: it is no definition.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    bar = "=" * 80 + "\n"
    try:
        if not is_idl:
            return get_types_from_msg(text, kind)
        types: dict[str, tuple[Any, Any]] = {}
        for part in text.split(bar):
            if part.strip():
                types.update(get_types_from_idl(part.split("\n", 1)[1] if part.startswith("IDL: ") else part))
        return types
    except Exception as error:  # the parser raises all kinds of them
        raise MalformedMessage(f"its definition cannot be read: {error}") from None


@cache
def typestore_of(encoding: Encoding) -> Any:
    """Typestore of rosbags with the messages that come with ROS.

    Raises:
        MissingExtraError: rosbags is not installed.
    """
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtraError("messages of ROS", "logs") from None
    return get_typestore(Stores.ROS1_NOETIC if encoding == "ros1" else Stores.ROS2_JAZZY)
