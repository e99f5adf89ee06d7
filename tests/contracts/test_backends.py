"""Every backend obeys the laws of `Kernel`, and agrees with every other in every order, and with exact arithmetic."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError
from nori_dyn.estimation.plan import plan
from nori_dyn.measurements.base import VariableReading
from nori_dyn.model.joints import Revolute
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.registry import BACKENDS
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.program.status import Status
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.system.variables import VariableKey
from tests import covering
from tests.noted import noted
from tests.oracles import refined_solution
from tests.systems import FORWARD, INVERSE, hybrid, random_states, readings
from tests.tolerances import EXACT, SOLVED, assert_close
from tests.trees import TREES

pytestmark = pytest.mark.usefixtures("compiled_as_shipped")

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
        """The rows, as many as a robot of two joints needs."""
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


@cache
def planned(name: str, ordering: str = "recursive", outputs: tuple[str, ...] | None = None) -> EliminationPlan:
    return plan(System(*SYSTEMS[name]), outputs, ordering)


@cache
def made(backend: str, name: str, ordering: str = "recursive", outputs: tuple[str, ...] | None = None) -> Solver:
    if "umfpack" in (backend, ordering) and not has_umfpack():
        pytest.skip("the extra 'umfpack' is not installed")
    if backend == "native" and find_compiler() is None:
        pytest.skip("there is no C compiler")
    return Solver(planned(name, ordering, outputs), backend)


def each_made(name: str, ordering: str = "recursive", but: str = "") -> Iterator[Solver]:
    """Yield the program of a system in every backend that is installed."""
    is_there = {"native": find_compiler() is not None, "numpy": True, "umfpack": has_umfpack()}
    for backend in ROWS:
        if is_there[backend] and backend != but:
            yield made(backend, name, ordering)


class Found(NamedTuple):
    """What was computed of a state, or of N states."""

    values: np.ndarray
    residual: np.ndarray
    fell_back: np.ndarray
    rcond: np.ndarray


def one_of(run: Solver, *state: np.ndarray) -> Found:
    return Found(*run.solved(*state))


def many_of(run: Solver, *states: np.ndarray, threads: int = 1, out: np.ndarray | None = None) -> Found:
    values = np.empty((len(states[0]), run._layout.size)) if out is None else out
    return Found(values, *(np.broadcast_to(x, len(values)) for x in run.solved_batch(states, [values], threads)))


@cache
def states(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tree, sensors = SYSTEMS[name]
    truth = random_states(tree, N_STATES, seed=21, wrench=1.0)
    Y = np.random.default_rng(22).normal(size=(N_STATES, System(tree, sensors).ny))
    return truth.q, truth.qd, Y


@cache
def exact_states(name: str) -> np.ndarray:
    system = System(*SYSTEMS[name])
    return np.array([refined_solution(system, *state) for state in zip(*states(name), strict=True)])


every_backend = pytest.mark.parametrize("backend", ROWS)
every_system = pytest.mark.parametrize("name", SYSTEMS)


def test_every_backend_and_ordering_is_tested():
    assert set(ROWS) == set(BACKENDS)
    assert set(ORDERS) == set(ORDERINGS)


ALSO_COMPILED = {
    "inverse-massless": "markowitz",
    "forward-three_children": "auto",
    "forward-one_body": "umfpack",
    "singular": "superlu",
}
"""In which order besides `recursive` systems are compiled."""

SMALL = ("inverse-massless", "forward-one_body", "singular")
"""Systems that are solved in every order."""


def orders() -> Iterator[Any]:
    """Every system in one order, and small ones in every order."""
    for name in SYSTEMS:
        for ordering in (*ORDERS, "auto"):
            is_short = ordering in ("recursive", ALSO_COMPILED.get(name)) or name in SMALL
            yield pytest.param(name, ordering, marks=() if is_short else pytest.mark.long)


@pytest.mark.parametrize(("name", "ordering"), [*orders()])
def test_all_agree_with_extended_precision(name, ordering):
    is_compiled = covering.ALL or ordering in ("recursive", ALSO_COMPILED.get(name))
    for run in each_made(name, ordering, but="" if is_compiled else "native"):
        with noted(run.backend):
            solution = many_of(run, *states(name))
            columns = output_columns(planned(name, ordering).system, planned(name, ordering).outputs)
            assert_close(solution.values, exact_states(name)[:, columns], SOLVED)
            assert (solution.residual <= 1e-9).all()
            assert (solution.rcond >= RCOND_LIMIT).all()


@every_system
def test_one_state_is_a_batch_of_one_and_a_ticker_is_solve_in_place(name):
    Q, Qd, Y = states(name)
    for run in each_made(name):
        batch = many_of(run, Q, Qd, Y)
        state, values = np.zeros(Q.shape[1] + Qd.shape[1] + Y.shape[1]), np.full(batch.values.shape[1], 7.0)
        tick = run.ticker(state, values)
        for k in range(3):
            one = one_of(run, Q[k], Qd[k], Y[k])
            alone = many_of(run, Q[k : k + 1], Qd[k : k + 1], Y[k : k + 1])
            state[:] = np.concatenate([Q[k], Qd[k], Y[k]])
            before = state.copy()
            status = tick()
            with noted(run.backend):
                assert isinstance(status, Status)
                assert status.ok
                np.testing.assert_array_equal(state, before)
                for other in (batch.values[k], alone.values[0], values):
                    assert_close(other, one.values, SOLVED)
                assert one.fell_back == batch.fell_back[k] == alone.fell_back[0]
                assert np.shape(one.residual) == np.shape(one.rcond) == np.shape(one.fell_back) == ()


@every_system
def test_nothing_depends_on_earlier_states(name):
    Q, Qd, Y = states(name)
    for run in each_made(name):
        first = one_of(run, Q[0], Qd[0], Y[0])
        kept = first.values.copy()
        for k in range(1, 4):
            one_of(run, Q[k], Qd[k], Y[k])
        batch = many_of(run, Q, Qd, Y)
        again = one_of(run, Q[0], Qd[0], Y[0])
        turned = many_of(run, Q[::-1].copy(), Qd[::-1].copy(), Y[::-1].copy())
        with noted(run.backend):
            assert_close(again.values, kept, EXACT)
            assert_close(first.values, kept, EXACT)  # nor does what was returned change afterwards
            assert_close(turned.values[::-1], batch.values, SOLVED)


@every_backend
@pytest.mark.parametrize("outputs", [None, ("tau",), ("qdd", "f")])
def test_a_singular_state_gives_nan_never_numbers_and_does_not_spoil_the_next(outputs, backend):
    run = made(backend, "singular", outputs=outputs)
    assert run.backend == backend
    others = np.arange(N_STATES) != 2
    for angle in (0.0, 1e-17, np.pi):
        Q, Qd, Y = (x.copy() for x in states("singular"))
        before = one_of(run, Q[0], Qd[0], Y[0]).values.copy()
        Q[2, 1] = angle
        solution = one_of(run, Q[2], Qd[2], Y[2])
        assert solution.rcond < RCOND_LIMIT, angle
        assert np.isnan(solution.values).all(), angle
        for array, value in zip((run.inputs.q, run.inputs.qd, run.inputs.y), (Q[2], Qd[2], Y[2]), strict=True):
            array[:] = value
        status = run.tick()
        assert not status.ok
        assert status.rcond < status.threshold == RCOND_LIMIT
        assert all(np.isnan(values).all() for values in vars(run.outputs).values()), angle
        with pytest.raises(SingularSystemError, match="its rcond is"):
            status.raise_for_status()
        run.inputs.q[1] = 0.5
        assert run.tick().ok
        assert_close(one_of(run, Q[0], Qd[0], Y[0]).values, before, EXACT)
        batch = many_of(run, Q, Qd, Y)
        assert np.isnan(batch.values[2]).all(), angle
        assert batch.rcond[2] < RCOND_LIMIT, angle
        assert np.isfinite(batch.values[others]).all(), angle
        assert (batch.rcond[others] >= RCOND_LIMIT).all(), angle


@every_backend
def test_partial_outputs_are_those_of_the_whole(backend):
    outputs = ("qdd", "fx:link3", "tau:joint2")
    run, everything = made(backend, "forward-mixed_5", outputs=outputs), made(backend, "forward-mixed_5")
    system = planned("forward-mixed_5").system
    part = output_columns(system, planned("forward-mixed_5", outputs=outputs).outputs)
    whole_columns = output_columns(system, planned("forward-mixed_5").outputs)
    assert len(part) == system.tree.nv + 6 + system.tree.joints[1].nv
    place = {column: k for k, column in enumerate(whole_columns.tolist())}
    solution, reference = (many_of(r, *states("forward-mixed_5")) for r in (run, everything))
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
    batch = many_of(run, truth.q, truth.qd, Y)
    for k in (0, 7, 255, 256, 511, 512, 530):
        assert_close(batch.values[k], one_of(run, truth.q[k], truth.qd[k], Y[k]).values, SOLVED)
    for threads in (2, 5):
        threaded = many_of(run, truth.q, truth.qd, Y, threads=threads)
        np.testing.assert_array_equal(threaded.values, batch.values)  # to the last digit
    out = np.full((5, 2 + batch.values.shape[1], 531), np.nan)[2, 1:-1].T  # any steps
    assert many_of(run, truth.q, truth.qd, Y, out=out).values is out
    np.testing.assert_array_equal(out, batch.values)
