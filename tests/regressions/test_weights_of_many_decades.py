"""Weighted estimates at weights that differ by decades: digits were lost before the pivots, and nothing said so."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError
from tests.agreement.test_weighted import reference, unknowns
from tests.exported import Exported
from tests.systems import sensor_set
from tests.unit.solve.test_solver import backend, every_backend

TWO_LINKS = sensor_set(
    {"type": "joint_acceleration", "joints": "all", "sigma": 1},
    {"type": "joint_torque", "joints": "all", "sigma": 1},
    {"type": "external_wrench", "links": "all", "value": 0},
)
POSE = np.array([2.865066744043162, 1.9823603088744148])
WEIGHTS = np.array([1e-6, 1e-6, 1e-6, 1e6])
STATES = 60
CLOSE = 1e-8


def two_links():
    return nd.plan(nd.System(nd.autotree(2, skew=0.6), TWO_LINKS))


def states(system):
    """Return states (q, qd, y, weights) with the one that was off by eleven times its value first."""
    rng = np.random.default_rng(0)
    yield POSE, rng.normal(size=2), rng.normal(size=4), WEIGHTS
    for _ in range(STATES):
        q = system.tree.random_configuration(rng)
        yield q, rng.normal(size=2), rng.normal(size=4), rng.choice([1e-6, 1.0, 1e6], size=4)


@every_backend
def test_each_entry_is_right_at_each_state(name):
    plan = two_links()
    solver, given = plan.solver(backend(name)), list(states(plan.system))
    batch = solver.solve_batch(*(np.array(part) for part in zip(*given, strict=True)))
    for k, state in enumerate(given):
        right = np.asarray(reference(plan.system, *state).d, dtype=float)
        for array, value in zip(("q", "qd", "y", "weights"), state, strict=True):
            getattr(solver.inputs, array)[:] = value
        solver.tick().raise_for_status()
        tau = right[[v.slice.start for v in plan.system.variables if v.kind == "tau"]]
        allowed = CLOSE * max(1.0, np.abs(right).max())
        assert np.abs(unknowns(plan.system, solver.solve(*state)) - right).max() <= allowed
        assert np.abs(batch.tau[k] - tau).max() <= allowed
        assert np.abs(solver.outputs.tau - tau).max() <= allowed


def test_exported_code_is_right_or_says_so(tmp_path):
    plan = two_links()
    made, solved = Exported.of(plan, tmp_path), 0
    for state in states(plan.system):
        status, outputs = made.solve(*state)
        right = np.asarray(reference(plan.system, *state).d, dtype=float)
        tau = right[[v.slice.start for v in plan.system.variables if v.kind == "tau"]]
        assert status or np.abs(outputs["tau"] - tau).max() <= CLOSE * max(1.0, np.abs(right).max())
        solved += not status
    assert solved >= 0.9 * STATES


@every_backend
@pytest.mark.parametrize(("array", "value"), [("y", np.nan), ("qd", np.inf), ("weights", -1.0)])
def test_a_tick_with_such_an_input_is_not_ok_and_says_why(name, array, value):
    plan = two_links()
    solver = plan.solver(backend(name))
    solver.inputs.q[:] = POSE
    getattr(solver.inputs, array)[1] = value
    status = solver.tick()
    assert not status.ok
    assert array[:6] in status.cause
    assert np.isnan(solver.outputs.tau).all()
    with pytest.raises(InputError, match=array[:6]):
        status.raise_for_status()


def test_a_status_names_the_pivot_that_tripped():
    tree = nd.autotree(3)
    tree = tree.replace(I=tree.I * np.array([1.0, 1.0, 1e-9])[:, None, None])
    solver = nd.plan(nd.System(tree, nd.sensors("forward_dynamics"))).solver("native")
    solver.inputs.y[0] = np.nan
    assert "y[0] is nan" in solver.tick().cause
