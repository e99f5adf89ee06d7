"""A faulty sensor of iCub, found and named within a hundred ticks, from noise of a realistic size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from tests.robots import ROBOTS, load
from tests.systems import sensor_set

TICKS, DT = 100, 0.01
FEET = ["l_foot", "r_foot"]
ROOT = {"type": "joint_torque", "joints": "root_joint", "value": 0}


@lru_cache
def robot():
    return load("iCubGenova04", "floating", kept="sensors")


@lru_cache
def monitor():
    """Return that of six force-torque sensors, an accelerometer a link, joint accelerations as if differentiated.

    The feet carry it, nothing else is touched.
    """
    tree = robot()
    model = nd.sensors_from_model(ROBOTS["iCubGenova04"], tree).measurements
    own = [m.model_dump(by_alias=True, exclude_none=True) for m in model]
    force_torque = [{**m, "sigma": [0.02] * 3 + [0.5] * 3} for m in own if m["type"] == "force_torque"]
    accelerometers = {m["links"]: {**m, "sigma": 0.05} for m in own if m["type"] == "accelerometer"}
    sensors = sensor_set(
        ROOT | {"joints": tree.joint_names[0]},
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {"type": "external_wrench", "links": {"except": FEET}, "sigma": 0.01},
        {"type": "external_wrench", "links": FEET, "sigma": 1000},
        *force_torque,
        *accelerometers.values(),
        name="icub",
    )
    return nd.plan(nd.System(tree, sensors), outputs=["tau"]).monitor(
        "numpy"
    )  # a hundred ticks: compiling takes longer


@lru_cache
def motion():
    """Return q, qd and the readings (TICKS, ...) of iCub as it moves all joints slowly, on both feet."""
    tree, system = robot(), monitor().solver.system
    truth = nd.System(
        tree,
        sensor_set(
            ROOT | {"joints": tree.joint_names[0]},
            {"type": "joint_acceleration", "joints": "all"},
            {"type": "external_wrench", "links": {"except": "r_foot"}},
        ),
    )
    rng = np.random.default_rng(11)
    start, swing, pace = tree.neutral_configuration(), rng.uniform(0.1, 0.3, tree.nv), rng.uniform(1, 4, tree.nv)
    swing[:6] = 0
    left = truth.measurement_names.index("fx:l_foot.mx")
    Q, Qd, Y = [], [], []
    for t in DT * np.arange(TICKS):
        q = tree.integrate(start, swing * np.sin(pace * t))
        qd, qdd = swing * pace * np.cos(pace * t), -swing * pace**2 * np.sin(pace * t)
        y = np.zeros(truth.ny)
        y[: tree.nv] = qdd
        y[left : left + 6] = [0.5, -0.3, 0.1, 4, -3, 160]
        d = spla.spsolve(truth.D(q).tocsc(), -truth.b(q, qd, y))
        rows = system.D(q) @ d + system.b(q, qd, np.zeros(system.ny))
        Q, Qd, Y = [*Q, q], [*Qd, qd], [*Y, np.concatenate([rows[row.slice] for row in system.measurements])]
    return np.array(Q), np.array(Qd), np.array(Y)


def noise(seed):
    system = monitor().solver.system
    sigma = np.concatenate([system.weights[list(row.weight_of_rows)] ** -0.5 for row in system.measurements])
    sigma[sigma > 100] = 0  # the feet's weak prior is no sensor
    return sigma * np.random.default_rng(seed).normal(size=(TICKS, system.ny))


def test_sound_sensors_are_not_accused():
    Q, Qd, Y = motion()
    assert monitor().faults(Q, Qd, Y + noise(0)) == ()


@pytest.mark.parametrize("number", [3, 7, 9])
def test_a_stuck_accelerometer_is_named(number):
    """Not the head's, the only one beyond the neck: it and the neck's acceleration may each be what is wrong."""
    Q, Qd, Y = motion()
    Y = Y + noise(1)
    rows = [row for row in monitor().solver.system.measurements if row.equation.group == "accelerometer"]
    row = rows[number]
    Y[:, row.y] = Y[0, row.y]
    (fault,) = monitor().faults(Q, Qd, Y, most=1)
    assert fault.sensor == row.name


@pytest.mark.parametrize("name", ["l_leg_ft", "r_foot_ft"])
def test_a_force_torque_sensor_with_an_offset_is_named(name):
    Q, Qd, Y = motion()
    Y = Y + noise(2)
    (row,) = (row for row in monitor().solver.system.measurements if row.name == name)
    Y[:, row.y] += [0, 0, 0, 3, 0, -2]
    (fault,) = monitor().faults(Q, Qd, Y, most=1)
    assert fault.sensor == name
