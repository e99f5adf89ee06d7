"""Every backend obeys the laws of `Backend`, and agrees with every other in every order, and with exact arithmetic."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest

from nori_dyn.measurements.base import VariableReading
from nori_dyn.model.joints import Revolute
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan, make_plan
from nori_dyn.program.backends.base import RCOND_LIMIT, Backend, Status
from nori_dyn.program.backends.registry import BACKENDS, make_backend
from nori_dyn.program.compiler import find_compiler
from nori_dyn.system.builder import System
from nori_dyn.system.variables import VariableKey
from tests.systems import FORWARD, INVERSE, hybrid, random_states, readings
from tests.tolerances import EXACT, SOLVED, assert_close
from tests.trees import TREES

# One row a backend. A backend of the registry that is not here fails a test below.
ROWS = ("native", "numpy", "umfpack")
ORDERS = ("recursive", "markowitz", "umfpack", "superlu")

MIXED_5 = random_tree(5, seed=3)

SYSTEMS = {
    "inverse-mixed_8": (TREES["mixed_8"], INVERSE),
    "inverse-massless": (TREES["massless"], INVERSE),
    "forward-mixed_5": (MIXED_5, FORWARD),
    "forward-two_roots": (TREES["two_roots"], FORWARD),
    "forward-one_body": (TREES["one_body"], FORWARD),
    "forward-three_children": (TREES["three_children"], FORWARD),
    "forward-chain_6": (autotree(6, 1, 1.5, 0.9), FORWARD),
    "hybrid-mixed_5": (MIXED_5, hybrid(MIXED_5, 5)),
}


class TwoReadings(NamedTuple):
    """The acceleration of joint 1, and sin(q[1]) times that of joint 2: nothing tells the second where q[1] is zero."""

    name: str = "two readings"
    fingerprint: str = "two readings"

    def equations(self, tree: KinematicTree) -> list:
        """Return the rows, as many as a robot of two joints needs."""
        wrenches = [whole(VariableKey("fx", i), 6) for i in range(2)]
        return [*wrenches, whole(VariableKey("qdd", 0), 1), Turned()]


def whole(key: VariableKey, n: int) -> VariableReading:
    names = tuple(f"{k}" for k in range(n)) if n > 1 else ("",)
    return VariableReading(f"{key.kind}:{key.body}", "test", "test", names, key, np.eye(n), None, None)


class Turned:
    """The row sin(q[1]) qdd - y = 0 on the second joint."""

    name = "turned:1"
    source = "test"
    group = "test"
    components = ("",)
    is_measured = True
    sigma = None

    def blocks(self, at):
        sine = at.X_up[1].E[0, 1]
        matrix = np.empty((1, 1, *np.shape(sine)), dtype=np.asarray(sine).dtype)
        matrix[0, 0] = sine
        return {VariableKey("qdd", 1): matrix}

    def bias(self, at, y):
        return -y


def singular_tree() -> KinematicTree:
    tree = random_tree(2, seed=8, kinds=("revolute",), chain=1.0)
    X = autotree(2).X_tree
    return tree.replace(name="two joints", joints=(Revolute(), Revolute()), X_tree=X)


SYSTEMS["singular"] = (singular_tree(), TwoReadings())
N_STATES = 12


@lru_cache(maxsize=64)
def planned(name: str, ordering: str = "auto", outputs: tuple[str, ...] | None = None) -> EliminationPlan:
    return make_plan(System(*SYSTEMS[name]), outputs=outputs, ordering=ordering)


@lru_cache(maxsize=128)
def made(backend: str, name: str, ordering: str = "auto", outputs: tuple[str, ...] | None = None) -> Backend:
    if "umfpack" in (backend, ordering) and not has_umfpack():
        pytest.skip("the extra 'umfpack' is not installed")
    if backend == "native" and find_compiler() is None:
        pytest.skip("there is no C compiler")
    return make_backend(backend, planned(name, ordering, outputs))


@lru_cache(maxsize=32)
def states(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tree, sensors = SYSTEMS[name]
    truth = random_states(tree, N_STATES, seed=21, wrench=1.0)
    Y = np.random.default_rng(22).normal(size=(N_STATES, System(tree, sensors).ny))
    return truth.q, truth.qd, Y


def exact(system: System, q: np.ndarray, qd: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return d (n,) by Gaussian elimination with row pivoting in extended precision, assembled in it too."""
    q, qd, y = (x.astype(np.longdouble) for x in (q, qd, y))
    at = velocities(system.tree, q, qd)
    n = system.shape[1]
    A = np.zeros((n, n + 1), dtype=np.longdouble)
    for rows, columns, block in system.blocks(at):
        A[rows, columns] = block
    A[:, n] = -np.concatenate(system.bias(at, y))
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]] = A[[pivot, k]]
        below = np.flatnonzero(A[k + 1 :, k]) + k + 1
        A[below] -= np.outer(A[below, k] / A[k, k], A[k])
    d = np.zeros(n, dtype=np.longdouble)
    for k in reversed(range(n)):
        d[k] = (A[k, n] - A[k, k + 1 : n] @ d[k + 1 :]) / A[k, k]
    return d.astype(float)


@lru_cache(maxsize=32)
def exact_states(name: str) -> np.ndarray:
    system = System(*SYSTEMS[name])
    return np.array([exact(system, *state) for state in zip(*states(name), strict=True)])


every_backend = pytest.mark.parametrize("backend", ROWS)
every_system = pytest.mark.parametrize("name", SYSTEMS)


def test_every_backend_and_ordering_is_tested():
    assert set(ROWS) == set(BACKENDS)
    assert set(ORDERS) == set(ORDERINGS)


@every_backend
def test_it_has_its_name(backend):
    assert made(backend, "inverse-mixed_8").name == backend


COMPILED = ("inverse-massless", "forward-three_children", "forward-one_body", "singular")
"""Systems small enough to be compiled in every order."""


@pytest.mark.parametrize(
    ("name", "ordering", "backend"),
    [(s, o, b) for s in SYSTEMS for o in ORDERS for b in ROWS if b != "native" or s in COMPILED]
    + [(s, "auto", "native") for s in SYSTEMS],
)
def test_all_agree_with_extended_precision(name, ordering, backend):
    solution = made(backend, name, ordering).solve_batch(*states(name)).of_each()
    columns = output_columns(planned(name, ordering).system, planned(name, ordering).outputs)
    assert_close(solution.values, exact_states(name)[:, columns], SOLVED)
    assert (solution.residual <= 1e-9).all()
    assert (solution.rcond >= RCOND_LIMIT).all()


@every_backend
@every_system
def test_one_state_is_a_batch_of_one(name, backend):
    run = made(backend, name)
    Q, Qd, Y = states(name)
    batch = run.solve_batch(Q, Qd, Y).of_each()
    for k in range(3):
        one = run.solve(Q[k], Qd[k], Y[k])
        alone = run.solve_batch(Q[k : k + 1], Qd[k : k + 1], Y[k : k + 1]).of_each()
        assert one.values.shape == batch.values[k].shape
        for other in (batch.values[k], alone.values[0]):
            assert_close(one.values, other, SOLVED)
        assert one.fell_back == batch.fell_back[k] == alone.fell_back[0]
        assert np.shape(one.residual) == np.shape(one.rcond) == np.shape(one.fell_back) == ()


@every_backend
@every_system
def test_a_ticker_is_solve_in_place(name, backend):
    run = made(backend, name)
    Q, Qd, Y = states(name)
    state, values = (
        np.zeros(sum(x.shape[1] for x in (Q, Qd, Y))),
        np.full(run.solve(Q[0], Qd[0], Y[0]).values.size, 7.0),
    )
    tick = run.ticker(state, values)
    for k in range(3):
        state[:] = np.concatenate([Q[k], Qd[k], Y[k]])
        before = state.copy()
        status = tick()
        assert isinstance(status, Status)
        assert status.ok
        assert_close(values, run.solve(Q[k], Qd[k], Y[k]).values, SOLVED)
        np.testing.assert_array_equal(state, before)


@every_backend
@every_system
def test_nothing_depends_on_earlier_states(name, backend):
    run = made(backend, name)
    Q, Qd, Y = states(name)
    first = run.solve(Q[0], Qd[0], Y[0])
    kept = first.values.copy()
    for k in range(1, 4):
        run.solve(Q[k], Qd[k], Y[k])
    run.solve_batch(Q, Qd, Y)
    again = run.solve(Q[0], Qd[0], Y[0])
    assert_close(again.values, kept, EXACT)
    assert_close(first.values, kept, EXACT)  # nor does what was returned change afterwards
    turned = run.solve_batch(Q[::-1].copy(), Qd[::-1].copy(), Y[::-1].copy())
    assert_close(turned.values[::-1], run.solve_batch(Q, Qd, Y).values, SOLVED)


@every_backend
def test_a_singular_state_does_not_spoil_the_next(backend):
    run = made(backend, "singular")
    Q, Qd, Y = states("singular")
    before = run.solve(Q[0], Qd[0], Y[0]).values
    flat = Q[0].copy()
    flat[1] = 0.0
    assert run.solve(flat, Qd[0], Y[0]).rcond < RCOND_LIMIT
    assert_close(run.solve(Q[0], Qd[0], Y[0]).values, before, EXACT)


@every_backend
@pytest.mark.parametrize("outputs", [None, ("tau",), ("qdd", "f")])
@pytest.mark.parametrize("angle", [0.0, 1e-17, np.pi])
def test_a_singular_state_gives_nan_and_never_numbers(angle, outputs, backend):
    run = made(backend, "singular", outputs=outputs)
    Q, Qd, Y = (x.copy() for x in states("singular"))
    Q[2, 1] = angle
    solution = run.solve(Q[2], Qd[2], Y[2])
    assert solution.rcond < RCOND_LIMIT
    assert np.isnan(solution.values).all()
    batch = run.solve_batch(Q, Qd, Y).of_each()
    assert np.isnan(batch.values[2]).all()
    assert batch.rcond[2] < RCOND_LIMIT
    others = np.arange(N_STATES) != 2
    assert np.isfinite(batch.values[others]).all()
    assert (batch.rcond[others] >= RCOND_LIMIT).all()


@every_backend
@pytest.mark.parametrize("angle", [1e-3, 1e-5, 1e-7, 1e-9])
def test_near_a_singular_state_numbers_are_right(angle, backend):
    run = made(backend, "singular")
    system = planned("singular").system
    q, qd, y = (x[1].copy() for x in states("singular"))
    q[1] = angle
    solution = run.solve(q, qd, y)
    assert solution.rcond >= RCOND_LIMIT
    columns = output_columns(system, planned("singular").outputs)
    assert_close(solution.values, exact(system, q, qd, y)[columns], SOLVED)
    if backend in ("native", "numpy"):
        assert solution.fell_back == (angle < 1e-4)


@every_backend
def test_partial_outputs_are_those_of_the_whole(backend):
    outputs = ("qdd", "fx:link3", "tau:joint2")
    run, everything = made(backend, "forward-mixed_5", outputs=outputs), made(backend, "forward-mixed_5")
    system = planned("forward-mixed_5").system
    part = output_columns(system, planned("forward-mixed_5", outputs=outputs).outputs)
    whole_columns = output_columns(system, planned("forward-mixed_5").outputs)
    assert len(part) == system.tree.nv + 6 + system.tree.joints[1].nv
    place = {column: k for k, column in enumerate(whole_columns.tolist())}
    solution, reference = (r.solve_batch(*states("forward-mixed_5")) for r in (run, everything))
    assert_close(solution.values, reference.values[:, [place[c] for c in part.tolist()]], SOLVED)


@every_backend
def test_many_states(backend):
    """More than fit a chunk or a vector, and a number that is no multiple of either."""
    name = "forward-three_children"
    tree, sensors = SYSTEMS[name]
    system = System(tree, sensors)
    truth = random_states(tree, 531, seed=2)
    Y = readings(system, truth._replace(tau=np.random.default_rng(3).normal(size=truth.qd.shape)))
    run = made(backend, name)
    batch = run.solve_batch(truth.q, truth.qd, Y)
    for k in (0, 7, 255, 256, 511, 512, 530):
        assert_close(batch.values[k], run.solve(truth.q[k], truth.qd[k], Y[k]).values, SOLVED)
    for threads in (2, 5):
        threaded = run.solve_batch(truth.q, truth.qd, Y, threads=threads)
        np.testing.assert_array_equal(threaded.values, batch.values)  # to the last digit
    out = np.full((5, 2 + batch.values.shape[1], 531), np.nan)[2, 1:-1].T  # any steps
    assert run.solve_batch(truth.q, truth.qd, Y, out=out).values is out
    np.testing.assert_array_equal(out, batch.values)


def test_sensors_of_test_are_square():
    for tree, sensors in SYSTEMS.values():
        system = System(tree, sensors)
        assert system.shape[0] == system.shape[1]
