"""What an estimate is worth: deviations, spreads, tests of the readings; faulty sensors named."""

from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.solve.monitor import CHUNK
from tests.agreement.test_weighted import PLACED, exact_rows, redundant, reference, state, weights_of_rows
from tests.compilers import needs_compiler
from tests.robots import load
from tests.systems import ACCELERATIONS, sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.unit.observe.test_conditioning import TWICE, chain


@lru_cache
def small():
    """A chain whose first torque and last link are seen twice, and whose third joint's acceleration nothing checks."""
    return nd.plan(nd.System(chain(), TWICE), outputs=["tau", "qdd", "fx", "a:link3"])


@pytest.mark.parametrize("robot", ["small", pytest.param("solo12", marks=pytest.mark.long)])
def test_deviations_and_spreads_are_those_of_the_covariance_in_extended_precision(robot):
    if robot == "small":
        plan, seeds = small(), range(4)
    else:
        tree = load(robot, "floating")
        plan, seeds = nd.plan(nd.System(tree, redundant(tree)), outputs=["tau", "fx"]), range(1)
    system, monitor = plan.system, plan.monitor("native" if robot == "small" else "numpy")
    for seed in seeds:
        q, qd, y, weights = state(system, seed)
        weights = 10 ** (np.log10(weights) / 3)
        check_against_definition(monitor, monitor.check(q, qd, y, weights), q, qd, y, weights)


def check_against_definition(monitor, found, q, qd, y, weights):
    """Of what has no weight there is no residual, and no degree of freedom."""
    system, truth = monitor.solver.system, reference(monitor.solver.system, q, qd, y, weights)
    exact, each = exact_rows(system), weights_of_rows(system, weights)
    P, rows, kept = truth.covariance.astype(float), system.D(q).toarray()[~exact], each > 0
    residual, left = truth.residual.astype(float)[kept], 1 - each[kept] * np.einsum("ij,jk,ik->i", rows, P, rows)[kept]
    assert_close(found.residuals[kept], -residual, SOLVED)
    assert np.isnan(found.residuals[~kept]).all()
    assert_close(found.chi_square, np.sum(each[kept] * residual**2), SOLVED)
    assert np.isnan(found.spreads[kept][left < 1e-10]).all()
    checked = left > 1e-4
    assert_close((each[kept] * found.spreads[kept] ** 2)[checked], left[checked], SOLVED)
    assert found.degrees_of_freedom == kept.sum() - (system.shape[1] - exact.sum())
    for kind in {"tau", "qdd", "fx"} & found.deviations.keys():
        own = [v for v in system.variables if v.kind == kind]
        columns = np.concatenate([np.arange(v.slice.start, v.slice.stop) for v in own])
        assert_close(found.estimate[kind].ravel(), truth.d.astype(float)[columns], SOLVED)
        assert_close(found.deviations[kind].ravel() ** 2, np.diagonal(P)[columns], SOLVED)
        assert found.deviations[kind].shape == found.estimate[kind].shape


def noisy_readings(system, q, qd, d, rng, N):
    """Readings (N, ny) of a true d with the noise that the sensors claim to have."""
    zero = np.zeros(system.ny)
    true = system.D(q) @ d + system.b(q, qd, zero)
    y = np.concatenate([true[row.slice] for row in system.measurements])
    sigma = [
        np.zeros(len(row.equation.components)) if row.is_exact else system.weights[list(row.weight_of_rows)] ** -0.5
        for row in system.measurements
    ]
    return y + np.concatenate(sigma) * rng.normal(size=(N, system.ny))


def some_d(system, q, qd, rng):
    """A d (n,) that obeys all exact rows."""
    D, b = system.D(q).toarray(), system.b(q, qd, np.zeros(system.ny))
    exact, wish = exact_rows(system), rng.normal(size=system.shape[1])
    return wish - np.linalg.lstsq(D[exact], D[exact] @ wish + b[exact], rcond=None)[0]


def test_a_reading_that_nothing_checks_is_named():
    """The acceleration of joint 3 moves the last link and the torques, but the wrench on link 4 may explain those."""
    lone = sensor_set(
        ACCELERATIONS | {"sigma": 0.1},
        {"type": "joint_torque", "joints": "joint1", "sigma": 0.2},
        {"type": "external_wrench", "links": {"except": "link4"}, "value": 0},
        {"type": "external_wrench", "links": "link4", "sigma": 1},
        {"type": "accelerometer", "links": "link1", "sigma": 0.05, "components": ["ax"], **PLACED},
    )
    system = nd.System(small().system.tree, lone)
    monitor = nd.plan(system, outputs=["tau"]).monitor("numpy")
    q, qd, y, _ = state(system, 1)
    found = monitor.check(q, qd, y)
    D = system.D(q).toarray()
    names = [f"{row.name}.{c}" if c else row.name for row in system.rows for c in row.equation.components]
    for k, reading in enumerate(found.readings):  # by its definition: without it, is what it reads still known?
        rows = [i for i, name in enumerate(names) if name != reading]
        needed = np.linalg.matrix_rank(D[rows]) < system.shape[1]
        assert (reading in found.unchecked) == needed
        assert np.isnan(found.spreads[k]) == needed


def test_a_fault_is_named_single_and_in_batch():
    plan = small()
    system, monitor, rng, N = plan.system, plan.monitor(), np.random.default_rng(6), 50
    q, qd = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv)
    Y = noisy_readings(system, q, qd, some_d(system, q, qd, rng), rng, N)
    Q, Qd = np.tile(q, (N, 1)), np.tile(qd, (N, 1))
    assert monitor.faults(Q, Qd, Y) == ()
    bad = system.measurement_names.index("tau:joint2")
    Y[:, bad] += 1.5
    (fault,) = monitor.faults(Q, Qd, Y)
    assert (fault.sensor, fault.reading) == ("tau:joint2", "tau:joint2")
    assert 0 < fault.offset < 1.5
    Y[0, bad] += 30
    single = monitor.check(q, qd, Y[0])
    assert not single.is_consistent(0.01)
    first, *_ = single.suspects()
    assert first.sensor == "tau:joint2"
    without = monitor.check(q, qd, Y[0], {"tau:joint2": 0})
    assert_close(single.chi_square - without.chi_square, first.explains, SOLVED)
    assert without.is_consistent(0.01)
    assert np.isnan(without.residuals[without.readings.index("tau:joint2")])
    Y[3, bad] = np.nan
    with pytest.raises(InputError, match="tau:joint2"):
        monitor.check_batch(Q, Qd, Y)
    assert monitor.check_batch(Q, Qd, Y, missing="drop").degrees_of_freedom.tolist() == [5, 5, 5, 4] + [5] * 46


@needs_compiler
def test_batches_are_judged_in_c_as_by_numpy_on_any_number_of_threads():
    """Across parts of a batch, with weights of each state, some of them zero."""
    plan, rng, N = small(), np.random.default_rng(8), 3 * CHUNK + 1
    system = plan.system
    given = (
        rng.uniform(-1, 1, (N, system.tree.nq)),
        rng.normal(size=(N, system.tree.nv)),
        rng.normal(size=(N, system.ny)),
    )
    weights = system.weights * 10 ** rng.uniform(-1, 1, (N, system.n_weights))
    weights[[0, CHUNK, N - 1], [0, 1, 2]] = 0.0
    ours, theirs = (plan.monitor(backend).check_batch(*given, weights) for backend in ("native", "numpy"))
    assert ours.degrees_of_freedom.tolist() == theirs.degrees_of_freedom.tolist()
    assert np.flatnonzero(ours.degrees_of_freedom != 5).tolist() == [0, CHUNK, N - 1]
    assert ours.unchecked == theirs.unchecked
    for name, deviations in ours.deviations.items():
        assert_close(deviations, theirs.deviations[name], SOLVED)
    np.testing.assert_allclose(ours.residuals, theirs.residuals, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.spreads, theirs.spreads, rtol=1e-6)
    np.testing.assert_allclose(ours.chi_square, theirs.chi_square, rtol=1e-6)
    on_threads = plan.monitor().check_batch(*given, weights, threads=3)
    for name in ("residuals", "spreads", "chi_square", "degrees_of_freedom"):
        np.testing.assert_array_equal(getattr(on_threads, name), getattr(ours, name))


def test_false_alarms_come_at_the_rate_asked_for_at_most():
    plan = small()
    system, monitor, rng = plan.system, plan.monitor(), np.random.default_rng(7)
    q, qd = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv)
    d, windows, N = some_d(system, q, qd, rng), 300, 20
    Y = noisy_readings(system, q, qd, d, rng, windows * N)
    found = monitor.check_batch(np.tile(q, (len(Y), 1)), np.tile(qd, (len(Y), 1)), Y)
    alarms = sum(bool(found.flagged(0.05, slice(k * N, (k + 1) * N))) for k in range(windows))
    assert stats.binom.sf(alarms - 1, windows, 0.05) > 1e-3
    assert alarms > 0


def test_a_stuck_accelerometer_is_named():
    plan = small()
    system, monitor, rng, N = plan.system, plan.monitor(), np.random.default_rng(8), 50
    Q, Qd = system.tree.random_configurations(N, rng), rng.normal(size=(N, system.tree.nv))
    states = zip(Q, Qd, strict=True)
    Y = np.vstack([noisy_readings(system, q, qd, some_d(system, q, qd, rng), rng, 1) for q, qd in states])
    assert monitor.faults(Q, Qd, Y) == ()
    (row,) = (row for row in system.measurements if row.name.startswith("acc"))
    Y[:, row.y] = Y[0, row.y]
    (fault,) = monitor.faults(Q, Qd, Y, most=1)
    assert fault.sensor == row.name
    Y[:, system.measurement_names.index("tau:joint2")] += 5.0
    both = monitor.faults(Q, Qd, Y)
    assert {fault.sensor for fault in both} == {row.name, "tau:joint2"}
    assert len(monitor.faults(Q, Qd, Y, most=1)) == 1
