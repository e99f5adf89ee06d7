"""Sensors were known by what they are called: their frames, units and joints were read from their names."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.logs.chunks import LogCounts
from nori_dyn.logs.differentiation import Differentiation
from nori_dyn.program.export.interface import Interface
from nori_dyn.system.side_by_side import SideBySide
from tests.logs import samples_in
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set

FEET = {"l_ankle_2": "l_sole", "r_ankle_2": "r_sole"}
FIVE_AXES = ["mx", "my", "fx", "fy", "fz"]


@pytest.mark.parametrize("fields", [{"name": "{} cell"}, {"links": "{ankle}", "frame": "{}"}, {"name": "fx:{ankle}"}])
def test_the_soles_of_icub_are_found_whatever_their_load_cells_are_called(fields):
    """On flat ground the five-axis set loses a rank; under other names, "nothing lost" was reported."""
    cells = [
        {"type": "external_wrench", "links": sole, "components": FIVE_AXES}
        | {key: value.format(sole, ankle=ankle) for key, value in fields.items()}
        for ankle, sole in FEET.items()
    ]
    elsewhere = {"type": "external_wrench", "links": {"except": [*FEET]}, "value": 0}
    base = {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0}
    sensors = sensor_set(ACCELERATIONS, base, elsewhere, *cells)
    report = nd.observability(nd.System(load("iCubGenova04", "floating"), sensors), n=1)
    found = {condition.condition: condition for condition in report.conditions}
    assert set(found["parallel"].frames) == set(FEET.values())
    assert (found["parallel"].lost, found["coplanar"].lost) == (1, 1)


def test_units_in_c_are_those_of_what_is_read():
    tree = nd.autotree(2)
    torque = {"type": "joint_torque", "joints": "joint1", "name": "qdd:joint2"}
    others = {"type": "joint_torque", "joints": "joint2", "name": "knee"}
    forces = {"type": "external_wrench", "links": "link2", "components": ["mz", "fx"], "name": "a:link1"}
    felt = {"type": "accelerometer", "links": "link2", "components": ["ax"]}
    system = nd.System(tree, sensor_set(torque, others, forces, felt))
    readings = Interface("it", (system,), SideBySide([system], "it"), ()).readings
    assert [reading.unit for reading in readings] == ["N m", "N m", "N m", "N", "m/s^2"]


def test_accelerations_that_a_log_lacks_are_made_for_sensors_of_any_name(tmp_path):
    tree = nd.autotree(2)
    renamed = [{"type": "joint_acceleration", "joints": joint, "name": f"my {joint}"} for joint in tree.joint_names]
    system = nd.System(tree, sensor_set(*renamed, {**WRENCHES, "value": 0}))
    t = 0.01 * np.arange(20)
    np.savez(tmp_path / "log.npz", q=np.zeros((20, 2)), qd=np.column_stack([3 * t, 5 * t]))
    window = Differentiation(7, 0.01)
    counts = LogCounts()
    log = samples_in(tmp_path / "log.npz", system, window, counts=counts)
    np.testing.assert_allclose(log.y, np.tile([3.0, 5.0], (20, 1)), rtol=1e-9)
    assert counts.differentiated == ("my joint1", "my joint2")
    torques = [{"type": "joint_torque", "joints": joint, "name": f"qdd:{joint}"} for joint in tree.joint_names]
    with pytest.raises(nd.InputError, match=r"lacks 2 of 2 measurements: 'qdd:joint1', 'qdd:joint2'\. Its"):
        samples_in(tmp_path / "log.npz", nd.System(tree, sensor_set(*torques, {**WRENCHES, "value": 0})), window)


def test_a_relation_is_not_at_the_frame_that_it_is_called_after():
    tree = load("iCubGenova04", "floating")
    relation = {"type": "linear_relation", "name": "l_sole", "terms": {"fx:l_ankle_2.mz": 1.0}, "value": None}
    rows = nd.System(tree, sensor_set(ACCELERATIONS, TORQUES, relation)).rows
    assert rows[-1].frame is None
    assert rows[-1].units == ("",)


def test_what_is_dynamics_is_not_a_matter_of_a_name():
    class Posing:
        """Sensors of another package whose type is called as the group of the equations of motion."""

        name = fingerprint = "posing"

        def equations(self, tree):
            for equation in sensor_set(ACCELERATIONS, WRENCHES).equations(tree):
                object.__setattr__(equation, "group", "dynamics")
                yield equation

    tree = nd.autotree(2)
    system = nd.System(tree, Posing())
    assert sum(row.is_dynamic for row in system.rows) == 3 * tree.n_links
    assert nd.observability(system, where=None).is_observable


def test_names_with_dots_are_counted_apart():
    tree = nd.autotree(2).replace(names=("arm.1", "arm.2"))
    system = nd.System(tree, sensor_set(ACCELERATIONS))
    text = " ".join(str(nd.observability(system, where=None)).split())
    assert "Not determined: fx:arm.1 (6), fx:arm.2 (6), f:arm.1 (6)" in text
