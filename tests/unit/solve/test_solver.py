"""The solver: what it refuses, what it returns, and what it does at and near singular states."""

import re
from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.planning.orderings.umfpack import has_umfpack, umfpack_module
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.registry import BACKENDS
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from tests.contracts.test_backends import TwoReadings, singular_tree
from tests.oracles import refined_solution
from tests.systems import FORWARD, random_states, readings
from tests.tolerances import EXACT, SOLVED, assert_close
from tests.trees import TREES

TREE = TREES["two_roots"]
SOME = ("qdd", "fx:tool", "a:palm", "tau:joint5")


@lru_cache(maxsize=8)
def planned(outputs: tuple[str, ...] | None = None) -> Plan:
    return plan(System(TREE, FORWARD), outputs=outputs)


@pytest.fixture
def solver() -> Solver:
    return planned().solver("numpy")


@pytest.fixture
def state(solver):
    truth = random_states(TREE, 1, seed=3)
    truth = truth._replace(tau=np.random.default_rng(4).normal(size=(1, TREE.nv)))
    return truth.q[0], truth.qd[0], readings(solver.system, truth)[0]


def backend(name: str) -> str:
    if name == "umfpack" and not has_umfpack():
        pytest.skip("the extra 'umfpack' is not installed")
    if name == "native" and find_compiler() is None:
        pytest.skip("there is no C compiler")
    return name


every_backend = pytest.mark.parametrize("name", BACKENDS)


WRONG = [
    (lambda x: x[:-1], r"has shape \(\d+,\), expected"),
    (lambda x: np.append(x, 0.0), "has shape"),
    (lambda x: x[None], r"has shape \(1, \d+\), expected"),
    (lambda x: 1.0, r"has shape \(\), expected"),
    (lambda x: ["a"] * len(x), "is not an array of numbers"),
    (lambda x: None, "is not an array of numbers: it holds None"),
]


@pytest.mark.parametrize("place", range(3), ids=["q", "qd", "y"])
def test_wrong_input_is_refused_by_name(solver, state, place):
    which = ("q", "qd", "y")[place]
    good = state[place]

    def refused(value, message, batch=False):
        given = [np.tile(x, (3, 1)) for x in state] if batch else [*state]
        given[place] = value
        with pytest.raises(InputError, match=message):
            (solver.solve_batch if batch else solver.solve)(*given)

    for change, message in WRONG:
        refused(change(good), f"^{which} {message}")
    label = rf" \('{re.escape(solver.system.measurement_names[4])}'\)" if which == "y" else ""
    for value in (np.nan, np.inf, -np.inf):
        refused(np.where(np.arange(len(good)) == 4, value, good), rf"{which}\[4\]{label} is {value}: .* finite")
    many = np.tile(good, (3, 1))
    refused(many[:, :-1], f"{which.capitalize()} has shape", batch=True)
    refused(good, f"{which.capitalize()} has shape", batch=True)
    if which != "q":
        refused(many[:2], rf"{which.capitalize()} has shape \(2, \d+\), expected \(3", batch=True)
    with pytest.raises(InputError, match="with N at least 1"):
        solver.solve_batch(*(np.empty((0, len(x))) for x in state))
    many[1, 2] = np.nan
    refused(many, rf"{which.capitalize()}\[1, 2\].* is nan", batch=True)


def test_readings_are_taken_by_name_and_numbers_as_lists_of_integers(solver, state):
    q, qd, y = state
    expected = solver.solve(q, qd, y)
    by_number = dict(zip(solver.system.measurement_names, y, strict=True))
    by_block = {row.name: y[row.y] for row in solver.system.measurements}
    for named in (by_number, by_block):
        assert_close(solver.solve(q, qd, named).qdd, expected.qdd, EXACT)
    with pytest.raises(InputError, match=r"unknown measurement 'fx:lnk1'.*Did you mean 'fx:link1'"):
        solver.solve(q, qd, by_block | {"fx:lnk1": y[:6]})
    q, qd, y = TREE.neutral_configuration(), np.zeros(TREE.nv), np.zeros(solver.system.ny)
    estimate = solver.solve(q.tolist(), [0] * TREE.nv, [0] * solver.system.ny)
    assert_close(estimate.qdd, solver.solve(q, qd, y).qdd, EXACT)


def test_outputs_in_a_frame_and_no_others(state):
    """A wrench on a tool is the link's, in the tool's frame; an acceleration is that of the tool's point."""
    solver, everything = planned(SOME).solver("numpy"), planned().solver("numpy").solve(*state)
    assert_close(solver.inputs.q, TREE.neutral_configuration(), EXACT)  # inputs start at rest
    assert not solver.inputs.qd.any()
    assert not solver.inputs.y.any()
    arrays, estimate = dict(vars(solver.outputs)), solver.solve(*state)
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = state
    solver.tick().raise_for_status()
    for key, array in arrays.items():
        assert getattr(solver.outputs, key) is array
        assert_close(array, estimate[key], SOLVED)
    tool, palm = TREE.frame("tool"), TREE.frame("palm")
    assert_close(estimate["fx:tool"], tool.X.force_matrix() @ everything.fx[tool.link], SOLVED)
    assert_close(estimate["a:palm"], palm.X.motion_matrix() @ everything.a[palm.link], SOLVED)
    assert_close(estimate["tau:joint5"], everything.tau[TREE.v_slices[4]], SOLVED)
    batch = solver.solve_batch(*(np.tile(x, (2, 1)) for x in state))
    assert_close(batch["fx:tool"][1], estimate["fx:tool"], SOLVED)
    with pytest.raises(InputError, match="'tau' was not requested: the plan's outputs are 'qdd', 'fx:tool'"):
        _ = estimate.tau


@lru_cache(maxsize=1)
def singular_plan() -> Plan:
    return plan(System(singular_tree(), TwoReadings()))


def singular_state(angle: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    system = singular_plan().system
    rng = np.random.default_rng(5)
    return np.array([0.7, angle]), rng.normal(size=2), rng.normal(size=system.ny)


@every_backend
def test_a_number_is_right_or_there_is_none(name):
    """Over twenty decades on the way to a singular state: right to 1e-9, or an error. Never wrong.

    Near it the planned order is given up, and the estimate says so.
    """
    solver = singular_plan().solver(backend(name))
    system = solver.system
    for exponent in range(-20, 0):
        state = singular_state(10.0**exponent)
        try:
            estimate = solver.solve(*state)
        except SingularSystemError:
            assert exponent < (-10 if name == "umfpack" else -11)
            continue
        d = refined_solution(system, *state)
        assert_close(estimate.qdd, np.concatenate([d[system.column("qdd", i)] for i in range(2)]), SOLVED)
        assert_close(estimate.tau, np.concatenate([d[system.column("tau", i)] for i in range(2)]), SOLVED)
        if name != "umfpack" and exponent <= -6:
            assert estimate.fell_back
    assert not solver.solve(*singular_state(0.5)).fell_back


@pytest.mark.skipif(not has_umfpack(), reason="the extra 'umfpack' is not installed")
def test_umfpack_analyses_once_per_plan_and_refactorises_every_tick(monkeypatch, state):
    module = umfpack_module()
    calls = {"symbolic": 0, "numeric": 0}
    for step in calls:
        done = getattr(module.UmfpackContext, step)

        def counted(self, *args, done=done, step=step, **kwargs):
            calls[step] += 1
            return done(self, *args, **kwargs)

        monkeypatch.setattr(module.UmfpackContext, step, counted)
    solver = planned().solver("umfpack")
    assert calls == {"symbolic": 1, "numeric": 0}
    solver.solve(*state)
    for _ in range(10):
        solver.inputs.q[:] = state[0]
        assert solver.tick().ok
    solver.solve_batch(*(np.tile(x, (5, 1)) for x in state))
    assert calls == {"symbolic": 1, "numeric": 16}
