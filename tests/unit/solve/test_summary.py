"""What `print` says of solvers, statuses, estimates and of what a monitor finds."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.status import Status
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

TREE = nd.autotree(3)


def rows(thing) -> list[str]:
    return [" ".join(line.split()) for line in str(thing).splitlines()]


@pytest.fixture(scope="module")
def solver():
    plan = nd.plan(nd.System(TREE, nd.sensors("inverse_dynamics")), ["tau", "qdd:joint2", "f:link3"])
    return plan.solver("numpy")


def test_a_solver_and_an_estimate_name_what_was_asked_for(solver):
    found = rows(solver)
    assert found[2:4] == ["backend numpy", f"operations {solver.plan.cost.total:,} per tick"]
    assert "q read (3,)" in found
    assert "f:link3 written (6,)" in found
    estimate = solver.solve(np.ones(3), np.zeros(3), np.array([1.0, 2.0, 300.0]))
    found = rows(estimate)
    assert found[:4] == [f"robot {TREE.name}", "backend numpy", "residual not checked", "fell back no"]
    assert "joint tau [N m] qdd [rad/s^2]" in found
    assert f"joint2 {estimate.tau[1]:.2f} 2.0000" in found
    assert f"joint3 {estimate.tau[2]:.2f}" in found
    assert "link mx my mz fx fy fz" in found
    assert any(row.startswith("link3 ") for row in found)
    assert "acceleration" not in str(estimate)
    assert "e+0" not in str(estimate)


def test_a_batch_as_text_and_singular_states_are_counted(solver):
    Qdd = np.array([[1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [1.0, 0.5, 3.0]])
    found = rows(solver.solve_batch(np.ones((3, 3)), np.zeros((3, 3)), Qdd))
    assert "states 3" in found
    assert "qdd:joint2 -2.000 0.500 2.000 rad/s^2" in found
    assert any(row.startswith("f:link3.mz ") and row.endswith("N m") for row in found)
    everything = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).solver("numpy")
    estimate = everything.solve_batch(*np.zeros((3, 2, 2)))
    estimate._found[0][1] = np.nan
    found = rows(estimate)
    assert "singular 1 of 2, no unique solution: the values are nan; the first is 1" in found
    assert any(row.startswith("a.wx, all links 0 0 0") for row in found)
    estimate._found[0][:] = np.nan
    assert "a.wx, all links nan nan nan rad/s^2" in rows(estimate)


def test_a_status_as_text():
    assert rows(Status()) == ["state solved as planned"]
    status = Status(False, True, 1.2e-3, 1e-16, cause="the pivot of 'a' is 0")
    assert rows(status) == [
        "state not solved: the outputs are nan",
        "cause the pivot of 'a' is 0",
        "residual 0.0012, relative",
        "rcond 1e-16, singular below 1e-13",
    ]
    assert "\n" not in repr(status)


def test_what_a_monitor_finds_as_text():
    twice = sensor_set({**ACCELERATIONS, "sigma": 0.5}, {**TORQUES, "sigma": 0.3}, UNLOADED)
    monitor = nd.plan(nd.System(TREE, twice), ["tau"]).monitor("numpy")
    q, qd, qdd = np.ones(3), np.zeros(3), np.ones(3)
    tau = nd.rnea(TREE, q, qd, qdd)
    fits, fails = [*qdd, *tau], [*qdd, tau[0] + 30, *tau[1:]]
    sound = " ".join(rows(monitor.check(q, qd, fits)))
    assert "readings 6 weighted; they fit together: chi-square" in sound
    assert "Who explains" not in sound
    assert "joint tau [N m] sigma of tau" in sound
    found = rows(monitor.check(q, qd, fails))
    assert "they do not fit together" in " ".join(found)
    assert "What explains most of the misfit" in found
    batch = monitor.check_batch(np.tile(q, (2, 1)), np.zeros((2, 3)), [fits, fails])
    assert "readings 6 weighted; they fit together in 1 of 2 states" in rows(batch)
