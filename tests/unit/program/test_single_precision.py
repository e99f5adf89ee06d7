"""Batches in single precision against doubles, and what happens where floats are not enough."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.algebra.scalars import cos, sin, sqrt
from tests.compilers import needs_compiler
from tests.systems import UNLOADED, sensor_set
from tests.trees import on_a_free_base

N = 33
NO_DIVISION, FORWARD = 3e-6, 1e-4
"""Largest differences from doubles, relative to the largest number of a state."""

BACKENDS = [pytest.param("native", marks=needs_compiler), "numpy"]
ROBOTS = {"arm": nd.autotree(4, skew=0.4), "legs": on_a_free_base(nd.autotree(7, branching=2, skew=0.3))}


def states(tree, seed=0):
    rng = np.random.default_rng(seed)
    return [tree.random_configurations(N, rng), *rng.normal(size=(2, N, tree.nv))]


def floats(arrays):
    return [x.astype(np.float32) for x in arrays]


def check(found, expected, tolerance):
    assert found.dtype == np.float32
    error, size = (np.abs(x).reshape(N, -1).max(axis=1) for x in (found - expected, expected))
    assert (error <= tolerance * size).all()


def weighed():
    rows = ({"type": kind, "joints": "all", "sigma": 1} for kind in ("joint_acceleration", "joint_torque"))
    return sensor_set(*rows, UNLOADED)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_recursions_agree_with_doubles(robot, backend):
    tree = ROBOTS[robot]
    for function, tolerance in ((nd.rnea, NO_DIVISION), (nd.crba, NO_DIVISION), (nd.aba, FORWARD)):
        program = nd.compile(function, tree, backend=backend)
        given = states(tree)[: len(vars(program.inputs))]
        expected = program.batch(*given)
        check(program.batch(*floats(given), dtype="float32"), expected, tolerance)
        check(program.batch(*given, dtype=np.float32, order="F", threads=2), expected, tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("robot", ROBOTS)
def test_estimates_agree_with_doubles(robot, backend):
    tree = ROBOTS[robot]
    for sensors, tolerance in (("inverse_dynamics", NO_DIVISION), ("forward_dynamics", FORWARD)):
        solver = nd.plan(nd.System(tree, sensors)).solver(backend)
        expected = solver.solve_batch(*states(tree))
        found = solver.solve_batch(*floats(states(tree)), dtype="float32")
        for name, values in found.values.items():
            check(values, expected[name], tolerance) if np.any(expected[name]) else None
        assert not found.fell_back.any()
        assert 0 < found.residual.max() < 1e-5
        assert solver.solve_batch(*floats(states(tree, 1)), dtype="float32", out=found) is found
        check(found.qdd, solver.solve_batch(*states(tree, 1)).qdd, tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sines_and_cosines_of_any_angle(backend):
    function = nd.compile(lambda tree, q: np.array([sin(q[0]), cos(q[0])]), nd.autotree(1), backend=backend)
    scales = 10.0 ** np.arange(-6, 8)
    q = (np.random.default_rng(0).uniform(-1, 1, size=(1000, 14)) * scales).reshape(-1, 1).astype(np.float32)
    angle = q[:, 0].astype(np.longdouble)
    expected = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    assert np.abs(function.batch(q, dtype="float32") - expected).max() < 2**-23


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_that_floats_do_not_hold_are_computed_in_doubles(backend):
    """Squares of 1e30 are not finite in floats; their root is."""
    function = nd.compile(lambda tree, q: sqrt(q * q + 1.0), nd.autotree(1), backend=backend)
    q = np.array([[3.0], [1e30], [-2.0], [-4e25]], dtype=np.float32)
    assert np.allclose(function.batch(q, dtype="float32"), np.hypot(q.astype(float), 1.0), rtol=1e-7, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_with_small_pivots_are_solved_in_doubles(backend):
    tree = nd.autotree(4, skew=0.4)
    solver = nd.plan(nd.System(tree, "forward_dynamics"), outputs=["qdd"]).solver(backend)
    solver.kernel.limits[:] *= 95.0  # of a pivot nearly its usual size in floats
    given = floats(states(tree))
    found = solver.solve_batch(*given, dtype="float32")
    doubles = solver.solve_batch(*(x.astype(float) for x in given)).qdd.astype(np.float32)
    is_from_doubles = (found.qdd == doubles).all(axis=1)
    assert 0 < is_from_doubles.sum() < N
    assert not found.fell_back.any()
    check(found.qdd, doubles, FORWARD)


@needs_compiler
def test_what_cannot_be_asked_for_is_refused():
    tree = nd.autotree(2)
    X = np.ones((3, 2), dtype=np.float32)
    mass = nd.compile(nd.crba, tree)
    with pytest.raises(nd.errors.InputError, match="float16"):
        mass.batch(X, dtype="float16")
    with pytest.raises(nd.errors.InputError, match="of float32"):
        mass.batch(X, dtype="float32", out=np.empty((3, 2, 2)))
    with pytest.raises(nd.errors.InputError, match=r"q\[1, 0\] is nan"):
        mass.batch([[0, 0], [np.nan, 0]], dtype="float32")
    solver = nd.plan(nd.System(tree, weighed()), outputs=["tau"]).solver()
    with pytest.raises(nd.errors.InputError, match="weights"):
        solver.solve_batch(X, X, np.ones((3, solver.system.ny)), dtype="float32")
