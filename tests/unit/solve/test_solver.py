"""The solver: what it refuses, what it returns, and what it does at and near singular states."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.api.plan import Plan, plan
from nori_dyn.errors import BackendError, InputError, NoriError, SingularSystemError
from nori_dyn.planning.orderings.umfpack import has_umfpack, umfpack_module
from nori_dyn.program.backends.base import RCOND_LIMIT
from nori_dyn.program.backends.registry import BACKENDS
from nori_dyn.program.compiler import find_compiler
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from tests.contracts.test_backends import TwoReadings, exact, singular_tree
from tests.systems import ACCELERATIONS, FORWARD, INVERSE, WRENCHES, random_states, readings, sensor_set
from tests.tolerances import EXACT, ROUNDING, SOLVED, assert_close
from tests.trees import TREES

TREE = TREES["two_roots"]


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


# ----------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize("which", ["q", "qd", "y"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:-1], r"has shape \(\d+,\), expected"),
        (lambda x: np.append(x, 0.0), "has shape"),
        (lambda x: x[None], r"has shape \(1, \d+\), expected"),
        (lambda x: 1.0, r"has shape \(\), expected"),
        (lambda x: ["a"] * len(x), "is not an array of numbers"),
        (lambda x: None, "is not an array of numbers: it holds None"),
    ],
    ids=["short", "long", "two dimensions", "scalar", "text", "none"],
)
def test_wrong_shapes_are_refused_by_name(solver, state, which, change, message):
    inputs = dict(zip(("q", "qd", "y"), state, strict=True))
    inputs[which] = change(inputs[which])
    with pytest.raises(InputError, match=message) as raised:
        solver.solve(**inputs)
    assert str(raised.value).startswith(f"{which} ")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "qd", "y"])
def test_what_is_not_finite_is_refused_by_name(solver, state, which, value):
    inputs = {name: array.copy() for name, array in zip(("q", "qd", "y"), state, strict=True)}
    inputs[which][4] = value
    label = f" ('{solver.system.measurement_names[4]}')" if which == "y" else ""
    with pytest.raises(InputError) as raised:
        solver.solve(**inputs)
    assert f"{which}[4]{label} is {value}: values must be finite" in str(raised.value)


@pytest.mark.parametrize("which", ["Q", "Qd", "Y"])
def test_batches_are_checked_as_well(solver, state, which):
    def inputs(**changes):
        good = dict(zip(("Q", "Qd", "Y"), (np.tile(x, (3, 1)) for x in state), strict=True))
        return good | changes

    good = inputs()[which]
    with pytest.raises(InputError, match=rf"{which} has shape"):
        solver.solve_batch(**inputs(**{which: good[:, :-1]}))
    with pytest.raises(InputError, match=rf"{which} has shape"):
        solver.solve_batch(**inputs(**{which: good[0]}))
    broken = good.copy()
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match=rf"{which}\[1, 2\].* is nan"):
        solver.solve_batch(**inputs(**{which: broken}))


def test_an_empty_batch_and_batches_of_different_lengths_are_refused(solver, state):
    Q, Qd, Y = (np.tile(x, (3, 1)) for x in state)
    with pytest.raises(InputError, match="with N at least 1"):
        solver.solve_batch(Q[:0], Qd[:0], Y[:0])
    with pytest.raises(InputError, match=r"Qd has shape \(2, \d+\), expected \(3"):
        solver.solve_batch(Q, Qd[:2], Y)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.01])
def test_a_quaternion_that_is_not_unit_is_refused_by_joint(solver, state, scale):
    q, qd, y = state
    part = TREE.quaternions[0]
    q = q.copy()
    q[part] *= scale
    with pytest.raises(InputError, match=r"quaternion .* of joint 'joint3'.*instead of 1"):
        solver.solve(q, qd, y)
    with pytest.raises(InputError, match=r"quaternion .* of joint 'joint3'"):
        solver.solve_batch(np.tile(q, (2, 1)), np.tile(qd, (2, 1)), np.tile(y, (2, 1)))


def test_a_quaternion_that_is_nearly_unit_is_normalised_in_a_copy(solver, state):
    q, qd, y = state
    stretched = q.copy()
    stretched[TREE.quaternions[0]] *= 1.0005
    before = stretched.copy()
    assert_close(solver.solve(stretched, qd, y).qdd, solver.solve(q, qd, y).qdd, SOLVED)
    assert_close(stretched, before, EXACT)


def test_readings_by_name(solver, state):
    q, qd, y = state
    system = solver.system
    expected = solver.solve(q, qd, y)
    by_number = dict(zip(system.measurement_names, y, strict=True))
    assert_close(solver.solve(q, qd, by_number).qdd, expected.qdd, EXACT)
    by_block = {row.name: y[row.y] for row in system.measurements}
    assert_close(solver.solve(q, qd, by_block).qdd, expected.qdd, EXACT)


def test_wrong_readings_by_name_are_refused(solver, state):
    q, qd, y = state
    named = {row.name: y[row.y] for row in solver.system.measurements}
    with pytest.raises(InputError, match=r"unknown measurement 'fx:lnk1'.*Did you mean 'fx:link1'"):
        solver.solve(q, qd, named | {"fx:lnk1": y[:6]})
    with pytest.raises(InputError, match=r"y\['fx:link1'\] has shape \(5,\), expected 6"):
        solver.solve(q, qd, named | {"fx:link1": y[:5]})
    del named["fx:link2"]
    with pytest.raises(InputError, match=r"y lacks 6 of \d+ measurements: fx:link2.mx, "):
        solver.solve(q, qd, named)
    named["fx:link2"] = [0, 0, np.nan, 0, 0, 0]
    with pytest.raises(InputError, match=r"\('fx:link2.mz'\) is nan|fx:link2.mz"):
        solver.solve(q, qd, named)


def test_every_error_of_input_is_of_the_family(solver, state):
    with pytest.raises(NoriError):
        solver.solve(state[0][:-1], state[1], state[2])


def test_lists_and_integers_are_taken(solver):
    q = TREE.neutral_configuration()
    estimate = solver.solve(q.tolist(), [0] * TREE.nv, [0] * solver.system.ny)
    assert_close(estimate.qdd, solver.solve(q, np.zeros(TREE.nv), np.zeros(solver.system.ny)).qdd, EXACT)


def test_unknown_backend_is_refused():
    with pytest.raises(BackendError, match=r"unknown backend 'nupy'.*Did you mean 'numpy'"):
        planned().solver("nupy")


# ------------------------------------------------------------------------------- what it returns


def test_shapes_and_names(solver, state):
    estimate = solver.solve(*state)
    n = TREE.n_links
    assert estimate.tau.shape == estimate.qdd.shape == (TREE.nv,)
    assert estimate.a.shape == estimate.f.shape == estimate.fx.shape == (n, 6)
    assert estimate.backend == solver.backend == "numpy"
    assert estimate.residual < 1e-12
    assert not estimate.fell_back
    batch = solver.solve_batch(*(np.tile(x, (3, 1)) for x in state))
    assert batch.tau.shape == (3, TREE.nv)
    assert batch.f.shape == (3, n, 6)
    assert batch.residual.shape == batch.fell_back.shape == (3,)
    for part in (batch.qdd, batch.f):
        assert_close(part[1], part[0], EXACT)


def test_the_estimate_solves_the_system(solver, state):
    system = solver.system
    estimate = solver.solve(*state)
    d = np.empty(system.shape[1])
    for variable in system.variables:
        values = getattr(estimate, variable.kind)
        by_joint = variable.kind in ("tau", "qdd")
        d[variable.slice] = values[TREE.v_slices[variable.body]] if by_joint else values[variable.body]
    D, b = system.D(state[0]), system.b(*state)
    assert_close(D @ d + b, 0 * b, SOLVED)


@every_backend
@pytest.mark.parametrize("outputs", [None, ("qdd", "fx:tool", "a:palm", "tau:joint5")])
def test_a_tick_is_solve_in_place(name, outputs, state):
    solver = planned(outputs).solver(backend(name))
    arrays = dict(vars(solver.outputs))
    for scale in (1.0, 0.5):
        solver.inputs.q[:] = state[0]
        solver.inputs.qd[:] = scale * state[1]
        solver.inputs.y[:] = scale * state[2]
        status = solver.tick()
        estimate = solver.solve(state[0], scale * state[1], scale * state[2])
        assert status.ok
        status.raise_for_status()
        for key, array in arrays.items():
            assert getattr(solver.outputs, key) is array
            assert_close(array, estimate[key], SOLVED)


def test_inputs_start_at_rest(solver):
    assert_close(solver.inputs.q, TREE.neutral_configuration(), EXACT)
    assert not solver.inputs.qd.any()
    assert not solver.inputs.y.any()
    assert solver.tick().ok


def test_outputs_in_a_frame(state):
    """A wrench on a tool is the link's, in the tool's frame; an acceleration is that of the tool's point."""
    solver, whole = planned(("qdd", "fx:tool", "a:palm", "tau:joint5")).solver("numpy"), planned().solver("numpy")
    estimate, everything = solver.solve(*state), whole.solve(*state)
    tool, palm = TREE.frame("tool"), TREE.frame("palm")
    assert_close(estimate["fx:tool"], tool.X.force_matrix() @ everything.fx[tool.link], SOLVED)
    assert_close(estimate["a:palm"], palm.X.motion_matrix() @ everything.a[palm.link], SOLVED)
    assert_close(estimate["tau:joint5"], everything.tau[TREE.v_slices[4]], SOLVED)
    batch = solver.solve_batch(*(np.tile(x, (2, 1)) for x in state))
    assert_close(batch["fx:tool"][1], estimate["fx:tool"], SOLVED)


def test_what_was_not_asked_for_is_refused_by_name(state):
    estimate = planned(("qdd", "fx:tool", "a:palm", "tau:joint5")).solver("numpy").solve(*state)
    with pytest.raises(InputError, match="'tau' was not requested: the plan's outputs are 'qdd', 'fx:tool'"):
        _ = estimate.tau


# ------------------------------------------------------------------------------- singular states


@lru_cache(maxsize=1)
def singular_plan() -> Plan:
    return plan(System(singular_tree(), TwoReadings()))


def singular_state(angle: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    system = singular_plan().system
    rng = np.random.default_rng(5)
    return np.array([0.7, angle]), rng.normal(size=2), rng.normal(size=system.ny)


@every_backend
@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_a_singular_state_is_refused_and_names_what_is_not_determined(name, angle):
    solver = singular_plan().solver(backend(name))
    state = singular_state(angle)
    with pytest.raises(SingularSystemError, match="singular at this state") as raised:
        solver.solve(*state)
    assert raised.value.undetermined[0].startswith(("qdd:joint2", "a:link2", "f:", "tau:"))
    assert "qdd:joint2" in raised.value.undetermined
    good = singular_state(0.5)
    batch = [np.stack([a, b, a]) for a, b in zip(good, state, strict=True)]
    with pytest.raises(SingularSystemError, match="state 1 of 3"):
        solver.solve_batch(*batch)


@every_backend
def test_a_tick_at_a_singular_state_says_so_and_writes_nan(name):
    solver = singular_plan().solver(backend(name))
    for array, value in zip((solver.inputs.q, solver.inputs.qd, solver.inputs.y), singular_state(0.0), strict=True):
        array[:] = value
    status = solver.tick()
    assert not status.ok
    assert status.rcond < status.threshold == RCOND_LIMIT
    assert np.isnan(solver.outputs.qdd).all()
    with pytest.raises(SingularSystemError, match="its rcond is"):
        status.raise_for_status()
    solver.inputs.q[1] = 0.5
    assert solver.tick().ok
    assert_close(solver.outputs.qdd, solver.solve(*singular_state(0.5)).qdd, SOLVED)


@pytest.mark.parametrize("name", ["numpy", "native"])
@pytest.mark.parametrize("angle", [1e-6, 1e-9, 1e-11])
def test_near_a_singular_state_the_planned_order_is_given_up_and_the_estimate_says_so(name, angle):
    solver = singular_plan().solver(backend(name))
    state = singular_state(angle)
    estimate = solver.solve(*state)
    assert estimate.fell_back
    system = solver.system
    d = exact(system, *state)
    expected = np.concatenate([d[system.column("qdd", i)] for i in range(2)])
    assert_close(estimate.qdd, expected, SOLVED)
    assert not solver.solve(*singular_state(0.5)).fell_back


@every_backend
@pytest.mark.parametrize("exponent", range(-20, 0))
def test_a_number_is_right_or_there_is_none(name, exponent):
    """Over twenty decades on the way to a singular state: right to 1e-9, or an error. Never wrong."""
    solver = singular_plan().solver(backend(name))
    state = singular_state(10.0**exponent)
    system = solver.system
    try:
        estimate = solver.solve(*state)
    except SingularSystemError:
        assert exponent < -10
        return
    d = exact(system, *state)
    assert_close(estimate.qdd, np.concatenate([d[system.column("qdd", i)] for i in range(2)]), SOLVED)
    assert_close(estimate.tau, np.concatenate([d[system.column("tau", i)] for i in range(2)]), SOLVED)


# ----------------------------------------------------------------------- the analysis, done once


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


def test_inverse_dynamics_with_known_wrenches_takes_accelerations_only():
    known = WRENCHES | {"value": 0}
    shipped = plan(System(TREE, sensor_set(ACCELERATIONS, known)), outputs=("tau",)).solver("numpy")
    full = plan(System(TREE, INVERSE), outputs=("tau",)).solver("numpy")
    truth = random_states(TREE, 4, seed=9, wrench=0.0)
    assert shipped.system.ny == TREE.nv
    tau = shipped.solve_batch(truth.q, truth.qd, truth.qdd).tau
    assert_close(tau, full.solve_batch(truth.q, truth.qd, readings(full.system, truth)).tau, ROUNDING)
    assert shipped.plan.cost.total < full.plan.cost.total
