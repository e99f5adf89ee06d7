"""Encoders and an IMU come in as messages, and the base goes out: what a tracker that is given the same says."""

from __future__ import annotations

import numpy as np

import nori_dyn as nd
from tests.messages_of_ros import imu, joint_state
from tests.standing import robot, sensors, sway
from tests.tolerances import RECURSION, assert_close
from tests.unit.live.test_service import Rig, of_states

STATES, IMU, DT, N = "/joint_states", "/imu/data", 0.002, 40
INERTIAL = [
    {"of": f"{label}:box", "from": [f"{IMU}.{field}.{axis}" for axis in "xyz"]}
    for label, field in (("gyro", "angular_velocity"), ("acc", "linear_acceleration"))
]


def test_odometry_and_imu_of_a_robot_that_sways():
    content = sensors().to_dict()
    for row in content["measurements"]:
        if row["type"] == "zero_velocity":
            row["value"] = 0.0
    system = nd.System(robot(), nd.SensorSet.from_dict(content))
    plan = nd.plan(system, outputs=["fx:l_shank", "a:box"])
    rig = Rig(plan, {"clock": {"stream": STATES}, "columns": [*of_states(), *INERTIAL]}, [f"{IMU}=sensor_msgs/msg/Imu"])
    motion, names = sway(DT * np.arange(N), np.array([0.2, 0.1, 0.0])), robot().joint_names[1:]
    for k in range(N):
        rig.send(IMU, imu(100 + DT * k, motion.w[k], motion.acc[k]))
        rig.send(STATES, joint_state(100 + DT * k, names, motion.q[k], motion.qd[k]))
    assert rig.run().estimates == N
    tracker = nd.Tracker(plan, DT)
    odometry, inertial = (rig.messages(f"/nori_dyn/{name}") for name in ("odometry", "imu"))
    assert odometry[-1].child_frame_id == inertial[-1].header.frame_id == "box"
    for k in range(N):
        q, qd = np.append(np.zeros(7), motion.q[k]), np.append(np.zeros(6), motion.qd[k])
        tracked = tracker.step(q, qd, np.concatenate([motion.acc[k], motion.w[k]]))
    base, last, twist = tracker.base, odometry[-1].pose, odometry[-1].twist
    place, turn = last.pose.position, last.pose.orientation
    assert_close([place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w], base.q, RECURSION)
    angular, linear = twist.twist.angular, twist.twist.linear
    assert_close([angular.x, angular.y, angular.z, linear.x, linear.y, linear.z], base.qd, RECURSION)
    variances = twist.covariance.reshape(6, 6).diagonal()
    assert_close(variances, np.diag(base.covariance)[[0, 1, 2, 6, 7, 8]], RECURSION)
    acceleration = inertial[-1].linear_acceleration
    assert_close([acceleration.x, acceleration.y, acceleration.z], tracked["a:box"][3:], RECURSION)
    assert np.abs(tracked["a:box"][3:] - motion.acc[-1]).max() < 0.05  # what an accelerometer there reads
    assert np.abs(linear.x - motion.v[-1][0]) < 0.01
