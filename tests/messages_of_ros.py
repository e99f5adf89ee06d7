"""Messages of ROS 2 by rosbags, which has nothing to do with how they are read and written here."""

import numpy as np
import pytest

typesys = pytest.importorskip("rosbags.typesys", reason="rosbags, of the extra live, is not installed")

STORE = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
IMU = "sensor_msgs/msg/Imu"


def make(kind, **fields):
    return STORE.types[kind](**fields)


def header(t, frame=""):
    seconds, nanoseconds = divmod(round(t * 1e9), 10**9)
    return make(
        "std_msgs/msg/Header",
        stamp=make("builtin_interfaces/msg/Time", sec=seconds, nanosec=nanoseconds),
        frame_id=frame,
    )


def encode(message):
    return bytes(STORE.serialize_cdr(message, message.__msgtype__))


def decode(payload, kind):
    return STORE.deserialize_cdr(payload, kind)


def joint_state(t, names, q=(), qd=(), tau=()):
    numbers = {key: np.array(x, dtype=float) for key, x in (("position", q), ("velocity", qd), ("effort", tau))}
    return encode(make(JOINT_STATE, header=header(t), name=list(names), **numbers))


def vector(x, y, z):
    return make("geometry_msgs/msg/Vector3", x=float(x), y=float(y), z=float(z))


def wrench(t, force, torque, frame="sensor"):
    both = make("geometry_msgs/msg/Wrench", force=vector(*force), torque=vector(*torque))
    return encode(make(WRENCH, header=header(t, frame), wrench=both))


def imu(t, angular_velocity, linear_acceleration):
    turned = make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    unknown = {f"{what}_covariance": np.zeros(9) for what in ("orientation", "angular_velocity", "linear_acceleration")}
    motion = {"angular_velocity": vector(*angular_velocity), "linear_acceleration": vector(*linear_acceleration)}
    return encode(make(IMU, header=header(t), orientation=turned, **motion, **unknown))
