"""Sensors at an end of their range: refused by name, or left out as those without a reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.errors import InputError, SaturatedReadingError, SensorConfigError
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import unusable
from tests.contracts.test_backends import Turned
from tests.systems import ACCELERATIONS, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend, every_backend

TREE = nd.autotree(4, branching=2, skew=0.4)

MOTION = ACCELERATIONS | {"sigma": 0.1}
TORQUE = {"type": "joint_torque", "joints": "joint2", "sigma": 0.2, "range": [-8, 8]}
CELL = {
    "type": "external_wrench",
    "links": "link4",
    "sigma": [0.1, 0.1, 0.1, 1, 1, 1],
    "range": [[-2, 2], [-2, 2], [None, 2], [-9, 9], [-9, 9], [-9, None]],
}
ACCELEROMETER = {"type": "accelerometer", "links": "link3", "sigma": 0.3, "range": [-20, 20]}
WRENCHES = {"type": "external_wrench", "links": {"except": "link4"}, "value": 0}
ENTRIES = (MOTION, TORQUE, CELL, ACCELEROMETER, WRENCHES)


@lru_cache
def planned(*left_out: str) -> nd.Plan:
    """A plan without the sensors of some types."""
    entries = [entry for entry in ENTRIES if entry["type"] not in left_out or entry is WRENCHES]
    return nd.plan(System(TREE, sensor_set(*entries)))


def state(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return TREE.random_configuration(rng), rng.normal(size=TREE.nv), rng.uniform(-1, 1, planned().system.ny)


def place(name: str) -> int:
    return planned().system.measurement_names.index(name)


def without(y: np.ndarray, kind: str) -> np.ndarray:
    """The readings that the others give."""
    return np.delete(y, numbers_in([row.y for row in planned().system.measurements if row.equation.group == kind]))


@every_backend
def test_a_saturated_sensor_is_refused_by_name(name):
    solver = planned().solver(backend(name))
    for reading, value, ends in (
        ("tau:joint2", 8.0, (-8.0, 8.0)),
        ("tau:joint2", -8.0, (-8.0, 8.0)),
        ("tau:joint2", 1e9, (-8.0, 8.0)),
        ("fx:link4.my", 2.5, (-2.0, 2.0)),
        ("fx:link4.mz", 2.5, (-np.inf, 2.0)),
        ("fx:link4.fz", -9.0, (-9.0, np.inf)),
        ("acc:link3.ay", 20.0, (-20.0, 20.0)),
    ):
        q, qd, y = state()
        y[place(reading)] = value
        said = re.escape(f"[{place(reading)}] ('{reading}') is {value:g}: the sensor is saturated, ")
        with pytest.raises(SaturatedReadingError, match=rf"y{said}.*missing='drop'") as caught:
            solver.solve(q, qd, y)
        assert (caught.value.name, caught.value.value, caught.value.range) == (reading, value, ends)
        assert isinstance(caught.value, InputError)
        with pytest.raises(SaturatedReadingError, match=reading):
            solver.solve(q, qd, dict(zip(solver.system.measurement_names, y, strict=True)))
        Y = np.stack([state()[2], y, state()[2]])
        with pytest.raises(SaturatedReadingError, match=rf"Y\[1, {place(reading)}\] \('{reading}'\)"):
            solver.solve_batch(*(np.tile(x, (3, 1)) for x in (q, qd)), Y)


def test_readings_within_the_range_are_taken_and_without_a_range_nothing_is_compared(monkeypatch):
    def fail(self, y):
        raise AssertionError("compared")

    q, qd, y = state()
    y[[place("tau:joint2"), place("fx:link4.mz"), place("fx:link4.fz")]] = np.nextafter(8, 0), -1e9, 1e9
    bare = [{key: value for key, value in entry.items() if key != "range"} for entry in ENTRIES]
    free, ranged = nd.plan(System(TREE, sensor_set(*bare))).solver(), planned().solver()
    assert free.system.ranges is None
    found = ranged.solve(q, qd, y).tau
    monkeypatch.setattr(System, "saturated", fail)
    assert_close(found, free.solve(q, qd, y).tau, SOLVED)
    free.solve_batch(*(x[None] for x in (q, qd, y)))
    with pytest.raises(AssertionError, match="compared"):
        ranged.solve(q, qd, y)


@every_backend
def test_a_dropped_sensor_is_that_of_a_set_without_it(name):
    """Its components share a weight, so that they go together."""
    q, qd, good = state(1)
    solver = planned().solver(backend(name))
    expected = planned("accelerometer").solver("numpy").solve(q, qd, without(good, "accelerometer"))
    whole = solver.solve(q, qd, good)
    assert np.abs(whole.tau - expected.tau).max() > 1e-6
    for value, missing in ((-100.0, "x"), (20.0, "xz"), (np.nan, "x"), (np.inf, "xz")):
        y = good.copy()
        y[[place(f"acc:link3.a{axis}") for axis in missing]] = value
        found = solver.solve(q, qd, y, missing="drop")
        for kind in ("a", "f", "tau", "fx", "qdd"):
            assert_close(found[kind], expected[kind], SOLVED)
        Y = np.stack([good, y, good])
        batch = solver.solve_batch(np.tile(q, (3, 1)), np.tile(qd, (3, 1)), Y, missing="drop")
        assert_close(batch.tau, np.stack([whole.tau, expected.tau, whole.tau]), SOLVED)


def test_components_with_weights_of_their_own_are_dropped_alone():
    q, qd, y = state(2)
    y[place("fx:link4.mz")] = 3.0
    solver = planned().solver()
    by_hand = y.copy()
    by_hand[place("fx:link4.mz")] = 0
    expected = solver.solve(q, qd, by_hand, {"fx:link4.mz": 0})
    assert_close(solver.solve(q, qd, y, missing="drop").tau, expected.tau, SOLVED)
    lost = dict(zip(solver.system.weight_names, unusable(solver.system, y), strict=True))
    assert [name for name, gone in lost.items() if gone] == ["fx:link4.mz"]


def test_what_has_no_weight_may_be_saturated():
    q, qd, y = state(3)
    solver = planned().solver()
    expected = solver.solve(q, qd, y, {"tau:joint2": 0})
    y[place("tau:joint2")] = 50.0
    assert_close(solver.solve(q, qd, y, {"tau:joint2": 0}).tau, expected.tau, SOLVED)
    weights = np.tile(solver.system.weights, (2, 1))
    weights[0, solver.system.weight_names.index("tau:joint2")] = 0
    twice = [np.tile(x, (2, 1)) for x in (q, qd, y)]
    with pytest.raises(SaturatedReadingError, match=r"Y\[1, "):
        solver.solve_batch(*twice, weights)


@pytest.mark.parametrize("others", [{}, {"sigma": 0.1}], ids=["exact set", "weighed set"])
def test_what_holds_exactly_cannot_be_left_out(others):
    """Rows of a sensor without a sigma hold exactly, in a square set and beside weighed ones."""
    free = [{"type": "joint_torque", "joints": "joint1", **others}] if others else []
    motion = ACCELERATIONS | {"range": [-5, 5]}
    solver = nd.plan(System(TREE, sensor_set(motion, *free, {**WRENCHES, "links": "all"}))).solver()
    message = r"'qdd:joint3'\) is -5: .* between -5 and 5.* exact and cannot be left out: .*`sigma`"
    for missing in ("refuse", "drop"):
        q, qd, y = np.zeros(4), np.zeros(4), np.zeros(solver.system.ny)
        solver.solve(q, qd, y, missing=missing)
        y[2] = -5.0
        with pytest.raises(SaturatedReadingError, match=message) as caught:
            solver.solve(q, qd, y, missing=missing)
        assert caught.value.is_exact
        with pytest.raises(SaturatedReadingError, match=message):
            solver.solve_batch(q[None], qd[None], y[None], missing=missing)


def test_ranges_lie_in_the_order_of_the_readings():
    system = planned().system
    assert system.ranges.shape == (2, system.ny)
    assert not system.ranges.flags.writeable
    assert system.ranges[:, place("fx:link4.mz")].tolist() == [-np.inf, 2]
    assert system.ranges[:, place("qdd:joint1")].tolist() == [-np.inf, np.inf]
    Y = np.zeros((2, 3, system.ny))
    Y[1, 2, place("tau:joint2")] = -9
    assert np.argwhere(system.saturated(Y)).tolist() == [[1, 2, place("tau:joint2")]]


def test_a_range_is_part_of_a_plans_file(tmp_path):
    plan = planned()
    plan.save(tmp_path / "it.plan")
    again = nd.Plan.load(tmp_path / "it.plan")
    np.testing.assert_array_equal(again.system.ranges, plan.system.ranges)
    q, qd, y = state()
    y[place("tau:joint2")] = 8
    with pytest.raises(SaturatedReadingError, match="tau:joint2"):
        again.solver().solve(q, qd, y)
    assert sensor_set(TORQUE).fingerprint != sensor_set({**TORQUE, "range": [-8, 9]}).fingerprint


class Unaware(Measurement):
    """A sensor of another package, whose equations know nothing of ranges."""

    type: Literal["unaware"] = "unaware"

    def on(self, tree: KinematicTree) -> Iterator[Turned]:
        yield Turned()


def test_a_sensor_whose_equations_know_no_range_may_not_have_one():
    assert System(nd.autotree(2), SensorSet("plain", (Unaware(),))).ranges is None
    with pytest.raises(SensorConfigError, match=r"measurement 1 .*a 'unaware' takes no range"):
        System(nd.autotree(2), SensorSet("ranged", (Unaware(range=[0, 1]),)))
