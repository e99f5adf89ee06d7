"""Deviations at weights that differ by decades: they were off by up to four times their value, and nothing said so."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.solve.covariance import Covariance
from tests.compilers import needs_compiler
from tests.exported import Exported
from tests.systems import sensor_set

SENSORS = sensor_set(
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.5},
    {"type": "joint_torque", "joints": "all", "sigma": 0.2},
    {"type": "external_wrench", "links": "all", "value": 0},
)
CLOSE = 1e-5


@pytest.fixture(scope="module")
def plan():
    return nd.plan(nd.System(nd.autotree(3), SENSORS), outputs=("tau", "qdd"))


def states(system, n=60):
    """Return states (q, qd, y, weights): some sensors count next to nothing."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        weights = system.weights * rng.uniform(0.3, 3, size=system.n_weights)
        weights[rng.choice(system.n_weights, size=2, replace=False)] *= 10.0 ** rng.integers(-10, -2)
        yield system.tree.random_configuration(rng), rng.normal(size=3), rng.normal(size=6), weights


def right(system, state):
    """Return the deviations of tau and qdd, by orthogonal factorisations."""
    blocks = [v.slice for kind in ("tau", "qdd") for v in system.variables if v.kind == kind]
    directions = np.concatenate([np.eye(system.shape[1])[block] for block in blocks])
    return np.sqrt(Covariance(system, directions).at(*state).variances)


def test_each_deviation_is_right_at_each_state(plan):
    monitor, afresh = plan.monitor("numpy"), 0
    for state in states(plan.system):
        found = monitor.check(*state)
        expected = right(plan.system, state)
        deviations = np.concatenate([found.deviations["tau"], found.deviations["qdd"]])
        assert np.abs(deviations - expected).max() <= CLOSE * expected.max()
        afresh += not monitor._computed(state, 1)[-1]
    assert 0 < afresh < 60


@needs_compiler
def test_exported_code_is_right_or_says_so(plan, tmp_path):
    made, judged = Exported.of(plan, tmp_path / "it", name="it", monitor=True), 0
    for state in states(plan.system):
        status, found = made.check(*state)
        expected = right(plan.system, state)
        if status == made.library.IT_OK:
            judged += 1
            deviations = np.concatenate([found["sigma_tau"], found["sigma_qdd"]])
            assert np.abs(deviations - expected).max() <= CLOSE * expected.max()
        else:
            assert status == made.library.IT_INACCURATE
    assert judged > 20
