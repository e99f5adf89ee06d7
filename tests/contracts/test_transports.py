"""Every transport obeys every law of `Transport`."""

import socket
import threading
import time

import pytest

from nori_dyn.errors import TransportError
from tests.bus import InMemory

KIND = "sensor_msgs/msg/JointState"
PATIENCE = 60.0
"""Seconds that a message may take on a machine that is busy."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def in_memory():
    one = InMemory()
    return one, one.beside()


def of_zenoh():
    pytest.importorskip("zenoh", reason="eclipse-zenoh, of the extra live, is not installed")
    pytest.importorskip("rosbags", reason="rosbags, of the extra live, is not installed")
    from nori_dyn.live.zenoh_transport import Endpoints, ZenohTransport

    return Endpoints, ZenohTransport


def over_zenoh(domain=None, waits=False):
    Endpoints, ZenohTransport = of_zenoh()
    place = f"tcp/127.0.0.1:{free_port()}"
    return (
        ZenohTransport(Endpoints(listen=(place,), heard=domain or 0)),
        ZenohTransport(Endpoints(listen=(), connect=(place,), domain=domain), waits=waits),
    )


def over_zenoh_as_ros():
    return over_zenoh(domain=3)


def over_zenoh_patiently():
    return over_zenoh(waits=True)


TRANSPORTS = [in_memory, over_zenoh_patiently, over_zenoh, over_zenoh_as_ros]


class Received:
    def __init__(self):
        self.messages = []
        self._came = threading.Condition()

    def __call__(self, message):
        with self._came:
            self.messages.append(message)
            self._came.notify_all()

    def wait(self, n):
        with self._came:
            assert self._came.wait_for(lambda: len(self.messages) >= n, PATIENCE)
        return self.messages


def subscribed(hears, topic="/joint_states", kind=KIND):
    received = Received()
    hears.subscribe(topic, kind, received)
    return received


@pytest.fixture(params=TRANSPORTS, ids=lambda make: make.__name__)
def pair(request):
    hears, speaks = request.param()
    yield hears, speaks
    hears.close()
    speaks.close()


def reached(publish, received):
    """Publish until something comes: a publisher need not know at once who has subscribed."""
    deadline = time.monotonic() + PATIENCE
    while not received.messages and time.monotonic() < deadline:
        publish(b"hello")
        time.sleep(0.02)
    time.sleep(0.1)
    first = len(received.wait(1))
    return first


def test_all_bytes_come_in_order_each_once(pair):
    hears, speaks = pair
    received = subscribed(hears, "/arm/joint_states")
    publish = speaks.advertise("/arm/joint_states", KIND)
    before = reached(publish, received)
    payloads = [b"", b"\x00\xff no message of anything", *(bytes([k]) * 3000 for k in range(50))]
    start = time.time_ns()
    for k, payload in enumerate(payloads):
        publish(payload)
        if k % 4 == 3:  # as many as nobody is too slow for
            received.wait(before + k + 1)
    messages = received.wait(before + len(payloads))[before:]
    assert [message.payload for message in messages] == payloads
    assert {message.topic for message in messages} == {"/arm/joint_states"}
    numbers = [message.number for message in messages]
    assert numbers == list(range(numbers[0], numbers[0] + len(payloads)))
    assert len({message.publisher for message in messages}) == 1
    assert all(start <= message.sent <= message.arrived <= time.time_ns() for message in messages)
    assert received.messages[before:] == messages  # none twice


def test_other_topics_are_not_received(pair):
    hears, speaks = pair
    received = subscribed(hears)
    for topic in ("/joint_states2", "/arm/joint_states", "/joint_states/arm", "/joint"):
        speaks.advertise(topic, KIND)(b"other")
    publish = speaks.advertise("/joint_states", KIND)
    reached(publish, received)
    assert {message.payload for message in received.messages} == {b"hello"}


def test_two_publishers_are_told_apart(pair):
    hears, speaks = pair
    received = subscribed(hears)
    one, other = speaks.advertise("/joint_states", KIND), speaks.advertise("/joint_states", KIND)
    before = reached(one, received)
    one(b"1"), other(b"2")
    first, second = received.wait(before + 2)[before:]
    assert first.publisher != second.publisher
    assert second.number == 1


def test_after_close_nothing_comes_and_nothing_goes(pair):
    hears, speaks = pair
    received = subscribed(hears)
    publish = speaks.advertise("/joint_states", KIND)
    reached(publish, received)
    hears.close()
    before = len(received.messages)
    publish(b"to nobody")
    time.sleep(0.1)
    assert len(received.messages) == before
    speaks.close()
    publish(b"from nobody")
    speaks.close()
    hears.close()


@pytest.mark.parametrize("pair", [over_zenoh_as_ros], indirect=True)
def test_ros_keys_bring_their_type_and_another_domain_is_not_heard(pair):
    from nori_dyn.live.zenoh_transport import ros_key

    hears, speaks = pair
    received = subscribed(hears, "/imu", "")
    for domain in (4, 33):
        speaks._session.put(ros_key(domain, "/imu", "sensor_msgs/msg/Imu"), b"other")
    reached(speaks.advertise("/imu", "sensor_msgs/msg/Imu"), received)
    assert {message.kind for message in received.messages} == {"sensor_msgs/msg/Imu"}
    assert {message.payload for message in received.messages} == {b"hello"}


@pytest.mark.parametrize("pair", [over_zenoh_patiently], indirect=True)
def test_who_waits_loses_nothing_in_a_burst(pair):
    hears, speaks = pair
    received = subscribed(hears)
    publish = speaks.advertise("/joint_states", KIND)
    before = reached(publish, received)
    for k in range(3000):
        publish(k.to_bytes(4, "little") * 100)
    messages = received.wait(before + 3000)[before:]
    assert [int.from_bytes(message.payload[:4], "little") for message in messages] == list(range(3000))


def test_a_port_that_is_taken_is_told():
    Endpoints, ZenohTransport = of_zenoh()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"tcp/127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TransportError, match="in use") as caught:
            ZenohTransport(Endpoints(listen=(place,)))
    assert place in str(caught.value)
    assert ".rs" not in str(caught.value)


def test_what_is_no_endpoint_and_nobody_who_listens_are_told():
    Endpoints, ZenohTransport = of_zenoh()
    for place in ("nonsense", "tcp/127.0.0.1:nonsense"):
        with pytest.raises(TransportError, match=r"tcp/127\.0\.0\.1:7447"):
            ZenohTransport(Endpoints(listen=(place,)))
    with pytest.raises(TransportError, match="connect to"):
        ZenohTransport(Endpoints(listen=(), connect=(f"tcp/127.0.0.1:{free_port()}",)))
