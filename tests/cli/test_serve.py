"""nori-dyn serve: estimates of what another session publishes, the account at the end, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from tests.contracts.test_transports import free_port
from tests.messages_of_ros import JOINT_STATE, decode, joint_state
from tests.unit.estimation.test_vendor_logs import chain

pytest.importorskip("zenoh", reason="eclipse-zenoh, of the extra live, is not installed")

from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport

NAMES = ("joint1", "joint2")
PATIENCE = 120.0


@pytest.fixture
def plan(tmp_path):
    nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"]).save(tmp_path / "arm.plan")
    return tmp_path / "arm.plan"


MAPPING = """
columns:
  - {of: "q:{joint}", from: "/arm/joint_states.position:{joint}", unit: deg}
  - {of: "qd:{joint}", from: "/arm/joint_states.velocity:{joint}"}
  - {of: "qdd:{joint}", value: 0.5}
"""


class Robot:
    """Publishes joint states over Zenoh until it is told to stop, and listens to the estimates."""

    def __init__(self, port, topic="/joint_states", domain=None):
        self._place, self._topic, self._domain = f"tcp/127.0.0.1:{port}", topic, domain
        self._is_over, self.heard, self.errors = threading.Event(), [], []
        self._thread = threading.Thread(target=self._run)

    def _connected(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return ZenohTransport(
                    Endpoints(listen=(), connect=(self._place,), domain=self._domain, heard=self._domain or 0)
                )
            except nd.errors.TransportError:
                if time.monotonic() > deadline or self._is_over.is_set():
                    raise
                time.sleep(0.1)

    def _run(self):
        try:
            transport = self._connected()
        except nd.errors.TransportError as error:
            self.errors.append(error)
            return
        transport.subscribe("/nori_dyn/joint_states", JOINT_STATE, self.heard.append)
        publish = transport.advertise(self._topic, JOINT_STATE)
        while not self._is_over.wait(0.005):
            publish(joint_state(time.time(), NAMES, np.full(2, 90.0), np.zeros(2)))
        transport.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()


def test_estimates_are_published_and_accounted_for(run, plan, tmp_path):
    (tmp_path / "arm.yaml").write_text(MAPPING)
    port = free_port()
    options = ("--listen", f"tcp/127.0.0.1:{port}", "--samples", 50, "--duration", PATIENCE, "--json")
    with Robot(port, "/arm/joint_states") as robot:
        status, output, errors = run("serve", "--plan", plan, "--mapping", tmp_path / "arm.yaml", *options)
        assert status == 0, errors
    figures = json.loads(output)
    assert figures["estimates"] == 50
    assert figures["dropped"] == 0
    assert figures["streams"]["/arm/joint_states"]["received"] >= 50
    assert 0 < figures["latency"]["p50"] <= figures["latency"]["p99"] <= figures["latency"]["max"]
    assert figures["measured_from"] == "publishing a message"
    assert f"listening at tcp/127.0.0.1:{port}" in errors
    message = decode(robot.heard[0].payload, JOINT_STATE)
    tree = nd.Plan.load(plan).system.tree
    np.testing.assert_allclose(message.effort, nd.rnea(tree, np.full(2, np.pi / 2), np.zeros(2), np.full(2, 0.5)))


def test_a_robot_with_a_preset_is_heard_as_its_vendor_publishes(run, tmp_path):
    chain(tmp_path / "arm.urdf", NAMES)
    entries = MAPPING.replace("\n", "\n    ")
    (tmp_path / "arm.yaml").write_text(
        "name: arm\nabout: an arm\nsources: none\nrobot: [arm.urdf]\n"
        "estimates:\n  torques: {about: torques, sensors: inverse_dynamics, outputs: [tau]}\n"
        f"logs:\n  live:\n    about: its topics{entries}\n"
    )
    port = free_port()
    options = ("--listen", f"tcp/127.0.0.1:{port}", "--samples", 5, "--duration", PATIENCE, "--json")
    with Robot(port, "/arm/joint_states") as robot:
        status, output, errors = run("serve", "--robot", tmp_path / "arm.yaml", *options)
        assert status == 0, errors
    assert json.loads(output)["estimates"] == 5
    tree = nd.load_robot(tmp_path / "arm.urdf")
    message = decode(robot.heard[0].payload, JOINT_STATE)
    np.testing.assert_allclose(message.effort, nd.rnea(tree, np.full(2, np.pi / 2), np.zeros(2), np.full(2, 0.5)))


def test_nodes_of_ros_are_heard_and_hear(run, plan):
    port = free_port()
    options = ("--listen", f"tcp/127.0.0.1:{port}", "--samples", 5, "--duration", PATIENCE, "--ros-domain", 9)
    with Robot(port, domain=9) as robot:
        status, output, errors = run("serve", "--plan", plan, *options)
        assert status == 0, errors
    assert {message.kind for message in robot.heard} == {JOINT_STATE}
    assert "/joint_states" in output
    assert "velocities are collected" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_it_ends_well_when_it_is_told_to(plan, number):
    root = Path(__file__).parents[2]
    port = free_port()
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "nori_dyn", "serve", "--plan", plan, "--json"]
    served = subprocess.Popen(
        [*command, "--listen", f"tcp/127.0.0.1:{port}"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with Robot(port) as robot:
        deadline = time.monotonic() + PATIENCE
        while not robot.heard and time.monotonic() < deadline and served.poll() is None:
            time.sleep(0.05)
        served.send_signal(number)
        output, errors = served.communicate(timeout=PATIENCE)
    assert served.returncode == 0, errors
    assert json.loads(output)["estimates"] > 0


def test_without_a_word_it_says_what_it_waited_for(run, plan):
    listen = ("--listen", f"tcp/127.0.0.1:{free_port()}")
    status, _, errors = run("serve", "--plan", plan, *listen, "--duration", 0.3)
    assert status == 1
    assert "nothing was estimated: waited for messages on /joint_states" in errors


REFUSED = [
    (("--topic", "/what"), "--topic /what=sensor_msgs/msg/Imu"),
    (("--differentiate", 51), "looks ahead, which a stream cannot"),
    (("--duration", -1), "--duration is -1"),
    (("--monitor",), "hold exactly"),
    (("--contacts", "none"), "this plan is for one contact state"),
    (("--listen", "nonsense"), "tcp/127.0.0.1:7447"),
    (("--mapping", "nowhere.yaml"), "nowhere.yaml"),
]


def test_what_cannot_be_is_refused_at_once(run, refused, plan):
    for options, said in REFUSED:
        listen = () if "--listen" in options else ("--listen", f"tcp/127.0.0.1:{free_port()}")
        duration = () if "--duration" in options else ("--duration", 1)
        assert said in refused("serve", "--plan", plan, *options, *listen, *duration)
    port = free_port()
    other = ZenohTransport(Endpoints(listen=(f"tcp/127.0.0.1:{port}",)))
    status, _, errors = run("serve", "--plan", plan, "--listen", f"tcp/127.0.0.1:{port}", "--duration", 1)
    other.close()
    assert status == 1
    assert f"cannot listen at tcp/127.0.0.1:{port}" in errors


def test_a_second_signal_ends_it_at_once():
    from nori_dyn.live.service import Stop

    stop, before = Stop(), signal.getsignal(signal.SIGINT)  # ignored, where the tests run in the background
    with stop.on_signals():
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
