"""A floating base that is state as nav_msgs/Odometry and sensor_msgs/Imu, decoded by rosbags; in files as well."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.logs.formats.registry import writer_of
from nori_dyn.logs.formats.writer import SIGMA, Field, FileSchema, flat
from nori_dyn.logs.messages.estimates import EstimateMessages
from nori_dyn.model.joints import MOTION, MOTION_UNITS
from tests.contracts.test_log_formats import read_all
from tests.messages_of_ros import decode

PARTS = {"base_position": "xyz", "base_rotation": "xyzw"}
STATE = {
    "base_velocity": ("x", "y", "z"),
    "base_gravity": ("x", "y", "z"),
    "base_angular_velocity": ("wx", "wy", "wz"),
}
N = 4


def field(name, components, before=""):
    labels = tuple(f"{before}{name}.{c}" for c in components)
    return Field(before + name, (len(labels),), labels, ("",) * len(labels), "base", ("trunk",) * len(labels))


def schema(*more):
    own = [field(*part) for part in (PARTS | STATE).items()] + [field(*part, SIGMA) for part in STATE.items()]
    return FileSchema((*more, *own), True, {})


def values_of(one):
    rng = np.random.default_rng(0)
    return {each.name: rng.uniform(0.1, 1, (N, *each.shape)) for each in one.fields}


def messages(one, values):
    t = 100.0 + np.arange(N)
    found = {}
    for each, encoded in EstimateMessages(one).encode(t, values):
        found[each.topic] = [decode(data, each.kind) for data in encoded]
    return found


def vector(of):
    return [of.x, of.y, of.z]


ACCELERATION = Field("a:trunk", (6,), tuple(f"a:trunk.{c}" for c in MOTION), MOTION_UNITS, "a", ("trunk",))


@pytest.mark.parametrize("more", [(), (ACCELERATION,)], ids=["without acceleration", "with acceleration"])
def test_odometry_and_imu(more):
    one = schema(*more)
    values = values_of(one)
    found = messages(one, values)
    own = {"odometry", "imu", "base_gravity", *(f"sigma/{name}" for name in STATE)} | {"accel/trunk" for _ in more}
    assert set(found) == {f"/nori_dyn/{topic}" for topic in own}
    tilt = (values["sigma:base_gravity"] ** 2).sum(axis=1) / 9.81**2
    for k in range(N):
        odometry, imu = found["/nori_dyn/odometry"][k], found["/nori_dyn/imu"][k]
        assert (odometry.header.frame_id, odometry.child_frame_id, imu.header.frame_id) == ("odom", "trunk", "trunk")
        assert odometry.header.stamp.sec == imu.header.stamp.sec == 100 + k
        pose, twist = odometry.pose, odometry.twist
        np.testing.assert_array_equal(vector(pose.pose.position), values["base_position"][k])
        for q in (pose.pose.orientation, imu.orientation):
            np.testing.assert_array_equal([*vector(q), q.w], values["base_rotation"][k])
        np.testing.assert_array_equal(vector(twist.twist.linear), values["base_velocity"][k])
        for w in (twist.twist.angular, imu.angular_velocity):
            np.testing.assert_array_equal(vector(w), values["base_angular_velocity"][k])
        np.testing.assert_allclose(
            twist.covariance.reshape(6, 6),
            np.diag(np.concatenate([values["sigma:base_velocity"][k], values["sigma:base_angular_velocity"][k]]) ** 2),
        )
        np.testing.assert_allclose(pose.covariance.reshape(6, 6), np.diag([1e6, 1e6, 1e6, tilt[k], tilt[k], 1e6]))
        np.testing.assert_allclose(imu.orientation_covariance.reshape(3, 3), np.diag([tilt[k], tilt[k], 1e6]))
        np.testing.assert_allclose(
            imu.angular_velocity_covariance.reshape(3, 3), np.diag(values["sigma:base_angular_velocity"][k] ** 2)
        )
        if more:
            np.testing.assert_array_equal(vector(imu.linear_acceleration), values["a:trunk"][k, 3:])
        assert imu.linear_acceleration_covariance[0] == (0.0 if more else -1.0)  # -1: it says nothing of it


def test_a_robot_whose_base_is_no_state_has_none():
    one = FileSchema((ACCELERATION,), True, {})
    assert set(messages(one, values_of(one))) == {"/nori_dyn/accel/trunk"}


@pytest.mark.parametrize("ending", [".mcap", ".ros2", ".bag"])
def test_what_is_written_is_read_by_its_names(tmp_path, ending):
    one = schema(ACCELERATION)
    values, t = values_of(one), 100.0 + np.arange(N)
    with writer_of(tmp_path / f"out{ending}")(tmp_path / f"out{ending}", one) as writer:
        writer.write(t, values)
    table, _, _ = read_all(tmp_path / f"out{ending}")
    for label, column in zip(one.labels, flat(one, t, values).T, strict=True):
        np.testing.assert_array_equal(table[label], column, err_msg=label)
