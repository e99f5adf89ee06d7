"""Solvers that do not wait for the compiler: NumPy first, native code when it is there, errors where they are seen."""

from threading import Event
from threading import enumerate as enumerate_threads

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import CompilerError, InputError, NoriWarning
from nori_dyn.program.kernel.registry import BACKENDS, native_kernel
from tests.compilers import needs_compiler
from tests.systems import ACCELERATIONS, UNLOADED, WRENCHES, sensor_set

pytestmark = needs_compiler


@pytest.fixture
def plan(own_cache) -> nd.Plan:
    """A plan of which nothing is compiled yet."""
    return nd.plan(nd.System(nd.autotree(3), "forward_dynamics"), outputs=["qdd"])


@pytest.fixture
def gate(monkeypatch) -> Event:
    """What holds the compiler up until it is set."""
    gate = Event()

    def held(*args):
        gate.wait()
        return native_kernel(*args)

    monkeypatch.setitem(BACKENDS, "native", held)
    return gate


def expected(plan: nd.Plan, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    return np.linalg.solve(nd.crba(plan.system.tree, q), tau - nd.rnea(plan.system.tree, q, np.zeros(3), np.zeros(3)))


def test_numpy_serves_until_native_code_is_there(plan, gate):
    solver, rng = plan.solver(wait=False), np.random.default_rng(0)
    tick = solver.tick
    for backend in ("numpy", "native"):
        assert solver.backend == backend
        for _ in range(3):
            q, tau = rng.normal(size=3), rng.normal(size=3)
            estimate = solver.solve(q, np.zeros(3), tau)
            assert estimate.qdd == pytest.approx(expected(plan, q, tau), rel=1e-11, abs=1e-11)
            many = solver.solve_batch(q[None], np.zeros((1, 3)), tau[None])
            assert estimate.backend == many.backend == backend
            assert many.qdd[0] == pytest.approx(estimate.qdd, rel=1e-12, abs=1e-12)
            solver.inputs.q[:], solver.inputs.y[:] = q, tau
            assert tick().ok
            assert solver.outputs.qdd == pytest.approx(estimate.qdd, rel=1e-12, abs=1e-12)
        with pytest.raises(InputError, match="q has shape"):
            solver.solve(np.zeros(2), np.zeros(3), np.zeros(3))
        gate.set()
        solver.kernel.join()
    assert plan.solver(wait=False).backend == "native"  # what is compiled already serves at once


def test_a_compiler_that_fails_is_told_to_the_next_call(plan, monkeypatch):
    def failing(*_) -> None:
        raise CompilerError("the compiler 'cc' fails: no space left.")

    monkeypatch.setitem(BACKENDS, "native", failing)
    solver = plan.solver(wait=False)
    solver.kernel.join()
    with pytest.warns(NoriWarning, match="The plan goes on through NumPy"):
        estimate = solver.solve(np.zeros(3), np.zeros(3), np.ones(3))
    assert estimate.backend == solver.backend == "numpy"
    with pytest.raises(InputError, match="wait=False is for"):  # a backend that is named is waited for
        plan.solver("native", wait=False)


def test_the_states_of_a_set_are_compiled_one_after_the_other(own_cache, monkeypatch):
    at_once, most = [], []

    def watched(*args):
        at_once.append(1)
        most.append(len(at_once))
        made = native_kernel(*args)
        at_once.pop()
        return made

    monkeypatch.setitem(BACKENDS, "native", watched)
    contacts = {"tip": {"closed": [WRENCHES], "open": [UNLOADED]}}
    sensors = sensor_set(ACCELERATIONS, name="touch", contacts=contacts)
    plans = nd.plan(nd.autotree(1), sensors, outputs=["tau"])
    solver = plans.solver(wait=False)
    alone = float(nd.rnea(plans.tree, np.zeros(1), np.zeros(1), np.ones(1))[0])
    for _ in range(2):
        for closed, expected in (([], alone), (["tip"], alone - 0.5)):
            solver.switch(closed)
            solver.inputs.y[:] = 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0
            assert solver.tick().ok
            assert solver.outputs.tau == pytest.approx([expected], abs=1e-12)
        for one in solver._solvers.values():
            one.kernel.join()
    assert solver.backend == "native"
    assert most == [1, 1]


def test_states_that_nobody_needs_yet_are_planned_behind(own_cache):
    contacts = {"tip": {"closed": [WRENCHES], "open": [UNLOADED]}}
    plan = nd.plan(nd.autotree(1), sensor_set(ACCELERATIONS, name="touch", contacts=contacts), outputs=["tau"])
    assert "no contact: planned when needed" in repr(plan)
    plan.solver(wait=False)
    for thread in enumerate_threads():
        if thread.name == "nori_dyn plans":
            thread.join()
    assert "planned when needed" not in repr(plan)
