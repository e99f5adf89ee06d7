"""Lists are taken where arrays are: at run time, as these tests run, and by type checkers, as mypy checks this file."""

import numpy as np

import nori_dyn as nd
from tests.systems import SPEED, TORQUES, UNLOADED, sensor_set

Q, QD, TAU = [0.1, 0.2], [0.0, 1.0], [1.0, 0.5]


def test_algorithms_take_lists() -> None:
    tree = nd.autotree(2)
    qdd = nd.aba(tree, Q, QD, TAU)
    np.testing.assert_allclose(nd.rnea(tree, Q, QD, qdd.tolist()), TAU)
    H = nd.crba(tree, Q)
    np.testing.assert_allclose(H @ nd.minverse(tree, Q), np.eye(2), atol=1e-12)
    np.testing.assert_allclose(nd.coriolis(tree, Q, QD).C, nd.christoffel(tree, Q) @ QD)
    L = nd.ltl(H.tolist(), [-1, 0])
    np.testing.assert_allclose(L.T @ L, H)
    assert nd.ltdl(H.tolist(), [-1, 0]).D.shape == (2,)
    assert nd.jacobian(tree, Q, "link2").shape == (6, 2)


def test_systems_and_solvers_take_lists() -> None:
    system = nd.System(nd.autotree(2), "inverse_dynamics")
    solver = nd.plan(system, outputs=["tau"]).solver("numpy")
    one = solver.solve(Q, QD, TAU)
    many = solver.solve_batch([Q, Q], [QD, QD], [TAU, TAU])
    np.testing.assert_allclose(many.tau, [one.tau, one.tau])
    d = np.linalg.solve(system.D(Q).toarray(), -system.b(Q, QD, TAU))
    np.testing.assert_allclose(d[system.column("tau", 0)], one.tau[:1])


def test_trackers_take_lists_and_their_options_say_what_a_step_returns() -> None:
    sensors = sensor_set(TORQUES | {"sigma": 0.1}, UNLOADED, name="observer", memory={"speed": SPEED})
    plan = nd.plan(nd.System(nd.autotree(1), sensors), outputs=["qdd"])
    tracked: nd.results.Tracked = nd.Tracker(plan, 0.01, backend="numpy").step([0.0], [0.0], [2.0])
    late: nd.results.Tracked | None = nd.Tracker(plan, 0.01, lag=2, backend="numpy").step([0.0], [0.0], [2.0])
    assert tracked["qdd"].shape == (1,)
    assert late is None
    history = nd.Tracker(plan, 0.01, backend="numpy").over([0.0, 0.01], [[0.0], [0.0]], [[0.0], [0.0]], [[2.0], [2.0]])
    np.testing.assert_allclose(history["qdd"][0], tracked["qdd"])
