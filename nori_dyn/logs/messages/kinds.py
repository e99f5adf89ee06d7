"""Definitions of messages of ROS, from a file or from ROS itself. rosbags parses them, and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from nori_dyn.io.extras import needed

Encoding: TypeAlias = Literal["cdr", "ros1"]
"""How messages of ROS 2 and of ROS 1 stand in bytes."""

Types: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The definition of each kind of message, "sensor_msgs/msg/JointState", as rosbags parses it."""


class MalformedMessage(ValueError):
    """Bytes that are not a message of their kind."""


IMU_STATE = "float32[4] quaternion, float32[3] gyroscope, float32[3] accelerometer, float32[3] rpy"

VENDORS = {
    "unitree_go/msg/IMUState": f"{IMU_STATE}, int8 temperature",
    "unitree_go/msg/MotorState": "uint8 mode, float32 q, float32 dq, float32 ddq, float32 tau_est, float32 q_raw, "
    "float32 dq_raw, float32 ddq_raw, int8 temperature, uint32 lost, uint32[2] reserve",
    "unitree_go/msg/BmsState": "uint8 version_high, uint8 version_low, uint8 status, uint8 soc, int32 current, "
    "uint16 cycle, int8[2] bq_ntc, int8[2] mcu_ntc, uint16[15] cell_vol",
    "unitree_go/msg/LowState": "uint8[2] head, uint8 level_flag, uint8 frame_reserve, uint32[2] sn, uint32[2] version, "
    "uint16 bandwidth, IMUState imu_state, MotorState[20] motor_state, BmsState bms_state, int16[4] foot_force, "
    "int16[4] foot_force_est, uint32 tick, uint8[40] wireless_remote, uint8 bit_flag, float32 adc_reel, "
    "int8 temperature_ntc1, int8 temperature_ntc2, float32 power_v, float32 power_a, uint16[4] fan_frequency, "
    "uint32 reserve, uint32 crc",
    "unitree_hg/msg/IMUState": f"{IMU_STATE}, int16 temperature",
    "unitree_hg/msg/MotorState": "uint8 mode, float32 q, float32 dq, float32 ddq, float32 tau_est, "
    "int16[2] temperature, float32 vol, uint32[2] sensor, uint32 motorstate, uint32[4] reserve",
    "unitree_hg/msg/LowState": "uint32[2] version, uint8 mode_pr, uint8 mode_machine, uint32 tick, IMUState imu_state, "
    "MotorState[35] motor_state, uint8[40] wireless_remote, uint32[4] reserve, uint32 crc",
}
"""Fields of messages of vendors, which bags of ROS 2 before Iron hold without their definitions."""


@cache
def standard_types(encoding: Encoding) -> Types:
    """Definitions of the messages that come with ROS, and of ROS 2 those of vendors.

    Raises:
        MissingExtraError: rosbags is not installed.
    """
    types: Types = typestore_of(encoding).fielddefs
    known = VENDORS.items() if encoding == "cdr" else ()
    return {**types, **{kind: d for k, text in known for kind, d in parsed_types(text.replace(", ", "\n"), k).items()}}


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
    needed("messages of ROS", "logs", "rosbags")
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS1_NOETIC if encoding == "ros1" else Stores.ROS2_JAZZY)
