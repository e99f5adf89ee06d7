"""A faulty sensor of iCub, found and named within a hundred ticks, from noise of a realistic size."""

import re
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from tests.robots import ROBOTS, load
from tests.systems import sensor_set

TICKS, DT = 100, 0.01
FEET = ["l_foot", "r_foot"]
UPPER = "neck|[lr]_(shoulder|elbow|wrist)"
"""Joints that are locked where there is little time."""


class Bench(NamedTuple):
    """A monitor, and q, qd and the readings (TICKS, ...) of iCub as it moves all joints slowly, on both feet."""

    monitor: nd.Monitor
    q: np.ndarray
    qd: np.ndarray
    y: np.ndarray

    @property
    def rows(self):
        """The readings by the names of their sensors."""
        return {row.name: row.y for row in self.monitor.solver.system.measurements}

    def noisy(self, seed):
        """Return readings with noise."""
        system = self.monitor.solver.system
        sigma = np.concatenate([system.weights[list(row.weight_of_rows)] ** -0.5 for row in system.measurements])
        sigma[sigma > 100] = 0  # the feet's weak prior is no sensor
        return self.y + sigma * np.random.default_rng(seed).normal(size=self.y.shape)


@pytest.fixture(scope="module", params=[UPPER, pytest.param("", marks=pytest.mark.long)], ids=["legs", "whole"])
def icub(request):
    """Return six force-torque sensors, an accelerometer a link, joint accelerations as if differentiated.

    The feet carry it, nothing else is touched.
    """
    locked = [name for name in load("iCubGenova04").joint_names if re.match(request.param or "$", name)]
    tree = load("iCubGenova04", "floating", kept="sensors", locked=locked)
    model = nd.sensors_from_model(ROBOTS["iCubGenova04"], tree).measurements
    own = [m.model_dump(by_alias=True, exclude_none=True) for m in model]
    force_torque = [{**m, "sigma": [0.02] * 3 + [0.5] * 3} for m in own if m["type"] == "force_torque"]
    accelerometers = {m["links"]: {**m, "sigma": 0.05} for m in own if m["type"] == "accelerometer"}
    root = {"type": "joint_torque", "joints": tree.joint_names[0], "value": 0}
    sensors = sensor_set(
        root,
        {"type": "joint_acceleration", "joints": "actuated", "sigma": 0.5},
        {"type": "external_wrench", "links": {"except": FEET}, "sigma": 0.01},
        {"type": "external_wrench", "links": FEET, "sigma": 1000},
        *force_torque,
        *accelerometers.values(),
        name="icub",
    )
    monitor = nd.plan(nd.System(tree, sensors), outputs=["tau"], ordering="recursive").monitor("numpy")
    free = {"type": "external_wrench", "links": {"except": "r_foot"}}
    truth = nd.System(tree, sensor_set(root, {"type": "joint_acceleration", "joints": "all"}, free))
    return Bench(monitor, *moved(truth, monitor.solver.system))


def moved(truth, system):
    """Return q, qd and what the sensors of a system read."""
    tree = truth.tree
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


def test_sound_sensors_are_not_accused(icub):
    assert icub.monitor.faults(icub.q, icub.qd, icub.noisy(0)) == ()


def test_a_stuck_accelerometer_is_named(icub):
    """Not the head's, the only one beyond the neck: it and the neck's acceleration may each be what is wrong."""
    for name in ("root_link_ems_acc_eb5", "l_upper_arm_mtb_acc_1b13", "r_upper_leg_mtb_acc_11b7"):
        Y = icub.noisy(1)
        Y[:, icub.rows[name]] = Y[0, icub.rows[name]]
        (fault,) = icub.monitor.faults(icub.q, icub.qd, Y, most=1)
        assert fault.sensor == name


def test_a_force_torque_sensor_with_an_offset_is_named(icub):
    for name in ("l_leg_ft", "r_foot_ft"):
        Y = icub.noisy(2)
        Y[:, icub.rows[name]] += [0, 0, 0, 3, 0, -2]
        (fault,) = icub.monitor.faults(icub.q, icub.qd, Y, most=1)
        assert fault.sensor == name
