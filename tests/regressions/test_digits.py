"""Digits that were lost, and states that were refused in vain: constants, pivots, weights of many decades."""

from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.expressions import Graph
from nori_dyn.errors import InputError
from nori_dyn.program.pivoting.solver import PivotingSolver
from nori_dyn.solve.diagnosis import Judged
from nori_dyn.solve.monitor import Covariance
from tests.agreement.test_weighted import reference, unknowns
from tests.attack.derivative_oracle import Moving, Parts, derivatives
from tests.compilers import needs_compiler
from tests.exported import Exported
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend, every_backend, singular_plan, singular_state


def soft(qdd: float, tau: float) -> nd.SensorSet:
    """Accelerations and torques of all joints with a sigma each; no wrench is on a link."""
    return sensor_set(ACCELERATIONS | {"sigma": qdd}, TORQUES | {"sigma": tau}, UNLOADED)


# --------------------------------------------------------------------------------------------------------------
# Constants of any size: 2^127 was 1 modulo the prime of the fingerprints, so that c and c 2^127 were one node.


def test_powers_of_two_are_told_apart():
    graph = Graph()
    x = graph.input("x")
    for exponent in (127, -127, 254, -1016):
        assert graph.expr(2.0**exponent) is not graph.one, exponent
        assert graph.expr(2.0**exponent).value == 2.0**exponent
        assert x * 2.0**exponent is not x, exponent


def test_a_known_value_of_any_size_is_kept():
    for value in (2.0**-127, 2.0**127):
        known = ACCELERATIONS | {"value": value}
        system = nd.System(nd.autotree(2), sensor_set(known, WRENCHES))
        estimate = nd.plan(system).solver("numpy").solve(np.array([0.3, -0.4]), np.zeros(2), np.zeros(12))
        np.testing.assert_array_equal(estimate.qdd, [value, value])


# --------------------------------------------------------------------------------------------------------------
# States that are well conditioned were refused, as pivots of massless fingers were taken for a condition number.


@pytest.fixture(scope="module")
def fingers():
    """An arm of which some links weigh next to nothing, as fingers in models often do."""
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
    _, residual, rcond = PivotingSolver(plan).solve(q, qd, qdd)
    assert rcond > 1e-6
    assert residual < 1e-12


def test_a_robot_at_rest_without_gravity_is_solved_afresh():
    """All of d is zero there, and so is every step of refinement, and what it is held against."""
    system = nd.System(nd.autotree(3, skew=0.5).replace(gravity=(0.0, 0.0, 0.0)), nd.sensors("inverse_dynamics"))
    d, _, rcond = PivotingSolver(nd.plan(system)).solve(np.ones(3), np.zeros(3), np.zeros(3))
    assert rcond > 1e-6
    np.testing.assert_array_equal(d, 0.0)


# --------------------------------------------------------------------------------------------------------------
# What is zero but for rounding counted as off by all of itself: states solved afresh had a residual of 1.


def test_a_state_with_a_dropped_sensor_has_the_residual_of_rounding():
    solver = nd.plan(nd.System(nd.autotree(4), soft(0.5, 0.5))).solver("numpy")
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(3, 8))
    Y[:, 5] = np.nan
    estimate = solver.solve_batch(*rng.normal(size=(2, 3, 4)), Y, missing="drop")
    assert estimate.fell_back.all()
    assert (estimate.residual < 1e-12).all()


# --------------------------------------------------------------------------------------------------------------
# Weighted estimates at weights that differ by decades: digits were lost before the pivots, and nothing said so.


POSE = np.array([2.865066744043162, 1.9823603088744148])
WEIGHTS = np.array([1e-6, 1e-6, 1e-6, 1e6])
STATES = 60
CLOSE = 1e-8


@lru_cache
def two_links():
    return nd.plan(nd.System(nd.autotree(2, skew=0.6), soft(1, 1)))


@lru_cache
def states():
    """States (q, qd, y, weights) with the one that was off by eleven times its value first."""
    rng, tree = np.random.default_rng(0), two_links().system.tree
    found = [(POSE, rng.normal(size=2), rng.normal(size=4), WEIGHTS)]
    for _ in range(STATES):
        q = tree.random_configuration(rng)
        found.append((q, rng.normal(size=2), rng.normal(size=4), rng.choice([1e-6, 1.0, 1e6], size=4)))
    return found


@lru_cache
def truths():
    """All variables at these states, the torques among them, and by how much an estimate may be off."""
    system = two_links().system
    torques = [v.slice.start for v in system.variables if v.kind == "tau"]
    found = [np.asarray(reference(system, *state).d, dtype=float) for state in states()]
    return [(d, d[torques], CLOSE * max(1.0, np.abs(d).max())) for d in found]


@every_backend
def test_each_entry_is_right_at_each_state(name):
    plan = two_links()
    solver = plan.solver(backend(name))
    batch = solver.solve_batch(*(np.array(part) for part in zip(*states(), strict=True)))
    for k, (state, (d, tau, allowed)) in enumerate(zip(states(), truths(), strict=True)):
        for array, value in zip(("q", "qd", "y", "weights"), state, strict=True):
            getattr(solver.inputs, array)[:] = value
        solver.tick().raise_for_status()
        assert np.abs(unknowns(plan.system, solver.solve(*state)) - d).max() <= allowed
        assert np.abs(batch.tau[k] - tau).max() <= allowed
        assert np.abs(solver.outputs.tau - tau).max() <= allowed


@needs_compiler
def test_exported_code_is_right_or_says_so(tmp_path):
    made, solved = Exported.of(two_links(), tmp_path), 0
    for state, (_, tau, allowed) in zip(states(), truths(), strict=True):
        status, outputs = made.solve(*state)
        assert status or np.abs(outputs["tau"] - tau).max() <= allowed
        solved += not status
    assert solved >= 0.9 * STATES


@every_backend
def test_a_tick_with_such_an_input_is_not_ok_and_says_why(name):
    solver = two_links().solver(backend(name))
    for array, value in (("y", np.nan), ("qd", np.inf), ("weights", -1.0)):
        solver.inputs.q[:] = POSE
        solver.inputs.qd[:] = solver.inputs.y[:] = 0.0
        solver.inputs.weights[:] = 1.0
        getattr(solver.inputs, array)[1] = value
        status = solver.tick()
        assert not status.ok, array
        assert array[:6] in status.cause
        assert np.isnan(solver.outputs.tau).all(), array
        with pytest.raises(InputError, match=array[:6]):
            status.raise_for_status()


@needs_compiler
def test_a_status_names_the_pivot_that_tripped():
    solver = singular_plan().solver("native")
    for array, value in zip(("q", "qd", "y"), singular_state(1e-9), strict=True):
        getattr(solver.inputs, array)[:] = value
    assert "the pivot of 'qdd:joint2' is 1e-09, below its limit" in solver.tick().cause
    solver.inputs.y[0] = np.nan
    assert "y[0] is nan" in solver.tick().cause


# --------------------------------------------------------------------------------------------------------------
# Deviations at weights that differ by decades: they were off by up to four times their value, and nothing said so.


NEAR = 1e-5


@lru_cache
def planned():
    return nd.plan(nd.System(nd.autotree(3), soft(0.5, 0.2)), outputs=("tau", "qdd"))


@lru_cache
def judged(n=60):
    """States (q, qd, y, weights) at which some sensors count next to nothing, with right deviations.

    Those of tau and qdd, by orthogonal factorisations.
    """
    system, rng = planned().system, np.random.default_rng(0)
    blocks = [v.slice for kind in ("tau", "qdd") for v in system.variables if v.kind == kind]
    covariance = Covariance(system, np.concatenate([np.eye(system.shape[1])[block] for block in blocks]))
    found = []
    for _ in range(n):
        weights = system.weights * rng.uniform(0.3, 3, size=system.n_weights)
        weights[rng.choice(system.n_weights, size=2, replace=False)] *= 10.0 ** rng.integers(-10, -2)
        state = system.tree.random_configuration(rng), rng.normal(size=3), rng.normal(size=6), weights
        found.append((state, covariance.at(*state)[0].deviations))
    return found


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=needs_compiler)])
def test_each_deviation_is_right_at_each_state(backend):
    monitor, afresh = planned().monitor(backend), 0
    for state, expected in judged():
        found = monitor.check(*state)
        deviations = np.concatenate([found.deviations["tau"], found.deviations["qdd"]])
        assert np.abs(deviations - expected).max() <= NEAR * expected.max()
        results = Judged(*(np.empty((1, n)) for n in (6, len(monitor.readings), len(monitor.readings), 1)))
        afresh += not monitor._judge([x[None] for x in state], results, 1)[0]
    assert 0 < afresh < 60


@needs_compiler
def test_exported_deviations_are_right_or_say_so(tmp_path):
    made, told = Exported.of(planned(), tmp_path / "it", name="it", monitor=True), 0
    for state, expected in judged():
        status, found = made.check(*state)
        assert status in (made.library.IT_OK, made.library.IT_INACCURATE)
        if status == made.library.IT_OK:
            told += 1
            deviations = np.concatenate([found["sigma_tau"], found["sigma_qdd"]])
            assert np.abs(deviations - expected).max() <= NEAR * expected.max()
    assert told > 20


# --------------------------------------------------------------------------------------------------------------
# By a weight that is light beside others estimates hardly move: the r / sqrt(w) of its readings, rounded, were up to a
# hundredth of what is left of them, and refinement was to settle on more digits than an extended number has.


def derivatives_by_weights(system, q, qd, y, weights):
    """Those of d (n, n_weights), in eighty digits."""
    rows = np.column_stack([system.b(q, qd, y), system.D(q).toarray()]).astype(np.longdouble)
    soft = np.concatenate([np.arange(r.slice.start, r.slice.stop) for r in system.rows if not r.is_exact])
    weight_of = np.concatenate([r.weight_of_rows for r in system.rows if not r.is_exact])
    d = np.eye(system.shape[1] + 1, dtype=np.longdouble)[1:]
    still = [Moving(part, np.zeros((0, *part.shape))) for part in (d, np.delete(rows, soft, axis=0), rows[soft])]
    return derivatives(Parts(*still, weights.astype(np.longdouble)[weight_of], weight_of), system.n_weights)


@pytest.mark.parametrize(("light", "digits"), [(1e-6, 1e-7), (1e-8, 1e-5), (8e-10, 1e-4), (1e-11, 1e-2)])
def test_derivatives_by_a_light_weight_have_the_digits_that_they_can_have(light, digits):
    tree = nd.autotree(2, skew=0.4)
    loads = [
        {"type": "external_wrench", "links": [tree.names[0]], "value": 0},
        {"type": "external_wrench", "links": [tree.names[1]], "sigma": 1.0},
    ]
    joints = [{"type": kind, "joints": "all", "sigma": 1.0} for kind in ("joint_torque", "joint_acceleration")]
    system = nd.System(tree, sensor_set(*joints, *loads))
    by = nd.plan(system, outputs=["a", "f", "tau", "fx", "qdd"]).derivative("weights", backend="numpy")
    weights = np.array([4e5, 4e5, 4e5, 4e5, light])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, qd, y = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), rng.uniform(-5, 5, system.ny)
        right = derivatives_by_weights(system, q, qd, y, weights)
        kinds = [name.removeprefix("d").removesuffix("_dweights") for name in by.names]
        right = np.concatenate([right[v.slice] for kind in kinds for v in system.variables if v.key.kind == kind])
        found = np.concatenate([array.reshape(-1, len(weights)) for array in by(q, qd, y, weights)])
        off = np.abs(found - right).max(axis=0) / np.abs(right).max(axis=0)
        assert (off <= [1e-12, 1e-12, 1e-12, 1e-12, digits]).all(), seed
