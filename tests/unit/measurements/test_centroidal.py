"""Centroidal quantities as outputs of a plan: those of the recursions, which Pinocchio's hold, for any estimate."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InvalidConfigError, ModelError, PlanError, SensorConfigError, UnknownOutputError
from nori_dyn.model.kinematics import velocities
from nori_dyn.recursions import centroidal, crba, momentum_rate
from tests import covering, standing
from tests.compilers import needs_compiler
from tests.noted import noted
from tests.oracles import newton_euler
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close
from tests.trees import FLOATING, TREES, random_state

ALL = sensor_set(ACCELERATIONS, WRENCHES)
NAMES = ("com", "com_velocity", "momentum", "momentum_rate")
EVERY_KIND = "massless", "two_roots", "mixed_8", "mixed"
"""Trees that have every kind of joint together, but for fixed ones; the last floats."""

OUTPUTS = [f"centroidal:{name}" for name in NAMES]


def expected(tree, q, qd, qdd):
    found = centroidal(tree, q, qd)
    return [found.com, found.com_velocity, found.h, found.A @ qdd + found.bias]


def solved(plan, backend, q, qd, y):
    return plan.solver(backend=backend).solve(q, qd, y)


def test_they_are_those_of_the_recursions():
    """Of a fixed base too, whose joint is outside: the rate is that of all accelerations."""
    trees = TREES | FLOATING
    for name in trees if covering.ALL else EVERY_KIND:
        tree = trees[name]
        q, qd, qdd, fx = random_state(tree, 1)
        plan = nd.plan(nd.System(tree, ALL), outputs=["tau", *OUTPUTS])
        estimate = solved(plan, "numpy", q, qd, np.concatenate([qdd, fx.ravel()]))
        with noted(name):
            for output, theirs in zip(OUTPUTS, expected(tree, q, qd, qdd), strict=True):
                assert_close(estimate[output], theirs, SOLVED)
            assert_close(estimate.tau, newton_euler(tree, q, qd, qdd, fx).tau, SOLVED)


@needs_compiler
def test_native_code_batches_and_files_of_plans_have_them(tmp_path):
    tree = FLOATING["arms"]
    plan = nd.plan(tree, ALL, outputs=["centroidal"])
    plan.save(tmp_path / "plan")
    states = [random_state(tree, seed) for seed in range(3)]
    Q, Qd = (np.array([state[k] for state in states]) for k in (0, 1))
    Y = np.array([np.concatenate([qdd, fx.ravel()]) for _, _, qdd, fx in states])
    for one in (plan, nd.Plan.load(tmp_path / "plan")):
        found = one.solver(backend="native").solve_batch(Q, Qd, Y)["centroidal"]
        for k, (q, qd, qdd, _) in enumerate(states):
            assert_close(found[k], np.concatenate(expected(tree, q, qd, qdd)), SOLVED)


def test_in_contact_states_the_rate_is_that_of_the_wrenches_that_are_there():
    tree = standing.robot()
    plan = nd.plan(tree, contacts(), outputs=["fx", "centroidal:momentum_rate"])
    solver, rng = plan.solver(backend="numpy"), np.random.default_rng(2)
    for state in plan.states:
        q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
        y = rng.normal(size=len(plan.measurement_names))
        solver.switch(state)
        estimate = solver.solve(q, qd, y, contacts=state)
        assert_close(estimate["centroidal:momentum_rate"], momentum_rate(tree, q, estimate.fx), SOLVED)


def contacts() -> nd.SensorSet:
    foot = {"type": "external_wrench", "links": "l_foot"}
    return sensor_set(
        ACCELERATIONS | {"joints": "actuated"},
        {"type": "joint_torque", "joints": "root", "value": 0},
        WRENCHES | {"links": {"except": "l_shank"}, "value": 0},
        name="one foot",
        contacts={"foot": {"closed": [foot], "open": [foot | {"value": 0}]}},
    )


def test_deviations_are_those_of_the_accelerations():
    """The covariance of the rate is A P A^T, where P is that of accelerations, which are read and felt by torques."""
    tree, sigma = nd.autotree(3, skew=0.5), 0.3
    torques = TORQUES | {"sigma": 2.0}
    sensors = sensor_set(ACCELERATIONS | {"sigma": sigma}, torques, UNLOADED)
    plan = nd.plan(tree, sensors, outputs=["tau", "centroidal:momentum_rate"])
    q, qd, qdd, _ = random_state(tree, 3)
    A, H = centroidal(tree, q, qd).A, crba(tree, q)
    found = plan.monitor(backend="numpy").check(q, qd, np.concatenate([qdd, np.zeros(3)])).deviations
    P = np.linalg.inv(np.eye(3) / sigma**2 + H @ H / 4.0)
    assert_close(found["centroidal:momentum_rate"], np.sqrt(np.diag(A @ P @ A.T)), SOLVED)


def test_a_batch_of_states_is_each_of_them():
    tree, rng = FLOATING["arms"], np.random.default_rng(4)
    Q, Qd = tree.random_configurations(3, rng), rng.normal(size=(3, tree.nv))
    batch = velocities(tree, Q.T, Qd.T)
    for equation in sensor_set({"type": "centroidal"}).equations(tree):
        for k in range(3):
            at = velocities(tree, Q[k], Qd[k])
            for key, block in equation.blocks(at).items():
                theirs = equation.blocks(batch)[key]
                assert_close(theirs[..., k] if theirs.ndim > 2 else theirs, block, ROUNDING)
            assert_close(equation.bias(batch, np.zeros((0, 3)))[:, k], equation.bias(at, np.zeros(0)), RECURSION)


def test_what_is_asked_for_wrongly_is_refused_by_name():
    tree = nd.autotree(2)
    for name, words in (
        ("com", "Ask for 'centroidal:com'"),
        ("zmp", r"a quotient, and no variable: nd.recursions.zmp\(tree, q, estimate.fx\)"),
        ("centroidal:zmp", "unknown output 'centroidal:zmp'"),
    ):
        with pytest.raises(UnknownOutputError, match=words):
            nd.plan(tree, "inverse_dynamics", outputs=["tau", name])
    with pytest.raises(ModelError, match="has no mass"):
        nd.plan(tree.replace(I=0 * tree.I), "inverse_dynamics", outputs=["centroidal:com"])
    with pytest.raises(SensorConfigError, match=r"'centroidal:com' is along axes of the world.*tracker.base.q"):
        nd.plan(nd.System(standing.robot(), standing.sensors()), outputs=["centroidal:com"])
    for fields, words in (
        ({"sigma": 1}, "are not read: leave sigma out"),
        ({"offset": {"sigma": 1}}, "are not read: leave offset out"),
        ({"name": "x"}, "are not read: leave name out"),
        ({"quantities": ["zmp"]}, "it is 'zmp', expected 'com', 'com_velocity', 'momentum' or 'momentum_rate'"),
    ):
        with pytest.raises(InvalidConfigError, match=words):
            sensor_set({"type": "centroidal", **fields})
    with pytest.raises(PlanError, match="outputs is empty"):
        nd.plan(tree, "inverse_dynamics", outputs=[])


def test_what_is_there_is_not_added_again():
    sensors = sensor_set(ACCELERATIONS, WRENCHES, {"type": "centroidal", "quantities": ["com"]}, name="x")
    plan = nd.plan(nd.autotree(2), sensors, outputs=["centroidal:com"])
    assert plan.sensors is sensors
    more = nd.plan(nd.autotree(2), sensors, outputs=["centroidal:com", "centroidal:momentum"])
    assert more.sensors.measurements[-1].quantities == ["momentum"]
    assert str(plan.sensors).count("centroidal") == 1
