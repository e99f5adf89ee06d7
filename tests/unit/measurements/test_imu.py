"""An IMU is a gyroscope and an accelerometer: the same rows in one entry, so all that is made of them is the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InvalidConfigError, SensorConfigError
from tests.noted import noted
from tests.standing import robot
from tests.systems import sensor_set

POSE = {"xyz": [0.1, -0.2, 0.3], "rpy": [0.4, -0.5, 2.6]}
DRIFTS = {"sigma": 0.05, "mean": [0.1, 0.0, 0.2]}
MEMORY = {"base": {"of": "base"}, "biases": {"of": "offset", "walk": 0.001}}


def apart(imu: dict) -> list[dict]:
    """The two sensors that an entry of an IMU stands for."""
    own = {"links": imu.get("frame")} | {key: imu[key] for key in ("links", "frame") if key in imu}
    return [
        own | {"type": kind} | imu.get(kind, {}) | ({"name": f"{label}:{imu['name']}"} if "name" in imu else {})
        for kind, label in (("gyroscope", "gyro"), ("accelerometer", "acc"))
    ]


def test_its_rows_are_those_of_the_two_sensors():
    tree, rng = robot(), np.random.default_rng(0)
    for imu in (
        {"links": "box"},
        {"links": "all", "frame": POSE, "gyroscope": {"sigma": 0.01, "offset": DRIFTS}},
        {"links": "l_foot", "accelerometer": {"sigma": [0.1, 0.2, 0.3], "range": [-39, 39], "offset": {"sigma": 1}}},
        {"links": "box", "frame": POSE, "name": "head", "gyroscope": {"offset": DRIFTS}},
        {"frame": "r_foot", "accelerometer": {"sigma": 0.1}},
    ):
        memory = MEMORY if "offset" in json.dumps(imu) else {"base": {"of": "base"}}
        one, two = (nd.System(tree, sensor_set(*rows, memory=memory)) for rows in ([imu | {"type": "imu"}], apart(imu)))
        with noted(imu):
            assert one.measurement_names == two.measurement_names
            assert one.variable_names == two.variable_names
            assert str(one.ranges) == str(two.ranges)
            q, qd, y = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=one.ny)
            np.testing.assert_array_equal(one.D(q).toarray(), two.D(q).toarray())
            np.testing.assert_array_equal(one.b(q, qd, y), two.b(q, qd, y))
            assert [row.equation.sigma for row in one.rows] == [row.equation.sigma for row in two.rows]
            assert nd.SensorSet.from_dict(json.loads(json.dumps(one.sensors.to_dict()))) == one.sensors
            assert "imu" in str(one.sensors)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sigma": 0.1}, r"measurements\[0\].sigma: an imu is two sensors: say sigma under `gyroscope`"),
        ({"value": 0}, "say value under `gyroscope` and `accelerometer`"),
        ({"offset": {"sigma": 1}}, "say offset under `gyroscope` and `accelerometer`"),
        ({"gyroscope": 0.01}, r"measurements\[0\].gyroscope: it is 0.01, expected fields by name"),
        ({"gyroscope": {"noise": 0.01}}, r"'noise' is no field of measurements\[0\].gyroscope.*sigma, range, offset"),
        ({"accelerometer": {"sigma": 0}}, "accelerometer.sigma: it is 0, expected a number greater than 0"),
        ({"accelerometre": {"sigma": 1}}, "'accelerometre' is no field of imu. Did you mean 'accelerometer'"),
        ({"accelerometer": {"range": [2, 1]}}, "the range from 2 to 1 holds nothing"),
    ],
)
def test_what_its_entry_must_not_say(fields, words):
    with pytest.raises(InvalidConfigError, match=words):
        sensor_set({"type": "imu", "links": "box", **fields}, memory=MEMORY)


@pytest.mark.parametrize("fields", [{}, {"frame": POSE}])
def test_an_entry_without_a_place_is_told_what_to_write(fields):
    with pytest.raises(InvalidConfigError, match=r"imu lacks 'links', as in {type: imu, links: link1, gyroscope: {sig"):
        sensor_set({"type": "imu", **fields}, memory=MEMORY)


@pytest.mark.parametrize(
    ("fields", "base", "memory", "words"),
    [
        ({}, "floating", {}, "'gyro:box' reads the velocity of the base, which is no state here"),
        ({}, "fixed", {}, "measurement 1 .imu.: the base of robot .* is fixed: load the robot with base='floating'"),
        ({"links": "bx"}, "floating", MEMORY, "measurement 1 .imu.: .*moving link 'bx'.*'box'"),
        ({"frame": "l_foot"}, "floating", MEMORY, "on link 'box': frame 'l_foot' is fixed to link 'l_hip|l_"),
        ({"links": "all", "name": "mine"}, "floating", MEMORY, "the name 'gyro:mine' is for one reading"),
    ],
)
def test_what_does_not_fit_the_robot(fields, base, memory, words):
    tree = robot() if base == "floating" else nd.autotree(2)
    entry = {"type": "imu", "links": tree.names[0], **fields}
    with pytest.raises(SensorConfigError, match=words):
        nd.System(tree, sensor_set(entry, memory=memory))


def test_its_offsets_are_no_part_of_contacts():
    imu = {"type": "imu", "links": "box", "gyroscope": {"offset": {"sigma": 1}}}
    with pytest.raises(InvalidConfigError, match="an offset stays, whether the contact is closed or not"):
        sensor_set(contacts={"foot": {"closed": [imu], "open": []}})
