"""Exported C and weights: it begins with those configured, and says which cannot be used."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.contracts.test_export import INPUT_NOT_FINITE, NEGATIVE_WEIGHT, OK, WEIGHT_SPREAD, ZERO_WEIGHT
from tests.exported import Exported, listed
from tests.systems import sensor_set
from tests.tolerances import SAME_PROGRAM, assert_close
from tests.trees import TREES

pytestmark = needs_compiler

SENSORS = sensor_set(
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.5},
    {"type": "joint_torque", "joints": "all", "sigma": [0.2]},
    {"type": "external_wrench", "links": "all", "value": 0},
)


@pytest.fixture(scope="module")
def plan():
    return nd.plan(nd.System(nd.autotree(3), SENSORS), outputs=("tau", "qdd"))


@pytest.fixture(scope="module")
def made(plan, tmp_path_factory):
    return Exported.of(plan, tmp_path_factory.mktemp("weights") / "it", name="it")


def test_inputs_are_ready_after_one_call(made, plan):
    given, work, out = made.new("inputs"), made.new("workspace"), made.new("outputs")
    made.call("init", given)
    assert listed(given, "weights") == plan.system.weights.tolist()
    assert listed(given, "qd") == [0.0] * plan.system.tree.nv
    assert listed(given, "y") == [0.0] * plan.system.ny
    assert listed(made.library, "it_default_weights") == plan.system.weights.tolist()
    assert made.call("solve", given, work, out) == OK
    expected = plan.solver("numpy").solve(listed(given, "q"), listed(given, "qd"), listed(given, "y"))
    assert_close(np.array(listed(out, "tau")), expected.tau, SAME_PROGRAM)


def test_quaternions_begin_at_unit_length(tmp_path):
    tree = TREES["two_roots"]
    assert tree.quaternions
    exported = Exported.of(nd.plan(nd.System(tree, nd.sensors("inverse_dynamics")), outputs=("tau",)), tmp_path / "it")
    given = exported.new("inputs")
    exported.call("init", given)
    assert listed(given, "q") == tree.neutral_configuration().tolist()
    assert exported.call("solve", given, exported.new("workspace"), exported.new("outputs")) == OK


@pytest.mark.parametrize(
    ("weights", "status"),
    [
        ([1, 1, 1, 1, 1, -1e-300], NEGATIVE_WEIGHT),
        ([1, 1, 1, 1, 1, np.nan], INPUT_NOT_FINITE),
        ([1, 1, 1, 1, 1, np.inf], INPUT_NOT_FINITE),
        ([1, 1, 1, 1, 1, 2e14], WEIGHT_SPREAD),
        ([1, 1, 1, 1, 1, 1e-15], WEIGHT_SPREAD),
        ([0, 0, 0, 0, 0, 0], ZERO_WEIGHT),
        ([0, 0, 1, 0, 0, 1], ZERO_WEIGHT),
        ([0, 1, 1, 0, 1, 1], OK),
        ([1, 1, 1, 1e-6, 1e-6, 1e-6], OK),
    ],
)
def test_weights_that_cannot_be_used_have_a_status_of_their_own(made, plan, weights, status):
    q, qd, y = np.full(3, 0.3), np.ones(3), np.arange(6.0)
    found, outputs = made.solve(q, qd, y, np.array(weights, dtype=float))
    assert found == status
    if status == OK:
        expected = plan.solver("numpy").solve(q, qd, y, np.array(weights, dtype=float))
        assert_close(outputs["tau"], expected.tau, SAME_PROGRAM)
    else:
        assert all(np.isnan(values).all() for values in outputs.values())
        words = made.ffi.string(made.call("status_text", found)).decode()
        assert "weight" in words or status == INPUT_NOT_FINITE


def test_what_the_planned_order_divides_by_is_told_where_python_solves_afresh(made, plan):
    state = np.full(3, 0.3), np.ones(3), np.arange(6.0), np.array([0.0, 0, 0, 1, 1, 1])
    assert plan.solver("numpy").solve(*state).fell_back
    assert made.solve(*state)[0] == ZERO_WEIGHT


def test_places_have_names(made, plan):
    indices, system = made.export.indices, plan.system
    joints = system.tree.joint_names
    assert [indices[f"IT_Q_{name}"] for name in joints] == [0, 1, 2]
    assert [indices[f"IT_QD_{name}"] for name in joints] == [0, 1, 2]
    assert [indices[f"IT_TAU_{name}"] for name in joints] == [0, 1, 2]
    for group, names in (("Y", system.measurement_names), ("WEIGHT", system.weight_names)):
        assert [indices[f"IT_{group}_{name.replace(':', '_')}"] for name in names] == list(range(len(names)))
    declared = {name: getattr(made.library, name) for name in indices}
    assert declared == dict(indices)
