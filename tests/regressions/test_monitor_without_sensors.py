"""A monitor without some of its sensors: its estimates are the solver's, and its deviations those of what is left."""

from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import SingularSystemError
from nori_dyn.estimation.plan import Plan
from tests import covering
from tests.agreement.test_uncertainty import check_against_definition, small
from tests.agreement.test_weighted import state
from tests.compilers import needs_compiler
from tests.regressions.test_singular_states import BENT, STRAIGHT, tip
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.solve.test_solver import backend, every_backend


@lru_cache
def pair() -> Plan:
    """The plan of a link with a precise acceleration, and a torque that tells the same 10^4 times worse."""
    motion = ACCELERATIONS | {"sigma": 1e-3, "range": [1, 9]}
    system = nd.System(nd.autotree(1), sensor_set(motion, TORQUES | {"sigma": 10}, UNLOADED))
    return nd.plan(system)


@every_backend
def test_a_dropped_sensor_pulls_nothing(name):
    """It kept 1e-8 of its weight, and a reading of 0, which is beyond its range: qdd came out as 0.5 instead of 5."""
    monitor, tree = pair().monitor(backend(name)), pair().system.tree
    inertia = nd.crba(tree, np.zeros(1))[0, 0]
    torque = nd.rnea(tree, np.zeros(1), np.zeros(1), np.array([5.0]))
    for given in ({"y": [np.nan, *torque], "missing": "drop"}, {"y": [4.0, *torque], "weights": {"qdd:joint1": 0}}):
        found = monitor.check(np.zeros(1), np.zeros(1), **given)
        solved = monitor.solver.solve(np.zeros(1), np.zeros(1), **given)
        assert_close(found.estimate.qdd, [5.0], SOLVED)
        for output, values in solved.values.items():
            np.testing.assert_array_equal(found.estimate[output], values)
        assert_close(found.deviations["qdd"], [10 / inertia], SOLVED)
        assert np.isnan(found.residuals[0])
        assert found.degrees_of_freedom == 0
        assert found.unchecked == ("tau:joint1",)
    batch = monitor.check_batch(np.zeros((1, 1)), np.zeros((1, 1)), [[np.nan, *torque]], missing="drop")
    assert_close(batch.estimate.qdd, [[5.0]], SOLVED)


@every_backend
def test_any_sensors_may_be_left_out(name):
    """One by one and in pairs: as the solver has it, and as extended precision has what is left."""
    monitor = small().monitor(backend(name))
    system = monitor.solver.system
    q, qd, y, _ = state(system, 3)
    n = system.n_weights
    chosen = [*combinations(range(n), 1), *combinations(range(n), 2)]
    if name != "numpy":
        chosen = chosen[::7]
    elif not covering.ALL:
        chosen = chosen[:n] + chosen[n::5]
    refused = 0
    for out in chosen:
        weights = system.weights.copy()
        weights[list(out)] = 0
        try:
            solved = monitor.solver.solve(q, qd, y, weights)
        except SingularSystemError:
            refused += 1
            with pytest.raises(SingularSystemError):
                monitor.check(q, qd, y, weights)
            continue
        found = monitor.check(q, qd, y, weights)
        np.testing.assert_array_equal(found.estimate.tau, solved.tau)
        check_against_definition(monitor, found, q, qd, y, weights)
    assert refused < len(chosen) / 2


def test_a_batch_is_its_states_with_other_sensors_left_out_in_each():
    monitor = small().monitor("numpy")
    system = monitor.solver.system
    Q, Qd, Y, _ = (np.array(part) for part in zip(*(state(system, seed) for seed in range(6)), strict=True))
    for k, reading in enumerate((0, 3, 8, 5, 12)):
        Y[k, reading] = np.nan
    batch = monitor.check_batch(Q, Qd, Y, missing="drop")
    for k in range(6):
        one = monitor.check(Q[k], Qd[k], Y[k], missing="drop")
        assert_close(batch.estimate.tau[k], one.estimate.tau, SOLVED)
        assert batch.degrees_of_freedom[k] == one.degrees_of_freedom
        for many, single in (
            (batch.deviations["fx"][k], one.deviations["fx"]),
            (batch.spreads[k], one.spreads),
            (batch.residuals[k], one.residuals),
        ):
            np.testing.assert_allclose(many, single, rtol=1e-7, atol=1e-9)


def test_what_no_sensor_tells_has_no_finite_deviation():
    """Of singular states the batch has no estimate, but how their readings fit, by the rank that is left."""
    monitor = tip().monitor("numpy")
    zero = np.zeros((3, 3)), np.zeros((3, monitor.solver.system.ny))
    Q = np.stack([BENT, STRAIGHT, BENT])
    with pytest.raises(SingularSystemError, match="state 1 of 3"):
        monitor.check_batch(Q, *zero)
    found = monitor.check_batch(Q, *zero, singular="nan")
    assert found.estimate.singular.tolist() == [False, True, False]
    assert np.isnan(found.estimate.tau[1]).all()
    assert np.isfinite(found.deviations["fx"][[0, 2]]).all()
    assert np.isinf(found.deviations["fx"][1, 2]).tolist() == [False, False, False, True, False, False]
    assert np.isfinite(found.deviations["tau"][1]).all()
    assert found.degrees_of_freedom.tolist() == [1, 2, 1]
    assert np.isfinite(found.chi_square).all()
    assert found.is_consistent().all()


def test_faults_are_found_where_a_faulty_sensor_is_needed():
    """Some components of a wrench are checked, and others not: without it the rank is lost, and the rest judged."""
    tree, N = nd.autotree(2, skew=0.7), 60
    system = nd.System(
        tree,
        sensor_set(
            ACCELERATIONS | {"sigma": 0.1},
            TORQUES | {"sigma": 0.1},
            {"type": "external_wrench", "links": "link1", "value": 0},
            {"type": "external_wrench", "links": "link2", "sigma": 0.1},
        ),
    )
    monitor, rng = nd.plan(system).monitor("numpy"), np.random.default_rng(0)
    q, qd = tree.random_configuration(rng), np.zeros(2)
    truth = nd.rnea(tree, q, qd, np.array([1.0, -2.0]))
    Y = np.concatenate([[1.0, -2.0], truth, np.zeros(6)]) + 0.1 * rng.normal(size=(N, system.ny))
    Q, Qd = np.tile(q, (N, 1)), np.tile(qd, (N, 1))
    assert monitor.faults(Q, Qd, Y) == ()
    Y[:, system.measurement_names.index("fx:link2.mz")] += 5.0
    first, *others = monitor.faults(Q, Qd, Y)
    assert first.sensor == "fx:link2"
    assert others == []
    with pytest.raises(SingularSystemError, match="'fx:link2'"):
        monitor.check_batch(Q, Qd, Y, {"fx:link2": 0})


@needs_compiler
def test_a_batch_that_is_compiled_after_a_monitor_is_that_of_the_cached_program():
    """The monitor's expressions changed the order of the program's: the batch wrote beyond its workspace."""
    solver = small().solver("native")
    again = nd.plan(small().system, outputs=[output.name for output in small().outputs])  # as another process has it
    monitor = again.monitor("native")
    rng = np.random.default_rng(0)
    q, qd, y = (rng.normal(size=(5, n)) for n in (4, 4, solver.system.ny))
    np.testing.assert_array_equal(monitor.check_batch(q, qd, y).estimate.tau, solver.solve_batch(q, qd, y).tau)
