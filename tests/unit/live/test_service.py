"""The loop over a bus in memory: what is published of what comes in, and what is counted of what is wrong with it."""

import time

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.estimation.run_options import RunOptions
from nori_dyn.live.decoding import topics_of
from nori_dyn.live.differentiation import COLLECTED
from nori_dyn.live.service import Service, Settings
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.model.surface import box
from tests.bus import InMemory
from tests.messages_of_ros import IMU, JOINT_STATE, WRENCH, decode, imu, joint_state, wrench
from tests.systems import ACCELERATIONS, SPEED, TORQUES, UNLOADED, WRENCHES, braked, sensor_set

NAMES = ("joint1", "joint2", "joint3")
STATES = "/joint_states"


@pytest.fixture(scope="module")
def arm():
    return nd.autotree(3)


@pytest.fixture(scope="module")
def inverse(arm):
    return nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau", "fx:link3"])


class Rig:
    """A service on a bus, with somebody who publishes and listens."""

    def __init__(self, plans, mapping=None, topics=(), **settings):
        self.own, self.lines, self.heard = InMemory(), [], {}
        mapping = None if mapping is None else LogMapping.from_dict(mapping)
        self.accounts = []
        given = Settings(topics_of(mapping, topics), mapping, **{"period": 1e9} | settings)
        self.service = Service(
            self.own.beside(), plans, given, self.lines.append, lambda *pair: self.accounts.append(pair)
        )
        for topic, kind in self.service.publication.topics.items():
            self.own.subscribe(
                topic, kind, lambda m, kind=kind: self.heard.setdefault(m.topic, []).append((m.payload, kind))
            )
        self._send = {}

    def send(self, topic, payload):
        self._send.setdefault(topic, self.own.advertise(topic, ""))(payload)

    def run(self):
        """Take all that waits."""
        return self.service.run(lambda: not len(self.service._inbox))

    def messages(self, topic):
        return [decode(*each) for each in self.heard.get(topic, ())]

    def stand(self, *times, q=1.0, qd=1.0, names=NAMES):
        """Send that the joints are at q, at these times."""
        for t in times:
            self.send(STATES, joint_state(t, names, np.full(len(names), q), np.full(len(names), qd)))


def of_states(**more):
    """The columns of joint states: of q, of qd, and of what else is in the efforts."""
    fields = {"q": "position", "qd": "velocity", **more}
    return [{"of": f"{kind}:{{joint}}", "from": f"{STATES}.{field}:{{joint}}"} for kind, field in fields.items()]


MOTION, EFFORT = ACCELERATIONS | {"sigma": 0.1}, TORQUES | {"sigma": 0.1}
WRENCH_PARTS = [f"/ft.wrench.{part}.{axis}" for part in ("torque", "force") for axis in "xyz"]
COMPONENTS = ["mx", "my", "mz", "fx", "fy", "fz"]


def test_estimates_of_joint_states_are_published_as_joint_states(arm, inverse):
    columns = of_states(qdd="effort")
    columns[0]["unit"] = "deg"
    rig, rng = Rig(inverse, {"columns": columns}), np.random.default_rng(0)
    start, motions = time.time(), rng.normal(size=(5, 3, 3))
    for k, (q, qd, qdd) in enumerate(motions):
        order = rng.permutation(3)  # whatever the order of joints in a message
        numbers = np.rad2deg(q[order]), qd[order], qdd[order]
        rig.send(STATES, joint_state(start + 0.001 * k, [NAMES[j] for j in order], *numbers))
    total = rig.run()
    found = rig.messages("/nori_dyn/joint_states")
    assert len(found) == total.estimates == 5
    for k, (message, (q, qd, qdd)) in enumerate(zip(found, motions, strict=True)):
        assert message.name == list(NAMES)
        stamp = message.header.stamp
        assert stamp.sec + 1e-9 * stamp.nanosec == pytest.approx(start + 0.001 * k, abs=1e-6)
        np.testing.assert_allclose(message.effort, nd.rnea(arm, q, qd, qdd), rtol=1e-10)
    loads = rig.messages("/nori_dyn/wrench/link3")
    assert loads[0].header.frame_id == "link3"
    assert total.streams == {STATES: {"received": 5}}
    assert total.latency.bins.total() == 5
    assert rig.service.measured_from == "publishing a message"


def test_joints_of_other_names_are_told_with_what_there_is(inverse):
    rig = Rig(inverse)
    rig.stand(1.0, names=("a", "b", "c"))
    rig.run()
    assert f"Its columns are {STATES}.header.stamp, {STATES}.position (3 columns)" in rig.lines[-1]


def test_times_that_do_not_go_on_are_told(inverse):
    """Of two who publish on one topic, whose clocks are 5 s apart, each goes back behind the other."""
    rig = Rig(inverse)
    rig.stand(*(start + 0.01 * k for k in range(20) for start in (1.0, 6.0)))
    rig.run()
    assert any(
        line.startswith(f"of 40 messages on {STATES} 19 are of the time of the one before") for line in rig.lines
    )


def sensing(arm):
    unloaded = UNLOADED | {"links": ["link1", "link2"]}
    loaded = WRENCHES | {"links": "link3", "name": "hand", "sigma": 0.1}
    usual = UNLOADED | {"links": "link3", "name": "usual", "sigma": 100}
    return nd.plan(nd.System(arm, sensor_set(MOTION, EFFORT, unloaded, loaded, usual)), outputs=["tau"])


CELL = {
    "of": "hand",
    "from": WRENCH_PARTS,
    "components": COMPONENTS,
    "frame": {"rpy": [0.0, 0.0, np.pi / 2], "xyz": [0.1, 0.0, 0.0]},
}
STILL = {"of": "qdd:{joint}", "value": 0.0}
HAND = {"streams": {"/ft": {"gap": 0.05}}, "columns": [*of_states(tau="effort"), STILL, CELL]}


def test_streams_of_several_topics_meet(arm):
    plan = sensing(arm)
    rig = Rig(plan, HAND)
    t = time.time()
    rig.send(STATES, joint_state(t, NAMES, np.ones(3), np.zeros(3), np.full(3, 2.0)))
    assert rig.run().estimates == 0
    assert rig.service.waiting_for == "messages on /ft"
    rig.send("/ft", wrench(t + 0.001, (1, 2, 3), (4, 5, 6)))
    rig.send(STATES, joint_state(t + 0.002, NAMES, np.ones(3), np.zeros(3), np.full(3, 2.0)))
    assert rig.run().estimates == 1
    # turned by a quarter about z: x is y there, y is -x; and the force's lever
    force, couple = np.array([-2.0, 1, 3]), np.array([-5.0, 4, 6])
    y = {f"qdd:{name}": 0.0 for name in NAMES} | {f"tau:{name}": 2.0 for name in NAMES}
    y["hand"] = [*(couple + np.cross([0.1, 0, 0], force)), *force]
    expected = plan.solver().solve(np.ones(3), np.zeros(3), y)
    np.testing.assert_allclose(rig.messages("/nori_dyn/joint_states")[0].effort, expected.tau, rtol=1e-9)


def test_what_is_wrong_is_counted_and_ends_nothing(arm, inverse):
    rig = Rig(inverse, topics=[STATES])
    t = time.time()
    good = [joint_state(t + 0.01 * k, NAMES, np.ones(3), np.ones(3)) for k in range(30)]
    short = joint_state(t + 0.2, NAMES, np.ones(2), np.ones(3))
    not_finite = joint_state(t + 0.2, NAMES, [1, np.nan, 1], np.ones(3))
    junk = [b"", b"\0", b"\0\1\0\0", bytes(range(256)), good[0][:40], good[0] + bytes(9), b"\0\1\0\0" + b"\xff" * 100]
    for payload in (*good[:5], *junk, short, not_finite, good[4], good[3], *good[5:]):
        rig.send(STATES, payload)
    total = rig.run()
    counts = total.streams[STATES]
    assert counts["received"] == 30 + len(junk) + 4
    assert counts["repeated"] == counts["out_of_order"] == 1
    assert counts["malformed"] == len(junk) + 2
    assert total.estimates == 30 - COLLECTED - 1
    assert total.skipped == {"velocities are collected to differentiate them": COLLECTED + 1}


def test_too_many_messages_push_the_oldest_out_and_it_is_told_until_it_is_over(inverse):
    rig = Rig(inverse, topics=[STATES], queue=20)
    t = time.time()
    rig.stand(*(t + 0.001 * np.arange(6)))
    rig.run()
    rig.stand(*(t + 0.001 * np.arange(6, 206)), q=2.0)
    total = rig.run()
    assert total.dropped == 180
    assert total.streams[STATES]["received"] == 6 + 20
    assert "lost" not in total.streams[STATES]
    told = [line for line in rig.lines if "overload" in line]
    assert len(told) == 1
    assert "180 messages" in told[0]
    rig.stand(t + 1)
    rig.run()
    assert rig.lines[-1].startswith("recovered")
    levels = [message.status[0].level for message in rig.messages("/nori_dyn/diagnostics")]
    assert levels[1] != 0


def test_diagnostics_say_how_it_goes(arm, inverse):
    rig = Rig(inverse, topics=[STATES])
    rig.run()
    rig.stand(*(time.time() + 0.001 * np.arange(30)))
    rig.run()
    rig.run()
    waiting, running, silent = rig.messages("/nori_dyn/diagnostics")
    assert waiting.status[0].message == "waiting for messages on /joint_states"
    status = {each.name: each for each in running.status}
    assert status["nori_dyn: estimates"].hardware_id == arm.name
    figures = {pair.key: pair.value for pair in status["nori_dyn: estimates"].values}
    assert figures["estimates in all"] == str(30 - COLLECTED - 1)
    assert float(figures["latency p99 [ms]"]) > 0
    assert {pair.key: pair.value for pair in status[f"nori_dyn: {STATES}"].values} == {"received": "30"}
    assert silent.status[0].message == "no estimates"
    about = rig.messages("/nori_dyn/about")[0].data
    assert inverse.system.fingerprint in about


def test_a_monitor_publishes_what_it_finds(arm):
    plan = nd.plan(nd.System(arm, sensor_set(MOTION, EFFORT, UNLOADED)), outputs=["tau"])
    rig = Rig(plan, {"columns": HAND["columns"][:4]}, options=RunOptions(monitor=True))
    t, q = time.time(), np.ones(3)
    tau = nd.rnea(arm, q, np.zeros(3), np.zeros(3))
    for k in range(4):
        wrong = np.array([0, 0, 30.0]) if k % 2 else 0
        rig.send(STATES, joint_state(t + 0.01 * k, NAMES, q, np.zeros(3), tau + wrong))
    total = rig.run()
    p = [message.data for message in rig.messages("/nori_dyn/p_value")]
    assert p[0] > 0.99 > 1e-6 > p[1]
    assert sum(total.suspects.values()) == 2
    assert rig.messages("/nori_dyn/sigma/tau")[0].data.min() > 0


def test_what_persists_and_contacts_that_are_recognised_are_published():
    plan = nd.plan(nd.autotree(1), braked(0.1, 0.1, 0.01, offset={"sigma": 0.01}), outputs=["fx:link1"])
    columns = [*of_states(tau="effort"), STILL]
    rig = Rig(plan, {"columns": columns}, options=RunOptions(hypotheses=nd.Hypotheses()))
    one, t = nd.Tracker(plan, 0.001, hypotheses=nd.Hypotheses()), time.time()
    for k in range(3):
        rig.send(STATES, joint_state(t + 0.001 * k, ["joint1"], [0.0], [0.0], [3.0 * (k == 2)]))
        tracked = one.step([0.0], [0.0], {"tau:joint1": 3.0 * (k == 2), "qdd:joint1": 0.0})
    assert rig.run().estimates == 3
    last = {topic: rig.messages(f"/nori_dyn/{topic}")[-1].data for topic in ("contact/brake", "offset/tau/joint1")}
    assert tracked.contacts == ("brake",)
    assert last["contact/brake"] == pytest.approx(tracked.probability_of("brake"), abs=1e-3)
    np.testing.assert_allclose(last["offset/tau/joint1"], tracked.memory["offset:tau:joint1"], atol=1e-6)
    force = rig.messages("/nori_dyn/wrench/link1")[-1].wrench.torque
    np.testing.assert_allclose(force.z, tracked["fx:link1"][2], rtol=1e-3)


def test_collisions_are_published_told_and_counted(tmp_path):
    torque = TORQUES | {"sigma": 0.5, "offset": {"sigma": 2.0}}
    content = sensor_set(torque, ACCELERATIONS, UNLOADED).to_dict()
    content["memory"] = {"constant": {"of": "offset"}}
    plan, alarms = nd.plan(nd.autotree(2), nd.SensorSet.from_dict(content), outputs=["tau"]), nd.tools.Alarms(2.0)
    nd.Tracker(plan, 0.01).save(tmp_path / "arm.plan", alarms)
    by = EstimatorOptions(tmp_path / "arm.plan")
    assert by.watching() == alarms
    columns = [*of_states(tau="effort"), {"of": "qdd:{joint}", "value": 0.0}]
    rig, t = Rig(plan, {"columns": columns}, options=RunOptions(alarms=by.watching())), time.time()
    detector, zeros = nd.tools.CollisionDetector(nd.Tracker(plan, 0.01), 2.0), np.zeros(2)
    still = nd.rnea(plan.tree, zeros, zeros, zeros)
    for k in range(120):
        tau = still + np.array([0.0, 4.0 * (k >= 100)])
        rig.send(STATES, joint_state(t + 0.01 * k, NAMES[:2], zeros, zeros, tau))
        watched = detector.step(zeros, zeros, np.concatenate([tau, zeros]), missing="drop")
    total = rig.run()
    assert dict(total.collisions) == {"tau:joint2": 1}
    assert "collision at" in rig.lines[-1]
    assert "tau:joint2" in rig.lines[-1]
    told = rig.messages("/nori_dyn/collision/tau")
    np.testing.assert_allclose(told[-1].data, [*watched.probabilities.values()], atol=1e-3)
    assert max(told[90].data) < 0.5 < told[-1].data[1]
    rig.service._report(time.monotonic() + 1.0)
    assert "Collisions" in str(total.document("the arrival"))


def test_a_touch_is_told_with_its_place():
    """Torques of an arm that stands still, and holds against 20 N at the side of its last link."""
    tree = nd.autotree(4, skew=1.0).replace(gravity=(0.0, 0.0, 0.0))
    rows = TORQUES | {"sigma": 0.02}, ACCELERATIONS | {"sigma": 0.1}, UNLOADED | {"links": {"except": ["link4"]}}
    sensors = sensor_set(*rows, name="arm", memory={"speed": SPEED}, touch={"links": ["link4"]})
    plan = nd.plan(tree, sensors, outputs=["fx:link4"])
    surfaces = {"link4": nd.tools.Surface.of(box([1.0, 0.1, 0.1]) + np.array([0.5, 0.0, 0.0]), spacing=0.02)}
    columns = [*of_states(tau="effort"), {"of": "qdd:{joint}", "value": 0.0}]
    rig = Rig(plan, {"columns": columns}, options=RunOptions(hypotheses=nd.Hypotheses(), surfaces=surfaces))
    q, zeros, fx, t = np.array([0.1, 0.4, -0.3, 0.2]), np.zeros(4), np.zeros((4, 6)), time.time()
    fx[3] = *np.cross([0.7, 0.05, 0.0], [0.0, -20.0, 0.0]), 0.0, -20.0, 0.0
    held = nd.rnea(tree, q, zeros, zeros, fx)
    for k in range(60):
        rig.send(STATES, joint_state(t + 0.001 * k, tree.joint_names, q, zeros, held * (k >= 30)))
    total = rig.run()
    assert dict(total.collisions) == {"link4": 1}
    assert "touch at" in rig.lines[-1]
    assert "on link4, at (" in rig.lines[-1]
    assert rig.messages("/nori_dyn/contact/link4")[-1].data > 0.9
    x, y, z, off = rig.messages("/nori_dyn/touch")[-1].data
    assert np.linalg.norm([x - 0.7, y - 0.05, z]) < max(0.05, 3 * off)


def test_streams_that_do_not_fit_are_told_and_waited_for(inverse):
    rig = Rig(inverse, topics=[STATES])
    rig.stand(time.time(), names=["left", "right"])
    assert rig.run().estimates == 0
    assert "waiting for" in rig.lines[-1]
    assert "q:joint1" in rig.lines[-1]
    constants = [{"of": f"{kind}:{name}", "value": 0.0} for kind in ("q", "qd", "qdd") for name in NAMES]
    rig = Rig(inverse, {"columns": constants})
    rig.stand(time.time())
    rig.run()
    assert "nothing says when to estimate" in rig.lines[-1]


def test_it_stops_when_it_has_published_enough_or_is_told(inverse):
    rig = Rig(inverse, topics=[STATES])
    rig.stand(*(time.time() + 0.01 * np.arange(40)))
    assert rig.service.run(samples=3).estimates == 3
    assert rig.service.run(samples=2).estimates == 5
    assert rig.service.run(lambda: True).estimates == 5
    assert rig.service.run(seconds=0.0).estimates <= 6


def test_topics_and_their_types_are_known_by_the_columns_of_a_mapping():
    pose = [f"position.{c}" for c in "xyz"] + [f"orientation.{c}" for c in "xyzw"]
    columns = [
        {"of": "q:root", "from": [f"/odom.pose.pose.{each}" for each in pose]},
        {"of": "imu", "from": ["/imu.angular_velocity.x"]},
        {"of": "ft", "from": ["/ft.wrench.force.x"]},
        {"of": "q:{joint}", "from": "/joints.position:{joint}"},
        {"of": "contact:foot", "from": "/foot.data"},
    ]
    assert topics_of(LogMapping.from_dict({"columns": columns}), ["/extra=std_msgs/msg/Bool"]) == {
        "/extra": "std_msgs/msg/Bool",
        "/odom": "nav_msgs/msg/Odometry",
        "/imu": IMU,
        "/ft": WRENCH,
        "/joints": JOINT_STATE,
        "/foot": "std_msgs/msg/Float64",
    }
    assert topics_of(None) == {STATES: JOINT_STATE}
    for named, said in (
        ("joint_states", "is no topic"),
        ("/what", "--topic /what="),
        ("/a=std_msgs/msg/Nothing", "unknown type of messages"),
    ):
        with pytest.raises(nd.errors.NoriError, match=said):
            topics_of(None, [named])


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2, 3))])
def test_nothing_that_comes_in_ends_it(arm, seed):
    """Bytes that are altered, cut, or made up; numbers and times from the ends of what doubles are."""
    rng = np.random.default_rng(seed)
    odd = np.array([0.0, -0.0, 1e-320, 1e308, -1e308, 1e154, np.inf, -np.inf, np.nan, 1.0, 2.0])
    rig = Rig(sensing(arm), HAND | {"streams": {}}, topics=["/unused=sensor_msgs/msg/Imu"])
    t = time.time()
    good = [
        joint_state(t, NAMES, np.ones(3), np.ones(3), np.ones(3)),
        wrench(t, (1, 2, 3), (4, 5, 6)),
        imu(t, (0, 0, 0), (0, 0, 0)),
    ]
    topics = (STATES, "/ft", "/unused")
    for topic, payload in zip(topics, good, strict=True):
        rig.send(topic, payload)
    rig.run()
    n = 1500
    for _ in range(n):
        k = int(rng.integers(3))
        payload = bytearray(good[k])
        match rng.integers(5):
            case 0:
                payload[rng.integers(len(payload))] = rng.integers(256)
            case 1:
                del payload[rng.integers(len(payload)) :]
            case 2:
                payload = bytearray(rng.bytes(int(rng.integers(300))))
            case 3:
                when = rng.choice([0.0, -1.0, t, t + 1, 2**31 - 1.0, -(2.0**31), rng.uniform(0, 2e9)])
                payload = bytearray(joint_state(when, NAMES, *rng.choice(odd, (3, 3))))
            case _:
                t += rng.uniform(0, 0.01)
                payload = bytearray(joint_state(t, rng.permutation(NAMES), *rng.normal(size=(3, 3))))
        rig.send(topics[k], bytes(payload))
        rig.run()
    total = rig.run()
    assert sum(counts["received"] for counts in total.streams.values()) == n + 3
    before = total.estimates
    for j in range(5):  # from what begins anew on there are estimates again
        for base in (0.0, 2.5):
            rig.send(STATES, joint_state(t - 100 + base + 0.01 * j, NAMES, np.ones(3), np.zeros(3), np.zeros(3)))
    assert rig.run().estimates > before


def test_times_may_be_those_of_arrival(inverse):
    for stamps, n in (("header", 1), ("log", 6)):
        rig = Rig(inverse, {"streams": {STATES: {"stamps": stamps}}, "columns": of_states(qdd="effort")})
        for _ in range(6):  # by a clock that stands still
            rig.send(STATES, joint_state(1000.0, NAMES, np.ones(3), np.ones(3), np.ones(3)))
            rig.run()
        assert rig.service.total.estimates == n
