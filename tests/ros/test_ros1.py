"""Messages as ROS 1 sends them over its own live bus, read by what reads ours: Debian packages ROS 1, and no ROS 2."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nori_dyn.logs.messages.kinds import standard_types
from nori_dyn.logs.messages.topic import Topic
from tests.contracts.test_transports import free_port

pytest.importorskip("rosbags", reason="rosbags, of the extra live, is not installed")

PYTHON = "/usr/bin/python3"
NEEDED = "import rospy, rosmaster, sensor_msgs.msg, geometry_msgs.msg"


def has_ros():
    return bool(shutil.which(PYTHON)) and subprocess.run([PYTHON, "-c", NEEDED], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    if not has_ros():
        pytest.skip("ROS 1 is not installed: python3-rospy, python3-rosmaster, python3-sensor-msgs of Debian")
    port = str(free_port())
    more = {
        "ROS_MASTER_URI": f"http://127.0.0.1:{port}",
        "ROS_IP": "127.0.0.1",
        "ROS_HOME": str(tmp_path_factory.mktemp("ros")),
    }
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")} | more
    script = Path(__file__).with_name("ros1_bus.py")
    run = subprocess.run([PYTHON, script, port], env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def numbers(sent, topic):
    package, name = sent[topic]["kind"].split("/")
    payload = bytes.fromhex(sent[topic]["bytes"])
    carried = Topic(topic, f"{package}/msg/{name}", standard_types("ros1"), "ros1")
    carried.look(payload)
    return dict(zip(carried.columns, carried.decode([payload], carried.columns)[:, 0].tolist(), strict=True))


def test_joint_states(sent):
    found = numbers(sent, "/joint_states")
    assert found["/joint_states.header.stamp"] == 12.5
    told = {name.partition(".")[2]: x for name, x in found.items() if ":" in name}
    assert told == {
        **{"position:hip": 0.25, "position:knee": -0.5, "velocity:hip": 1.0},
        **{"velocity:knee": 2.0, "effort:hip": 3.0, "effort:knee": 4.0},
    }


def test_wrenches_and_imus(sent):
    load, motion = numbers(sent, "/ft"), numbers(sent, "/imu")
    assert (load["/ft.wrench.force.z"], load["/ft.wrench.torque.x"], load["/ft.wrench.force.x"]) == (7.0, 0.125, 0.0)
    assert (motion["/imu.angular_velocity.y"], motion["/imu.linear_acceleration.z"]) == (0.75, 9.81)
