"""Every sensor: its config goes to a dictionary and back, and it reads the true motion."""

from __future__ import annotations

import json
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest

from nori_dyn.errors import InvalidConfigError, SensorConfigError, UnknownSensorNameError
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.config_errors import place
from nori_dyn.measurements.selectors import Except, Match, select_joints, select_places
from nori_dyn.measurements.sensor_set import SensorSet, config_model, measurement_types
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system import plugins
from nori_dyn.system.builder import System
from tests.noted import noted
from tests.oracles import chart, derivative, newton_euler, poses
from tests.peers import pin
from tests.standing import LAWS_ELSEWHERE
from tests.systems import sensor_set
from tests.tolerances import PEER, RECURSION, ROUNDING, SECOND_DIFFERENCES, assert_close
from tests.trees import TREES, random_state

POSE = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.4, -0.5, 2.6]}

# One row a sensor: configs on the tree `two_roots`, which has frames, and what they read of the true motion.
ROWS: dict[str, list[dict]] = {
    "joint_acceleration": [
        {"joints": "all"},
        {"joints": "actuated", "sigma": 0.1},
        {"joints": "joint3", "sigma": [0.1, 0.2, 0.3]},
        {"joints": ["joint5", "joint1"]},
        {"joints": {"except": ["joint1", "joint2"]}},
        {"joints": {"except": "actuated"}},
        {"joints": {"match": "joint[34]"}},
    ],
    "joint_torque": [
        {"joints": "all"},
        {"joints": "joint4"},
        {"joints": {"match": ".*5"}, "sigma": 2},
        {"joints": ["joint2", "joint3"], "side": "link"},
    ],
    "external_wrench": [
        {"links": "all"},
        {"links": "tool"},
        {"links": ["palm", "tool", "link2", "link1"]},
        {"links": "link2", "frame": "tool"},
        {"frame": "tool", "components": ["fy", "mz"]},
        {"links": "all", "frame": POSE},
        {"links": ["link3"], "components": ["fz", "mx"], "frame": POSE, "sigma": [1, 2]},
        {"links": {"match": "link[12]|palm|.*tool"}, "components": ["fx"]},
        {"links": {"match": "palm|tool"}},
        {"links": {"except": "tool"}},
    ],
    "accelerometer": [
        {"links": "all"},
        {"links": ["tool", "link4"]},
        {"links": "all", "frame": POSE, "components": ["az", "ax"], "sigma": 0.1},
    ],
    "angular_accelerometer": [{"links": "all", "frame": POSE}, {"links": "tool", "components": ["wy"]}],
    "link_acceleration": [{"links": "all"}, {"links": "palm", "components": ["ax", "wz"]}],
    "rigid_contact": [
        {"links": "all", "value": None},
        {"links": "tool", "value": None, "components": ["ax", "ay", "az"]},
        {"links": "link5", "frame": POSE, "value": None},
    ],
    "force_torque": [
        {"joints": "all"},
        {"joints": "joint2", "frame": "tool", "components": ["mx", "fz"]},
        {"joints": {"match": "joint[235]"}, "frame": POSE, "measures": "child_on_parent"},
    ],
    "net_wrench": [{"links": "all"}, {"links": "tool"}, {"links": "link3", "frame": POSE, "components": ["mz"]}],
    "prior": [
        {"variables": "all", "mean": None, "sigma": 2},
        {"variables": ["qdd", "a:link3"], "joints": "actuated", "conventional": True, "mean": None, "sigma": 0.1},
        {"variables": ["fx:link2", "f"], "joints": "actuated", "mean": None, "sigma": [1, 2, 3, 4, 5, 6]},
    ],
    "linear_relation": [
        {"name": "gear", "terms": {"qdd:joint2": 1, "qdd:joint5": -3.5}, "value": None},
        {"name": "sum", "terms": {"fx:link3.mz": 2, "a:link1.wx": 1, "fx:link3.fx": -1}, "value": None, "sigma": 2},
    ],
}
ENTRIES = {kind: [{"type": kind, **fields} for fields in rows] for kind, rows in ROWS.items()}
every_sensor = pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES)


@pytest.fixture
def tree() -> KinematicTree:
    return TREES["two_roots"]


def of(kind: str, **fields: Any) -> dict:
    return {"type": kind, **fields}


def torque(joints: Any = "all", **fields: Any) -> dict:
    return of("joint_torque", joints=joints, **fields)


def wrench(links: Any = "all", **fields: Any) -> dict:
    return of("external_wrench", links=links, **fields)


def system(tree: KinematicTree, *entries: dict) -> System:
    return System(tree, sensor_set(*entries))


def test_every_sensor_is_tested():
    assert set(ROWS) | LAWS_ELSEWHERE == set(measurement_types())


@every_sensor
def test_configs_go_to_a_dictionary_and_back(entries):
    for entry in entries:
        with noted(entry):
            first = sensor_set(entry)
            content = json.loads(json.dumps(first.to_dict()))
            second = SensorSet.from_dict(content)
            assert second == first
            assert second.to_dict() == content
            assert second.fingerprint == first.fingerprint
            assert len(first.fingerprint) == 64


def test_fingerprint_tells_configs_apart():
    configs = [sensor_set(entry) for entries in ENTRIES.values() for entry in entries]
    assert len({config.fingerprint for config in configs}) == len(configs)
    one, other, *_ = ENTRIES["joint_acceleration"]
    assert sensor_set(one, other).fingerprint != sensor_set(other, one).fingerprint
    assert SensorSet("another", configs[0].measurements, "elsewhere").fingerprint == configs[0].fingerprint


class Moving:
    """The true readings of a robot in motion, frames by Pinocchio's SE3, accelerations by differences of positions."""

    def __init__(self, tree: KinematicTree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, fx: np.ndarray) -> None:
        self.tree, self.q, self.qd, self.qdd = tree, q, qd, qdd
        self.truth = newton_euler(tree, q, qd, qdd, fx)

    def readings(self, bound: System) -> np.ndarray:
        """The true value of each measured number of a system with one sensor."""
        (entry,) = bound.sensors.measurements
        found = []
        for row in bound.measurements:
            _, owner = row.name.split(":", 1)
            values = self.reading(entry, owner, bound)
            found.extend([values[c] for c in row.equation.components] if isinstance(values, dict) else values)
        return np.array(found)

    def frame(self, entry, owner: str) -> tuple[int, pin.SE3]:
        """The link of a reading, and the pose of its frame in link coordinates."""
        tree = self.tree
        if owner in tree.joint_names:
            body = tree.joint_names.index(owner)
        else:
            body = tree.names.index(owner) if owner in tree.names else tree.frames[owner].link
        if entry.frame is not None and not isinstance(entry.frame, str):
            return body, pin.SE3(pin.rpy.rpyToMatrix(np.array(entry.frame.rpy)), np.array(entry.frame.xyz))
        frame = tree.frames.get(entry.frame or owner)
        return body, pin.SE3.Identity() if frame is None else pin.SE3(frame.X.E.T, frame.X.r)

    def reading(self, entry, owner: str, bound: System):
        """The numbers of a reading, or more than these by component."""
        match entry.type:
            case "linear_relation":
                d = dict(zip(bound.variable_names, self.truth.d(bound), strict=True))
                return [sum(factor * d[name] for name, factor in entry.terms.items())]
            case "prior":
                kind, owner = owner.split(":")
                if kind in ("tau", "qdd"):
                    return self.of_joint(kind, owner)
                body = self.tree.names.index(owner)
                if kind == "a" and entry.conventional:
                    return self.acceleration("accelerometer", body, pin.SE3.Identity())
                return getattr(self.truth, kind)[body]
            case "joint_acceleration":
                return self.of_joint("qdd", owner)
            case "joint_torque":
                return self.of_joint("tau", owner)
        body, placement = self.frame(entry, owner)
        match entry.type:
            case "external_wrench":
                return wrench_in(placement, self.truth.fx[body])
            case "force_torque":
                sign = -1 if entry.measures == "child_on_parent" else 1
                return wrench_in(placement, sign * self.truth.f[body])
            case "net_wrench":
                return wrench_in(placement, self.net_wrench(body))
        return self.acceleration(entry.type, body, placement)

    def of_joint(self, kind: str, name: str) -> np.ndarray:
        return getattr(self.truth, kind)[self.tree.v_slices[self.tree.joint_names.index(name)]]

    def net_wrench(self, body: int) -> np.ndarray:
        """Sum up what acts on the link: its joint, the outside, and the joints that it carries."""
        R, p = poses(self.tree, self.q)
        total = self.truth.f[body] + self.truth.fx[body]
        for j in self.tree.children[body]:
            there = pin.SE3(R[body], p[body]).inverse() * pin.SE3(R[j], p[j])
            carried = there.act(pin.Force(self.truth.f[j, 3:], self.truth.f[j, :3]))
            total = total - np.r_[carried.angular, carried.linear]
        return total

    def acceleration(self, sensor: str, body: int, placement: pin.SE3) -> dict[str, float]:
        """The spatial acceleration in a frame, or with that of its origin in the world, as a sensor reads it."""
        there = placement.actInv(pin.Motion(self.truth.a[body, 3:], self.truth.a[body, :3]))
        spatial = dict(zip(MOTION, [*there.angular, *there.linear], strict=True))
        if sensor not in ("accelerometer", "rigid_contact"):
            return spatial
        R = poses(self.tree, self.q)[0][body] @ placement.rotation
        origin = self.frames_accelerate[body] @ np.r_[placement.translation, 1.0]
        proper = origin - (np.array(self.tree.gravity) if sensor == "accelerometer" else 0.0)
        return spatial | dict(zip(MOTION[3:], R.T @ proper, strict=True))

    @cached_property
    def frames_accelerate(self) -> np.ndarray:
        """The second derivatives of all bodies' rotations and origins in the world, (n_links, 3, 4), by differences."""

        def frames(t: float) -> np.ndarray:
            R, p = poses(self.tree, chart(self.tree, self.q, self.qd * t + self.qdd * t * t / 2))
            return np.concatenate([R, np.array(p)[..., None]], axis=-1)

        return derivative(lambda t: derivative(lambda s: frames(t + s)))


def wrench_in(placement: pin.SE3, wrench: np.ndarray) -> dict[str, float]:
    """A wrench of link coordinates by components in a frame."""
    there = placement.actInv(pin.Force(wrench[3:], wrench[:3]))
    return dict(zip(FORCE, [*there.angular, *there.linear], strict=True))


@cache
def in_motion(seed: int) -> Moving:
    return Moving(TREES["two_roots"], *random_state(TREES["two_roots"], seed))


@every_sensor
def test_true_values_as_readings_satisfy_the_system(tree, entries):
    for entry in entries:
        with noted(entry):
            check_true_values(system(tree, entry))


def check_true_values(bound: System) -> None:
    for moving in map(in_motion, range(3)):
        q, qd = moving.q, moving.qd
        y, d = moving.readings(bound), moving.truth.d(bound)
        assert y.shape == (bound.ny,)
        residual = bound.D(q) @ d + bound.b(q, qd, y)
        assert_close(residual / np.abs(d).max(), 0 * residual, SECOND_DIFFERENCES)
        if bound.ny:
            wrong = bound.D(q) @ d + bound.b(q, qd, y + 1)
            assert_close(wrong[-bound.ny :] - residual[-bound.ny :], -np.ones(bound.ny), RECURSION)


def owners(tree: KinematicTree, entry: dict) -> list[str]:
    return [row.name.split(":")[1] for row in system(tree, entry).measurements]


JOINTS_BY = [
    ("all", ["joint1", "joint2", "joint3", "joint4", "joint5"]),
    ("actuated", ["joint1", "joint2", "joint3", "joint5"]),
    ("joint2", ["joint2"]),
    (["joint5", "joint1", "joint5"], ["joint1", "joint5"]),
    ({"except": ["joint1", "joint4"]}, ["joint2", "joint3", "joint5"]),
    ({"except": "actuated"}, ["joint4"]),
    ({"except": {"match": "joint[1-3]"}}, ["joint4", "joint5"]),
    ({"except": "all"}, []),
    ({"except": "joint1"}, ["joint2", "joint3", "joint4", "joint5"]),
    ({"match": "joint[2-4]"}, ["joint2", "joint3", "joint4"]),
]
LINKS_BY = [
    ("all", ["link1", "link2", "link3", "link4", "link5"]),
    ("actuated", ["link1", "link2", "link3", "link5"]),
    ("link4", ["link4"]),
    ("tool", ["tool"]),
    (["link5", "tool", "link1"], ["link1", "tool", "link5"]),
    (["link2", "tool", "palm"], ["link2", "tool", "palm"]),
    ({"except": ["link1", "link4"]}, ["link2", "link3", "link5"]),
    ({"except": ["tool"]}, ["link1", "link3", "link4", "link5"]),
    ({"except": {"match": "to.*|link1"}}, ["link3", "link4", "link5"]),
    ({"match": "link[2-4]"}, ["link2", "link3", "link4"]),
    ({"match": ".*"}, ["link1", "link2", "link3", "link4", "link5"]),
    ({"match": "(to|link).*"}, ["link1", "link2", "link3", "link4", "link5"]),
    ({"match": "to.*|link3"}, ["tool", "link3"]),
]


def test_selectors(tree):
    for selector, expected in JOINTS_BY:
        for kind in ("joint_acceleration", "joint_torque"):
            assert owners(tree, of(kind, joints=selector)) == expected, (kind, selector)
    for selector, expected in LINKS_BY:
        assert owners(tree, wrench(selector)) == expected, selector


def test_selectors_as_objects(tree):
    assert select_joints(tree, Match(match=".*1")) == [0]
    assert select_joints(tree, "tips") == [i for i in range(tree.n_links) if i not in tree.parents]
    assert select_joints(tree, Except(**{"except": "tips"})) == sorted(set(tree.parents) - {-1})
    assert select_joints(tree, Except(**{"except": ["joint1"]})) == [1, 2, 3, 4]
    assert select_places(tree, "palm") == [("palm", 1)]


def test_constant_values_take_no_reading(tree):
    bound = system(
        tree,
        torque("joint3", value=[1, 2, 3]),
        of("joint_acceleration", joints="all", value=0.5),
        wrench("link1", components=["mx", "fz"], value=[4, 5]),
    )
    assert bound.ny == 0
    assert bound.measurements == ()
    q, qd, *_ = random_state(tree, 0)
    b = bound.b(q, qd, np.zeros(0))
    dynamics = 12 * tree.n_links + tree.nv
    assert_close(b[dynamics:], -np.r_[1, 2, 3, np.full(tree.nv, 0.5), 4, 5], ROUNDING)


@every_sensor
def test_a_range_is_that_of_each_reading(tree, entries):
    for entry in entries:
        with noted(entry):
            check_range(tree, entry, {**entry, "range": [-5, None]})


def check_range(tree: KinematicTree, entry: dict, ranged: dict) -> None:
    """A prior is no sensor, and has none."""
    if entry["type"] == "prior":
        with pytest.raises(SensorConfigError, match="range"):
            system(tree, ranged)
        return
    plain, bound = system(tree, entry), system(tree, ranged)
    assert plain.ranges is None
    assert_close(bound.ranges[0], np.full(bound.ny, -5.0), ROUNDING)
    assert (bound.ranges[1] == np.inf).all()
    assert bound.fingerprint != plain.fingerprint
    content = json.loads(json.dumps(sensor_set(ranged).to_dict()))
    assert SensorSet.from_dict(content) == sensor_set(ranged)


def test_a_sigma_and_a_range_are_for_all_or_one_a_component(tree):
    bound = system(
        tree,
        torque("joint3", sigma=2, range=[-1, 2]),
        wrench("link1", components=["mx", "fz"], sigma=[0.1, 3], range=[[-1, 1], [0, None]]),
        of("joint_acceleration", joints="joint1"),
    )
    assert [row.equation.sigma for row in bound.measurements] == [(2.0, 2.0, 2.0), (0.1, 3.0), None]
    assert [row.ranges for row in bound.measurements] == [((-1.0, 2.0),) * 3, ((-1.0, 1.0), (0.0, np.inf)), None]


def test_components_of_one_wrench_may_be_known_and_measured(tree):
    """A point contact: its forces are measured, its moments are zero."""
    bound = system(
        tree,
        wrench("link1", components=["fx", "fy"]),
        wrench("link1", components=["mx", "my", "mz"], value=0),
        wrench("link1", components=["fz"]),
    )
    assert bound.measurement_names == ("fx:link1.fx", "fx:link1.fy", "fx:link1.fz")
    assert bound.reading({"fx:link1": [1, 2, 3]}).tolist() == [1, 2, 3]
    assert bound.reading({"fx:link1.fz": 3, "fx:link1.fx": 1, "fx:link1.fy": [2]}).tolist() == [1, 2, 3]


# Entries that fit no robot, and what the message must say.
UNKNOWN = [
    (torque("joint_3"), r"moving joint 'joint_3'.*'joint3'"),
    (torque(["joint1", "xyz"]), r"'xyz'.*Known: joint1"),
    (of("joint_acceleration", joints={"except": ["jiont2"]}), r"'jiont2'.*mean 'joint2'"),
    (wrench("tol"), r"moving link 'tol'.*mean 'tool'"),
    (wrench("wall"), r"moving link 'wall'"),
    (wrench("link2", frame="palme"), r"'palme'.*'palm'"),
    (of("accelerometer", links="imu"), r"moving link 'imu'"),
    (of("force_torque", joints="link1"), r"moving joint 'link1'.*'joint1'"),
    (of("linear_relation", name="gear", terms={"qdd:jiont1": 1}), r"variable 'qdd:jiont1'.*mean 'qdd:joint\d'"),
    (of("linear_relation", name="gear", terms={"fx:link1": 1}), r"variable 'fx:link1'"),
]
UNFIT = [
    (wrench("link1", frame="tool"), r"link 'link1': frame 'tool' is fixed to link 'link2'"),
    (wrench("link1", frame="wall"), r"frame 'wall' is fixed to the world"),
    (wrench("link1", components=["mx", "mx"]), r"component is listed twice: mx, mx"),
    (torque(value=[1, 2]), r"value of 'tau:joint1' has 2 numbers, expected one or 3"),
    (wrench("link1", sigma=[1, 2]), r"sigma of 'fx:link1' has 2 numbers, expected one or 6"),
    (wrench("link1", range=[[1, 2], [3, 4]]), r"range of 'fx:link1' has 2 pairs, expected one or 6"),
    (torque({"match": "arm.*"}), r"no moving joint.*'arm\.\*'"),
    (wrench({"match": "w"}), r"no moving link.*pattern 'w'"),
    (
        of("accelerometer", links="link1", frame="tool"),
        r"accelerometer on link 'link1': frame 'tool' is fixed to link 'link2'",
    ),
    (
        of("force_torque", joints="joint1", frame="tool"),
        r"force_torque on link 'link1': frame 'tool' is fixed to link 'link2'",
    ),
    (
        of("rigid_contact", links="link1", components=["ax"], value=[1, 2]),
        r"value of 'contact:link1' has 2 numbers, expected one or 1",
    ),
]
REFUSED = [*((UnknownSensorNameError, *row) for row in UNKNOWN), *((SensorConfigError, *row) for row in UNFIT)]


@pytest.mark.parametrize(("error", "entry", "message"), REFUSED)
def test_what_does_not_fit_the_robot_is_refused(tree, error, entry, message):
    with pytest.raises(error, match=message) as caught:
        system(tree, torque("joint1"), entry)
    assert str(caught.value).startswith(f"sensors 'test', measurement 2 ({entry['type']}): ")


def test_an_unknown_name_keeps_what_is_known(tree):
    with pytest.raises(UnknownSensorNameError) as caught:
        system(tree, torque("arm"))
    assert caught.value.name == "arm"
    assert caught.value.known == tree.joint_names


def test_what_is_measured_twice_is_refused(tree):
    cell = wrench("link3", components=["mx", "fz"])
    for name, *entries in (
        ("tau:joint2", torque(), torque("joint2")),
        ("tau:joint2", torque("joint2"), torque("joint2", value=0)),
        ("tau:joint2", *[torque("joint2", sigma=1)] * 2),
        (r"fx:link3\.fz", cell, wrench("link3", components=["fz"], value=1)),
    ):
        with noted(entries), pytest.raises(SensorConfigError, match=rf"'{name}' is given twice\. Remove one"):
            system(tree, *entries)


# Content that follows no schema: the entry, the path to the offending thing, and what the message must say.
INVALID = [
    ({"joints": "all"}, (), "type"),
    ({"type": 3}, (), "type"),
    (3, (), "expected fields by name"),
    (torque(3), ("joints",), "expected text or a list or {except: names}"),
    (torque({"match": "("}), ("joints", "match"), "regular expression"),
    (torque(["joint1", 2]), ("joints", 1), "it is 2, expected text"),
    (torque(sigma=[1, -1]), ("sigma", 1), "greater than 0"),
    (torque(value=float("nan")), ("value",), "finite"),
    (torque(range=[2, 1]), ("range",), "from 2 to 1 holds nothing"),
    (torque(range=[[0, 1], [1, 1]]), ("range",), "from 1 to 1 holds nothing"),
    (torque(range=[]), ("range",), "at least 2 items"),
    (torque(range=[0, float("inf")]), ("range", 1), "finite"),
    (torque(range=[0, 1], value=0), ("range",), "known value takes no"),
    (of("rigid_contact", links="all", range=[0, 1]), ("range",), "`value: null`"),
    (torque(value=[0, float("inf")]), ("value", 1), "finite"),
    (wrench(components=["mq"]), ("components", 0), "'mx'"),
    (wrench(frame={"xyz": [1, 2]}), ("frame", "xyz"), "3 items"),
    (wrench(frame={"rpy": [1, 2, "x"]}), ("frame", "rpy", 2), "number"),
    (
        wrench(frame={"rpz": [1, 2, 3]}),
        ("frame", "rpz"),
        "'rpz' is no field of a pose. Did you mean 'rpy'. Its fields are xyz, rpy, relative_to",
    ),
    (of("accelerometer", links="all", components=["wx"]), ("components", 0), "'ax'"),
    (of("force_torque", joints="all", measures="both"), ("measures",), "parent_on_child"),
    (
        of("force_torque", joints="all", links="all"),
        ("links",),
        "'links' is no field of force_torque. Did you mean 'joints'. Its fields",
    ),
    (of("linear_relation", name="", terms={"qdd:joint1": 1}), ("name",), "at least 1"),
    (of("linear_relation", name="x", terms={}), ("terms",), "at least 1"),
    (of("linear_relation", name="x", terms={"qdd:joint1": float("nan")}), ("terms", "qdd:joint1"), "finite"),
]


@pytest.mark.parametrize(("entry", "path", "message"), INVALID)
def test_a_config_that_breaks_the_schema_is_refused_with_its_path(entry, path, message):
    with pytest.raises(InvalidConfigError, match=message) as caught:
        sensor_set(torque(), entry)
    assert caught.value.path == ("measurements", 1, *path)
    assert f"at {place(caught.value.path)}: " in str(caught.value)


def test_a_config_that_is_none_is_refused_with_its_path():
    for content, path in (
        (None, ()),
        ([], ()),
        ("text", ()),
        ({}, ("name",)),
        ({"name": "", "measurements": []}, ("name",)),
        ({"name": "x"}, ("measurements",)),
        ({"name": "x", "measurements": "all"}, ("measurements",)),
        ({"name": "x", "measurements": of("joint_torque")}, ("measurements",)),
        ({"name": "x", "measurements": [], "sensors": 1}, ("sensors",)),
        ({"name": "x", "measurements": [], "source": 1}, ("source",)),
    ):
        with noted(content), pytest.raises(InvalidConfigError) as caught:
            SensorSet.from_dict(content)
        assert caught.value.path == path, content


def test_an_unknown_sensor_is_refused_with_the_closest():
    with pytest.raises(UnknownSensorNameError, match=r"sensor type 'joint_torqe'.*'joint_torque'") as caught:
        sensor_set(of("joint_torqe", joints="all"))
    assert set(caught.value.known) == set(measurement_types())


def test_the_schema_lists_every_sensor():
    schema = json.dumps(config_model().model_json_schema())
    for name in measurement_types():
        assert name in schema


class _Entry:
    def __init__(self, name: str, offered: object) -> None:
        self.name, self.value, self.offered = name, f"elsewhere:{name}", offered

    def load(self) -> object:
        if isinstance(self.offered, Exception):
            raise self.offered
        return self.offered


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (_Entry("odd", int), "not a subclass of Measurement"),
        (_Entry("odd", Measurement.on), "not a subclass of Measurement"),
        (_Entry("joint_torque", BaseException), "not a subclass"),
        (_Entry("broken", ImportError("no module named torch")), "cannot be loaded.*no module named torch"),
        (_Entry("joint_torque", measurement_types()["joint_torque"]), "has the name of another sensor"),
    ],
)
def test_what_other_packages_offer_wrongly_is_refused(monkeypatch, entry, message):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    with pytest.raises(SensorConfigError, match=message):
        measurement_types.__wrapped__()


def test_other_packages_may_offer_sensors(monkeypatch):
    class Other(measurement_types()["joint_torque"]):
        pass

    monkeypatch.setattr(plugins, "entry_points", lambda group: [_Entry("other", Other)])
    assert measurement_types.__wrapped__()["other"] is Other


def test_a_name_is_for_one_reading(tree):
    for entry in (torque(name="mine"), of("accelerometer", links="all", name="mine")):
        said = r"name 'mine' is for one reading, and this sensor reads 5 things \("
        with noted(entry), pytest.raises(SensorConfigError, match=said):
            system(tree, entry)


def test_two_sensors_of_one_name_are_refused():
    twice = [of("accelerometer", links="link1", name="imu"), torque("joint1", name="imu")]
    with pytest.raises(InvalidConfigError, match="two sensors are named 'imu'") as caught:
        sensor_set(*twice)
    assert caught.value.path == ("measurements", 1, "name")
    relation = of("linear_relation", name="imu", terms={"qdd:joint1": 1})
    assert len(sensor_set(twice[0], relation).measurements) == 2


def test_roll_pitch_yaw_of_a_pose_are_those_of_urdf_and_relative_to_a_frame_where_one_is_named(tree):
    pose = pin.SE3(pin.rpy.rpyToMatrix(*POSE["rpy"]), np.array(POSE["xyz"]))
    tool = pin.SE3(tree.frames["tool"].X.E.T, tree.frames["tool"].X.r)
    order = np.r_[3:6, 0:3]
    for frame, placement in ((POSE, pose), ({**POSE, "relative_to": "tool"}, tool * pose)):
        (block,) = system(tree, wrench("link2", frame=frame)).rows[-1].equation.blocks(None).values()
        assert_close(block, placement.inverse().toDualActionMatrix()[np.ix_(order, order)], PEER)
    with pytest.raises(SensorConfigError, match="frame 'tool' is fixed to link 'link2'"):
        system(tree, wrench("link1", frame={**POSE, "relative_to": "tool"}))


def test_quarter_turns_of_a_pose_are_exact(tree):
    entry = wrench("link1", frame={"rpy": [np.pi / 2, 2.2e-16, -np.pi]})
    (block,) = system(tree, entry).rows[-1].equation.blocks(None).values()
    assert set(np.abs(block).ravel()) == {0.0, 1.0}
