"""States that are well conditioned were refused, as pivots of massless fingers were taken for a condition number."""

from __future__ import annotations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.backends.fresh import FreshSolver
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend, every_backend


@pytest.fixture(scope="module")
def fingers():
    """Return an arm of which some links weigh next to nothing, as fingers in models often do."""
    tree = nd.autotree(7, branching=1.5, skew=0.4)
    scale = np.array([1.0, 1.0, 1.0, 1e-18, 1e-18, 0.0, 0.0])
    return tree.replace(I=tree.I * scale[:, None, None])


@every_backend
def test_massless_fingers_are_no_reason_to_refuse(name, fingers):
    plan = nd.plan(nd.System(fingers, nd.sensors("inverse_dynamics")))
    rng = np.random.default_rng(0)
    q, qd, qdd = fingers.random_configuration(rng), rng.normal(size=fingers.nv), rng.normal(size=fingers.nv)
    estimate = plan.solver(backend(name)).solve(q, qd, qdd)
    assert_close(estimate.tau, nd.rnea(fingers, q, qd, qdd), SOLVED)
    fresh = FreshSolver(plan).solve(q, qd, qdd)
    assert fresh.rcond > 1e-6
    assert fresh.residual < 1e-12


def test_a_robot_at_rest_without_gravity_is_solved_afresh():
    """All of d is zero there, and so is every step of refinement, and what it is held against."""
    system = nd.System(nd.autotree(3, skew=0.5).replace(gravity=(0.0, 0.0, 0.0)), nd.sensors("inverse_dynamics"))
    fresh = FreshSolver(nd.plan(system)).solve(np.ones(3), np.zeros(3), np.zeros(3))
    assert fresh.rcond > 1e-6
    np.testing.assert_array_equal(fresh.d, 0.0)
