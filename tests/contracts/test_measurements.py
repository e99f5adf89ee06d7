"""Every sensor: its config goes to a dictionary and back, and it reads the true motion."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.errors import InvalidConfigError, SensorConfigError, UnknownSensorNameError
from nori_dyn.measurements import registry
from nori_dyn.measurements.acceleration import Accelerometer
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.config_errors import place
from nori_dyn.measurements.registry import measurement_types
from nori_dyn.measurements.selectors import Except, Match, select_joints, select_places
from nori_dyn.measurements.sensor_set import SensorSet, config_model
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system import plugins
from nori_dyn.system.builder import System
from tests.oracles import chart, derivative, newton_euler, poses
from tests.peers import pin
from tests.tolerances import PEER, RECURSION, ROUNDING, SECOND_DIFFERENCES, SOLVED, assert_close
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
ENTRIES = [{"type": kind, **fields} for kind, rows in ROWS.items() for fields in rows]
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=[json.dumps(entry)[:70] for entry in ENTRIES])


@pytest.fixture
def tree() -> KinematicTree:
    return TREES["two_roots"]


def sensor_set(*entries: dict) -> SensorSet:
    return SensorSet.from_dict({"name": "test", "measurements": list(entries)})


def system(tree: KinematicTree, *entries: dict) -> System:
    return System(tree, sensor_set(*entries))


def test_every_sensor_is_tested():
    assert set(ROWS) == set(measurement_types())


@every_entry
def test_config_goes_to_a_dictionary_and_back(entry):
    first = sensor_set(entry)
    content = json.loads(json.dumps(first.to_dict()))
    second = SensorSet.from_dict(content)
    assert second == first
    assert second.to_dict() == content
    assert second.fingerprint == first.fingerprint
    assert len(first.fingerprint) == 64


def test_fingerprint_tells_configs_apart():
    prints = {sensor_set(entry).fingerprint for entry in ENTRIES}
    assert len(prints) == len(ENTRIES)
    assert sensor_set(ENTRIES[0], ENTRIES[1]).fingerprint != sensor_set(ENTRIES[1], ENTRIES[0]).fingerprint
    renamed = SensorSet("another", sensor_set(ENTRIES[0]).measurements, "elsewhere")
    assert renamed.fingerprint == sensor_set(ENTRIES[0]).fingerprint


class Moving:
    """The true readings of a robot in motion, frames by Pinocchio's SE3, accelerations by differences of positions."""

    def __init__(self, tree: KinematicTree, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, fx: np.ndarray) -> None:
        self.tree, self.q, self.qd, self.qdd = tree, q, qd, qdd
        self.truth = newton_euler(tree, q, qd, qdd, fx)

    def readings(self, bound: System) -> np.ndarray:
        """Return the true value of each measured number of a system with one sensor."""
        (entry,) = bound.sensors.measurements
        found = []
        for row in bound.measurements:
            _, owner = row.name.split(":", 1)
            values = getattr(self, entry.type)(entry, owner, bound)
            found.extend([values[c] for c in row.equation.components] if isinstance(values, dict) else values)
        return np.array(found)

    def frame(self, entry, owner: str) -> tuple[int, pin.SE3]:
        """Return the link of a reading, and the pose of its frame in link coordinates."""
        tree = self.tree
        if owner in tree.joint_names:
            body = tree.joint_names.index(owner)
        else:
            body = tree.names.index(owner) if owner in tree.names else tree.frames[owner].link
        if entry.frame is not None and not isinstance(entry.frame, str):
            return body, pin.SE3(pin.rpy.rpyToMatrix(np.array(entry.frame.rpy)), np.array(entry.frame.xyz))
        frame = tree.frames.get(entry.frame or owner)
        return body, pin.SE3.Identity() if frame is None else pin.SE3(frame.X.E.T, frame.X.r)

    def joint_acceleration(self, entry, owner, bound):
        return self.truth.qdd[self.tree.v_slices[self.tree.joint_names.index(owner)]]

    def joint_torque(self, entry, owner, bound):
        return self.truth.tau[self.tree.v_slices[self.tree.joint_names.index(owner)]]

    def external_wrench(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        return wrench_in(placement, self.truth.fx[body])

    def force_torque(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        sign = -1 if entry.measures == "child_on_parent" else 1
        return wrench_in(placement, sign * self.truth.f[body])

    def net_wrench(self, entry, owner, bound):
        """Sum up what acts on the link: its joint, the outside, and the joints that it carries."""
        body, placement = self.frame(entry, owner)
        R, p = poses(self.tree, self.q)
        total = self.truth.f[body] + self.truth.fx[body]
        for j in self.tree.children[body]:
            there = pin.SE3(R[body], p[body]).inverse() * pin.SE3(R[j], p[j])
            carried = there.act(pin.Force(self.truth.f[j, 3:], self.truth.f[j, :3]))
            total = total - np.r_[carried.angular, carried.linear]
        return wrench_in(placement, total)

    def linear_relation(self, entry, owner, bound):
        d = dict(zip(bound.variable_names, self.truth.d(bound), strict=True))
        return [sum(factor * d[name] for name, factor in entry.terms.items())]

    def prior(self, entry, owner, bound):
        kind, of = owner.split(":")
        if kind == "a" and entry.conventional:
            there = Accelerometer(type="accelerometer", links=of)
            body, linear = self.tree.names.index(of), self.accelerometer(there, of, bound)
            return dict(zip(MOTION[:3], self.truth.a[body, :3], strict=True)) | linear
        if kind in ("tau", "qdd"):
            return getattr(self.truth, kind)[self.tree.v_slices[self.tree.joint_names.index(of)]]
        return getattr(self.truth, kind)[self.tree.names.index(of)]

    def link_acceleration(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        there = placement.actInv(pin.Motion(self.truth.a[body, 3:], self.truth.a[body, :3]))
        return dict(zip(MOTION, [*there.angular, *there.linear], strict=True))

    def angular_accelerometer(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        return dict(zip(MOTION[:3], placement.rotation.T @ self.truth.a[body, :3], strict=True))

    def accelerometer(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        R = poses(self.tree, self.q)[0][body] @ placement.rotation
        proper = self.point_acceleration(body, placement) - np.array(self.tree.gravity)
        return dict(zip(MOTION[3:], R.T @ proper, strict=True))

    def rigid_contact(self, entry, owner, bound):
        body, placement = self.frame(entry, owner)
        R = poses(self.tree, self.q)[0][body] @ placement.rotation
        angular = self.angular_accelerometer(entry, owner, bound)
        return angular | dict(zip(MOTION[3:], R.T @ self.point_acceleration(body, placement), strict=True))

    def point_acceleration(self, body: int, placement: pin.SE3) -> np.ndarray:
        """Return the acceleration of a frame's origin in the world, by differences of its position."""

        def position(t: float) -> np.ndarray:
            R, p = poses(self.tree, chart(self.tree, self.q, self.qd * t + self.qdd * t * t / 2))
            return p[body] + R[body] @ placement.translation

        return derivative(lambda t: derivative(lambda s: position(t + s)))


def wrench_in(placement: pin.SE3, wrench: np.ndarray) -> dict[str, float]:
    """Return a wrench of link coordinates by components in a frame."""
    there = placement.actInv(pin.Force(wrench[3:], wrench[:3]))
    return dict(zip(FORCE, [*there.angular, *there.linear], strict=True))


@every_entry
def test_true_values_as_readings_satisfy_the_system(tree, entry):
    bound = system(tree, entry)
    for seed in range(3):
        q, qd, qdd, fx = random_state(tree, seed)
        moving = Moving(tree, q, qd, qdd, fx)
        y, d = moving.readings(bound), moving.truth.d(bound)
        assert y.shape == (bound.ny,)
        residual = bound.D(q) @ d + bound.b(q, qd, y)
        assert_close(residual / np.abs(d).max(), 0 * residual, SECOND_DIFFERENCES)
        if bound.ny:
            wrong = bound.D(q) @ d + bound.b(q, qd, y + 1)
            assert_close(wrong[-bound.ny :] - residual[-bound.ny :], -np.ones(bound.ny), RECURSION)


def owners(tree: KinematicTree, entry: dict) -> list[str]:
    return [row.name.split(":")[1] for row in system(tree, entry).measurements]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
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
    ],
)
@pytest.mark.parametrize("kind", ["joint_acceleration", "joint_torque"])
def test_joint_selectors(tree, kind, selector, expected):
    assert owners(tree, {"type": kind, "joints": selector}) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
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
    ],
)
def test_link_selectors(tree, selector, expected):
    assert owners(tree, {"type": "external_wrench", "links": selector}) == expected


def test_selectors_as_objects(tree):
    assert select_joints(tree, Match(match=".*1")) == [0]
    assert select_joints(tree, "tips") == [i for i in range(tree.n_links) if i not in tree.parents]
    assert select_joints(tree, Except(**{"except": "tips"})) == sorted(set(tree.parents) - {-1})
    assert select_joints(tree, Except(**{"except": ["joint1"]})) == [1, 2, 3, 4]
    assert select_places(tree, "palm") == [("palm", 1)]


def test_a_frame_is_where_its_wrench_is_read(tree):
    """A pure force through the frame's origin has no moment there."""
    frame = tree.frames["tool"]
    force = np.array([1.0, -2.0, 0.5])
    d = np.zeros(system(tree, ENTRIES[0]).shape[1])
    bound = system(tree, {"type": "external_wrench", "links": "tool"})
    d[bound.column("fx", frame.link)] = np.r_[np.cross(frame.X.r, force), force]
    q = tree.neutral_configuration()
    reading = (bound.D(q) @ d)[-6:]
    assert_close(reading, np.r_[np.zeros(3), frame.X.E @ force], ROUNDING)


def test_roll_pitch_yaw_are_those_of_urdf(tree):
    pose = system(tree, {"type": "external_wrench", "links": "link1", "frame": POSE}).rows[-1].equation
    (block,) = pose.blocks(None).values()
    X = pin.SE3(pin.rpy.rpyToMatrix(*POSE["rpy"]), np.array(POSE["xyz"])).inverse().toDualActionMatrix()
    order = np.r_[3:6, 0:3]
    assert_close(block, X[np.ix_(order, order)], PEER)


def test_constant_values_take_no_reading(tree):
    bound = system(
        tree,
        {"type": "joint_torque", "joints": "joint3", "value": [1, 2, 3]},
        {"type": "joint_acceleration", "joints": "all", "value": 0.5},
        {"type": "external_wrench", "links": "link1", "components": ["mx", "fz"], "value": [4, 5]},
    )
    assert bound.ny == 0
    assert bound.measurements == ()
    q, qd, *_ = random_state(tree, 0)
    b = bound.b(q, qd, np.zeros(0))
    dynamics = 12 * tree.n_links + tree.nv
    assert_close(b[dynamics:], -np.r_[1, 2, 3, np.full(tree.nv, 0.5), 4, 5], ROUNDING)


def test_sigma_is_one_number_or_one_a_component(tree):
    bound = system(
        tree,
        {"type": "joint_torque", "joints": "joint3", "sigma": 2},
        {"type": "external_wrench", "links": "link1", "components": ["mx", "fz"], "sigma": [0.1, 3]},
        {"type": "joint_acceleration", "joints": "joint1"},
    )
    assert [row.equation.sigma for row in bound.measurements] == [(2.0, 2.0, 2.0), (0.1, 3.0), None]


@every_entry
def test_a_range_is_that_of_each_reading(tree, entry):
    """A prior is no sensor, and has none."""
    ranged = {**entry, "range": [-5, None]}
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


def test_a_range_is_one_pair_or_one_a_component(tree):
    bound = system(
        tree,
        {"type": "joint_torque", "joints": "joint3", "range": [-1, 2]},
        {"type": "external_wrench", "links": "link1", "components": ["mx", "fz"], "range": [[-1, 1], [0, None]]},
        {"type": "joint_acceleration", "joints": "joint1"},
    )
    ranges = [row.ranges for row in bound.measurements]
    assert ranges == [((-1.0, 2.0),) * 3, ((-1.0, 1.0), (0.0, np.inf)), None]


def test_components_of_one_wrench_may_be_known_and_measured(tree):
    """A point contact: its forces are measured, its moments are zero."""
    bound = system(
        tree,
        {"type": "external_wrench", "links": "link1", "components": ["fx", "fy"]},
        {"type": "external_wrench", "links": "link1", "components": ["mx", "my", "mz"], "value": 0},
        {"type": "external_wrench", "links": "link1", "components": ["fz"]},
    )
    assert bound.measurement_names == ("fx:link1.fx", "fx:link1.fy", "fx:link1.fz")
    assert bound.reading({"fx:link1": [1, 2, 3]}).tolist() == [1, 2, 3]
    assert bound.reading({"fx:link1.fz": 3, "fx:link1.fx": 1, "fx:link1.fy": [2]}).tolist() == [1, 2, 3]


# Entries that fit no robot, and what the message must say.
UNFIT = [
    (
        {"type": "joint_torque", "joints": "joint_3"},
        UnknownSensorNameError,
        r"moving joint 'joint_3'.*'joint3'",
    ),
    ({"type": "joint_torque", "joints": ["joint1", "xyz"]}, UnknownSensorNameError, r"'xyz'.*Known: joint1"),
    (
        {"type": "joint_acceleration", "joints": {"except": ["jiont2"]}},
        UnknownSensorNameError,
        r"'jiont2'.*mean 'joint2'",
    ),
    ({"type": "external_wrench", "links": "tol"}, UnknownSensorNameError, r"moving link 'tol'.*mean 'tool'"),
    ({"type": "external_wrench", "links": "wall"}, UnknownSensorNameError, r"moving link 'wall'"),
    (
        {"type": "external_wrench", "links": "link2", "frame": "palme"},
        UnknownSensorNameError,
        r"'palme'.*'palm'",
    ),
    (
        {"type": "external_wrench", "links": "link1", "frame": "tool"},
        SensorConfigError,
        r"link 'link1': frame 'tool' is fixed to link 'link2'",
    ),
    (
        {"type": "external_wrench", "links": "link1", "frame": "wall"},
        SensorConfigError,
        r"frame 'wall' is fixed to the world",
    ),
    (
        {"type": "external_wrench", "links": "link1", "components": ["mx", "mx"]},
        SensorConfigError,
        r"component is listed twice: mx, mx",
    ),
    (
        {"type": "joint_torque", "joints": "all", "value": [1, 2]},
        SensorConfigError,
        r"value of 'tau:joint1' has 2 numbers, expected one or 3",
    ),
    (
        {"type": "external_wrench", "links": "link1", "sigma": [1, 2]},
        SensorConfigError,
        r"sigma of 'fx:link1' has 2 numbers, expected one or 6",
    ),
    (
        {"type": "external_wrench", "links": "link1", "range": [[1, 2], [3, 4]]},
        SensorConfigError,
        r"range of 'fx:link1' has 2 pairs, expected one or 6",
    ),
    (
        {"type": "joint_torque", "joints": {"match": "arm.*"}},
        SensorConfigError,
        r"no moving joint.*'arm\.\*'",
    ),
    ({"type": "external_wrench", "links": {"match": "w"}}, SensorConfigError, r"no moving link.*pattern 'w'"),
    ({"type": "accelerometer", "links": "imu"}, UnknownSensorNameError, r"moving link 'imu'"),
    (
        {"type": "accelerometer", "links": "link1", "frame": "tool"},
        SensorConfigError,
        r"accelerometer on link 'link1': frame 'tool' is fixed to link 'link2'",
    ),
    (
        {"type": "force_torque", "joints": "joint1", "frame": "tool"},
        SensorConfigError,
        r"force_torque on link 'link1': frame 'tool' is fixed to link 'link2'",
    ),
    ({"type": "force_torque", "joints": "link1"}, UnknownSensorNameError, r"moving joint 'link1'.*'joint1'"),
    (
        {"type": "rigid_contact", "links": "link1", "components": ["ax"], "value": [1, 2]},
        SensorConfigError,
        r"value of 'contact:link1' has 2 numbers, expected one or 1",
    ),
    (
        {"type": "linear_relation", "name": "gear", "terms": {"qdd:jiont1": 1}},
        UnknownSensorNameError,
        r"variable 'qdd:jiont1'.*mean 'qdd:joint\d'",
    ),
    (
        {"type": "linear_relation", "name": "gear", "terms": {"fx:link1": 1}},
        UnknownSensorNameError,
        r"variable 'fx:link1'",
    ),
]


@pytest.mark.parametrize(("entry", "error", "message"), UNFIT)
def test_what_does_not_fit_the_robot_is_refused(tree, entry, error, message):
    with pytest.raises(error, match=message) as caught:
        system(tree, {"type": "joint_torque", "joints": "joint1"}, entry)
    assert str(caught.value).startswith(f"sensors 'test', measurement 2 ({entry['type']}): ")


def test_an_unknown_name_keeps_what_is_known(tree):
    with pytest.raises(UnknownSensorNameError) as caught:
        system(tree, {"type": "joint_torque", "joints": "arm"})
    assert caught.value.name == "arm"
    assert caught.value.known == tree.joint_names


@pytest.mark.parametrize(
    "entries",
    [
        [{"type": "joint_torque", "joints": "all"}, {"type": "joint_torque", "joints": "joint2"}],
        [
            {"type": "joint_torque", "joints": "joint2"},
            {"type": "joint_torque", "joints": "joint2", "value": 0},
        ],
        [{"type": "joint_torque", "joints": "joint2", "sigma": 1}] * 2,
    ],
)
def test_what_is_measured_twice_is_refused(tree, entries):
    with pytest.raises(SensorConfigError, match=r"'tau:joint2' is given twice\. Remove one"):
        system(tree, *entries)


def test_a_component_measured_twice_is_named(tree):
    entries = [
        {"type": "external_wrench", "links": "link3", "components": ["mx", "fz"]},
        {"type": "external_wrench", "links": "link3", "components": ["fz"], "value": 1},
    ]
    with pytest.raises(SensorConfigError, match=r"'fx:link3\.fz' is given twice"):
        system(tree, *entries)


# Content that follows no schema: the entry, the path to the offending thing, and what the message must say.
INVALID = [
    ({"type": "joint_torque"}, ("joints",), "joint_torque lacks 'joints'"),
    ({"joints": "all"}, (), "type"),
    ({"type": 3}, (), "type"),
    (3, (), "expected fields by name"),
    ({"type": "joint_torque", "joints": "all", "colour": 1}, ("colour",), "'colour' is no field of joint_torque"),
    ({"type": "joint_torque", "joints": 3}, ("joints",), "expected text or a list or {except: names}"),
    (
        {"type": "joint_torque", "joints": {"excpt": "a"}},
        ("joints", "excpt"),
        "'excpt' is no field of a selector. Did you mean 'except'",
    ),
    ({"type": "joint_torque", "joints": {"match": "("}}, ("joints", "match"), "regular expression"),
    ({"type": "joint_torque", "joints": ["joint1", 2]}, ("joints", 1), "it is 2, expected text"),
    ({"type": "joint_torque", "joints": "all", "sigma": 0}, ("sigma",), "greater than 0"),
    ({"type": "joint_torque", "joints": "all", "sigma": [1, -1]}, ("sigma", 1), "greater than 0"),
    ({"type": "joint_torque", "joints": "all", "value": float("nan")}, ("value",), "finite"),
    ({"type": "joint_torque", "joints": "all", "range": [2, 1]}, ("range",), "from 2 to 1 holds nothing"),
    ({"type": "joint_torque", "joints": "all", "range": [[0, 1], [1, 1]]}, ("range",), "from 1 to 1 holds nothing"),
    ({"type": "joint_torque", "joints": "all", "range": []}, ("range",), "at least 2 items"),
    ({"type": "joint_torque", "joints": "all", "range": [0, float("inf")]}, ("range", 1), "finite"),
    ({"type": "joint_torque", "joints": "all", "range": [0, 1], "value": 0}, ("range",), "known value takes no"),
    ({"type": "rigid_contact", "links": "all", "range": [0, 1]}, ("range",), "`value: null`"),
    ({"type": "joint_torque", "joints": "all", "value": [0, float("inf")]}, ("value", 1), "finite"),
    ({"type": "external_wrench", "links": "all", "components": ["mq"]}, ("components", 0), "'mx'"),
    ({"type": "external_wrench", "links": "all", "frame": {"xyz": [1, 2]}}, ("frame", "xyz"), "3 items"),
    (
        {"type": "external_wrench", "links": "all", "frame": {"rpy": [1, 2, "x"]}},
        ("frame", "rpy", 2),
        "number",
    ),
    (
        {"type": "external_wrench", "links": "all", "frame": {"rpz": [1, 2, 3]}},
        ("frame", "rpz"),
        "'rpz' is no field of a pose. Did you mean 'rpy'. Its fields are xyz, rpy, relative_to",
    ),
    ({"type": "accelerometer", "links": "all", "components": ["wx"]}, ("components", 0), "'ax'"),
    ({"type": "force_torque", "joints": "all", "measures": "both"}, ("measures",), "parent_on_child"),
    (
        {"type": "force_torque", "joints": "all", "links": "all"},
        ("links",),
        "'links' is no field of force_torque. Did you mean 'joints'. Its fields",
    ),
    ({"type": "linear_relation", "name": "", "terms": {"qdd:joint1": 1}}, ("name",), "at least 1"),
    ({"type": "linear_relation", "name": "x", "terms": {}}, ("terms",), "at least 1"),
    (
        {"type": "linear_relation", "name": "x", "terms": {"qdd:joint1": float("nan")}},
        ("terms", "qdd:joint1"),
        "finite",
    ),
]


@pytest.mark.parametrize(("entry", "path", "message"), INVALID)
def test_a_config_that_breaks_the_schema_is_refused_with_its_path(entry, path, message):
    with pytest.raises(InvalidConfigError, match=message) as caught:
        sensor_set({"type": "joint_torque", "joints": "all"}, entry)
    assert caught.value.path == ("measurements", 1, *path)
    assert f"at {place(caught.value.path)}: " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (None, ()),
        ([], ()),
        ("text", ()),
        ({}, ("name",)),
        ({"name": "", "measurements": []}, ("name",)),
        ({"name": "x"}, ("measurements",)),
        ({"name": "x", "measurements": "all"}, ("measurements",)),
        ({"name": "x", "measurements": {"type": "joint_torque"}}, ("measurements",)),
        ({"name": "x", "measurements": [], "sensors": 1}, ("sensors",)),
        ({"name": "x", "measurements": [], "source": 1}, ("source",)),
    ],
)
def test_a_config_that_is_none_is_refused_with_its_path(content, path):
    with pytest.raises(InvalidConfigError) as caught:
        SensorSet.from_dict(content)
    assert caught.value.path == path


def test_an_unknown_sensor_is_refused_with_the_closest():
    with pytest.raises(UnknownSensorNameError, match=r"sensor type 'joint_torqe'.*'joint_torque'") as caught:
        sensor_set({"type": "joint_torqe", "joints": "all"})
    assert set(caught.value.known) == set(measurement_types())


def test_the_schema_lists_every_sensor():
    schema = json.dumps(config_model().model_json_schema())
    for name in measurement_types():
        assert name in schema


def test_configs_cannot_be_changed_by_attribute():
    measurement = sensor_set(ENTRIES[0]).measurements[0]
    with pytest.raises(ValueError, match="frozen"):
        measurement.joints = "joint1"


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
        (_Entry("joint_torque", registry.JointTorque), "has the name of another sensor"),
    ],
)
def test_what_other_packages_offer_wrongly_is_refused(monkeypatch, entry, message):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    with pytest.raises(SensorConfigError, match=message):
        registry.measurement_types.__wrapped__()


def test_other_packages_may_offer_sensors(monkeypatch):
    class Other(registry.JointTorque):
        pass

    monkeypatch.setattr(plugins, "entry_points", lambda group: [_Entry("other", Other)])
    assert registry.measurement_types.__wrapped__()["other"] is Other


@pytest.mark.parametrize("known", ["joint_acceleration", "joint_torque"])
def test_a_square_set_determines_the_motion(known):
    """ID and FD as configs, solved as they stand, give the true motion."""
    tree = random_tree(6, seed=21)
    q, qd, qdd, fx = random_state(tree, 21)
    truth = newton_euler(tree, q, qd, qdd, fx)
    bound = system(tree, {"type": known, "joints": "all"}, {"type": "external_wrench", "links": "all"})
    assert bound.shape[0] == bound.shape[1]
    y = np.concatenate([truth.qdd if known == "joint_acceleration" else truth.tau, fx.ravel()])
    d = spla.spsolve(bound.D(q).tocsc(), -bound.b(q, qd, y))
    assert_close(d, truth.d(bound), SOLVED)


NAMED = [
    {"type": "joint_acceleration", "joints": "joint2"},
    {"type": "joint_torque", "joints": {"match": "joint5"}},
    {"type": "external_wrench", "links": ["tool"], "components": ["fz", "mx"]},
    {"type": "accelerometer", "links": "link4", "frame": POSE, "sigma": 0.1},
    {"type": "angular_accelerometer", "links": "tool"},
    {"type": "link_acceleration", "links": "palm"},
    {"type": "rigid_contact", "links": "link5"},
    {"type": "force_torque", "joints": "joint3"},
    {"type": "net_wrench", "links": "link3"},
    {"type": "prior", "variables": ["fx:link3"], "sigma": 1},
]


@pytest.mark.parametrize("entry", NAMED, ids=[entry["type"] for entry in NAMED])
def test_a_reading_can_be_called_by_its_sensors_name(tree, entry):
    plain, named = system(tree, entry).rows[-1], system(tree, {**entry, "name": "mine"}).rows[-1]
    assert named.name == "mine"
    assert named.equation.components == plain.equation.components
    if named.equation.is_measured:
        bound = system(tree, {**entry, "name": "mine"})
        assert bound.reading({"mine": np.arange(bound.ny)}).tolist() == list(range(bound.ny))
    q, qd, *_ = random_state(tree, 1)
    (block,), (expected,) = (
        system(tree, e).rows[-1].equation.blocks(velocities(tree, q, qd)).values()
        for e in ({**entry, "name": "mine"}, entry)
    )
    assert_close(block, expected, ROUNDING)


def test_every_sensor_can_be_named():
    assert {entry["type"] for entry in NAMED} | {"linear_relation"} == set(measurement_types())


@pytest.mark.parametrize(
    "entry", [{"type": "joint_torque", "joints": "all"}, {"type": "accelerometer", "links": "all"}]
)
def test_a_name_is_for_one_reading(tree, entry):
    with pytest.raises(SensorConfigError, match=r"name 'mine' is for one reading, and this sensor reads 5 things \("):
        system(tree, {**entry, "name": "mine"})


def test_two_sensors_of_one_name_are_refused():
    twice = [
        {"type": "accelerometer", "links": "link1", "name": "imu"},
        {"type": "joint_torque", "joints": "joint1", "name": "imu"},
    ]
    with pytest.raises(InvalidConfigError, match="two sensors are named 'imu'") as caught:
        sensor_set(*twice)
    assert caught.value.path == ("measurements", 1, "name")
    relation = {"type": "linear_relation", "name": "imu", "terms": {"qdd:joint1": 1}}
    assert len(sensor_set(twice[0], relation).measurements) == 2


def test_a_pose_may_be_relative_to_a_frame(tree):
    """On the frame `tool` of link 2, a pose in its coordinates."""
    entry = {"type": "external_wrench", "links": "link2", "frame": {**POSE, "relative_to": "tool"}}
    (block,) = system(tree, entry).rows[-1].equation.blocks(None).values()
    placement = pin.SE3(tree.frames["tool"].X.E.T, tree.frames["tool"].X.r) * pin.SE3(
        pin.rpy.rpyToMatrix(*POSE["rpy"]), np.array(POSE["xyz"])
    )
    order = np.r_[3:6, 0:3]
    assert_close(block, placement.inverse().toDualActionMatrix()[np.ix_(order, order)], PEER)
    wrong = {**entry, "links": "link1"}
    with pytest.raises(SensorConfigError, match="frame 'tool' is fixed to link 'link2'"):
        system(tree, wrong)


def test_quarter_turns_of_a_pose_are_exact(tree):
    entry = {"type": "external_wrench", "links": "link1", "frame": {"rpy": [np.pi / 2, 2.2e-16, -np.pi]}}
    (block,) = system(tree, entry).rows[-1].equation.blocks(None).values()
    assert set(np.abs(block).ravel()) == {0.0, 1.0}
